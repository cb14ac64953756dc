"""Control groups: the kernel holds a task to its flavor, and ends all of it at one word.

A task has one group, made before its program starts and removed after the last process is gone.
Its name says whose it is, and `cgroup.json` in the task's directory where it lies, so that whoever
takes a task over, or finds one that nobody took over, reaches the same group. Version 1 of control
groups has a directory in each controller's hierarchy, version 2 one for all (cgroups(7)).
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from danlu.node import identity
from danlu.node.cgroup_mounts import CONTROLLERS, Hierarchies, find

__all__ = ["CONTROLLERS", "Group", "Limits", "NoGroup", "Version1", "Version2", "here", "named"]

PERIOD_US = 100_000
"""Of the CPU quota: what the kernel itself takes."""
FREEZE_LIMIT_S = 1.0
REMOVE_LIMIT_S = 1.0
PAUSE_S = 0.002


@dataclass(frozen=True, slots=True)
class Limits:
    """What a task may use; 0 = as much as there is."""

    memory_bytes: int = 0
    cpus: float = 0
    pids: int = 0


class Group(Protocol):
    """One task's control group, of either version. Missing groups are empty, not errors."""

    def make(self, limits: Limits, /) -> frozenset[str]:
        """Make it; the controllers that hold the task to its limits. OSError if it cannot be."""

    def entrances(self) -> Sequence[str]:
        """The files into which a process writes `0` to enter."""

    def pids(self) -> list[int]:
        """Every process in it and in groups below it."""

    def kill(self) -> None:
        """SIGKILL to all of them, those that are being forked included."""

    def oom_kills(self) -> int | None:
        """How many of its processes the kernel killed because the group's memory ran out."""

    def refused_forks(self) -> int | None:
        """How often a process could not be made because the group had its limit of them."""

    def remove(self) -> bool:
        """Remove it; False if something is still in it."""

    def described(self) -> dict[str, str]:
        """What `described` makes it from again: directories by controller."""


@functools.cache
def here() -> Hierarchies:
    """Where this process may make groups. Looked at once: agents are forked from who looked."""
    return find(prepare=True)


def prefix(tasks_root: str) -> str:
    """What the names of all groups begin with that belong to the tasks below one root."""
    return f"danlu-{hashlib.sha256(tasks_root.encode()).hexdigest()[:10]}-"


def named(directory: str, hierarchies: Hierarchies | None = None) -> Group:
    """The group of the task in `directory`, whether or not it is there."""
    root, _, task = directory.rpartition("/")
    return _group(hierarchies or here(), prefix(root) + task)


def _group(hierarchies: Hierarchies, name: str) -> Group:
    if hierarchies.version == 1:
        return Version1({key: base / name for key, base in hierarchies.bases.items()})
    if hierarchies.version == 2:
        return Version2(hierarchies.bases["unified"] / name)
    return NoGroup()


def described(data: object) -> Group:
    """The group that `Group.described` tells of; NoGroup for anything else."""
    if not isinstance(data, dict):
        return NoGroup()
    paths = {
        key: Path(path)
        for key, path in data.items()
        if isinstance(path, str) and path.startswith("/") and "/danlu-" in path
    }
    if "unified" in paths:
        return Version2(paths["unified"])
    return Version1(paths) if paths else NoGroup()


def left_over(hierarchies: Hierarchies, tasks_root: str, known: Callable[[str], bool]) -> int:
    """End and remove the groups of tasks that are not there any more; returns how many."""
    start = prefix(tasks_root)
    names = {
        entry.name
        for base in hierarchies.bases.values()
        for entry in _entries(base)
        if entry.name.startswith(start) and not known(entry.name.removeprefix(start))
    }
    for name in names:
        group = _group(hierarchies, name)
        group.kill()
        group.remove()
    return len(names)


class NoGroup:
    """Where there are no control groups, or none that may be made."""

    def make(self, _limits: Limits) -> frozenset[str]:
        return frozenset()

    def entrances(self) -> Sequence[str]:
        return ()

    def pids(self) -> list[int]:
        return []

    def kill(self) -> None:
        pass

    def oom_kills(self) -> int | None:
        return None

    def refused_forks(self) -> int | None:
        return None

    def remove(self) -> bool:
        return True

    def described(self) -> dict[str, str]:
        return {}


