"""The codes of S3 and OBS for our text keys, and the body of an error reply.

Clients decide by code and status: what to try again, what is "not there". What has no counterpart
goes by the class of the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from danlu.model.errors import (
    Denied,
    EngineError,
    Invalid,
    Missing,
    PlatformError,
    Refused,
    Unavailable,
)
from danlu.model.texts import Language
from danlu.wire.obs import Field, document

ARGUMENT = "InvalidArgument"
DENIED = "AccessDenied"
SKEWED = "RequestTimeTooSkewed"
BAD_DIGEST = "BadDigest"
NOT_IMPLEMENTED = "NotImplemented"
MISMATCH = "SignatureDoesNotMatch"

CODES: Mapping[str, str] = MappingProxyType(
    {
        "no-such-bucket": "NoSuchBucket",
        "no-such-object": "NoSuchKey",
        "no-such-upload": "NoSuchUpload",
        "no-such-path": "NoSuchKey",
        "bucket-name": "InvalidBucketName",
        "bucket-exists": "BucketAlreadyExists",
        "bucket-not-empty": "BucketNotEmpty",
        "object-key": "KeyTooLongError",
        "object-key-encoding": "InvalidURI",
        "upload-part-small": "EntityTooSmall",
        "object-condition": "PreconditionFailed",
        "object-position": "PositionNotEqualToLength",
        "object-range": "InvalidRange",
        "object-damaged": "InternalError",
        "disk-full": "InsufficientStorageSpace",
        "busy": "SlowDown",
        "body-too-large": "EntityTooLarge",
        "host-refused": DENIED,
        "internal": "InternalError",
        "method-not-allowed": "MethodNotAllowed",
        "no-credentials": DENIED,
        "signature-key": "InvalidAccessKeyId",
        "signature-malformed": "InvalidArgument",
        "upload-changed": "InvalidPart",
        "upload-empty": "MalformedXML",
        "upload-order": "InvalidPartOrder",
        "upload-part": "InvalidPart",
        "upload-part-number": "InvalidArgument",
        "obs-authorization": "AuthorizationHeaderMalformed",
        "obs-algorithm": "InvalidRequest",
        "obs-bucket-denied": DENIED,
        "obs-bucket-owned": "BucketAlreadyOwnedByYou",
        "obs-bucket-region": "InvalidLocationConstraint",
        "obs-checksum": BAD_DIGEST,
        "obs-chunk": "IncompleteBody",
        "obs-chunk-signature": MISMATCH,
        "obs-copy-itself": "InvalidRequest",
        "obs-copy-source": ARGUMENT,
        "obs-date": DENIED,
        "obs-digest": "InvalidDigest",
        "obs-expired": DENIED,
        "obs-header-unsigned": DENIED,
        "obs-incomplete": "IncompleteBody",
        "obs-length": "MissingContentLength",
        "obs-method": "MethodNotAllowed",
        "obs-no-configuration": "NoSuchConfiguration",
        "obs-no-credentials": DENIED,
        "obs-not-implemented": NOT_IMPLEMENTED,
        "obs-object-size": "InvalidRequest",
        "obs-payload": "XAmzContentSHA256Mismatch",
        "obs-query": "InvalidArgument",
        "obs-signature": MISMATCH,
        "obs-skewed": SKEWED,
        "obs-tag": "InvalidTag",
        "obs-version": "NoSuchVersion",
        "obs-xml": "MalformedXML",
    }
)
"""The code of a text key."""

CLASSES: tuple[tuple[type[PlatformError], str], ...] = (
    (Invalid, ARGUMENT),
    (Denied, DENIED),
    (Missing, "NoSuchKey"),
    (Refused, "OperationAborted"),
    (EngineError, "InternalError"),
    (Unavailable, "ServiceUnavailable"),
)


def code(problem: PlatformError) -> str:
    """The code of an error. One that says its own has it in `obs_code`."""
    own = problem.params.get("obs_code")
    if isinstance(own, str):
        return own
    known = CODES.get(problem.key)
    if known:
        return known
    return next((found for kind, found in CLASSES if isinstance(problem, kind)), "InternalError")


def status(problem: PlatformError) -> int:
    """The HTTP status. In S3 nobody is asked for credentials: who is not known is not allowed."""
    return 403 if problem.http == 401 else problem.http


def error(problem: PlatformError, resource: str, request_id: str, language: Language) -> bytes:
    """The body of an error reply. A signature that does not match says what was to be signed."""
    fields: list[Field] = [
        ("Code", code(problem)),
        ("Message", problem.message(language)),
        ("Resource", resource),
        ("RequestId", request_id),
        ("HostId", "danlu"),
        ("Cause", problem.key),
    ]
    for element, name in DETAILS:
        value = problem.params.get(name)
        if isinstance(value, str) and value:
            fields.append((element, value))
    return document("Error", fields)


DETAILS = (
    ("StringToSign", "string_to_sign"),
    ("CanonicalRequest", "canonical_request"),
    ("AWSAccessKeyId", "access_key"),
    ("ServerTime", "server_time"),
)
"""Elements that S3 adds to an error, and the parameters that they show."""
