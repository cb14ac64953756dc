"""The functions of `mox.file`; `from moxing.framework.file import file_io` finds them here too."""

from __future__ import annotations

import os
import shutil
import stat as _stat
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NoReturn

from moxing.framework.file import _objects
from moxing.framework.file._listing import glob, list_directory, scan_dir, walk
from moxing.framework.file._place import AnyPath, Place, Where, where
from moxing.framework.file._progress import Progress
from moxing.framework.file._shift import shift
from moxing.framework.file._streams import File
from moxing.framework.file._transfer import (
    Copy,
    copies,
    copy_all,
    copy_one,
    known,
    make_directory,
    tell_left_out,
)
from moxing.framework.file._words import not_offered, say, tell

__all__ = [
    "File",
    "append",
    "copy",
    "copy_parallel",
    "exists",
    "get_size",
    "glob",
    "is_directory",
    "list_directory",
    "make_dirs",
    "mk_dir",
    "read",
    "remove",
    "rename",
    "scan_dir",
    "set_auth",
    "shift",
    "stat",
    "walk",
    "write",
]

# Scripts set these to make MoXing's own copies faster or to keep them from hanging. They are taken
# and have no effect: `threads` says how many files are copied at a time.
_LARGE_FILE_METHOD = 1
_NUMBER_OF_PROCESSES = 1
_LARGE_FILE_TASK_NUM = 1

MOST_THREADS = 256

_local: dict[str, Callable[..., Any]] = {
    "exists": os.path.exists,
    "isdir": os.path.isdir,
    "stat": os.stat,
    "mkdir": os.mkdir,
    "makedirs": os.makedirs,
    "remove": os.remove,
    "rename": os.rename,
    "rmtree": shutil.rmtree,
}
"""Python's own: `shift` replaces those in their modules."""


def __getattr__(name: str) -> NoReturn:
    raise not_offered("moxing.framework.file.file_io", name)


class Stat(NamedTuple):
    """What `stat` tells: bytes, nanoseconds since 1970, and whether it is a directory."""

    length: int
    mtime_nsec: int
    is_directory: bool


# contents


def read(url: AnyPath, binary: bool = False, encoding: str = "utf-8") -> Any:  # noqa: FBT001, FBT002 - MoXing's form
    """The whole content: text, or bytes if `binary`."""
    with File(url, "rb" if binary else "r", encoding=None if binary else encoding) as file:
        return file.read()


