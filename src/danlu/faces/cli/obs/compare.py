"""Whether a file and an object are the same."""

from __future__ import annotations

import hashlib
import os

from danlu.faces.cli.obs.tree import Item
from danlu.faces.cli.obs.upload import CHUNK, PART_BYTES, buffer

PART_SIZES = tuple(
    mib << 20 for mib in (5, 6, 8, 9, 10, 15, 16, 20, 25, 32, 50, 64, 100, 128, 256, 512, 1024)
)
"""How large programs usually make their parts: an ETag only says how many there are."""


def changed(source: Item, there: Item | None) -> bool:
    """Whether what is there has to be replaced, by size and time alone."""
    if there is None or source.size != there.size:
        return True
    if source.etag and source.etag == there.etag:
        return False
    return source.modified >= _end_of(there.modified)


def unsure(source: Item, there: Item) -> bool:
    """Whether a file may have changed within the second of which the store only says that."""
    return there.modified < source.modified < _end_of(there.modified)


def _end_of(instant: float) -> float:
    """The end of what an instant stands for: many stores say only the second."""
    return instant + (1 if instant.is_integer() else 0.001)


def same_content(descriptor: int, size: int, etag: str) -> bool | None:
    """Whether a file has the content that an ETag stands for; None where that cannot be told."""
    etag = etag.lower()
    plain, _, count = etag.partition("-")
    if len(plain) != 32 or plain.strip("0123456789abcdef"):
        return None
    if not count:
        return _md5(descriptor, 0, size).hex() == plain
    if not count.isdigit() or not int(count):
        return None
    fitting = [part for part in PART_SIZES if -(-size // part) == int(count)]
    own = max(PART_BYTES, -(-size // 9000))
    for part in dict.fromkeys([own, *fitting]):
        if -(-size // part) != int(count):
            continue
        digests = b"".join(
            _md5(descriptor, start, min(part, size - start)) for start in range(0, size, part)
        )
        if hashlib.md5(digests, usedforsecurity=False).hexdigest() == plain:
            return True
    return False if fitting else None


def _md5(descriptor: int, start: int, length: int) -> bytes:
    digest, view, at = hashlib.md5(usedforsecurity=False), buffer(), start
    while at < start + length:
        count = os.preadv(descriptor, [view[: min(CHUNK, start + length - at)]], at)
        if not count:
            break
        digest.update(view[:count])
        at += count
    return digest.digest()
