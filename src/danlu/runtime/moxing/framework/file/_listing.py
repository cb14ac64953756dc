"""What lies where: list_directory, scan_dir, walk and glob, the same for machine and storage."""

from __future__ import annotations

import fnmatch
import glob as _glob
import os
import re
import stat as _stat
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, NamedTuple

from moxing.framework.file import _objects
from moxing.framework.file._place import AnyPath, Place, where
from moxing.framework.file._words import say

_local: dict[str, Callable[..., Any]] = {
    "listdir": os.listdir,
    "scandir": os.scandir,
    "walk": os.walk,
    "glob": _glob.glob,
}
"""Python's own: `shift` replaces those in their modules."""

_MAGIC = re.compile(r"[*?\[]")


class ObjectEntry(NamedTuple):
    """An object or directory as `os.scandir` would give it."""

    name: str
    path: str
    info: _objects.Info | None

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002 - os.DirEntry's form
        return self.info is None

    def is_file(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002 - as above
        return self.info is not None

    def is_symlink(self) -> bool:
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:  # noqa: ARG002 - as above
        return stat_result(self.info)

    def __fspath__(self) -> str:
        return self.path


class Entries:
    """What `scan_dir` gives: an iterator that can also be closed."""

    def __init__(self, entries: Iterator[ObjectEntry]) -> None:
        self._entries = entries

    def __iter__(self) -> Iterator[ObjectEntry]:
        return self

    def __next__(self) -> ObjectEntry:
        return next(self._entries)

    def __enter__(self) -> Entries:  # noqa: PYI034 - Self is younger than Python 3.9
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Look no further."""
        self._entries = iter(())


def stat_result(info: _objects.Info | None) -> os.stat_result:
    """An object (or, where there is none, a directory) in the form of `os.stat`."""
    if info is None:
        return os.stat_result((_stat.S_IFDIR | 0o755, 0, 0, 1, 0, 0, 0, 0, 0, 0))
    at = info.mtime_ns // 10**9
    mode = _stat.S_IFREG | 0o644
    return os.stat_result((mode, 0, 0, 1, 0, 0, info.size, at, at, at))


def children(place: Place) -> Iterator[ObjectEntry]:
    """What lies directly below a directory. FileNotFoundError or NotADirectoryError if nothing
    does.
    """
    prefix = place.directory.key
    seen = False
    for page in _objects.pages(place.directory, delimiter="/"):
        for deeper in page.prefixes:
            seen = True
            name = deeper[len(prefix) : -1]
            if name:  # a key with two slashes in a row lies in no directory
                yield ObjectEntry(name, f"obs://{place.bucket}/{prefix}{name}", None)
        for info in page.objects:
            seen = True
            name = info.place.key[len(prefix) :]
            if name:
                yield ObjectEntry(name, f"obs://{place.bucket}/{prefix}{name}", info)
    if not seen and prefix:
        if _objects.head(Place(place.bucket, prefix[:-1])) is not None:
            raise NotADirectoryError(say("not-directory", url=place))
        raise FileNotFoundError(say("missing", url=place))


def _in_order(place: Place) -> list[ObjectEntry]:
    return sorted(children(place), key=lambda entry: (entry.name, entry.is_dir()))


def list_directory(url: AnyPath, recursive: bool = False) -> list[str]:  # noqa: FBT001, FBT002 - MoXing's form
    """The names of what lies in a directory; with `recursive`, relative paths of all below it."""
    place = where(url)
    if not recursive:
        if isinstance(place, Place):
            return sorted({entry.name for entry in children(place)})
        names: list[str] = _local["listdir"](place)
        return sorted(names)
    found: set[str] = set()
    for directory, directories, files in walk(url):
        below = directory[len(_trimmed(url)) :].strip("/")
        found.update(f"{below}/{name}".lstrip("/") for name in (*directories, *files))
    if not found:
        # An empty directory, or none.
        return list_directory(url)
    return sorted(found)


def _trimmed(url: AnyPath) -> str:
    place = where(url)
    return str(place).rstrip("/") if isinstance(place, Place) else place.rstrip("/")


def scan_dir(url: AnyPath) -> Any:
    """What lies in a directory, as entries with name, path, is_dir(), is_file() and stat()."""
    place = where(url)
    return Entries(children(place)) if isinstance(place, Place) else _local["scandir"](place)


def walk(
    url: AnyPath,
    topdown: bool = True,  # noqa: FBT001, FBT002 - os.walk's form
    onerror: Callable[[OSError], Any] | None = None,
    followlinks: bool = False,  # noqa: FBT001, FBT002 - as above
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Directories, and the names of what lies in each, as `os.walk` gives them."""
    place = where(url)
    if isinstance(place, str):
        yield from _local["walk"](place, topdown, onerror, followlinks)
        return
    try:
        entries = _in_order(place)
    except OSError as error:
        if onerror is not None:
            onerror(error)
        return
    directories = [entry.name for entry in entries if entry.is_dir()]
    files = [entry.name for entry in entries if entry.is_file()]
    here = _trimmed(url)
    if topdown:
        yield here, directories, files
    for name in directories:
        yield from walk(f"{here}/{name}", topdown, onerror, followlinks)
    if not topdown:
        yield here, directories, files


def glob(url: AnyPath, recursive: bool = False, **options: Any) -> list[str]:  # noqa: FBT001, FBT002 - MoXing's form
    """The names that a pattern matches: `*`, `?` and `[…]` within a part, and `**` for any number
    of parts where `recursive`. Names that begin with a dot only where the pattern says so.
    """
    place = where(url)
    if isinstance(place, str):
        found: list[str] = _local["glob"](place, recursive=recursive, **options)
        return found
    *parts, last = place.key.split("/")
    matched = [Place(place.bucket, "")]
    for part in parts:
        matched = [one for base in matched for one in _directories(base, part, recursive)]
    if not last:
        return [str(one) for one in matched if _objects.is_directory(one)]
    return [str(one) for base in matched for one in _matching(base, last, recursive)]


def _directories(base: Place, part: str, recursive: bool) -> Iterator[Place]:  # noqa: FBT001 - private
    if recursive and part == "**":
        yield base
        for entry in _children_of(base):
            if entry.is_dir() and not entry.name.startswith("."):
                yield from _directories(
                    Place(base.bucket, f"{base.key}{entry.name}/"), part, recursive
                )
    elif _MAGIC.search(part):
        for entry in _children_of(base):
            if entry.is_dir() and _fits(entry.name, part):
                yield Place(base.bucket, f"{base.key}{entry.name}/")
    else:
        yield Place(base.bucket, f"{base.key}{part}/")


def _matching(base: Place, part: str, recursive: bool) -> Iterator[Place]:  # noqa: FBT001 - private
    if recursive and part == "**":
        for directory in _directories(base, part, recursive):
            if directory.key:
                yield Place(directory.bucket, directory.key)
            for entry in _children_of(directory):
                if entry.is_file() and not entry.name.startswith("."):
                    yield Place(base.bucket, f"{directory.key}{entry.name}")
    elif _MAGIC.search(part):
        for entry in _children_of(base):
            if _fits(entry.name, part):
                yield Place(base.bucket, f"{base.key}{entry.name}")
    elif _objects.exists(Place(base.bucket, f"{base.key}{part}")):
        yield Place(base.bucket, f"{base.key}{part}")


def _children_of(base: Place) -> list[ObjectEntry]:
    try:
        return _in_order(base)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _fits(name: str, pattern: str) -> bool:
    hidden = name.startswith(".") and not pattern.startswith(".")
    return not hidden and fnmatch.fnmatchcase(name, pattern)
