"""A tree with a task's changes laid over it, read from outside of the task's view.

overlayfs keeps what is changed in a directory of its own: files as they are, a device 0:0 where
something was removed, and a mark on a directory that hides the one below it. Both trees are read as
roots of their own: no link of the task's leads out of them, and no pipe is waited for.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from danlu.node import linux

MARKS = ("trusted.overlay.opaque", "user.overlay.opaque")
ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV)
MOST_TEXT = 64 << 20


class Overlay:
    """`lower` and what lies over it in `upper`; paths are from their roots."""

    def __init__(self, lower: str, upper: str) -> None:
        self.lower = lower
        self.upper = upper

    def changed(self) -> Iterator[str]:
        """Every file and link that was written."""
        for folder, folders, names in os.walk(self.upper):
            for name in (*folders, *names):
                path = f"{folder}/{name}"
                found = os.lstat(path)
                if not (stat.S_ISDIR(found.st_mode) or _removed(found)):
                    yield path[len(self.upper) + 1 :]

    def hidden(self, path: str) -> bool:
        """Whether what lies at a path below is not what is seen there."""
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            found = _stat(self.upper, "/".join(parts[:depth]))
            if found is None:
                return False
            kind, opaque = found
            if not stat.S_ISDIR(kind) or (opaque and depth < len(parts)):
                return True
        return False

    def names(self, path: str) -> list[str]:
        """The names in a directory of the whole."""
        above = _names(self.upper, path)
        kinds = {name: _stat(self.upper, f"{path}/{name}") for name in above}
        seen = [name for name, found in kinds.items() if found and not stat.S_ISCHR(found[0])]
        below = [] if self._covered(path) else _names(self.lower, path)
        return sorted([*seen, *(name for name in below if name not in kinds)])

    def _covered(self, path: str) -> bool:
        found = _stat(self.upper, path)
        return self.hidden(path) or bool(found and found[1])

    def text(self, path: str) -> str:
        """A text file of the whole; empty where there is none."""
        descriptor = self._open(path)
        if descriptor is None:
            return ""
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MOST_TEXT).decode("utf-8", "replace")

    def sha256(self, path: str) -> str:
        """The digest of a plain file of the whole; empty where there is none."""
        descriptor = self._open(path)
        if descriptor is None:
            return ""
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def _open(self, path: str) -> int | None:
        root = self.upper if self.hidden(path) else self.lower
        descriptor = _within(root, path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        if descriptor is not None and not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            return None
        return descriptor


def _within(root: str, path: str, flags: int) -> int | None:
    """A descriptor for what lies below a root; None where nothing is that may be opened so."""
    base = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return linux.open_within(base, path, flags)
    except OSError as error:
        if error.errno in ABSENT:
            return None
        raise
    finally:
        os.close(base)


def _stat(root: str, path: str) -> tuple[int, bool] | None:
    """The kind of what lies at a path, and whether it is marked to hide what is below it."""
    descriptor = _within(root, path, os.O_PATH | os.O_NOFOLLOW)
    if descriptor is None:
        return None
    try:
        mode = os.fstat(descriptor).st_mode
        place = f"/proc/self/fd/{descriptor}"
        return mode, stat.S_ISDIR(mode) and any(_marked(place, mark) for mark in MARKS)
    finally:
        os.close(descriptor)


def _marked(path: str, mark: str) -> bool:
    with suppress(OSError):
        return os.getxattr(path, mark) == b"y"
    return False


def _names(root: str, path: str) -> list[str]:
    descriptor = _within(root, path, os.O_RDONLY | os.O_DIRECTORY)
    if descriptor is None:
        return []
    try:
        return os.listdir(descriptor)  # noqa: PTH208 -- it has no path
    finally:
        os.close(descriptor)


def _removed(found: os.stat_result) -> bool:
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0
