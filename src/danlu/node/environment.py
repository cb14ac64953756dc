"""The environment of a task's image: made ready before anything else of the task is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from danlu.model.event import Level
from danlu.node.directory import TaskDirectory
from danlu.ports import task_directory as files
from danlu.ports.task_directory import AgentPlan

Check = Callable[[], None]


def make_ready(directory: TaskDirectory, plan: AgentPlan, check: Check) -> None:
    """See to it that the image's environment is there, and stays until the task has ended.

    Raises PlatformError or OSError where it cannot be made, or what `check` raises.
    """
    if not plan.plan.image:
        return
    # Tasks without an image do not pay for it.
    from danlu.images.realise import Making, realise
    from danlu.images.store import ImageStore

    def say(key: str, **params: str) -> None:
        level = Level.WARNING if key == "image-damaged" else Level.INFO
        directory.note(key, level, **params)

    making = Making(say=say, check=check, variables=tuple(variables(plan).items()))
    holder = (Path(directory.path), files.EXIT)
    name = plan.plan.image_name or plan.plan.image
    realise(ImageStore(Path(plan.images)), plan.plan.image, name, making, holder=holder)


def variables(plan: AgentPlan) -> dict[str, str]:
    """What says where packages come from: the server's, never a job's own."""
    return {**os.environ, **plan.environment}
