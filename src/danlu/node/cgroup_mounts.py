"""Where control groups may be made on this machine: by root, or below what was delegated."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

CONTROLLERS = ("memory", "cpu", "pids")
"""Those that hold a task to its flavor."""
ASIDE = "danlu-server"
"""The group into which a server steps that is itself in the group delegated to it: version 2
wants processes only where there are no groups below."""


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """`bases`: the groups below which ours are made, by controller (version 2: `unified`).
    Version 0 = there is none.
    """

    version: int = 0
    bases: Mapping[str, Path] = field(default_factory=dict)
    controllers: frozenset[str] = frozenset()
    """Those of CONTROLLERS that can be used."""
    present: int = 0
    """The version that is mounted, whether or not it may be used."""


@dataclass(frozen=True, slots=True)
class _Mount:
    point: Path
    root: str
    version: int
    controllers: tuple[str, ...]


def find(root: Path = Path("/"), *, prepare: bool = False) -> Hierarchies:
    """What may be used, seen by this process. `prepare` also hands the controllers down to the
    groups that will be made, which version 2 wants once.
    """
    mounts = list(_mounts(root))
    own = _own(root)
    ones = {
        controller: base
        for mount in mounts
        if mount.version == 1
        for controller in (*CONTROLLERS, "freezer")
        if controller in mount.controllers
        and (base := _below(mount, own.get(controller))) is not None
        and os.access(base, os.W_OK | os.X_OK)
    }
    held = frozenset(ones) & frozenset(CONTROLLERS)
    if held:
        return Hierarchies(1, ones, held, 1)
    twos = [mount for mount in mounts if mount.version == 2]
    for mount in twos:
        base = _below(mount, own.get(""))
        found = _delegated(mount.point, base, prepare=prepare) if base is not None else None
        if found is not None:
            return found
    present = 1 if any(mount.controllers for mount in mounts) else 2 if twos else 0
    return Hierarchies(present=present)


def _mounts(root: Path) -> Iterator[_Mount]:
    for line in _text(root / "proc/self/mountinfo").splitlines():
        head, _, tail = line.partition(" - ")
        fields, kind = head.split(" "), tail.split(" ")
        if len(fields) < 6 or len(kind) < 3 or kind[0] not in ("cgroup", "cgroup2"):
            continue
        point = root / _plain(fields[4]).lstrip("/")
        if kind[0] == "cgroup2":
            yield _Mount(point, _plain(fields[3]), 2, ())
        else:
            yield _Mount(point, _plain(fields[3]), 1, tuple(kind[2].split(",")))


def _plain(path: str) -> str:
    """A path as mountinfo writes it: odd characters in octal."""
    for odd in (" ", "\t", "\n", "\\"):
        path = path.replace(f"\\{ord(odd):03o}", odd)
    return path


def lies(pid: int, root: Path = Path("/")) -> dict[str, Path]:
    """The groups in which a process is, by controller (version 2: `unified`), whoever made them."""
    own = _own(root, str(pid))
    found: dict[str, Path] = {}
    for mount in _mounts(root):
        wanted = (*CONTROLLERS, "freezer") if mount.version == 1 else ("",)
        for controller in wanted:
            path = own.get(controller)
            base = (
                _below(mount, path) if not controller or controller in mount.controllers else None
            )
            if base is not None and path not in (None, "/"):
                found.setdefault(controller or "unified", base)
    ones = {key: base for key, base in found.items() if key != "unified"}
    return ones or found


def _own(root: Path, pid: str = "self") -> dict[str, str]:
    """A process's groups by controller, version 2's under no name."""
    found = {}
    for line in _text(root / "proc" / pid / "cgroup").splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        for name in names.split(","):
            found[name] = path
    return found


def _below(mount: _Mount, path: str | None) -> Path | None:
    """Where a group lies below its mount, which may show only a part of the hierarchy."""
    if path is None or "/../" in f"{path}/":
        return None
    inner = path if mount.root == "/" else path.removeprefix(mount.root)
    if mount.root != "/" and not f"{path}/".startswith(f"{mount.root}/"):
        inner = "/"
    return mount.point / inner.lstrip("/")


def _delegated(point: Path, own: Path, *, prepare: bool) -> Hierarchies | None:
    """The nearest group, from our own upwards, that may have groups below it."""
    ancestors = [own, *(above for above in own.parents if above.is_relative_to(point))]
    for base in ancestors:
        writable = os.access(base, os.W_OK | os.X_OK) and all(
            os.access(base / name, os.W_OK) for name in ("cgroup.procs", "cgroup.subtree_control")
        )
        if not writable or not _may_have_children(base):
            continue
        controllers = _hand_down(base) if prepare else _available(base)
        if controllers:
            return Hierarchies(2, {"unified": base}, controllers, 2)
    return None


def _available(base: Path) -> frozenset[str]:
    return frozenset(_text(base / "cgroup.controllers").split()) & frozenset(CONTROLLERS)


def _may_have_children(base: Path) -> bool:
    """The root of all may have both, processes and groups; others only if all processes in it
    are ours, which step aside.
    """
    if not (base / "cgroup.type").exists():
        return True
    inside = {int(pid) for pid in _text(base / "cgroup.procs").split()}
    return inside <= _our_processes(inside)


def _our_processes(inside: set[int]) -> set[int]:
    """Those of a group that are this process or below it."""
    from danlu.node import tree

    below = {process.pid for process in tree.descendants({os.getpid()})} if inside else set()
    return inside & ({os.getpid()} | below)


def _hand_down(base: Path) -> frozenset[str]:
    def enabled() -> frozenset[str]:
        return frozenset(_text(base / "cgroup.subtree_control").split()) & frozenset(CONTROLLERS)

    wanted = _available(base)
    if wanted <= enabled():
        return wanted
    if (base / "cgroup.type").exists():
        _step_aside(base)
    for controller in sorted(wanted - enabled()):
        with suppress(OSError):
            (base / "cgroup.subtree_control").write_text(f"+{controller}", "ascii")
    return enabled()


def _step_aside(base: Path) -> None:
    pids = _text(base / "cgroup.procs").split()
    with suppress(OSError):
        aside = base / ASIDE
        if pids:
            aside.mkdir(exist_ok=True)
        for pid in pids:
            with suppress(ProcessLookupError):
                (aside / "cgroup.procs").write_text(pid, "ascii")


def _text(file: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return file.read_text("utf-8")
    return ""
