"""What really holds a container, as the kernel says: its control groups, and its first process."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from danlu.node import identity
from danlu.node.cgroup import Group, Limits, NoGroup, Version1, Version2
from danlu.node.cgroup_mounts import lies
from danlu.ports.task_directory import ProcessIdentity

ROUND = 4096 * 16
"""The kernel keeps limits of memory in whole pages."""


@dataclass(slots=True)
class Held:
    """A container's group, which the runtime made and removes. Counts stay as they were last seen
    when it is gone.
    """

    init: ProcessIdentity
    group: Group = field(init=False)
    _oom_kills: int | None = field(default=None, init=False)
    _refused: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        found = lies(self.init["pid"])
        if "unified" in found:
            self.group = Version2(found["unified"])
        else:
            self.group = Version1(found) if found else NoGroup()

    def make(self, limits: Limits) -> frozenset[str]:
        """The runtime has made it; which of the limits it holds the task to."""
        if isinstance(self.group, Version1):
            held = _held_by_version1(self.group, limits)
        elif isinstance(self.group, Version2):
            held = _held_by_version2(self.group.directory, limits)
        else:
            held = frozenset()
        return held

    def entrances(self) -> Sequence[str]:
        return ()

    def pids(self) -> list[int]:
        return self.group.pids()

    def kill(self) -> None:
        # With the first process the kernel ends everybody in the container.
        if not identity.send(self.init, signal.SIGKILL):
            self.group.kill()

    def oom_kills(self) -> int | None:
        found = self.group.oom_kills()
        self._oom_kills = found if found is not None else self._oom_kills
        return self._oom_kills

    def refused_forks(self) -> int | None:
        found = self.group.refused_forks()
        self._refused = found if found is not None else self._refused
        return self._refused

    def remove(self) -> bool:
        return True

    def described(self) -> dict[str, str]:
        return {}


def _held_by_version1(group: Version1, limits: Limits) -> frozenset[str]:
    directories = group.directories
    held = set()
    if _at_most(directories.get("memory"), "memory.limit_in_bytes", limits.memory_bytes + ROUND):
        held.add("memory")
    if _at_most(directories.get("pids"), "pids.max", limits.pids):
        held.add("pids")
    cpu = directories.get("cpu")
    quota, period = _number(cpu, "cpu.cfs_quota_us"), _number(cpu, "cpu.cfs_period_us")
    if quota and period and quota <= limits.cpus * period * 1.01:
        held.add("cpu")
    return frozenset(held)


def _held_by_version2(directory: Path, limits: Limits) -> frozenset[str]:
    held = set()
    if _at_most(directory, "memory.max", limits.memory_bytes + ROUND):
        held.add("memory")
    if _at_most(directory, "pids.max", limits.pids):
        held.add("pids")
    quota, _, period = _text(directory, "cpu.max").partition(" ")
    if quota.isdigit() and period.isdigit() and int(quota) <= limits.cpus * int(period) * 1.01:
        held.add("cpu")
    return frozenset(held)


def _at_most(directory: Path | None, name: str, most: int) -> bool:
    found = _number(directory, name)
    return found is not None and 0 < found <= most


def _number(directory: Path | None, name: str) -> int | None:
    said = _text(directory, name)
    return int(said) if said.isdigit() else None


def _text(directory: Path | None, name: str) -> str:
    if directory is not None:
        with suppress(OSError, UnicodeDecodeError):
            return (directory / name).read_text("ascii").strip()
    return ""


def unheld(pid: int) -> list[str]:
    """What of the profile the first process of a container goes without, by name."""
    fields = {}
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text("utf-8", "replace").splitlines():
            name, _, value = line.partition(":")
            fields[name] = value.split()
    missing = []
    if any(int((fields.get(name) or ["1"])[0], 16) for name in ("CapPrm", "CapEff", "CapBnd")):
        missing.append("capabilities")
    if fields.get("NoNewPrivs") != ["1"]:
        missing.append("no-new-privileges")
    if fields.get("Seccomp") != ["2"]:
        missing.append("seccomp")
    shared = [name for name in ("mnt", "pid", "ipc", "net") if _shared(pid, name)]
    return [*missing, "namespaces"] if shared else missing


def _shared(pid: int, name: str) -> bool:
    """Whether a process is in the same namespace as this one, or that cannot be told."""
    try:
        found = os.readlink(f"/proc/{pid}/ns/{name}")  # noqa: PTH115 -- no path, a text of the kernel
        return found == os.readlink(f"/proc/self/ns/{name}")  # noqa: PTH115 -- as above
    except OSError:
        return True
