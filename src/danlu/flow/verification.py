"""Which verification holds for a job: that of the image in which it runs."""

from __future__ import annotations

from dataclasses import replace

from danlu.flow.platform import Platform
from danlu.model.job import JobSpec, JobView
from danlu.ports.records import EventQuery

INSTALLED = "requirements-installed"


def as_it_ran(platform: Platform, view: JobView) -> JobSpec:
    """What is wanted of a job, with the image that it has got: with packages of its own that is
    another one than was asked for, and its history says which.
    """
    spec = view.job.spec
    if not spec.packages and spec.code is None:
        return spec
    events = platform.records.events(view.job.workspace, view.job.id, EventQuery())
    made = [str(one.params.get("image", "")) for one in events if one.key == INSTALLED]
    return replace(spec, image=made[-1]) if made and made[-1] else spec
