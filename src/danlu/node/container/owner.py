"""What an agent puts into a task's places is given to the user of its program."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from danlu.node.container.box import GID, UID


def give(place: Path) -> None:
    """Give a tree to ma-user. Links are given, not followed. Only root can, and only root need: the
    user of a rootless runtime is ma-user in its containers.
    """
    if os.geteuid() != 0:
        return
    for path, found in _below(str(place)):
        if (found.st_uid, found.st_gid) == (UID, GID):
            continue  # giving it again would look like a change
        if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
            # It is elsewhere too, in a cache, say: it is read here, and nobody's to change.
            os.chmod(path, stat.S_IMODE(found.st_mode) | 0o444)  # noqa: PTH101 -- paths as text
        else:
            os.lchown(path, UID, GID)


def show(place: Path) -> None:
    """Let everybody read a tree that is kept for several tasks. The top of it last: it says that
    the rest is done.
    """
    if stat.S_IMODE(place.stat().st_mode) & 0o005 == 0o005:
        return
    for path, found in reversed([*_below(str(place))]):
        if not stat.S_ISLNK(found.st_mode):
            more = 0o555 if stat.S_ISDIR(found.st_mode) else 0o444
            os.chmod(path, stat.S_IMODE(found.st_mode) | more)  # noqa: PTH101 -- paths as text


def _below(place: str) -> Iterator[tuple[str, os.stat_result]]:
    with suppress(FileNotFoundError):
        yield place, os.lstat(place)
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(place) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _below(entry.path)
            else:
                yield entry.path, entry.stat(follow_symlinks=False)
