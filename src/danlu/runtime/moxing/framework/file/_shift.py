"""`shift('os', 'mox')`: Python's own file functions take obs:// names as well, until they are
shifted back. What is not such a name goes to the function that was there before, untouched.
"""

from __future__ import annotations

import builtins
import functools
import glob
import io
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from moxing.framework.file._place import is_object
from moxing.framework.file._words import say

_replaced: list[tuple[Any, str, Any, Any]] = []
"""Owner, name, Python's own, and what stands in its place."""


def shift(source: str, target: str) -> None:
    """`shift('os', 'mox')` or, back, `shift('mox', 'os')`; either may be called again."""
    if (source, target) == ("os", "mox"):
        if not _replaced:
            _replace_all()
    elif (source, target) == ("mox", "os"):
        while _replaced:
            owner, name, own, ours = _replaced.pop()
            # Somebody else may have put something over ours, which keeps working.
            if getattr(owner, name) is ours:
                setattr(owner, name, own)
    else:
        raise ValueError(say("bad-shift", source=source, target=target))


def _replace_all() -> None:
    for owner, name, instead, paths in _stand_ins():
        own = getattr(owner, name)
        ours = _either(own, instead, paths)
        setattr(owner, name, ours)
        _replaced.append((owner, name, own, ours))


def _either(
    own: Callable[..., Any], instead: Callable[..., Any], paths: tuple[str, ...]
) -> Callable[..., Any]:
    """`instead` where one of the first arguments, which `paths` names, is an object's name."""

    @functools.wraps(own)
    def chosen(*args: Any, **kwargs: Any) -> Any:
        rest = dict(kwargs)
        named = [
            args[index] if index < len(args) else rest.pop(name)
            for index, name in enumerate(paths)
            if index < len(args) or name in kwargs
        ]
        if any(is_object(path) for path in named):
            return instead(*named, *args[len(paths) :], **rest)
        return own(*args, **kwargs)

    return chosen


def _stand_ins() -> Iterator[tuple[ModuleType, str, Callable[..., Any], tuple[str, ...]]]:
    """Whose function, its name, what does it for objects, and what its paths are called."""
    from moxing.framework.file import file_io as mox

    yield builtins, "open", _opened, ("file",)
    yield io, "open", _opened, ("file",)
    yield os, "listdir", mox.list_directory, ("path",)
    yield os, "makedirs", lambda name, *_, **__: mox.make_dirs(name), ("name",)
    yield os, "mkdir", lambda path, *_, **__: mox.mk_dir(path), ("path",)
    yield os, "remove", lambda path, **_: mox.remove(path), ("path",)
    yield os, "unlink", lambda path, **_: mox.remove(path), ("path",)
    yield os, "rename", lambda src, dst, **_: mox.rename(src, dst), ("src", "dst")
    yield os, "replace", lambda src, dst, **_: mox.rename(src, dst), ("src", "dst")
    yield os, "scandir", mox.scan_dir, ("path",)
    yield os, "stat", _stat, ("path",)
    yield os, "walk", mox.walk, ("top",)
    path: Any = os.path
    yield path, "exists", mox.exists, ("path",)
    yield path, "getsize", mox.get_size, ("filename",)
    yield path, "isdir", mox.is_directory, ("s",)
    yield path, "isfile", _is_file, ("path",)
    yield glob, "glob", mox.glob, ("pathname",)
    yield glob, "iglob", lambda name, **more: iter(mox.glob(name, **more)), ("pathname",)
    yield shutil, "copyfile", _copied, ("src", "dst")
    yield shutil, "copy", _copied, ("src", "dst")
    yield shutil, "copytree", _copied_tree, ("src", "dst")
    yield shutil, "rmtree", _removed_tree, ("path",)


def _opened(
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    **_: Any,
) -> Any:
    from moxing.framework.file._streams import File

    return File(file, mode, buffering, encoding, errors, newline)


def _stat(path: Any, **_: Any) -> os.stat_result:
    from moxing.framework.file._listing import stat_result
    from moxing.framework.file._place import where
    from moxing.framework.file.file_io import look

    place = where(path)
    return os.stat(place) if isinstance(place, str) else stat_result(look(place))


def _is_file(path: Any) -> bool:
    try:
        return stat.S_ISREG(_stat(path).st_mode)
    except FileNotFoundError:
        return False


def _copied(src: Any, dst: Any, **_: Any) -> Any:
    from moxing.framework.file.file_io import copy

    copy(src, dst)
    return dst


def _copied_tree(src: Any, dst: Any, *_: Any, **__: Any) -> Any:
    from moxing.framework.file.file_io import copy_parallel

    copy_parallel(src, dst)
    return dst


def _removed_tree(path: Any, ignore_errors: bool = False, *_: Any, **__: Any) -> None:  # noqa: FBT001, FBT002 - shutil's form
    from moxing.framework.file.file_io import remove

    try:
        remove(path, recursive=True)
    except OSError:
        if not ignore_errors:
            raise
