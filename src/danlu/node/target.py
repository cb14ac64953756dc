"""Where outputs and logs go: objects, or a directory of this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from danlu.model.errors import Missing
from danlu.model.url import LocalUrl, ObjectUrl, Url
from danlu.node import given
from danlu.node.fetch import digest
from danlu.node.folder_target import FolderTarget
from danlu.node.steady import Put, SteadyFile
from danlu.node.store import open_store
from danlu.ports.objects import ObjectStore
from danlu.ports.task_directory import Isolation


class Target(Protocol):
    """Stores files under names relative to one place. Safe to use from several threads."""

    def put(self, file: Path, name: str, *, last: bool) -> Put:
        """Store a file. `last`: nobody writes to it any more.

        Raises Unsteady, OSError or PlatformError.
        """

    def put_stream(self, source: BinaryIO, name: str) -> int:
        """Store what a stream gives, to its end; its size. Raises OSError or PlatformError."""

    def settle(self, sizes: Mapping[str, int]) -> list[str]:
        """Make everything durable; the names that are not there with their size."""

    def move(self, staged: str, name: str) -> None:
        """Give a stored file its final name, in place of what is there. May be repeated as long
        as `staged` is not cleared.
        """

    def document(self, name: str) -> tuple[bytes, str] | None:
        """A small file and its version, or None if there is none."""

    def put_document(self, name: str, data: bytes, version: str | None) -> None:
        """Replace that version of a small file (None = there is none); Refused (412) if another
        one is there. Durable when this returns.
        """

    def clear(self, prefix: str, keep: str = "") -> None:
        """Remove everything below `prefix` (which ends in `/`), but for what is below `keep`."""


def open_target(url: Url, objects: Mapping[str, str], isolation: Isolation, field: str) -> Target:
    """The target that an output's or log's address stands for. Refused for what is closed."""
    if isinstance(url, LocalUrl):
        return FolderTarget(given.real(url, field, isolation))
    return ObjectTarget(open_store(objects), url)


class ObjectTarget:
    """Objects below a prefix."""

    def __init__(self, store: ObjectStore, url: ObjectUrl) -> None:
        self._store = store
        self._url = url

    def put(self, file: Path, name: str, *, last: bool) -> Put:
        mode = f"{os.stat(file).st_mode & 0o777:o}"  # noqa: PTH116 -- links are followed here
        with SteadyFile(file, last=last) as source:
            info = self._store.put(
                self._url.bucket,
                self._key(name),
                cast("BinaryIO", source),
                metadata={"mode": mode} if int(mode, 8) & 0o111 else None,
            )
        return Put(source.state, info.sha256 or digest(file))

    def put_stream(self, source: BinaryIO, name: str) -> int:
        return self._store.put(self._url.bucket, self._key(name), source).size

    def settle(self, sizes: Mapping[str, int]) -> list[str]:
        wanted = {self._key(name): (name, size) for name, size in sizes.items()}
        for info in self._store.walk(self._url.bucket, self._url.directory):
            if info.key in wanted and wanted[info.key][1] == info.size:
                del wanted[info.key]
        return [name for name, _ in wanted.values()]

    def move(self, staged: str, name: str) -> None:
        bucket = self._url.bucket
        self._store.copy(bucket, self._key(staged), bucket, self._key(name))

    def document(self, name: str) -> tuple[bytes, str] | None:
        try:
            info = self._store.head(self._url.bucket, self._key(name))
            return b"".join(self._store.read(self._url.bucket, info.key)), info.etag
        except Missing:
            return None

    def put_document(self, name: str, data: bytes, version: str | None) -> None:
        absent = version is None
        self._store.put(self._url.bucket, self._key(name), data, if_absent=absent, if_etag=version)

    def clear(self, prefix: str, keep: str = "") -> None:
        whole = self._store.walk(self._url.bucket, self._key(prefix))
        kept = self._key(keep) if keep else None
        dead = [info.key for info in whole if kept is None or not info.key.startswith(kept)]
        if dead:
            self._store.delete(self._url.bucket, dead)

    def _key(self, name: str) -> str:
        # A name that is not UTF-8 cannot be a key; its odd bytes are written out.
        plain = os.fsencode(name).decode("utf-8", "backslashreplace")
        return self._url.child(plain).key
