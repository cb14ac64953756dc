"""Content in files. A blob's name is random, its bytes are written once and never change.

A blob counts only when an index row names it. Until that is committed there is also a marker,
`incoming/<id>`, a second name of the same file, and the writer holds a lock on it. A marker whose
lock is free was left by a crash, and the index says whether its blob counts.

The name in `blobs/` is made before the content is written: one fsync of the file then carries
both to disk, and the fsync of the directory behind it finds nothing left to do.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from danlu.stores import disk
from danlu.stores.folder.failures import of_disk
from danlu.stores.folder.writing import Source, Writing

FANOUT = "0123456789abcdef"
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS})
"""Said by file systems without hard links; a crash there can leave a blob that no row names."""
SAME_DIRECTORY = 256
LEFTOVERS = 1000
"""Leftovers that one sweep looks at; the next one goes on."""


class Blobs:
    """The blob files of one bucket."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._count = itertools.count(secrets.randbelow(len(FANOUT) * SAME_DIRECTORY))
        self._incoming = directory / "incoming"
        self._blobs = directory / "blobs"

    def make(self) -> None:
        """Make the directories; some or all may be there."""
        for path in (self._incoming, self._blobs, *(self._blobs / x for x in FANOUT)):
            path.mkdir(0o700, exist_ok=True)
        disk.sync(self._blobs)
        disk.sync(self._directory)

    def path(self, blob: str) -> Path:
        """Where the content of `blob` lies."""
        return self._blobs / blob[0] / blob

    @contextmanager
    def receive(self, source: bytes | Source, *, md5: bool = True) -> Iterator[Incoming]:
        """Write `source` to disk under a fresh name. Nothing of it stays unless it is kept."""
        with of_disk(self._directory):
            blob, descriptor = self._create()
        incoming = Incoming(self, blob)
        try:
            try:
                writing = Writing(descriptor, self._directory, md5=md5)
                incoming.size, incoming.md5, incoming.sha256 = writing.run(source)
                yield incoming
            finally:
                incoming.settle()
        finally:
            os.close(descriptor)

    @contextmanager
    def adopt(self, other: Path) -> Iterator[Incoming]:
        """A fresh name for the content of the blob file `other` (of any bucket), by hard link.

        FileNotFoundError if it has just been removed; another OSError where the file system
        cannot do it.
        """
        descriptor = os.open(other, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            blob = self._fresh()
            os.link(other, self.marker(blob))
            incoming = Incoming(self, blob)
            try:
                os.link(other, self.path(blob))
                yield incoming
            finally:
                incoming.settle()
        finally:
            os.close(descriptor)

    def remove(self, blob: str) -> bool:
        """Remove the content of `blob`; readers that have it open keep it. False if it stays."""
        return _unlink(self.path(blob))

    def marker(self, blob: str) -> Path:
        """The file that says that `blob` is being written."""
        return self._incoming / blob

    def sweep(self, age_s: float, named: Callable[[list[str]], set[str]]) -> None:
        """Remove what crashed writers left behind `age_s` ago or earlier.

        `named` says which of some blobs an index row names.
        """
        before = time.time() - age_s
        with os.scandir(self._incoming) as entries:
            old = [entry.name for entry in entries if _changed_at(entry) <= before]
        left = [blob for blob in old[:LEFTOVERS] if _is_abandoned(self.marker(blob))]
        if left:
            kept = named(left)
            for blob in left:
                if blob in kept or self.remove(blob):
                    _unlink(self.marker(blob))

    def _fresh(self) -> str:
        """An id. Neighbours in time share a directory, so that one fsync does for them all."""
        place = next(self._count) // SAME_DIRECTORY % len(FANOUT)
        return FANOUT[place] + secrets.token_hex(16)[1:]

    def _create(self) -> tuple[str, int]:
        blob = self._fresh()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self.marker(blob), flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            try:
                os.link(self.marker(blob), self.path(blob))
            except OSError as problem:
                if problem.errno not in _NO_LINKS:
                    raise
                self.marker(blob).rename(self.path(blob))
        except BaseException:
            os.close(descriptor)
            _unlink(self.marker(blob))
            raise
        return blob, descriptor


class Incoming:
    """Content that no index row names yet."""

    def __init__(self, blobs: Blobs, blob: str) -> None:
        self._blobs = blobs
        self._certain = True
        self._kept = False
        self.blob = blob
        self.size = 0
        self.md5 = b""
        self.sha256 = b""

    @property
    def directory(self) -> Path:
        """What has to be synced before an index row may name the content."""
        return self._blobs.path(self.blob).parent

    def risk(self) -> None:
        """From here until `keep` or `discard` nobody knows whether a row names the content."""
        self._certain = False

    def keep(self) -> None:
        """An index row names the content now."""
        self._certain = self._kept = True

    def discard(self) -> None:
        """It is certain that no index row names the content."""
        self._certain = True

    def settle(self) -> None:
        """Remove what is not needed: the content if it is not kept, then the marker.

        While nobody knows whether the row was committed, both stay for the sweep.
        """
        if self._certain and (self._kept or self._blobs.remove(self.blob)):
            _unlink(self._blobs.marker(self.blob))


def _is_abandoned(path: Path) -> bool:
    """Whether nobody holds the lock of a marker: whoever made it is dead, or done with it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _changed_at(entry: os.DirEntry[str]) -> float:
    """When a file was last written or linked; never, where it has just gone."""
    try:
        return entry.stat(follow_symlinks=False).st_ctime
    except FileNotFoundError:
        return float("inf")


def _unlink(path: Path) -> bool:
    """Remove a file; whether it is gone."""
    try:
        path.unlink()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
