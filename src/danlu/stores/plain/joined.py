"""A store, and directories beside it that look like further buckets of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from danlu.model.errors import Invalid, Missing, Refused
from danlu.ports.objects import (
    BucketInfo,
    Editing,
    Fetching,
    Listing,
    Multipart,
    ObjectInfo,
    ObjectStore,
    StorePowers,
    Sweeping,
    Tagging,
    Usage,
)
from danlu.stores.folder.reading import Chain
from danlu.stores.names import is_bucket
from danlu.stores.plain.directory import Directory


class Joined:
    """Every call goes to the directory that is registered under its bucket, or to `main`."""

    def __init__(self, main: ObjectStore, directories: Mapping[str, Directory]) -> None:
        self._main = main
        self._directories = directories

    @property
    def powers(self) -> StorePowers:
        """Those of the main store; a directory has less, and says so when it is asked."""
        return self._main.powers

    def _of(self, bucket: str) -> ObjectStore:
        return self._directories.get(bucket, self._main)

    def buckets(self) -> Sequence[str]:
        there = [name for name, each in self._directories.items() if each.buckets()]
        return sorted({*self._main.buckets(), *there})

    def create_bucket(self, bucket: str) -> bool:
        return self._of(bucket).create_bucket(bucket)

    def delete_bucket(self, bucket: str) -> None:
        self._of(bucket).delete_bucket(bucket)

    def bucket(self, bucket: str) -> BucketInfo:
        return self._of(bucket).bucket(bucket)

    def usage(self, bucket: str) -> Usage:
        return self._of(bucket).usage(bucket)

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
        return self._of(bucket).put(
            bucket,
            key,
            source,
            metadata=metadata,
            headers=headers,
            if_absent=if_absent,
            if_etag=if_etag,
        )

    def head(self, bucket: str, key: str) -> ObjectInfo:
        return self._of(bucket).head(bucket, key)

    def read(
        self, bucket: str, key: str, start: int = 0, length: int | None = None
    ) -> Iterator[bytes]:
        return self._of(bucket).read(bucket, key, start, length)

    def delete(self, bucket: str, keys: Iterable[str]) -> None:
        self._of(bucket).delete(bucket, keys)

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
        source, target = self._of(bucket), self._of(to_bucket)
        if source is target:
            return source.copy(bucket, key, to_bucket, to_key, metadata=metadata, headers=headers)
        info = source.head(bucket, key)
        if metadata is None and headers is None:
            metadata, headers = info.metadata, info.headers
        content = cast("BinaryIO", Chain(source.read(bucket, key)))
        return target.put(to_bucket, to_key, content, metadata=metadata, headers=headers)

    def describe(
        self,
        bucket: str,
        key: str,
        *,
        metadata: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ObjectInfo:
        return self._of(bucket).describe(bucket, key, metadata=metadata, headers=headers)

    def list(
        self,
        bucket: str,
        prefix: str = "",
        *,
        delimiter: str = "",
        after: str = "",
        limit: int = 1000,
    ) -> Listing:
        return self._of(bucket).list(bucket, prefix, delimiter=delimiter, after=after, limit=limit)

    def walk(self, bucket: str, prefix: str = "") -> Iterator[ObjectInfo]:
        return self._of(bucket).walk(bucket, prefix)

    def sweep(self) -> None:
        """Sweep the main store, if it has something to sweep, and the directories."""
        for directory in self._directories.values():
            directory.sweep()
        if isinstance(self._main, Sweeping):
            self._main.sweep()

    def local_file(self, bucket: str, key: str) -> str:
        """As the port says, where the main store has files; what others may write to is read."""
        local = getattr(self._main, "local_file", None)
        if bucket in self._directories or local is None:
            raise Missing("no-such-object", bucket=bucket, key=key)
        return str(local(bucket, key))

    def fetch(self, info: ObjectInfo, file: int, check: Callable[[], None]) -> ObjectInfo:
        """As the port says; what the main store cannot do itself is read."""
        store = self._of(info.bucket)
        if isinstance(store, Fetching):
            return store.fetch(info, file, check)
        with open(file, "wb", buffering=0, closefd=False) as target:
            for chunk in store.read(info.bucket, info.key):
                check()
                target.write(chunk)
        return info


class JoinedParts(Joined):
    """Where the main store takes uploads in parts and tags."""

    def _parts_of(self, bucket: str) -> Any:
        return self._of(bucket)

    def _able(self, bucket: str) -> Any:
        """The main store; Refused for a directory, whose files have no tags and are whole."""
        if bucket in self._directories:
            raise Refused("bucket-plain", http=501, bucket=bucket)
        return self._main

    def create_upload(self, bucket: str, key: str, **said: Any) -> Any:
        return self._parts_of(bucket).create_upload(bucket, key, **said)

    def put_part(self, bucket: str, *part: Any) -> Any:
        return self._parts_of(bucket).put_part(bucket, *part)

    def copy_part(  # a part, an object and a range
        self,
        bucket: str,
        key: str,
        upload: str,
        number: int,
        from_bucket: str,
        from_key: str,
        start: int = 0,
        length: int | None = None,
    ) -> Any:
        if self._of(from_bucket) is not self._of(bucket):
            content = Chain(self.read(from_bucket, from_key, start, length))
            return self._parts_of(bucket).put_part(bucket, key, upload, number, content)
        return self._parts_of(bucket).copy_part(
            bucket, key, upload, number, from_bucket, from_key, start, length
        )

    def parts(self, bucket: str, key: str, upload: str, **page: Any) -> Any:
        return self._parts_of(bucket).parts(bucket, key, upload, **page)

    def uploads(self, bucket: str, prefix: str = "", **page: Any) -> Any:
        return self._parts_of(bucket).uploads(bucket, prefix, **page)

    def complete_upload(self, bucket: str, *upload: Any, **condition: Any) -> Any:
        return self._parts_of(bucket).complete_upload(bucket, *upload, **condition)

    def abort_upload(self, bucket: str, key: str, upload: str) -> None:
        self._parts_of(bucket).abort_upload(bucket, key, upload)

    def tags(self, bucket: str, key: str | None = None) -> Mapping[str, str]:
        return cast("Mapping[str, str]", self._able(bucket).tags(bucket, key))

    def set_tags(self, bucket: str, key: str | None, tags: Mapping[str, str]) -> None:
        self._able(bucket).set_tags(bucket, key, tags)


class JoinedAll(JoinedParts):
    """Where the main store can also append and rename."""

    def append(self, bucket: str, *at: Any, **said: Any) -> Any:
        return self._able(bucket).append(bucket, *at, **said)

    def rename(self, bucket: str, key: str, to_key: str) -> ObjectInfo:
        return cast("ObjectInfo", self._able(bucket).rename(bucket, key, to_key))


def joined(main: ObjectStore, directories: str) -> ObjectStore:
    """`main` with the directories that "name=/path" (only read) or "name=/path:rw" register, one
    a line. Raises Invalid for what is no bucket or no directory.
    """
    found: dict[str, Directory] = {}
    for line in filter(None, directories.split("\n")):
        name, _, place = line.partition("=")
        root = place.removesuffix(":rw").removesuffix(":ro")
        if not is_bucket(name) or name in found:
            raise Invalid("plain-bucket", value=line)
        if not root.startswith("/") or not Path(root).is_dir():
            raise Invalid("plain-directory", value=line, path=root)
        found[name] = Directory(name, root, writable=place.endswith(":rw"))
    if not found:
        return main
    if isinstance(main, Multipart) and isinstance(main, Tagging):
        return JoinedAll(main, found) if isinstance(main, Editing) else JoinedParts(main, found)
    return Joined(main, found)
