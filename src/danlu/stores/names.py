"""What may be a bucket and a key, for every object store."""

from __future__ import annotations

import re
from collections.abc import Mapping

from danlu.model.errors import Invalid
from danlu.model.url import MAX_KEY_BYTES
from danlu.ports.objects import HEADERS

_BUCKET = re.compile(r"[a-z0-9]+(?:(?:\.|-+)[a-z0-9]+)*")
_ADDRESS = re.compile(r"[0-9]+(?:\.[0-9]+){3}")

METADATA_BYTES = 8 << 10
"""Keys and values of an object's metadata together, as OBS limits them; likewise of its headers,
and of its tags.
"""


def is_bucket(name: str) -> bool:
    """The rules of S3 and OBS: 3 to 63 of `a-z0-9.-`, no dot beside a dot or hyphen, no address.

    A name that passes is also safe as the name of a directory.
    """
    return bool(3 <= len(name) <= 63 and _BUCKET.fullmatch(name) and not _ADDRESS.fullmatch(name))


def check_bucket(name: str) -> None:
    """Raise Invalid for what cannot be a bucket."""
    if not is_bucket(name):
        raise Invalid("bucket-name", bucket=name)


def key_bytes(key: str) -> bytes:
    """The UTF-8 of a key, or Invalid where it has none or the wrong length."""
    try:
        encoded = key.encode()
    except UnicodeEncodeError:
        shown = key.encode("utf-8", "backslashreplace").decode()
        raise Invalid("object-key-encoding", key=shown) from None
    if not 1 <= len(encoded) <= MAX_KEY_BYTES:
        raise Invalid("object-key", key=key, size=len(encoded))
    return encoded


def part_bytes(text: str) -> bytes:
    """The UTF-8 of a prefix, delimiter or place to go on after; Invalid where it has none."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        shown = text.encode("utf-8", "backslashreplace").decode()
        raise Invalid("object-key-encoding", key=shown) from None


def check_texts(texts: Mapping[str, str], field: str) -> None:
    """Raise Invalid for metadata, headers or tags that are too long together."""
    size = sum(
        len(text.encode("utf-8", "surrogatepass")) for pair in texts.items() for text in pair
    )
    if size > METADATA_BYTES:
        raise Invalid(
            "field-too-long",
            field=field,
            size=size,
            unit="bytes",
            limit=METADATA_BYTES,
            remedy="keep long values in an object of their own",
        )


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise Invalid for a header that an object does not keep."""
    for name in headers:
        if name not in HEADERS:
            raise Invalid("object-header", name=name, known=", ".join(HEADERS))
    check_texts(headers, "headers")
