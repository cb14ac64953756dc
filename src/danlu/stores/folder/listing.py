"""One page of keys from an index, by range scans: what is folded away is jumped over."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from danlu.model.errors import Invalid
from danlu.ports.objects import Listing, ObjectInfo, Upload, Uploads

if TYPE_CHECKING:
    from danlu.stores.folder.index import Connection

ROW = "key, size, etag, parts, sha256, modified_at, metadata, headers, tags, blob"
ONE = f"SELECT {ROW} FROM objects WHERE key = ?"  # noqa: S608 - no text of a user
_FROM = f"SELECT {ROW} FROM objects WHERE key >= ? ORDER BY key"  # noqa: S608 - as above
_BETWEEN = f"SELECT {ROW} FROM objects WHERE key >= ? AND key < ? ORDER BY key"  # noqa: S608 - as above
STEPS = 16
"""Folded keys that are stepped over before a new search is cheaper."""

Row = tuple[Any, ...]
T = TypeVar("T")


def info(bucket: str, row: Row) -> ObjectInfo:
    """What a row of these queries says."""
    key, size, etag, parts, sha256, modified_at, metadata, headers, _, _ = row
    return ObjectInfo(
        bucket=bucket,
        key=key.decode(),
        size=size,
        etag=etag_text(etag, parts),
        modified_at=modified_at,
        metadata=json.loads(metadata) if metadata else {},
        sha256=sha256.hex(),
        headers=json.loads(headers) if headers else {},
    )


def etag_text(digest: bytes, parts: int) -> str:
    """The etag of an object: that of S3, also for one uploaded in parts."""
    return f"{digest.hex()}-{parts}" if parts else digest.hex()


def page(
    connection: Connection, bucket: str, prefix: bytes, delimiter: bytes, after: bytes, limit: int
) -> Listing:
    """At most `limit` entries that begin with `prefix` and are greater than `after`.

    An entry is a key, or the beginning of keys up to the first `delimiter` behind the prefix.
    """
    objects: list[ObjectInfo] = []
    prefixes: list[str] = []
    last = ""
    for entry in _entries(connection, prefix, delimiter, after):
        if len(objects) + len(prefixes) == limit:
            return Listing(objects, prefixes, last if limit else None)
        if isinstance(entry, bytes):
            last = entry.decode()
            prefixes.append(last)
        else:
            objects.append(info(bucket, entry))
            last = objects[-1].key
    return Listing(objects, prefixes)


def _entries(
    connection: Connection, prefix: bytes, delimiter: bytes, after: bytes
) -> Iterator[Row | bytes]:
    """Rows, and folded prefixes as bytes, in order."""
    start: bytes | None = _start(prefix, delimiter, after)
    while start is not None:
        start = yield from _scan(connection, prefix, delimiter, start)


def _scan(
    connection: Connection, prefix: bytes, delimiter: bytes, start: bytes
) -> Generator[Row | bytes, None, bytes | None]:
    """Entries from `start` on. Returns where to search again, or None at the end."""
    folded = b""
    steps = 0
    for row in _rows(connection, start, _end(prefix)):
        key: bytes = row[0]
        if folded and key.startswith(folded):
            steps += 1
            if steps == STEPS:
                return _end(folded)
            continue
        folded = fold(key, prefix, delimiter)
        steps = 0
        yield folded or row
    return None


def _rows(connection: Connection, start: bytes, end: bytes | None) -> Iterator[Row]:
    if end is None:
        return connection.execute(_FROM, (start,))
    return connection.execute(_BETWEEN, (start, end))


def fold(key: bytes, prefix: bytes, delimiter: bytes) -> bytes:
    """The prefix that stands for `key` in a listing, or nothing where it stands for itself."""
    if not delimiter:
        return b""
    at = key.find(delimiter, len(prefix))
    return key[: at + len(delimiter)] if at >= 0 else b""


def uploads(
    found: Iterable[Upload], prefix: bytes, delimiter: bytes, after: tuple[str, str], limit: int
) -> Uploads:
    """One page of uploads, which come in order, and from before that page on. They are few: all
    are looked at.
    """
    page: list[Upload] = []
    prefixes: list[str] = []
    last = ("", "")
    for entry in _uploads(found, prefix, delimiter, after):
        if len(page) + len(prefixes) == limit:
            return Uploads(page, prefixes, last if limit else None)
        if isinstance(entry, bytes):
            prefixes.append(entry.decode())
            last = (prefixes[-1], "")
        else:
            page.append(entry)
            last = (entry.key, entry.id)
    return Uploads(page, prefixes)


def _uploads(
    found: Iterable[Upload], prefix: bytes, delimiter: bytes, after: tuple[str, str]
) -> Iterator[Upload | bytes]:
    """Uploads behind `after`, and folded prefixes as bytes, in order."""
    behind = (after[0].encode(), after[1])
    folded = b"" if after[1] else fold(behind[0], prefix, delimiter)
    for upload in found:
        key = upload.key.encode()
        if not key.startswith(prefix) or (folded and key.startswith(folded)):
            continue
        if (key, upload.id) <= behind or (key == behind[0] and not behind[1]):
            continue
        folded = fold(key, prefix, delimiter)
        yield folded or upload


def _start(prefix: bytes, delimiter: bytes, after: bytes) -> bytes:
    """The least key whose entry can be greater than `after`."""
    if not after or after < prefix:
        return prefix
    folded = fold(after, prefix, delimiter) if after.startswith(prefix) else b""
    return _end(folded) or after + b"\0"


def _end(prefix: bytes) -> bytes | None:
    """The least bytes greater than everything that begins with `prefix`; None = no end.

    Keys and prefixes are UTF-8, in which 0xff does not occur.
    """
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else None


def chosen(
    wanted: Sequence[tuple[int, str]], there: Mapping[int, T], etag: Callable[[T], str]
) -> list[T]:
    """The parts of an upload that a caller wants, in the order of their numbers, or Invalid."""
    last = 0
    found: list[T] = []
    for number, wanted_etag in wanted:
        if number <= last:
            raise Invalid("upload-order", number=number, last=last)
        part = there.get(number)
        if part is None or etag(part) != wanted_etag:
            has = "-" if part is None else etag(part)
            raise Invalid("upload-part", number=number, etag=wanted_etag, found=has)
        last = number
        found.append(part)
    if not found:
        raise Invalid("upload-empty")
    return found
