"""What goes wrong on a disk, in the platform's words."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from danlu.model.errors import EngineError, PlatformError, Refused, Unavailable

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_SPARE_BYTES = 64 << 10


@contextmanager
def of_disk(directory: Path) -> Iterator[None]:
    """Turn an OSError of the block into Refused (507, the disk is full) or Unavailable."""
    try:
        yield
    except OSError as problem:
        raise from_os(problem, directory) from problem


def from_os(problem: OSError, directory: Path) -> PlatformError:
    """The error for a caller that stands for `problem`, met below `directory`."""
    detail = problem.strerror or type(problem).__name__
    if problem.errno in _FULL:
        return Refused("disk-full", http=507, path=str(directory), detail=detail)
    return Unavailable("store-failed", path=str(directory), detail=detail)


def is_full(directory: Path) -> bool:
    """Whether the file system has no room left: SQLite does not always say so itself."""
    try:
        state = os.statvfs(directory)
    except OSError:
        return False
    no_inode = state.f_files > 0 and state.f_favail == 0
    return no_inode or state.f_bavail * state.f_frsize < _SPARE_BYTES


def damaged(bucket: str, key: str, detail: str) -> EngineError:
    """Trying again does not help: the content is not what the index says."""
    return EngineError("object-damaged", bucket=bucket, key=key, detail=detail)
