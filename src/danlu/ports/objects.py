"""The seam to where objects live: buckets of keys with S3's semantics.

A key is 1 to 1,024 bytes of UTF-8 and means nothing but itself: `a`, `a/`, `a/b`, `../x` and
`a//b` are five different keys. `tests/contract/test_objects*.py` run against every
implementation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What is known of an object without reading it. `modified_at` is UTC milliseconds.

    `etag` is the hexadecimal MD5 of the content, as S3 gives it for a single put (without
    quotes); `sha256` is that digest, or empty where it was never computed.
    """

    bucket: str
    key: str
    size: int
    etag: str
    modified_at: int
    metadata: Mapping[str, str] = field(default_factory=dict)
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a listing. `next` is the key or prefix to go on after, or None at the end."""

    objects: Sequence[ObjectInfo]
    prefixes: Sequence[str] = ()
    next: str | None = None


class ObjectStore(Protocol):
    """Buckets and objects. Safe to use from several threads and processes at once."""

    def buckets(self) -> Sequence[str]:
        """The names of all buckets, sorted."""

    def create_bucket(self, bucket: str) -> bool:
        """Make a bucket; False if it was there already. Invalid for a bad name."""

    def delete_bucket(self, bucket: str) -> None:
        """Remove an empty bucket. Missing, or Refused while it holds objects."""

    def put(
        self,
        bucket: str,
        key: str,
        source: bytes | BinaryIO,
        *,
        metadata: Mapping[str, str] | None = None,
        if_absent: bool = False,
        if_etag: str | None = None,
    ) -> ObjectInfo:
        """Store `source` under `key`, visible only when complete and on disk.

        `if_absent`: Refused (http 412) when the key exists. `if_etag`: Refused (412) unless the
        key exists with that etag. Missing for an unknown bucket.
        """

    def head(self, bucket: str, key: str) -> ObjectInfo:
        """What is known of an object; Missing if there is none."""

    def read(
        self, bucket: str, key: str, start: int = 0, length: int | None = None
    ) -> Iterator[bytes]:
        """The content from byte `start`, at most `length` bytes, in chunks.

        Raises Missing or Invalid (http 416: `start` is negative, or not 0 and at or behind the
        end) before the first chunk is taken. A reader keeps reading the version it began with,
        whatever is put or deleted meanwhile.
        """

    def delete(self, bucket: str, keys: Iterable[str]) -> None:
        """Remove keys; those that do not exist are no error. Missing for an unknown bucket."""

    def copy(self, bucket: str, key: str, to_bucket: str, to_key: str) -> ObjectInfo:
        """Copy an object with its metadata."""

    def list(
        self,
        bucket: str,
        prefix: str = "",
        *,
        delimiter: str = "",
        after: str = "",
        limit: int = 1000,
    ) -> Listing:
        """Keys that begin with `prefix`, in order of their UTF-8 bytes, after `after`.

        With a `delimiter`, keys that hold it behind the prefix are folded into `prefixes`; both
        count towards `limit`, and of both only those greater than `after` are listed, so that
        paging by `Listing.next` sees every entry once.
        """

    def walk(self, bucket: str, prefix: str = "") -> Iterator[ObjectInfo]:
        """Every object below `prefix`, in order, page by page."""


class Shelf(Protocol):
    """One place with files, read by names relative to it that may come from anywhere."""

    def read(self, name: str) -> Iterator[bytes]:
        """The content of a file, in chunks; Missing where there is none of that name."""


class LocalFiles(Protocol):
    """A store whose objects lie in files of this machine (power of the folder store)."""

    def local_file(self, bucket: str, key: str) -> str:
        """The path of a file with the object's content. Read only: never write to it.

        The file goes when the object is replaced or deleted; whoever finds it gone asks again.
        """
