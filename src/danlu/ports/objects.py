"""The seam to where objects live: buckets of keys with S3's semantics.

A key is 1 to 1,024 bytes of UTF-8 and means nothing but itself: `a`, `a/`, `a/b`, `../x` and
`a//b` are five different keys. What only some stores can do are protocols of their own: ask with
`isinstance(store, Multipart)`. `tests/contract/test_objects*.py` run against every implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol, runtime_checkable

HEADERS = (
    "content-type",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
)
"""What an object keeps of the headers that it was stored with, beside its own metadata."""

MAX_PARTS = 10_000
"""Parts of an upload; they are numbered from 1."""


@dataclass(frozen=True, slots=True)
class BucketInfo:
    """A bucket, and when it was made (UTC milliseconds)."""

    name: str
    created_at: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What a bucket holds: the number of objects, and their bytes together."""

    objects: int
    size: int


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What is known of an object without reading it. `modified_at` is UTC milliseconds.

    `etag` has no quotes. It is the hexadecimal MD5 of the content where that was stored as one
    piece; of an upload in N parts it is the MD5 of the parts' MD5s (16 bytes each), and `-N`.
    `sha256` is the digest of the whole content, or empty where it was never computed. `headers`
    has names out of `HEADERS`.
    """

    bucket: str
    key: str
    size: int
    etag: str
    modified_at: int
    metadata: Mapping[str, str] = field(default_factory=dict)
    sha256: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a listing. `next` is the key or prefix to go on after, or None at the end."""

    objects: Sequence[ObjectInfo]
    prefixes: Sequence[str] = ()
    next: str | None = None


@dataclass(frozen=True, slots=True)
class StorePowers:
    """What a store promises beyond what all do.

    `any_key`: every key is stored as itself; otherwise some are refused (Invalid). `ordered`:
    listings are in the order of the keys' bytes. `steady_reads`: a reader keeps the version it
    began with; otherwise it may get Unavailable (`object-changed`) in the middle, and never a
    mixture. `describes`: metadata and headers are kept, and etags are digests; otherwise metadata
    is dropped and an etag is a text that changes with the object.
    """

    any_key: bool = True
    ordered: bool = True
    steady_reads: bool = True
    describes: bool = True


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload in parts that is neither complete nor aborted."""

    bucket: str
    key: str
    id: str
    created_at: int
    metadata: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an upload. `etag` is the hexadecimal MD5 of its content."""

    number: int
    size: int
    etag: str
    modified_at: int


@dataclass(frozen=True, slots=True)
class Parts:
    """One page of an upload's parts. `next` is the number to go on after, or None at the end."""

    parts: Sequence[Part]
    next: int | None = None


@dataclass(frozen=True, slots=True)
class Uploads:
    """One page of uploads. `next` is the key (or prefix) and the id to go on after, or None."""

    uploads: Sequence[Upload]
    prefixes: Sequence[str] = ()
    next: tuple[str, str] | None = None


