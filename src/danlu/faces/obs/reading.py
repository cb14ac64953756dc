"""What the headers of a request say: metadata, conditions, ranges, the source of a copy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import quote, unquote

from danlu.faces.http.headers import text_of
from danlu.faces.http.reply import Header
from danlu.faces.obs.request import Request
from danlu.model.errors import Denied, Invalid, Missing, Refused
from danlu.ports.objects import HEADERS, ObjectInfo

UNSUPPORTED = (
    "grant-",
    "object-lock-",
    "server-side-encryption",
    "website-redirect-location",
    "write-offset-bytes",
)
"""Beginnings of headers, behind the dialect's prefix, that ask for what there is not."""
OWN_ACLS = frozenset({"", "private", "bucket-owner-full-control", "bucket-owner-read"})

_RANGE = re.compile(r"bytes\s*=\s*(\d{0,18})\s*-\s*(\d{0,18})", re.ASCII)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)


def refuse_unsupported(request: Request) -> None:
    """Refused (501) for headers of a write that would not be carried out."""
    prefix = request.dialect.prefix
    for name in request.headers.names():
        rest = name.removeprefix(prefix) if name.startswith(prefix) else ""
        if rest.startswith(UNSUPPORTED):
            raise Refused("obs-not-implemented", http=501, what=f"the header {name}")
    canned, kept = request.own("acl"), request.own("storage-class")
    if canned not in OWN_ACLS:
        raise Refused("obs-not-implemented", http=501, what=f"the access list '{canned}'")
    if kept not in ("", "STANDARD"):
        raise Refused("obs-not-implemented", http=501, what=f"the storage class '{kept}'")
    owner = request.own("expected-bucket-owner")
    if owner not in ("", request.owner.id):
        raise Denied("obs-bucket-denied", http=403, bucket=request.bucket)


def check_version(request: Request) -> None:
    """Missing for a version: there is one of each object, which is called `null`."""
    version = request.query.get("versionId")
    if version not in ("", "null"):
        raise Missing("obs-version", version=version)


def metadata(request: Request) -> dict[str, str]:
    """The object's own metadata, by name without the prefix."""
    prefix = f"{request.dialect.prefix}meta-"
    return {
        name.removeprefix(prefix): request.header(name)
        for name in request.headers.names()
        if name.startswith(prefix) and len(name) > len(prefix)
    }


def kept_headers(request: Request) -> dict[str, str]:
    """The headers that an object keeps."""
    found = {name: request.header(name) for name in HEADERS}
    # What a body's coding on the wire was is not the object's.
    codings = [text.strip() for text in found["content-encoding"].split(",")]
    found["content-encoding"] = ",".join(
        text for text in codings if text not in ("", "aws-chunked")
    )
    return {name: value for name, value in found.items() if value}


def shown(info: ObjectInfo, prefix: str) -> list[Header]:
    """An object's headers and metadata for its reader."""
    found = [(name.encode(), _value(value)) for name, value in info.headers.items()]
    for name, value in info.metadata.items():
        header = name if _NAME.fullmatch(name) else quote(name, safe="")
        found.append((f"{prefix}meta-{header}".encode(), _value(value)))
    return found


def _value(text: str) -> bytes:
    """A header's value. What came from elsewhere may hold what no header can."""
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in text):
        return quote(text, safe=" /:;,=+@").encode()
    return text.encode("utf-8", "replace")


# ---------------------------------------------------------------- conditions


@dataclass(frozen=True, slots=True)
class PutCondition:
    """What must hold of a key that is written."""

    if_absent: bool = False
    if_etag: str | None = None


def put_condition(request: Request) -> PutCondition:
    """If-None-Match: * and If-Match: "etag"; Refused (501) for other forms."""
    none, match = request.header("if-none-match"), request.header("if-match")
    if none and (none != "*" or match):
        raise Refused("obs-not-implemented", http=501, what=f"If-None-Match: {none} on a write")
    if match and (match == "*" or "," in match):
        raise Refused("obs-not-implemented", http=501, what=f"If-Match: {match} on a write")
    return PutCondition(bool(none), _bare(match) if match else None)