def write(url: AnyPath, data: str | bytes) -> None:
    """Replace the content of a file by `data`, or make it."""
    with File(url, "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)


def append(url: AnyPath, data: str | bytes) -> None:
    """Put `data` at the end of a file, or make it."""
    with File(url, "ab") as file:
        file.write(data.encode() if isinstance(data, str) else data)


# what is there


def exists(url: AnyPath) -> bool:
    """Whether there is such a file, object or directory."""
    place = where(url)
    return _objects.exists(place) if isinstance(place, Place) else bool(_local["exists"](place))


def is_directory(url: AnyPath) -> bool:
    """Whether it is a directory: a local one, a bucket, or what objects lie below."""
    place = where(url)
    if isinstance(place, Place):
        return _objects.is_directory(place)
    return bool(_local["isdir"](place))


def stat(url: AnyPath) -> Stat:
    """Length, time of the last change, and whether it is a directory."""
    place = where(url)
    if isinstance(place, str):
        found = _local["stat"](place)
        is_dir = _stat.S_ISDIR(found.st_mode)
        return Stat(0 if is_dir else found.st_size, found.st_mtime_ns, is_dir)
    info = look(place)
    return Stat(0, 0, True) if info is None else Stat(info.size, info.mtime_ns, False)


def look(place: Place) -> _objects.Info | None:
    """What is known of an object; None for a directory. FileNotFoundError for neither."""
    info = _objects.head(place) if place.key and not place.key.endswith("/") else None
    if info is None and not _objects.is_directory(place):
        raise FileNotFoundError(say("missing", url=place))
    return info


def get_size(url: AnyPath, recursive: bool = False) -> int:  # noqa: FBT001, FBT002 - MoXing's form
    """Bytes of a file; of a directory, with `recursive`, of all that lies below it."""
    if not recursive:
        return stat(url).length
    place = where(url)
    if isinstance(place, Place):
        info = look(place)
        return sum(one.size for one in _objects.below(place)) if info is None else info.size
    if not is_directory(place):
        return stat(place).length
    return sum(
        os.lstat(os.path.join(directory, name)).st_size
        for directory, _, files in walk(place)
        for name in files
    )


# changes


def make_dirs(url: AnyPath) -> None:
    """Make a directory and those above it; nothing happens if it is there."""
    place = where(url)
    if isinstance(place, Place):
        make_directory(place)
    else:
        _local["makedirs"](place, exist_ok=True)


def mk_dir(url: AnyPath) -> None:
    """Make a directory. In the storage it needs none above it, and may be there."""
    place = where(url)
    if isinstance(place, Place):
        make_directory(place)
    else:
        _local["mkdir"](place)


def remove(url: AnyPath, recursive: bool = False) -> None:  # noqa: FBT001, FBT002 - MoXing's form
    """Remove a file; with `recursive` also a directory with all that lies below it."""
    place = where(url)
    if isinstance(place, str):
        if not os.path.islink(place) and _local["isdir"](place):
            if not recursive:
                raise IsADirectoryError(say("remove-directory", url=place))
            _local["rmtree"](place)
        else:
            _local["remove"](place)
        return
    if look(place) is not None:
        _objects.delete([place])
        return
    if not recursive:
        raise IsADirectoryError(say("remove-directory", url=place))
    _refuse_bucket(place)
    for page in _objects.pages(place.directory):
        _objects.delete([info.place for info in page.objects])


def _refuse_bucket(place: Place) -> None:
    if not place.directory.key:
        raise PermissionError(say("whole-bucket", url=place))


def rename(src: AnyPath, dst: AnyPath) -> None:
    """Move a file or directory, also between machine and storage. What is moved is removed when
    all of it has arrived.
    """
    source, target = where(src), where(dst)
    if isinstance(source, str) and isinstance(target, str):
        _local["rename"](source, target)
        return
    if not is_directory(src):
        _copy(source, target)
        remove(src)
        return
    if isinstance(source, Place):
        _refuse_bucket(source)
    _refuse_overlap(source, target)
    left_out: list[str] = []
    found = list(copies(source, target, None, left_out))
    _copy_all(source, target, found, lambda: (one.size for one in found), 16)
    tell_left_out(left_out, target)
    _remove_copied(source, found)


def _remove_copied(source: Where, found: list[Copy]) -> None:
    """Remove what was moved, and nothing that has appeared there since."""
    if isinstance(source, Place):
        _objects.delete([copy.source for copy in found if isinstance(copy.source, Place)])
        marker = source.directory
        if _objects.head(marker) is not None:
            _objects.delete([marker])
        return
    for copy in found:
        if isinstance(copy.source, str) and not copy.marker:
            _local["remove"](copy.source)
    for directory, _, _ in walk(source, topdown=False):
        if not os.listdir(directory):
            os.rmdir(directory)


def copy(src_url: AnyPath, dst_url: AnyPath) -> None:
    """Copy one file. A target that ends with a slash, or is a local directory, gets it under its
    own name. For directories there is `copy_parallel`.
    """
    _copy(where(src_url), where(dst_url))


def _copy(source: Where, target: Where) -> None:
    name = str(source).rstrip("/").rpartition("/")[2]
    if isinstance(target, Place) and (not target.key or target.key.endswith("/")):
        target = target.below(name)
    elif isinstance(target, str) and (target.endswith("/") or os.path.isdir(target)):
        target = os.path.join(target, name)
    if isinstance(source, Place):
        info = look(source)
        if info is None:
            raise IsADirectoryError(say("is-directory", url=source))
        copy_one(Copy(source, target, info.size, info))
        return
    if _local["isdir"](source):
        raise IsADirectoryError(say("is-directory", url=source))
    copy_one(Copy(source, target, 0))


def copy_parallel(
    src_url: AnyPath,
    dst_url: AnyPath,
    file_list: Iterable[str] | None = None,
    threads: int = 16,
    is_processing: bool = True,  # noqa: FBT001, FBT002 - MoXing's form
    use_queue: bool = True,  # noqa: FBT001, FBT002 - as above
) -> None:
    """Copy all that lies below a directory (or the files of it that `file_list` names), or one
    file, `threads` files at a time. Files that are there are replaced, others are left alone.

    `is_processing` and `use_queue` say how MoXing would do it; here it is always threads.
    """
    del is_processing, use_queue
    source, target = where(src_url), where(dst_url)
    if not is_directory(src_url):
        if isinstance(source, Place):
            known(source)
        _copy(source, target)
        return
    _refuse_overlap(source, target)
    if isinstance(target, str):
        make_directory(target)
    names = None if file_list is None else list(file_list)
    left_out: list[str] = []
    found = copies(source, target, names, left_out)
    copied = _copy_all(
        source,
        target,
        found,
        lambda: (one.size for one in copies(source, target, names, [])),
        max(1, min(int(threads), MOST_THREADS)),
    )
    tell_left_out(left_out, target)
    if not copied:
        # In the storage a directory is what lies in it; an empty one needs a marker.
        make_directory(target)


def _copy_all(
    source: Where,
    target: Where,
    found: Iterable[Copy],
    sizes: Callable[[], Iterable[int]],
    threads: int,
) -> int:
    progress = Progress(source, target, sizes)
    try:
        copy_all(found, threads, progress)
    finally:
        progress.over()
    progress.end()
    return progress.files


def _refuse_overlap(source: Where, target: Where) -> None:
    if isinstance(source, Place) and isinstance(target, Place):
        inside = source.bucket == target.bucket and target.directory.key.startswith(
            source.directory.key
        )
    elif isinstance(source, str) and isinstance(target, str):
        above = os.path.join(os.path.realpath(source), "")
        inside = os.path.join(os.path.realpath(target), "").startswith(above)
    else:
        inside = False
    if inside:
        raise ValueError(say("into-itself", source=source, target=target))


def set_auth(*_keys: Any, **_more: Any) -> None:
    """Taken for the sake of scripts that carry keys: the job's own open its platform's storage."""
    tell("auth-ignored")