class ObjectStore(Protocol):
    """Buckets and objects. Safe to use from several threads and processes at once."""

    @property
    def powers(self) -> StorePowers:
        """What this one promises beyond what all do."""

    def buckets(self) -> Sequence[str]:
        """The names of all buckets, sorted."""

    def create_bucket(self, bucket: str) -> bool:
        """Make a bucket; False if it was there already. Invalid for a bad name."""

    def delete_bucket(self, bucket: str) -> None:
        """Remove an empty bucket. Missing, or Refused while it holds objects."""

    def bucket(self, bucket: str) -> BucketInfo:
        """What is known of a bucket; Missing if there is none."""

    def usage(self, bucket: str) -> Usage:
        """What a bucket holds. Looks at every object: not for each request."""

    def put(
        self,
        bucket: str,
        key: str,
        source: bytes | BinaryIO,
        *,
        metadata: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        if_absent: bool = False,
        if_etag: str | None = None,
    ) -> ObjectInfo:
        """Store `source` under `key`, visible only when complete and on disk.

        `if_absent`: Refused (http 412) when the key exists. `if_etag`: Refused (412) unless the
        key exists with that etag. Missing for an unknown bucket. What `source` raises reaches the
        caller, and nothing is stored: whoever knows a digest of the content checks it there.
        """

    def head(self, bucket: str, key: str) -> ObjectInfo:
        """What is known of an object; Missing if there is none."""

    def read(
        self, bucket: str, key: str, start: int = 0, length: int | None = None
    ) -> Iterator[bytes]:
        """The content from byte `start`, at most `length` bytes, in chunks.

        Raises Missing or Invalid (http 416: `start` is negative, or not 0 and at or behind the
        end) before the first chunk is taken. A reader keeps reading the version it began with,
        whatever is put or deleted meanwhile, as far as `StorePowers.steady_reads` goes.
        """

    def delete(self, bucket: str, keys: Iterable[str]) -> None:
        """Remove keys; those that do not exist are no error. Missing for an unknown bucket."""

    def copy(
        self,
        bucket: str,
        key: str,
        to_bucket: str,
        to_key: str,
        *,
        metadata: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ObjectInfo:
        """Copy an object with its metadata, headers and tags. Where `metadata` or `headers` is
        given, both are replaced (the other one by nothing).
        """

    def describe(
        self,
        bucket: str,
        key: str,
        *,
        metadata: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ObjectInfo:
        """Replace metadata and headers of an object; its content and its tags stay."""

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
        paging by `Listing.next` sees every entry once. A store may leave `metadata`, `headers`
        and `sha256` of listed objects empty; `head` tells them.
        """

    def walk(self, bucket: str, prefix: str = "") -> Iterator[ObjectInfo]:
        """Every object below `prefix`, in order, page by page."""


@runtime_checkable
class Multipart(Protocol):
    """Uploads in parts that come in any order, again, and from several writers at once.

    An upload is known by bucket, key and id together; Missing (`no-such-upload`) otherwise. One
    in which nothing has happened for days is swept. Parts may be of any size.
    """

    def create_upload(
        self,
        bucket: str,
        key: str,
        *,
        metadata: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Upload:
        """Begin an upload. Nothing of it is visible under its key until it is complete."""

    def put_part(
        self, bucket: str, key: str, upload: str, number: int, source: bytes | BinaryIO
    ) -> Part:
        """Store a part, or replace it. Invalid for a number outside 1 to `MAX_PARTS`."""

    def copy_part(
        self,
        bucket: str,
        key: str,
        upload: str,
        number: int,
        from_bucket: str,
        from_key: str,
        start: int = 0,
        length: int | None = None,
    ) -> Part:
        """Store a range of an object as a part; the range is `ObjectStore.read`'s."""

    def parts(
        self, bucket: str, key: str, upload: str, *, after: int = 0, limit: int = 1000
    ) -> Parts:
        """The parts stored so far, by number, after `after`."""

    def uploads(
        self,
        bucket: str,
        prefix: str = "",
        *,
        delimiter: str = "",
        after: tuple[str, str] = ("", ""),
        limit: int = 1000,
    ) -> Uploads:
        """Uploads to keys that begin with `prefix`, in order of key and id, after `after`; as
        `ObjectStore.list` otherwise. An `after` without an id stands behind all of its key.
        """

    def complete_upload(
        self,
        bucket: str,
        key: str,
        upload: str,
        parts: Sequence[tuple[int, str]],
        *,
        if_absent: bool = False,
        if_etag: str | None = None,
    ) -> ObjectInfo:
        """Make an object of the parts with these numbers and etags; other parts are dropped.

        Invalid where there is no such part, where numbers do not rise, and for no part at all.
        Conditions are `ObjectStore.put`'s. Doing it again is no error while the object it made is
        still there: whoever lost the answer asks again.
        """

    def abort_upload(self, bucket: str, key: str, upload: str) -> None:
        """Drop an upload and its parts."""


@runtime_checkable
class Editing(Protocol):
    """Changes that S3 does not know and OBS does."""

    def append(
        self,
        bucket: str,
        key: str,
        source: bytes | BinaryIO,
        position: int,
        *,
        metadata: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ObjectInfo:
        """Add to the end of an object, which must be at `position`: Refused otherwise.

        An object that is not there is made, with metadata and headers; one that is there keeps
        its own. It may cost as much as storing the whole again.
        """

    def rename(self, bucket: str, key: str, to_key: str) -> ObjectInfo:
        """Give an object another key, with all that belongs to it, in place of what is there."""


@runtime_checkable
class Tagging(Protocol):
    """Tags of buckets and objects. A put makes an object without tags."""

    def tags(self, bucket: str, key: str | None = None) -> Mapping[str, str]:
        """The tags of an object, or of the bucket where no key is given."""

    def set_tags(self, bucket: str, key: str | None, tags: Mapping[str, str]) -> None:
        """Replace all tags of an object, or of the bucket where `key` is None."""


@runtime_checkable
class Sweeping(Protocol):
    """A store in which crashes can leave something behind."""

    def sweep(self) -> None:
        """Remove what crashed writers, and uploads that nobody goes on with, have left."""


@runtime_checkable
class Fetching(Protocol):
    """A store on another machine, which writes an object to a file faster than a reader could."""

    def fetch(self, info: ObjectInfo, file: int, check: Callable[[], None]) -> ObjectInfo:
        """Write the content of a listed object to an empty file (a descriptor), a large one in
        several ranges at once; what is known of it, metadata too. `check` is called often.

        Missing, or Unavailable (`object-changed`), where it is not the one that was listed;
        EngineError where its content is not what was stored.
        """


class Shelf(Protocol):
    """One place with files, read by names relative to it that may come from anywhere."""

    def read(self, name: str) -> Iterator[bytes]:
        """The content of a file, in chunks; Missing where there is none of that name."""


@runtime_checkable
class LocalFiles(Protocol):
    """A store whose objects lie in files of this machine (power of the folder store)."""

    def local_file(self, bucket: str, key: str) -> str:
        """The path of a file with the object's content. Read only: never write to it.

        The file goes when the object is replaced or deleted; whoever finds it gone asks again.
        """
