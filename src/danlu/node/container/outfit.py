"""What a program finds in its container: mounts and variables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from danlu.model.errors import Refused
from danlu.model.script import LITERAL_CACHE, LITERAL_HOME, World
from danlu.model.url import LocalUrl
from danlu.node import ending, given
from danlu.node.container.box import Mount
from danlu.node.container.entry import PLACE, SAID
from danlu.node.directory import TaskDirectory
from danlu.node.volumes import volume_of
from danlu.ports import task_directory as files
from danlu.ports.task_directory import AgentPlan

ENVIRONMENT = f"{LITERAL_HOME}/modelarts/environment"
"""Where a job's requirements are installed."""
RUNTIME = "/opt/danlu/runtime"
"""Where programs find the modules that the platform gives them (moxing)."""
ODD = ',"\n'
"""What would end a path where podman reads a mount."""


def variables(plan: AgentPlan, found: World) -> dict[str, str]:
    """The program's environment."""
    # What the server is told about its network is true in the container; its paths are not.
    passed = {
        key: value
        for key, value in plan.environment.items()
        if not value.startswith("/") and key != "CUDA_HOME"
    }
    if not plan.plan.gpus:
        # An image may ask for all of them by itself.
        passed["NVIDIA_VISIBLE_DEVICES"] = "void"
    whole = {**passed, **found.env, ending.VARIABLE: f"{PLACE}/{files.NOTICE}"}
    storage = plan.plan.storage
    return whole if storage is None else storage.past_proxies(whole)


def mounts(
    directory: TaskDirectory,
    plan: AgentPlan,
    found: World,
    kept: Mapping[int, Path],
    *,
    own_home: bool,
) -> list[Mount]:
    """What of this machine is in the container. `kept` are inputs, by number, that several tasks
    use: they can be read. `own_home` = the image has a home of ma-user, and
    gets only ModelArts' places in it. Refused where a path cannot be mounted, or no job may have
    it.
    """
    layout = plan.layout
    told, box = directory.file(files.TOLD), directory.file(files.BOX)
    volumes = [Mount(volume_of(plan, one), one.path) for one in plan.plan.volumes]
    covered = [one.target for one in volumes]
    parts = ("/modelarts", "/work") if own_home else ("",)
    wanted = [
        Mount(f"{layout.home}{part}", f"{LITERAL_HOME}{part}")
        for part in parts
        if f"{LITERAL_HOME}{part}" not in covered
    ]
    wanted += [
        Mount(layout.cache, LITERAL_CACHE),
        Mount(box, PLACE, read_only=True),
        Mount(f"{box}/{SAID}", f"{PLACE}/{SAID}"),
        Mount(told, f"{PLACE}/{files.TOLD}", read_only=True),
    ]
    wanted += volumes
    if layout.runtime:
        wanted.append(Mount(layout.runtime, RUNTIME, read_only=True))
    for channel, place in zip(plan.plan.inputs, found.inputs, strict=True):
        if isinstance(channel.url, LocalUrl):
            path = given.real(channel.url, channel.name, plan.isolation)
            name = Path(channel.url.path).name
            wanted.append(Mount(str(path), place if path.is_dir() else f"{place}/{name}"))
    for index, tree in kept.items():
        wanted.append(Mount(str(tree), found.inputs[index], read_only=True))
    wanted += [Mount(path, path, read_only=True) for path in plan.isolation.readable]
    wanted += [Mount(path, path) for path in plan.isolation.writable]
    for one in wanted:
        if any(odd in f"{one.source}{one.target}" for odd in ODD):
            raise Refused("path-unmountable", path=one.source)
    return wanted
