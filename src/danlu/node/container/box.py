"""One task's container: made with all that holds it, found again by name and token, ended."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from danlu.model.script import World
from danlu.node.container import entry
from danlu.node.container.api import Api, RuntimeRefused, part
from danlu.ports.task_directory import ContainerPlan

UID, GID = 1000, 100
"""ma-user and its group, as in ModelArts' images."""
TOKEN_LABEL = "io.danlu.token"  # noqa: S105 -- the name of a label
TASK_LABEL = "io.danlu.task"
OWNER_LABEL = "io.danlu.engine"
UNSTARTED = ("created", "configured", "initialized")
TMPFS = "rw,exec,nosuid,nodev,mode=1777"
IN_MEMORY = ("/tmp", "/var/tmp", "/run")  # noqa: S108 -- the container's own
"""Places that every program may write to. Podman makes the last two where the rest is read-only,
Docker does not. They count as memory.
"""
NOT_FOUND, CONFLICT = 404, 409
REMOVE_LIMIT_S = 30.0
PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Mount:
    """A directory or file of this machine at a place in the container."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What the runtime says of a container that exists."""

    id: str
    token: str
    status: str
    pid: int
    exit_code: int
    out_of_memory: bool

    @property
    def running(self) -> bool:
        """Whether its first process lives, as far as the runtime knows."""
        return self.status in ("running", "paused", "stopping", "restarting")

    @property
    def unstarted(self) -> bool:
        """Whether it was made and never started."""
        return self.status in UNSTARTED


@dataclass(frozen=True, slots=True)
class Shape:
    """What a container may use, and what it is given. 0 = as much as there is."""

    memory_bytes: int = 0
    cpus: float = 0
    pids: int = 0
    gpus: Sequence[str] = ()
    mounts: Sequence[Mount] = ()
    read_only: bool = True


class Box:
    """The container of one task, by its deterministic name."""

    def __init__(self, api: Api, plan: ContainerPlan, token: str) -> None:
        self._api = api
        self._plan = plan
        self._token = token
        self._path = f"/containers/{part(plan.name)}"

    def find(self) -> Found | None:
        """What is there under its name; None if nothing is."""
        try:
            data = self._api.call("GET", f"{self._path}/json")
        except RuntimeRefused as refused:
            # While it is being removed podman says so with 500.
            if refused.status == NOT_FOUND or "no such container" in str(refused):
                return None
            raise
        state = data.get("State") or {}
        labels = (data.get("Config") or {}).get("Labels") or {}
        return Found(
            str(data.get("Id", "")),
            str(labels.get(TOKEN_LABEL, "")),
            str(state.get("Status", "")),
            int(state.get("Pid") or 0),
            int(state.get("ExitCode") or 0),
            state.get("OOMKilled") is True,
        )

    def make(self, image: str, found: World, env: Mapping[str, str], shape: Shape) -> None:
        """Make it. The same name twice is the same container."""
        body = self.described(image, found, env, shape)
        try:
            self._api.call("POST", "/containers/create", {"name": self._plan.name}, body)
        except RuntimeRefused as refused:
            there = self.find() if refused.status == CONFLICT else None
            if there is None or there.token != self._token:
                raise

    def start(self) -> None:
        """Start its first process. Repeating it does no harm."""
        self._api.call("POST", f"{self._path}/start")

    def remove(self) -> None:
        """End it if it runs, and forget it. RuntimeRefused where it is somebody else's."""
        until = time.monotonic() + REMOVE_LIMIT_S
        while (there := self.find()) is not None:
            if there.token != self._token:
                raise RuntimeRefused(CONFLICT, f"'{self._plan.name}' is not of this attempt")
            if time.monotonic() > until:
                raise RuntimeRefused(CONFLICT, f"'{self._plan.name}' cannot be removed")
            # Somebody else's removal, of an agent that has ended, may be under way.
            with suppress(RuntimeRefused):
                self._api.call("DELETE", self._path, {"force": "true", "v": "true"})
                continue
            time.sleep(PAUSE_S)

    def described(
        self, image: str, found: World, env: Mapping[str, str], shape: Shape
    ) -> dict[str, Any]:
        """The container as the API is asked for it."""
        plan = self._plan
        labels = {TOKEN_LABEL: self._token, TASK_LABEL: plan.name, OWNER_LABEL: plan.facts}
        body: dict[str, Any] = {
            "Image": image,
            "Entrypoint": [],
            "Cmd": ["/bin/sh", f"{entry.PLACE}/start", found.cwd, *found.argv],
            "User": f"{UID}:{GID}",
            "Env": [f"{name}={value}" for name, value in env.items()],
            "Labels": labels,
            # The script goes to the program's own, which may not be there.
            "WorkingDir": "/",
            "Hostname": plan.hostname,
            "HostConfig": self._host(shape),
        }
        if plan.network and plan.address:
            own = {"IPAMConfig": {"IPv4Address": plan.address}}
            body["NetworkingConfig"] = {"EndpointsConfig": {plan.network: own}}
        return body

    def _host(self, shape: Shape) -> dict[str, Any]:
        plan = self._plan
        host: dict[str, Any] = {
            "NetworkMode": plan.network or "bridge",
            "ReadonlyRootfs": shape.read_only,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "Tmpfs": dict.fromkeys(IN_MEMORY[: None if shape.read_only else 1], _tmpfs(shape)),
            # What is printed goes through a pipe of ours: whole, and bounded.
            "LogConfig": {"Type": "none"},
            "ExtraHosts": [f"{name}:{address}" for name, address in plan.hosts.items()],
            "Mounts": [
                {
                    "Type": "bind",
                    "Source": one.source,
                    "Target": one.target,
                    "ReadOnly": one.read_only,
                }
                for one in shape.mounts
            ],
        }
        if shape.memory_bytes:
            # Swap counts as memory: no more of it than there is memory.
            host |= {"Memory": shape.memory_bytes, "MemorySwap": shape.memory_bytes}
            host["ShmSize"] = shape.memory_bytes
        if shape.cpus:
            host["NanoCpus"] = round(shape.cpus * 1_000_000_000)
        if shape.pids:
            host["PidsLimit"] = shape.pids
        if plan.rootless:
            host["UsernsMode"] = f"keep-id:uid={UID},gid={GID}"
        if shape.gpus:
            host["DeviceRequests"] = [_gpus(plan.gpu_driver, shape.gpus)]
        return host


def _tmpfs(shape: Shape) -> str:
    # As large as a machine of that memory would have it: a full one is told to the program.
    return f"{TMPFS},size={shape.memory_bytes // 2}" if shape.memory_bytes else TMPFS


def _gpus(driver: str, uuids: Sequence[str]) -> dict[str, Any]:
    """How a runtime is asked for GPUs: by their names in CDI, or as Docker's driver wants it."""
    if driver == "cdi":
        return {"Driver": "cdi", "DeviceIDs": [f"nvidia.com/gpu={uuid}" for uuid in uuids]}
    return {"Driver": "nvidia", "DeviceIDs": list(uuids), "Capabilities": [["gpu"]]}
