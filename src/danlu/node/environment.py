"""The environment of a task's image: made ready before anything else of the task is."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from danlu.model.event import Level
from danlu.model.script import Layout
from danlu.node.directory import TaskDirectory
from danlu.ports import task_directory as files
from danlu.ports.task_directory import AgentPlan

if TYPE_CHECKING:
    from danlu.images.realise import Making

Check = Callable[[], None]


def make_ready(directory: TaskDirectory, plan: AgentPlan, check: Check) -> None:
    """See to it that the image's environment is there, and stays until the task has ended.

    Raises PlatformError or OSError where it cannot be made, or what `check` raises.
    """
    if not plan.plan.image:
        return
    name = plan.plan.image_name or plan.plan.image
    _realise(directory, plan, plan.plan.image, name, _making(directory, plan, check))


def _making(directory: TaskDirectory, plan: AgentPlan, check: Check) -> Making:
    # Tasks without an image do not pay for it.
    from danlu.images.realise import Making

    def say(key: str, **params: str) -> None:
        level = Level.WARNING if key == "image-damaged" else Level.INFO
        directory.note(key, level, **params)

    return Making(say=say, check=check, variables=tuple(variables(plan).items()))


def _realise(
    directory: TaskDirectory, plan: AgentPlan, image_id: str, name: str, making: Making
) -> None:
    from danlu.images.realise import realise
    from danlu.images.store import ImageStore

    holder = (Path(directory.path), files.EXIT)
    realise(ImageStore(Path(plan.images)), image_id, name, making, holder=holder)


def with_packages(
    directory: TaskDirectory, plan: AgentPlan, file: Path | None, check: Check
) -> Layout:
    """The layout with the environment of the image that has the job's own packages as well, those
    of `file` and those that the job names. It is an image like others, and serves the next job that
    asks for the same.

    Raises PlatformError or OSError where it cannot be made, or what `check` raises.
    """
    from danlu.images import extras, uv
    from danlu.images.store import ImageStore

    task = plan.plan
    wanted = [extras.normalised(one, "danlu.packages") for one in task.packages]
    if file is not None:
        wanted += extras.read(file.read_text("utf-8"), file.name)
    store = ImageStore(Path(plan.images))
    making = _making(directory, plan, check)
    tool = uv.Uv(store.part("cache"), making.sources, check=check)
    image_id = extras.derive(store, task.image, wanted, tool, override=task.override_image)
    if image_id != task.image:
        name = extras.name_of(task.image_name or "image", image_id)
        own = replace(making, parent=task.image, extras=tuple(sorted(wanted)))
        _realise(directory, plan, image_id, name, own)
    place = store.environment(image_id)
    layout = plan.layout
    return replace(layout, python=str(place / "bin" / "python"), path=f"{place}/bin:{layout.path}")


def image_of(layout: Layout) -> str:
    """The id of the image whose environment a layout has."""
    return f"sha256:{Path(layout.python).parent.parent.name}"


def variables(plan: AgentPlan) -> dict[str, str]:
    """What says where packages come from: the server's, never a job's own."""
    return {**os.environ, **plan.environment}