def refuse_conditions(request: Request) -> None:
    """Refused (501) for conditions on the target of an operation that cannot hold them."""
    for name in ("if-match", "if-none-match"):
        if request.header(name):
            raise Refused("obs-not-implemented", http=501, what=f"{name} here")


def unchanged(request: Request, info: ObjectInfo, prefix: str = "") -> bool:
    """Whether a reader has the object already (304); Refused (412) where a condition fails.

    With a `prefix` (`copy-source-`), of the conditions on the source of a copy.
    """
    read = request.own if prefix else request.header
    match, none = read(f"{prefix}if-match"), read(f"{prefix}if-none-match")
    modified_s = info.modified_at // 1000
    if match:
        if not _matches(match, info.etag):
            raise _failed(info, "if-match", match)
    else:
        until = _seconds(read(f"{prefix}if-unmodified-since"))
        if until is not None and modified_s > until:
            raise _failed(info, "if-unmodified-since", read(f"{prefix}if-unmodified-since"))
    if none:
        same = _matches(none, info.etag)
    else:
        since = _seconds(read(f"{prefix}if-modified-since"))
        same = since is not None and modified_s <= since
    if same and prefix:
        raise _failed(info, "if-none-match or if-modified-since", none)
    return same


def _failed(info: ObjectInfo, name: str, value: str) -> Refused:
    condition = f"{name}: {value}"
    return Refused(
        "object-condition", http=412, bucket=info.bucket, key=info.key, condition=condition
    )


def _matches(listed: str, etag: str) -> bool:
    return any(text.strip() == "*" or _bare(text) == etag for text in listed.split(","))


def _bare(text: str) -> str:
    """An ETag without its quotes, which Huawei's SDK percent-encodes."""
    return text.replace("%22", '"').strip().removeprefix("W/").strip('"')


def _seconds(text: str) -> int | None:
    """Seconds since 1970; None for what is no date, which counts as not sent."""
    if not text or len(text) > 64:
        return None
    try:
        return int(parsedate_to_datetime(text).timestamp())
    except (ValueError, TypeError, OverflowError):
        return None


# ---------------------------------------------------------------- ranges and copies


def span(text: str, size: int, key: str) -> tuple[int, int] | None:
    """First byte and number of bytes; None where the whole is meant, as for what is no range.

    Invalid (416) for a range that begins behind the end.
    """
    match = _RANGE.fullmatch(text.strip())
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        length = min(int(match[2]), size)
        if not length:
            raise Invalid("object-range", http=416, key=key, start=size, end=size, size=size)
        return size - length, length
    start = int(match[1])
    end = min(int(match[2]), size - 1) if match[2] else size - 1
    if match[2] and int(match[2]) < start:
        return None
    if start >= size:
        raise Invalid("object-range", http=416, key=key, start=start, end=end, size=size)
    return start, end - start + 1


def copy_source(request: Request) -> tuple[str, str]:
    """Bucket and key of the header `x-amz-copy-source`."""
    text = text_of(request.headers.get(f"{request.dialect.prefix}copy-source") or "").strip()
    path, _, version = text.partition("?versionId=")
    if version not in ("", "null"):
        raise Missing("obs-version", version=version)
    bucket, _, key = unquote(path, errors="surrogateescape").removeprefix("/").partition("/")
    if not bucket or not key:
        raise Invalid("obs-copy-source", value=text)
    return bucket, key


def directive(request: Request, name: str, default: str, *choices: str) -> str:
    """A header that says what to do; Invalid for another word."""
    found = request.own(name).upper() or default
    if found not in choices:
        header = f"{request.dialect.prefix}{name}"
        raise Invalid(
            "field-value", field=header, value=found, expected=f"one of {', '.join(choices)}"
        )
    return found
