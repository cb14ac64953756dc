"""Directories of this machine that outlive the tasks which see them: the homes of notebooks."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from danlu.model.errors import EngineError
from danlu.model.job import Volume
from danlu.node import places
from danlu.ports.task_directory import AgentPlan

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")
_GONE = ".gone-"


def volume_of(plan: AgentPlan, volume: Volume) -> str:
    """Where a volume of a task lies on this machine."""
    return f"{plan.volumes}/{volume.name}"


class Volumes:
    """The volumes below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A link on the way would stand between a task and what is mounted for it.
        self.path = str(root.resolve())
        for leftover in root.glob(f"{_GONE}*"):
            places.remove_tree(leftover)

    def make(self, name: str) -> None:
        """Make a volume, if it is not there."""
        try:
            self._place(name).mkdir(mode=0o755, exist_ok=True)
        except OSError as error:
            raise _failed(name, error) from error

    def used_bytes(self, name: str) -> int | None:
        """What lies in a volume, as the disk counts it; None where there is none. Takes as long as
        it takes to look at each file.
        """
        place = self._place(name)
        return _below(str(place)) if place.is_dir() else None

    def remove(self, name: str) -> None:
        """Remove a volume with all that is in it; EngineError where it cannot be."""
        place = self._place(name)
        gone = self._root / f"{_GONE}{secrets.token_hex(8)}"
        try:
            place.rename(gone)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _failed(name, error) from error
        places.remove_tree(gone)

    def _place(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise EngineError("engine-failed", detail=f"'{name}' cannot be a volume's name")
        return self._root / name


def _failed(name: str, error: OSError) -> EngineError:
    return EngineError("engine-failed", detail=f"volume {name}: {error.strerror}")


def _below(top: str) -> int:
    """Bytes of disk below a directory; what has several names counts once."""
    seen: set[tuple[int, int]] = set()
    whole = 0
    waiting = [top]
    while waiting:
        try:
            entries = os.scandir(waiting.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if found.st_nlink > 1 and not entry.is_dir(follow_symlinks=False):
                    if (found.st_dev, found.st_ino) in seen:
                        continue
                    seen.add((found.st_dev, found.st_ino))
                whole += found.st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return whole
