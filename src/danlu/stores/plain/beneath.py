"""Files below a directory by names that come from anywhere: no link is followed, nothing outside
is touched.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

Names = list[str]
TEMPORARY = ".danlu-part-"
"""What is being written begins so; no key has a part that does."""
UPLOADS = f"{TEMPORARY}uploads"
"""Below the root: the parts of uploads."""
LONGEST_PART = 255
_NO_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENODEV})
"""Nothing, a file as a folder, a link, a socket, a device without a driver."""
_LOOK = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_DIRECTORY = _LOOK | os.O_DIRECTORY


def parts_of(key: str) -> Names | None:
    """The parts of a key that is the path of a file (or, ending in `/`, of a folder), or None."""
    parts = key.removesuffix("/").split("/")
    good = "\0" not in key and all(
        part not in ("", ".", "..")
        and len(part.encode()) <= LONGEST_PART
        and not part.startswith(TEMPORARY)
        for part in parts
    )
    return parts if good else None


@contextmanager
def folder(root: str, parts: Names, *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder with these parts; FileNotFoundError, NotADirectoryError, or
    OSError (ELOOP) where one of them is a link.
    """
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o777, dir_fd=at)
                    os.fsync(at)
            below = os.open(part, _DIRECTORY, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


def file(root: str, parts: Names) -> int:
    """A descriptor of a plain file; FileNotFoundError where there is none of that name."""
    try:
        with folder(root, parts[:-1]) as at:
            # O_NONBLOCK: nobody may wait for the other end of a pipe.
            found = os.open(parts[-1], _LOOK | os.O_NONBLOCK, dir_fd=at)
    except OSError as problem:
        if problem.errno not in _NO_FILE:
            raise
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from problem
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return found


def entries(root: str, parts: Names) -> list[tuple[str, os.stat_result]]:
    """The files and folders in a folder whose names can be parts of keys, in the order of the
    keys' bytes: a folder stands where its keys do.
    """
    found: list[tuple[bytes, str, os.stat_result]] = []
    try:
        with folder(root, parts) as at, os.scandir(at) as listed:
            for entry in listed:
                if not _is_text(entry.name) or parts_of(entry.name) is None:
                    continue
                with suppress(OSError):
                    state = os.stat(entry.name, dir_fd=at, follow_symlinks=False)
                    if stat.S_ISDIR(state.st_mode):
                        found.append((f"{entry.name}/".encode(), entry.name, state))
                    elif stat.S_ISREG(state.st_mode):
                        found.append((entry.name.encode(), entry.name, state))
    except OSError:
        return []
    return [(name, state) for _, name, state in sorted(found, key=lambda item: item[0])]


def remove_abandoned(at: int, name: str, before: float) -> None:
    """Remove a file that was not changed since `before` and whose lock is free. Raises OSError."""
    found = os.open(name, _LOOK, dir_fd=at)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(found).st_mtime <= before:
            os.unlink(name, dir_fd=at)
    finally:
        os.close(found)


def etag_of(state: os.stat_result) -> str:
    """Changes whenever a file does, and looks like no digest of its content."""
    text = f"{state.st_dev} {state.st_ino} {state.st_size} {state.st_mtime_ns}"
    return f"plain-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
