"""Where outputs and logs go: objects, or a directory of this machine."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol, cast

from danlu.model.errors import Missing, Refused
from danlu.model.url import LocalUrl, ObjectUrl, Url
from danlu.node import given, linux
from danlu.node.fetch import copy_file, digest
from danlu.node.store import open_store
from danlu.node.stored import State, state_of
from danlu.ports.objects import ObjectStore
from danlu.ports.task_directory import Isolation

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})
"""Said by file systems without hard links, or of a file that has too many."""


class Unsteady(Exception):
    """A file changed while it was read; nothing of it was stored."""


class Put(NamedTuple):
    """A file that was stored: the state in which it was read, and its digest."""

    state: State
    sha256: str


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


class SteadyFile(io.RawIOBase):
    """A file that refuses to end if it changed while it was read, so that no half of it is ever
    published. What a program wrote through a memory map is put on disk first: only then does
    its next change show in the file's times.
    """

    def __init__(self, path: Path, *, last: bool) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        if not last:
            with contextlib.suppress(OSError):
                os.fsync(self._descriptor)
        self.state = state_of(os.fstat(self._descriptor))

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = os.readv(self._descriptor, [buffer])
        if count == 0:
            self.check()
        return count

    def check(self) -> None:
        """Raise Unsteady if the file is not as it was."""
        if state_of(os.fstat(self._descriptor)) != self.state:
            raise Unsteady

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()


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


class FolderTarget:
    """A directory of this machine. Files appear whole, by rename."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, file: Path, name: str, *, last: bool) -> Put:
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.parent / f".{secrets.token_hex(8)}.part"
        try:
            with SteadyFile(file, last=last) as source:
                if not (last and self._link(file, temporary)):
                    self._copy(source, temporary)
                if not last:
                    source.check()
                sha256 = digest(temporary)
                temporary.replace(path)
            return Put(source.state, sha256)
        finally:
            temporary.unlink(missing_ok=True)

    def put_stream(self, source: BinaryIO, name: str) -> int:
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.parent / f".{secrets.token_hex(8)}.part"
        try:
            with temporary.open("xb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
                file.flush()
                os.fsync(file.fileno())
                size = file.tell()
            temporary.replace(path)
            return size
        finally:
            temporary.unlink(missing_ok=True)

    def settle(self, sizes: Mapping[str, int]) -> list[str]:
        self._root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            linux.sync_file_system(descriptor)
        finally:
            os.close(descriptor)
        return [name for name, size in sizes.items() if not self._has(name, size)]

    def move(self, staged: str, name: str) -> None:
        source, path = self._root / staged, self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.parent / f".{secrets.token_hex(8)}.part"
        try:
            # A second name first: a crash must leave it where it can be moved again.
            os.link(source, temporary)
            temporary.replace(path)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            source.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def document(self, name: str) -> tuple[bytes, str] | None:
        try:
            data = (self._root / name).read_bytes()
        except FileNotFoundError:
            return None
        return data, hashlib.sha256(data).hexdigest()

    def put_document(self, name: str, data: bytes, version: str | None) -> None:
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        temporary = path.parent / f".{secrets.token_hex(8)}.part"
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            found = self.document(name)
            if (None if found is None else found[1]) != version:
                raise Refused(
                    "object-condition", http=412, bucket=str(self._root), key=name, condition="same"
                )
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            os.fsync(directory)
        finally:
            temporary.unlink(missing_ok=True)
            os.close(directory)

    def clear(self, prefix: str, keep: str = "") -> None:
        kept = self._root / keep if keep else None
        for path in sorted((self._root / prefix).glob("**/*"), reverse=True):
            if kept is None or not (path.is_relative_to(kept) or kept.is_relative_to(path)):
                with contextlib.suppress(OSError):
                    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        with contextlib.suppress(OSError):
            (self._root / prefix).rmdir()

    def _has(self, name: str, size: int) -> bool:
        try:
            return (self._root / name).stat().st_size == size
        except OSError:
            return False

    def _link(self, file: Path, temporary: Path) -> bool:
        """Give the finished file its second name: no copy, where the file system is the same."""
        try:
            # link(2) would give a second name to a link itself, whatever it is told.
            os.link(os.path.realpath(file), temporary)
        except OSError:
            return False
        return True

    def _copy(self, source: SteadyFile, temporary: Path) -> None:
        mode = os.fstat(source.fileno()).st_mode & 0o777
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, mode | 0o600)
        try:
            os.fchmod(descriptor, mode | 0o600)
            copy_file(source.fileno(), descriptor, lambda: None)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
