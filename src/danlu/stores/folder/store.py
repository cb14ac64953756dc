"""`ObjectStore` and `LocalFiles` over a local directory. Standard library only."""

from __future__ import annotations

import fcntl
import os
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from danlu.model.errors import Invalid, Missing
from danlu.ports.objects import (
    BucketInfo,
    Listing,
    ObjectInfo,
    Part,
    Parts,
    StorePowers,
    Upload,
    Uploads,
    Usage,
)
from danlu.stores import disk
from danlu.stores.folder.blobs import Blobs
from danlu.stores.folder.condition import Condition
from danlu.stores.folder.failures import of_disk
from danlu.stores.folder.reading import Chain, Reading
from danlu.stores.folder.rows import About
from danlu.stores.names import (
    check_bucket,
    check_headers,
    check_texts,
    is_bucket,
    key_bytes,
    part_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from danlu.stores.folder.bucket import Bucket

INDEX = "index.db"
LEFTOVER_AGE_S = 3600.0
UPLOAD_AGE_S = 7 * 24 * 3600.0
BATCH = 500
"""Keys that one transaction deletes."""

_stores: weakref.WeakSet[FolderStore] = weakref.WeakSet()
_inherited: list[_Open] = []
"""What a fork brought along all the same, because another thread of the parent had it in use."""


def _before_fork() -> None:
    """Close what is idle: SQLite's connections must not be carried into another process."""
    for store in list(_stores):
        store.close()


os.register_at_fork(before=_before_fork)


class FolderStore:
    """Objects below the directory `root`, which is made if it is not there.

    Threads and processes may use one store, and several stores one directory, at once; a store
    may be carried across a fork. `leftover_age_s`: what crashed writers left behind is removed
    when it is older than this; `upload_age_s`: uploads in which nothing has happened for so long.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        leftover_age_s: float = LEFTOVER_AGE_S,
        upload_age_s: float = UPLOAD_AGE_S,
    ) -> None:
        self._root = Path(root).absolute()
        self._ages = (leftover_age_s, upload_age_s)
        self._open = _Open()
        _stores.add(self)
        with of_disk(self._root):
            self._root.mkdir(0o700, parents=True, exist_ok=True)

    def close(self) -> None:
        """Close idle files. The store opens them again when used."""
        for bucket in list(self._here().buckets.values()):
            bucket.close()

    def __del__(self) -> None:
        with suppress(AttributeError):  # where __init__ has failed
            self.close()

    @property
    def powers(self) -> StorePowers:
        """Everything."""
        return StorePowers()

    # ------------------------------------------------------------------ buckets

    def buckets(self) -> Sequence[str]:
        with of_disk(self._root):
            names = sorted(entry.name for entry in self._root.iterdir())
        return [name for name in names if self._has_index(name) and self._bucket(name).alive()]

    def create_bucket(self, bucket: str) -> bool:
        check_bucket(bucket)
        with of_disk(self._root), self._locked():
            made = not self._has_index(bucket)
            if made:
                self._make(bucket)
        return self._bucket(bucket).revive()

    def delete_bucket(self, bucket: str) -> None:
        self._bucket(bucket).delete()

    def bucket(self, bucket: str) -> BucketInfo:
        return self._bucket(bucket).about()

    def usage(self, bucket: str) -> Usage:
        return self._bucket(bucket).usage()

    # ------------------------------------------------------------------ objects

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
        about = _about(metadata, headers)
        condition = Condition(if_absent, if_etag)
        return self._bucket(bucket).put(key_bytes(key), source, about, condition)

    def head(self, bucket: str, key: str) -> ObjectInfo:
        return self._bucket(bucket).head(key_bytes(key))

    def read(
        self, bucket: str, key: str, start: int = 0, length: int | None = None
    ) -> Iterator[bytes]:
        info, descriptor = self._bucket(bucket).open(key_bytes(key))
        end = info.size if length is None else min(info.size, start + length)
        outside = start >= info.size and start > 0
        if start < 0 or outside or (length is not None and length < 0):
            os.close(descriptor)
            last = "" if length is None else start + length - 1
            raise Invalid("object-range", http=416, key=key, start=start, end=last, size=info.size)
        return Reading(info, descriptor, start, end)

    def delete(self, bucket: str, keys: Iterable[str]) -> None:
        opened = self._bucket(bucket)
        pending = iter(keys)
        while batch := [key_bytes(key) for key in islice(pending, BATCH)]:
            opened.remove(batch)

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
        source, target = self._bucket(bucket), self._bucket(to_bucket)
        kept = metadata is None and headers is None
        about = None if kept else _about(metadata, headers)
        return source.copy(key_bytes(key), target, key_bytes(to_key), about)

    def describe(
        self,
        bucket: str,
        key: str,
        *,
        metadata: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ObjectInfo:
        return self._bucket(bucket).describe(key_bytes(key), _about(metadata, headers))

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
        about = _about(metadata, headers)
        return self._bucket(bucket).append(key_bytes(key), source, position, about)

    def rename(self, bucket: str, key: str, to_key: str) -> ObjectInfo:
        return self._bucket(bucket).rename(key_bytes(key), key_bytes(to_key))

    def tags(self, bucket: str, key: str | None = None) -> Mapping[str, str]:
        return self._bucket(bucket).tags(None if key is None else key_bytes(key))

    def set_tags(self, bucket: str, key: str | None, tags: Mapping[str, str]) -> None:
        check_texts(tags, "tags")
        self._bucket(bucket).set_tags(None if key is None else key_bytes(key), tags)

    def list(
        self,
        bucket: str,
        prefix: str = "",
        *,
        delimiter: str = "",
        after: str = "",
        limit: int = 1000,
    ) -> Listing:
        return self._bucket(bucket).page(
            part_bytes(prefix), part_bytes(delimiter), part_bytes(after), limit
        )

    def walk(self, bucket: str, prefix: str = "") -> Iterator[ObjectInfo]:
        after: str | None = ""
        while after is not None:
            page = self.list(bucket, prefix, after=after)
            yield from page.objects
            after = page.next

    # ------------------------------------------------------------------ uploads

    def create_upload(
        self,
        bucket: str,
        key: str,
        *,
        metadata: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Upload:
        return self._bucket(bucket).uploads.create(key_bytes(key), _about(metadata, headers))

    def put_part(
        self, bucket: str, key: str, upload: str, number: int, source: bytes | BinaryIO
    ) -> Part:
        return self._bucket(bucket).uploads.put(key_bytes(key), upload, number, source)

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
        content = Chain(self.read(from_bucket, from_key, start, length))
        return self._bucket(bucket).uploads.put(key_bytes(key), upload, number, content)

    def parts(
        self, bucket: str, key: str, upload: str, *, after: int = 0, limit: int = 1000
    ) -> Parts:
        return self._bucket(bucket).uploads.parts(key_bytes(key), upload, after, limit)

    def uploads(
        self,
        bucket: str,
        prefix: str = "",
        *,
        delimiter: str = "",
        after: tuple[str, str] = ("", ""),
        limit: int = 1000,
    ) -> Uploads:
        part_bytes(after[0])
        return self._bucket(bucket).uploads.page(
            part_bytes(prefix), part_bytes(delimiter), after, limit
        )

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
        condition = Condition(if_absent, if_etag)
        return self._bucket(bucket).uploads.complete(key_bytes(key), upload, parts, condition)

    def abort_upload(self, bucket: str, key: str, upload: str) -> None:
        self._bucket(bucket).uploads.abort(key_bytes(key), upload)

    # ------------------------------------------------------------------ of this store alone

    def local_file(self, bucket: str, key: str) -> str:
        """As the port says. The file goes when the object is replaced or deleted: whoever finds
        it gone asks again.
        """
        return str(self._bucket(bucket).file(key_bytes(key)))

    def sweep(self) -> None:
        """Remove what crashed writers, and uploads that nobody goes on with, have left in every
        bucket. Also done now and then.
        """
        for name in self.buckets():
            self._bucket(name).sweep()

    # ------------------------------------------------------------------ inside

    def _here(self) -> _Open:
        """What this process has open."""
        if self._open.pid != os.getpid():
            _inherited.append(self._open)
            self._open = _Open()
        return self._open

    def _bucket(self, name: str) -> Bucket:
        here = self._here()
        bucket = here.buckets.get(name)
        if bucket is None:
            if not self._has_index(name):
                raise Missing("no-such-bucket", bucket=name)
            from danlu.stores.folder.bucket import Bucket

            with here.lock:
                bucket = here.buckets.setdefault(
                    name, Bucket(name, self._root / name / INDEX, *self._ages)
                )
        return bucket

    def _has_index(self, name: str) -> bool:
        return is_bucket(name) and (self._root / name / INDEX).exists()

    def _make(self, name: str) -> None:
        """Make the directory of a bucket. It counts from the moment that its index is there."""
        from danlu.stores.folder.index import Index

        directory = self._root / name
        directory.mkdir(0o700, exist_ok=True)
        Blobs(directory).make()
        new = directory / f"{INDEX}.new"
        for ending in ("", "-wal", "-shm"):
            Path(f"{new}{ending}").unlink(missing_ok=True)
        # SQLite gives its other files the mode of this one.
        os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        Index(new).make()
        new.rename(directory / INDEX)
        disk.sync(directory)
        disk.sync(self._root)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone among those who make buckets, in any process."""
        descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


class _Open:
    """The buckets that one process has open."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.buckets: dict[str, Bucket] = {}


def _about(metadata: Mapping[str, str] | None, headers: Mapping[str, str] | None) -> About:
    """What a caller wants kept with an object, if it may be."""
    check_texts(metadata or {}, "metadata")
    check_headers(headers or {})
    return About(metadata or {}, headers or {})
