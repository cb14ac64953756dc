"""AWS Signature Version 4: what those who sign and the one who checks have in common. Pure.

Source: Amazon S3 API reference, "Authenticating Requests (AWS Signature Version 4)". Texts are as
they stand on the wire: bytes beyond ASCII are Latin-1.
"""

from __future__ import annotations

import functools
import hashlib
import hmac

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
EMPTY = hashlib.sha256(b"").hexdigest()
MOST_EXPIRES_S = 7 * 24 * 3600
"""A signed URL is good for a week at most."""

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_QUOTED = [chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in range(256)]
_IN_PATH = [*_QUOTED[: ord("/")], "/", *_QUOTED[ord("/") + 1 :]]


def quote(text: str) -> str:
    """Percent-encoded, all but RFC 3986's unreserved characters."""
    return "".join([_QUOTED[byte] for byte in text.encode()])


def quote_path(text: str) -> str:
    """The same, but for slashes."""
    return "".join([_IN_PATH[byte] for byte in text.encode()])


def scope_of(day: str, region: str, service: str = "s3") -> str:
    """What a signing key is good for. `day` is UTC as `20260131`."""
    return f"{day}/{region}/{service}/aws4_request"


def string_to_sign(canonical: str, date: str, scope: str) -> str:
    """What the signing key signs of a canonical request. `date` is UTC as `20260131T235959Z`."""
    digest = hashlib.sha256(canonical.encode("latin-1", "replace")).hexdigest()
    return f"{ALGORITHM}\n{date}\n{scope}\n{digest}"


@functools.lru_cache(maxsize=256)
def signing_key(secret: str, day: str, region: str, service: str = "s3") -> bytes:
    """The key of a day, a region and a service."""
    key = f"AWS4{secret}".encode()
    for text in (day, region, service, "aws4_request"):
        key = hmac.digest(key, text.encode("latin-1", "replace"), "sha256")
    return key


def sign(key: bytes, text: str) -> str:
    """A signature in hexadecimal digits."""
    return hmac.digest(key, text.encode("latin-1", "replace"), "sha256").hex()
