"""Whether a disk has room, what is said when it has none, and that it holds what was written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from danlu.model.errors import Refused

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""What the system says of a disk, or a quota on it, that is full."""

SPARE_BYTES = 64 << 10
"""With less than this nothing can be relied on."""


def free_bytes(directory: Path) -> int:
    """What this user may still write there; OSError where that cannot be told."""
    state = os.statvfs(directory)
    return state.f_bavail * state.f_frsize


def size_bytes(directory: Path) -> int:
    """How large the file system is; OSError where that cannot be told."""
    state = os.statvfs(directory)
    return state.f_blocks * state.f_frsize


def sync(path: Path) -> None:
    """Put a file, or the names in a directory, on disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(root: Path) -> None:
    """Put the names in a directory, and in all below it, on disk; files are synced as they are
    written. Raises OSError.
    """
    for folder, _, _ in os.walk(root):
        sync(Path(folder))


def is_full(directory: Path) -> bool:
    """Whether the file system has no room left: not everybody who meets that says so."""
    try:
        return _no_inode(directory) or free_bytes(directory) < SPARE_BYTES
    except OSError:
        return False


def is_read_only(directory: Path) -> bool:
    """Whether the file system takes no writes at all. One that the kernel has closed after an
    error of the disk still says that it is writable: only trying shows it.
    """
    try:
        if os.statvfs(directory).f_flag & os.ST_RDONLY:
            return True
        os.close(os.open(directory, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except OSError as error:
        return error.errno == errno.EROFS
    return False


def full(path: Path, detail: str, needed_bytes: int = SPARE_BYTES) -> Refused:
    """The error (507) for a write to `path`, or below it, that found no room. Which kind of room
    is missing decides what a person has to free.
    """
    there = path if path.exists() else path.parent
    try:
        free = free_bytes(there)
        if _no_inode(there):
            return Refused("inodes-full", http=507, path=str(path), detail=detail)
    except OSError:
        free = 0
    return Refused(
        "disk-full",
        http=507,
        path=str(path),
        detail=detail,
        free_bytes=free,
        needed_bytes=needed_bytes,
    )


def _no_inode(directory: Path) -> bool:
    state = os.statvfs(directory)
    return state.f_files > 0 and state.f_favail == 0
