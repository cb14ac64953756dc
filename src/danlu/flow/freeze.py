"""freeze: what was installed by hand in a job's environment."""

from __future__ import annotations

from danlu.flow.platform import Platform
from danlu.flow.refs import ref
from danlu.model.errors import Refused
from danlu.model.installed import Installed
from danlu.model.job import JobView
from danlu.ports.engine import Looks


def installed(platform: Platform, view: JobView, task: str) -> Installed:
    """What a task has changed of its image's environment. Refused where that cannot be told, or
    there is no image below it.
    """
    engine, wanted = platform.engine, ref(view, task)
    if not isinstance(engine, Looks):
        raise Refused("freeze-unsupported")
    found = engine.installed(wanted)
    if found is None:
        raise Refused("freeze-away", job=view.job.id, task=task)
    if not found.image:
        raise Refused("freeze-no-image", job=view.job.id)
    return found
