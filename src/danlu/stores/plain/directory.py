"""`ObjectStore` with one bucket, which is an existing directory. Standard library only.

Its files are the objects, as they are. Links, devices and what is being written are no objects.
Metadata and headers are not kept. An etag is made of size, time and place of a file, so that it
changes with it; nobody can take it for an MD5.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from danlu.model.errors import Invalid, Missing, Refused, Unavailable
from danlu.ports.objects import (
    BucketInfo,
    Listing,
    ObjectInfo,
    Part,
    Parts,
    StorePowers,
    Upload,
    Usage,
)
from danlu.ports.objects import Uploads as Page
from danlu.stores.folder.condition import ALWAYS, Condition
from danlu.stores.folder.failures import of_disk
from danlu.stores.folder.reading import Chain, Reading
from danlu.stores.folder.writing import Writing
from danlu.stores.names import check_headers, check_texts, key_bytes, part_bytes
from danlu.stores.plain import beneath
from danlu.stores.plain.beneath import Names
from danlu.stores.plain.uploads import Uploads

DRAFT_AGE_S = 3600.0
_HARD = frozenset({errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EEXIST, errno.ENOTEMPTY})
"""What a file where a folder should be, a folder where a file should be, or a link says."""


class Directory:
    """The directory `root` as the bucket `name`; `writable` where it may be changed."""

    def __init__(self, name: str, root: str, *, writable: bool = False) -> None:
        self.name = name
        self.root = root
        self._writable = writable
        self._uploads = Uploads(self)

    @property
    def powers(self) -> StorePowers:
        """Keys are paths, nothing but content is kept, and others may write into a file."""
        return StorePowers(any_key=False, steady_reads=False, describes=False)

    def buckets(self) -> Sequence[str]:
        return [self.name] if Path(self.root).is_dir() else []

    def create_bucket(self, bucket: str) -> bool:
        self._check(bucket)
        return False

    def delete_bucket(self, bucket: str) -> None:
        self._check(bucket)
        raise Refused("bucket-registered", bucket=bucket)

    def bucket(self, bucket: str) -> BucketInfo:
        self._check(bucket)
        return BucketInfo(bucket, Path(self.root).stat().st_mtime_ns // 1_000_000)

    def usage(self, bucket: str) -> Usage:
        sizes = [item.size for item in self.walk(bucket)]
        return Usage(len(sizes), sum(sizes))

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
        check_texts(metadata or {}, "metadata")
        check_headers(headers or {})
        parts = self._path(bucket, key)
        self._check_writable(bucket)
        condition = Condition(if_absent, if_etag)
        if key.endswith("/"):
            return self._put_folder(key, parts, source)
        return self.publish(
            key,
            condition,
            lambda descriptor: Writing(descriptor, Path(self.root), md5=False).run(source),
        )

    def publish(self, key: str, condition: Condition, fill: Callable[[int], object]) -> ObjectInfo:
        """Make a file of what `fill` writes, durably, to a descriptor; it is seen when complete."""
        parts = self._path(self.name, key)
        with ExitStack() as held:
            with self.told(key):
                at = held.enter_context(beneath.folder(self.root, parts[:-1], make=True))
                condition.check(self.name, key, self._etag(key))
                draft, descriptor = self.draft(at)
            held.callback(_forget, at, draft)
            try:
                fill(descriptor)
            finally:
                os.close(descriptor)
            with self.told(key), self._alone(condition):
                condition.check(self.name, key, self._etag(key))
                os.rename(draft, parts[-1], src_dir_fd=at, dst_dir_fd=at)
                os.fsync(at)
        return self.head(self.name, key)

    def head(self, bucket: str, key: str) -> ObjectInfo:
        found = self._open(bucket, key)
        try:
            return self._info(key, os.fstat(found))
        finally:
            os.close(found)

    def read(
        self, bucket: str, key: str, start: int = 0, length: int | None = None
    ) -> Iterator[bytes]:
        found = self._open(bucket, key)
        info = self._info(key, os.fstat(found))
        end = info.size if length is None else min(info.size, start + length)
        outside = start >= info.size and start > 0
        if start < 0 or outside or (length is not None and length < 0):
            os.close(found)
            last = "" if length is None else start + length - 1
            raise Invalid("object-range", http=416, key=key, start=start, end=last, size=info.size)
        return Watched(info, found, start, end)

    def delete(self, bucket: str, keys: Iterable[str]) -> None:
        self._check(bucket)
        self._check_writable(bucket)
        for key in keys:
            key_bytes(key)
            parts = beneath.parts_of(key)
            if parts is None:
                continue
            with suppress(FileNotFoundError), self.told(key):
                self._remove(key, parts)

    def _remove(self, key: str, parts: Names) -> None:
        with beneath.folder(self.root, parts[:-1]) as at:
            state = os.stat(parts[-1], dir_fd=at, follow_symlinks=False)
            if key.endswith("/") and stat.S_ISDIR(state.st_mode):
                os.rmdir(parts[-1], dir_fd=at)
            elif stat.S_ISREG(state.st_mode) and not key.endswith("/"):
                os.unlink(parts[-1], dir_fd=at)
            os.fsync(at)

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
        if key == to_key:
            return self.describe(bucket, key, metadata=metadata, headers=headers)
        content = Chain(self.read(bucket, key))
        return self.put(to_bucket, to_key, content, metadata=metadata, headers=headers)  # type: ignore[arg-type]  # `read` is all that is used

    def describe(
        self,
        bucket: str,
        key: str,
        *,
        metadata: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ObjectInfo:
        check_texts(metadata or {}, "metadata")
        check_headers(headers or {})
        self._check_writable(bucket)
        return self.head(bucket, key)

    def list(
        self,
        bucket: str,
        prefix: str = "",
        *,
        delimiter: str = "",
        after: str = "",
        limit: int = 1000,
    ) -> Listing:
        self._check(bucket)
        for part in (prefix, delimiter, after):
            part_bytes(part)
        objects: list[ObjectInfo] = []
        prefixes: Names = []
        last = ""
        for info in self._below([], prefix, after, delimiter):
            at = info.key.find(delimiter, len(prefix)) if delimiter else -1
            entry = info.key[: at + len(delimiter)] if at >= 0 else info.key
            if entry == last or entry.encode() <= after.encode():
                continue
            if len(objects) + len(prefixes) == limit:
                return Listing(objects, prefixes, last if limit else None)
            last = entry
            if at >= 0:
                prefixes.append(entry)
            else:
                objects.append(info)
        return Listing(objects, prefixes)

    def walk(self, bucket: str, prefix: str = "") -> Iterator[ObjectInfo]:
        after: str | None = ""
        while after is not None:
            page = self.list(bucket, prefix, after=after)
            yield from page.objects
            after = page.next

    def sweep(self) -> None:
        """Remove what crashed writers left behind: drafts that are old and that nobody writes."""
        before = time.time() - DRAFT_AGE_S
        if not self._writable:
            return
        self._uploads.sweep()
        for _, _, files, at in os.fwalk(self.root, follow_symlinks=False):
            for name in files:
                if name.startswith(beneath.TEMPORARY):
                    with suppress(OSError):
                        beneath.remove_abandoned(at, name, before)

    # ------------------------------------------------------------------ parts

    def create_upload(
        self,
        bucket: str,
        key: str,
        *,
        metadata: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Upload:
        check_texts(metadata or {}, "metadata")
        check_headers(headers or {})
        self._path(bucket, key)
        self._check_writable(bucket)
        if key.endswith("/"):
            raise Invalid("plain-folder", key=key, bucket=bucket)
        return self._uploads.create(key)

    def put_part(
        self, bucket: str, key: str, upload: str, number: int, source: bytes | BinaryIO
    ) -> Part:
        self._check_upload(bucket, key)
        return self._uploads.put(key, upload, number, source)

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
        return self.put_part(bucket, key, upload, number, cast("BinaryIO", content))

    def parts(
        self, bucket: str, key: str, upload: str, *, after: int = 0, limit: int = 1000
    ) -> Parts:
        self._check_upload(bucket, key)
        return self._uploads.parts(key, upload, after, limit)

    def uploads(
        self,
        bucket: str,
        prefix: str = "",
        *,
        delimiter: str = "",
        after: tuple[str, str] = ("", ""),
        limit: int = 1000,
    ) -> Page:
        self._check(bucket)
        for part in (prefix, delimiter, *after):
            part_bytes(part)
        return self._uploads.page(prefix, delimiter, after, limit)

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
        self._check_upload(bucket, key)
        return self._uploads.complete(key, upload, parts, Condition(if_absent, if_etag))

    def abort_upload(self, bucket: str, key: str, upload: str) -> None:
        self._check_upload(bucket, key)
        self._uploads.abort(key, upload)

    def _check_upload(self, bucket: str, key: str) -> None:
        self._check(bucket)
        key_bytes(key)
        self._check_writable(bucket)

    # ------------------------------------------------------------------ inside

    def _below(self, parts: Names, prefix: str, after: str, delimiter: str) -> Iterator[ObjectInfo]:
        """Files in order; whole folders that cannot matter are not looked into."""
        above = "".join(f"{part}/" for part in parts)
        for name, state in beneath.entries(self.root, parts):
            key = f"{above}{name}"
            if not stat.S_ISDIR(state.st_mode):
                if key.startswith(prefix) and len(key.encode()) <= 1024:
                    yield self._info(key, state)
                continue
            place = f"{key}/"
            if not (place.startswith(prefix) or prefix.startswith(place)):
                continue
            if after.encode() > place.encode() and not after.startswith(place):
                continue
            yield from self._below([*parts, name], prefix, after, delimiter)

    def _info(self, key: str, state: os.stat_result) -> ObjectInfo:
        return ObjectInfo(
            self.name, key, state.st_size, beneath.etag_of(state), state.st_mtime_ns // 1_000_000
        )

    def _etag(self, key: str) -> str | None:
        try:
            return self.head(self.name, key).etag
        except Missing:
            return None

    def _open(self, bucket: str, key: str) -> int:
        parts = self._path(bucket, key)
        if key.endswith("/"):
            raise Missing("no-such-object", bucket=bucket, key=key)
        try:
            with self.told(key):
                return beneath.file(self.root, parts)
        except FileNotFoundError as problem:
            raise Missing("no-such-object", bucket=bucket, key=key) from problem

    def _path(self, bucket: str, key: str) -> Names:
        self._check(bucket)
        key_bytes(key)
        parts = beneath.parts_of(key)
        if parts is None:
            raise Invalid("plain-key", key=key, bucket=bucket)
        return parts

    def _put_folder(self, key: str, parts: Names, source: bytes | BinaryIO) -> ObjectInfo:
        if source if isinstance(source, bytes) else source.read(1):
            raise Invalid("plain-folder", key=key, bucket=self.name)
        with self.told(key), beneath.folder(self.root, parts, make=True) as at:
            state = os.fstat(at)
            return ObjectInfo(
                self.name, key, 0, beneath.etag_of(state), state.st_mtime_ns // 1_000_000
            )

    def draft(self, at: int) -> tuple[str, int]:
        """A new file beside where it is to be, whose name is no key."""
        draft = f"{beneath.TEMPORARY}{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(draft, flags, 0o666, dir_fd=at)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return draft, descriptor

    @contextmanager
    def _alone(self, condition: Condition) -> Iterator[None]:
        """Alone among our own conditional writers; others who write there know no lock."""
        if condition == ALWAYS:
            yield
            return
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def told(self, key: str) -> Iterator[None]:
        try:
            with of_disk(Path(self.root)):
                try:
                    yield
                except OSError as problem:
                    if problem.errno in _HARD:
                        raise Refused("plain-place", key=key, bucket=self.name) from problem
                    if isinstance(problem, FileNotFoundError):
                        raise _Absent from problem
                    raise
        except _Absent as problem:
            raise FileNotFoundError(key) from problem

    def _check(self, bucket: str) -> None:
        if bucket != self.name or not Path(self.root).is_dir():
            raise Missing("no-such-bucket", bucket=bucket)

    def _check_writable(self, bucket: str) -> None:
        if not self._writable:
            raise Refused("bucket-read-only", http=403, bucket=bucket, path=self.root)


class _Absent(Exception):
    """A file that is not there, on its way past what translates errors of the disk."""


class Watched(Reading):
    """Content of a file into which others may write meanwhile: that is told, never a mixture."""

    def check(self, descriptor: int) -> None:
        if beneath.etag_of(os.fstat(descriptor)) != self.info.etag:
            info = self.info
            raise Unavailable("object-changed", bucket=info.bucket, key=info.key, at=info.size)


def _forget(at: int, draft: str) -> None:
    with suppress(OSError):
        os.unlink(draft, dir_fd=at)
