"""What lies below a directory or a prefix, and which of it is meant."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase

from danlu.faces.cli.obs.objects import Objects
from danlu.faces.cli.obs.place import MAX_KEY_BYTES, is_own

Skip = Callable[[str, str], None]
"""Hears of what is passed over: its name, and the key of the text that says why."""


class Item:
    """A file or an object, under its name below the place that was named. `modified` is in seconds
    since 1970; a file has no `etag`.
    """

    __slots__ = ("etag", "modified", "name", "size")

    def __init__(self, name: str, size: int, modified: float, etag: str = "") -> None:
        self.name = name
        self.size = size
        self.modified = modified
        self.etag = etag


class Wanted:
    """Which names are meant: those that a pattern of `include` fits (all where there is none) and
    none of `exclude`. A pattern without a slash is for the last part of a name.
    """

    def __init__(self, include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()) -> None:
        self._include = include
        self._exclude = exclude

    def __call__(self, name: str) -> bool:
        if self._include and not any(_fits(pattern, name) for pattern in self._include):
            return False
        return not any(_fits(pattern, name) for pattern in self._exclude)


def _fits(pattern: str, name: str) -> bool:
    if "/" not in pattern:
        return fnmatchcase(name.rpartition("/")[2], pattern)
    return fnmatchcase(name, pattern.removeprefix("/"))


def files(root: str, wanted: Wanted, skip: Skip, *, follow: bool) -> Iterator[Item]:
    """The plain files below a directory, in the order of their names' bytes. Links are followed
    only if that was asked for, and never in a circle.
    """
    found = os.stat(root)
    yield from _below(root, "", wanted, skip, ((found.st_dev, found.st_ino),), follow=follow)


def _below(
    root: str,
    prefix: str,
    wanted: Wanted,
    skip: Skip,
    above: tuple[tuple[int, int], ...],
    *,
    follow: bool,
) -> Iterator[Item]:
    with os.scandir(os.path.join(root, prefix)) as opened:
        # As a listing has them: the entries of `a/` come behind `a-b`.
        entries = sorted(opened, key=_order)
    for entry in entries:
        name = f"{prefix}{entry.name}"
        problem, found = _looked_at(entry, follow=follow)
        if problem or found is None:
            if wanted(name):
                skip(name, problem)
            continue
        if stat.S_ISDIR(found.st_mode):
            here = (found.st_dev, found.st_ino)
            if here in above:
                skip(name, "obs-skip-circle")
            else:
                yield from _below(root, f"{name}/", wanted, skip, (*above, here), follow=follow)
        elif not is_own(entry.name) and wanted(name):
            yield Item(name, found.st_size, found.st_mtime)


def _order(entry: os.DirEntry[str]) -> bytes:
    name = os.fsencode(entry.name)
    return name + b"/" if entry.is_dir() else name


def _looked_at(entry: os.DirEntry[str], *, follow: bool) -> tuple[str, os.stat_result | None]:
    """Why an entry is passed over, or what it is."""
    try:
        os.fsencode(entry.name).decode()
    except UnicodeDecodeError:
        return "obs-skip-name", None
    if entry.is_symlink() and not follow:
        return "obs-skip-link", None
    try:
        found = entry.stat()
    except OSError:
        return "obs-skip-unreadable", None
    if not stat.S_ISDIR(found.st_mode) and not stat.S_ISREG(found.st_mode):
        return "obs-skip-special", None
    return "", found


def objects(store: Objects, bucket: str, prefix: str, wanted: Wanted) -> Iterator[Item]:
    """The objects below a prefix, in order; names that end in `/` stand for directories."""
    for entry in store.entries(bucket, prefix):
        name = entry.key[len(prefix) :]
        if name and wanted(name):
            yield Item(name, entry.size, entry.modified, entry.etag)


def fits_key(prefix: str, name: str) -> bool:
    """Whether a name is short enough for a key behind a prefix."""
    return len(prefix.encode()) + len(name.encode()) <= MAX_KEY_BYTES
