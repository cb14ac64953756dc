"""Podman or Docker, as far as tasks depend on it: where it listens, and what it can do."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from danlu.model.errors import EngineError
from danlu.node.container.api import Api, RuntimeAway, RuntimeRefused

ASK_S = 10.0
CDI_PLACES = ("/etc/cdi", "/var/run/cdi")


@dataclass(frozen=True, slots=True)
class Runtime:
    """What one runtime says of itself. `unenforced` are limits that it does not hold tasks to;
    `gpu_driver` is how it is asked for GPUs, empty = it cannot be; `seccomp` whether it has that;
    `keeps` whether containers outlive its service.
    """

    socket: str
    name: str
    version: str
    cgroups: int
    rootless: bool
    unenforced: tuple[str, ...]
    gpu_driver: str
    seccomp: bool
    keeps: bool


def sockets(wanted: str = "") -> tuple[str, ...]:
    """Where a runtime may listen: where the setting says, or at the usual places. Of two runtimes
    the one of our own user comes first, then podman, which needs no daemon.
    """
    if wanted:
        return (wanted.removeprefix("unix://"),)
    own = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}"
    mine = (f"{own}/podman/podman.sock", f"{own}/docker.sock")
    ours = ("/run/podman/podman.sock", "/var/run/docker.sock")
    return ours if os.geteuid() == 0 else (*mine, *ours)


def socket_of(wanted: str = "") -> str:
    """The first place at which something listens; the first of all where nothing does."""
    places = sockets(wanted)
    return next((one for one in places if Path(one).is_socket()), places[0])


def look(socket: str) -> Runtime:
    """What the runtime at a socket is. EngineError where none answers."""
    api = Api(socket)
    try:
        version = api.call("GET", "/version", wait_s=ASK_S) or {}
        info = api.call("GET", "/info", wait_s=ASK_S) or {}
    except (RuntimeAway, RuntimeRefused) as error:
        raise EngineError("container-runtime", socket=socket, detail=str(error)) from error
    return described(socket, version, info)


def described(socket: str, version: dict[str, Any], info: dict[str, Any]) -> Runtime:
    """What a runtime's answers to /version and /info mean."""
    names = [str(part.get("Name", "")) for part in version.get("Components") or ()]
    podman = any("podman" in name.lower() for name in names)
    options = [str(one) for one in info.get("SecurityOptions") or ()]
    rootless = info.get("Rootless") is True or any("name=rootless" in one for one in options)
    offered = {
        "memory": info.get("MemoryLimit"),
        "cpu": info.get("CpuCfsQuota", info.get("CPUCfsQuota")),
        "pids": info.get("PidsLimit"),
    }
    return Runtime(
        socket,
        "podman" if podman else "docker",
        str(version.get("Version") or info.get("ServerVersion") or "?"),
        int(str(info.get("CgroupVersion") or 1)),
        rootless,
        tuple(name for name, held in offered.items() if not held),
        _gpu_driver(info, podman=podman),
        any("seccomp" in one for one in options),
        podman or info.get("LiveRestoreEnabled") is True,
    )


def _gpu_driver(info: dict[str, Any], *, podman: bool) -> str:
    places = [Path(one) for one in (info.get("CDISpecDirs") or (CDI_PLACES if podman else ()))]
    if any(_has_specs(place) for place in places):
        return "cdi"
    return "nvidia" if not podman and "nvidia" in (info.get("Runtimes") or {}) else ""


def _has_specs(place: Path) -> bool:
    try:
        return any("nvidia" in entry.name for entry in place.iterdir())
    except OSError:
        return False