@dataclass(frozen=True, slots=True)
class Version1:
    """`directories` by controller: memory, cpu, pids, freezer, whichever there are."""

    directories: Mapping[str, Path]

    def make(self, limits: Limits) -> frozenset[str]:
        for directory in self.directories.values():
            directory.mkdir(exist_ok=True)
        wanted = {
            "memory": [("memory.limit_in_bytes", limits.memory_bytes)],
            "cpu": [("cpu.cfs_quota_us", round(limits.cpus * PERIOD_US))],
            "pids": [("pids.max", limits.pids)],
        }
        held = {key for key, files in wanted.items() if self._hold(key, files)}
        # Memory and swap together: without swap accounting there is no such file.
        if limits.memory_bytes:
            self._hold("memory", [("memory.memsw.limit_in_bytes", limits.memory_bytes)])
        return frozenset(held)

    def _hold(self, controller: str, files: list[tuple[str, int]]) -> bool:
        directory = self.directories.get(controller)
        return directory is not None and all(
            not value or _write(directory / name, str(value)) for name, value in files
        )

    def entrances(self) -> Sequence[str]:
        # One thread that moves itself waits for no other processor; a whole process, or another
        # one, waits milliseconds for all of them.
        return [f"{directory}/tasks" for directory in self.directories.values()]

    def pids(self) -> list[int]:
        directory = self.directories.get("freezer") or next(iter(self.directories.values()), None)
        return [] if directory is None else _pids_below(directory)

    def kill(self) -> None:
        freezer = self.directories.get("freezer")
        if freezer is not None:
            self._freeze(freezer / "freezer.state")
        identity.kill_members(self.pids)
        if freezer is not None:
            _write(freezer / "freezer.state", "THAWED")

    def _freeze(self, state: Path) -> None:
        """Stop everybody: who is frozen neither forks nor hands its pid to another process."""
        until = time.monotonic() + FREEZE_LIMIT_S
        while _write(state, "FROZEN") and _read(state) == "FREEZING":
            if time.monotonic() > until:  # one of them waits for a device
                return
            time.sleep(PAUSE_S)

    def oom_kills(self) -> int | None:
        return _count(self.directories.get("memory"), "memory.oom_control", "oom_kill")

    def refused_forks(self) -> int | None:
        return _count(self.directories.get("pids"), "pids.events", "max")

    def remove(self) -> bool:
        gone = [_remove(directory) for directory in self.directories.values()]
        return all(gone)

    def described(self) -> dict[str, str]:
        return {key: str(path) for key, path in self.directories.items()}


@dataclass(frozen=True, slots=True)
class Version2:
    """One directory for every controller."""

    directory: Path

    def make(self, limits: Limits) -> frozenset[str]:
        self.directory.mkdir(exist_ok=True)
        held = set()
        quota = f"{round(limits.cpus * PERIOD_US)} {PERIOD_US}" if limits.cpus else "max"
        for controller, name, value in (
            ("memory", "memory.max", str(limits.memory_bytes or "max")),
            ("cpu", "cpu.max", quota),
            ("pids", "pids.max", str(limits.pids or "max")),
        ):
            if _write(self.directory / name, value):
                held.add(controller)
        if limits.memory_bytes:
            _write(self.directory / "memory.swap.max", "0")
        # memory.oom.group stays 0: that a worker died is told, and the program may go on.
        return frozenset(held)

    def entrances(self) -> Sequence[str]:
        return [f"{self.directory}/cgroup.procs"]

    def pids(self) -> list[int]:
        return _pids_below(self.directory)

    def kill(self) -> None:
        if _write(self.directory / "cgroup.kill", "1"):
            return
        # Before Linux 5.14: stop, then kill; a frozen process of version 2 dies of SIGKILL.
        _write(self.directory / "cgroup.freeze", "1")
        identity.kill_members(self.pids)
        _write(self.directory / "cgroup.freeze", "0")

    def oom_kills(self) -> int | None:
        return _count(self.directory, "memory.events", "oom_kill")

    def refused_forks(self) -> int | None:
        return _count(self.directory, "pids.events", "max")

    def remove(self) -> bool:
        return _remove(self.directory)

    def described(self) -> dict[str, str]:
        return {"unified": str(self.directory)}


def _write(file: Path, text: str) -> bool:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(descriptor, text.encode())
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _read(file: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return file.read_text("ascii").strip()
    return ""


def _count(directory: Path | None, name: str, key: str) -> int | None:
    lines = () if directory is None else _read(directory / name).splitlines()
    for line in lines:
        words = line.split()
        if len(words) == 2 and words[0] == key and words[1].isdigit():
            return int(words[1])
    return None


def _entries(directory: Path) -> Iterator[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(directory) as entries:
        yield from (entry for entry in entries if entry.is_dir(follow_symlinks=False))


def _tree(directory: Path) -> Iterator[Path]:
    """The group and those that the program made in it, the lowest first."""
    for entry in _entries(directory):
        yield from _tree(Path(entry.path))
    yield directory


def _pids_below(directory: Path) -> list[int]:
    lines = [line for group in _tree(directory) for line in _read(group / "cgroup.procs").split()]
    return [int(line) for line in lines if line.isdigit() and line != "0"]


def _remove(directory: Path) -> bool:
    until = time.monotonic() + REMOVE_LIMIT_S
    while True:
        try:
            for group in _tree(directory):
                group.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            # The last process is gone a little before the group knows it.
            if time.monotonic() > until:
                return False
            time.sleep(PAUSE_S)
        else:
            return True
