"""A directory of this machine as the place of outputs and logs.

Whoever may write there may put a link where a directory was, at any moment, and agents write where
jobs may not. So each directory is opened from the one above it, and none that is a link; what is
done in it is done through its descriptor, whatever its name leads to by then.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from danlu.model.errors import Refused
from danlu.node import linux
from danlu.node.fetch import copy_file, digest
from danlu.node.steady import Put, SteadyFile

NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})
"""Said by file systems without hard links, or of a file that has too many."""
_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FolderTarget:
    """A directory of this machine, `root`, on the way to which is no link. Files appear whole, by
    rename.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, file: Path, name: str, *, last: bool) -> Put:
        with self._beside(name) as (path, temporary):
            with SteadyFile(file, last=last) as source:
                if not (last and _link(file, temporary)):
                    _copy(source, temporary)
                if not last:
                    source.check()
                sha256 = digest(temporary)
                temporary.replace(path)
            return Put(source.state, sha256)

    def put_stream(self, source: BinaryIO, name: str) -> int:
        with self._beside(name) as (path, temporary):
            with temporary.open("xb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
                file.flush()
                os.fsync(file.fileno())
                size = file.tell()
            temporary.replace(path)
            return size

    def settle(self, sizes: Mapping[str, int]) -> list[str]:
        with self._folder(self._root, make=True) as place:
            descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                linux.sync_file_system(descriptor)
            finally:
                os.close(descriptor)
        return [name for name, size in sizes.items() if not self._has(name, size)]

    def move(self, staged: str, name: str) -> None:
        lies = self._root / staged
        with self._folder(lies.parent) as from_place, self._beside(name) as (path, temporary):
            source = from_place / lies.name
            if not stat.S_ISREG(source.lstat().st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(lies))
            try:
                # A second name first: a crash must leave it where it can be moved again.
                os.link(source, temporary, follow_symlinks=False)
                temporary.replace(path)
            except OSError as error:
                if error.errno not in NO_LINKS:
                    raise
                source.replace(path)

    def document(self, name: str) -> tuple[bytes, str] | None:
        path = self._root / name
        try:
            with self._folder(path.parent) as place:
                data = _read(place / path.name)
        except FileNotFoundError:
            return None
        return data, hashlib.sha256(data).hexdigest()

    def put_document(self, name: str, data: bytes, version: str | None) -> None:
        with self._beside(name) as (path, temporary):
            directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(directory, fcntl.LOCK_EX)
                found = self.document(name)
                if (None if found is None else found[1]) != version:
                    told = {"bucket": str(self._root), "key": name, "condition": "same"}
                    raise Refused("object-condition", http=412, **told)
                with temporary.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(path)
                os.fsync(directory)
            finally:
                os.close(directory)

    def clear(self, prefix: str, keep: str = "") -> None:
        path = self._root / prefix
        kept = Path(keep).relative_to(prefix) if keep else None
        with contextlib.suppress(FileNotFoundError), self._folder(path.parent) as place:
            with self._folder(path) as inside:
                _empty(inside, kept)
            with contextlib.suppress(OSError):
                (place / path.name).rmdir()

    def _has(self, name: str, size: int) -> bool:
        path = self._root / name
        try:
            with self._folder(path.parent) as place:
                state = (place / path.name).lstat()
        except OSError:
            return False
        return stat.S_ISREG(state.st_mode) and state.st_size == size

    @contextlib.contextmanager
    def _beside(self, name: str) -> Iterator[tuple[Path, Path]]:
        """The path of a file whose directory is made and held, and one for what becomes it."""
        path = self._root / name
        with self._folder(path.parent, make=True) as place:
            temporary = place / f".{secrets.token_hex(8)}.part"
            try:
                yield place / path.name, temporary
            finally:
                temporary.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _folder(self, path: Path, *, make: bool = False) -> Iterator[Path]:
        """A directory as a path that leads to it as long as this lasts, wherever its name leads."""
        at = os.open("/", _STEP)
        try:
            for part in path.parts[1:]:
                below = _step(at, part, str(path), make=make)
                os.close(at)
                at = below
            yield Path(f"/proc/self/fd/{at}")
        finally:
            os.close(at)


def _step(at: int, part: str, path: str, *, make: bool) -> int:
    """The directory `part` in another one; NotADirectoryError where it is a link or a file."""
    try:
        try:
            return os.open(part, _STEP, dir_fd=at)
        except FileNotFoundError:
            if not make:
                raise
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, dir_fd=at)
        return os.open(part, _STEP, dir_fd=at)
    except OSError as error:
        error.filename = f"{path} ({part})"
        raise


def _read(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def _empty(place: Path, kept: Path | None) -> None:
    """Remove what is in a directory, but for what is in `kept`, as far as it can be removed."""
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for here, folders, plain, at in os.fwalk(".", topdown=False, dir_fd=descriptor):
            if kept is not None and Path(here).is_relative_to(kept):
                continue
            for name in (*plain, *folders):
                with contextlib.suppress(OSError):
                    try:
                        os.unlink(name, dir_fd=at)
                    except IsADirectoryError:
                        os.rmdir(name, dir_fd=at)
    finally:
        os.close(descriptor)


def _link(file: Path, temporary: Path) -> bool:
    """Give the finished file its second name: no copy, where the file system is the same."""
    try:
        # link(2) would give a second name to a link itself, whatever it is told.
        os.link(os.path.realpath(file), temporary)
    except OSError:
        return False
    return True


def _copy(source: SteadyFile, temporary: Path) -> None:
    mode = os.fstat(source.fileno()).st_mode & 0o777
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, mode | 0o600)
    try:
        os.fchmod(descriptor, mode | 0o600)
        copy_file(source.fileno(), descriptor, lambda: None)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
