"""sweep: free what deleted jobs left on the engine, and end what is nobody's."""

from __future__ import annotations

import logging

from danlu.flow.platform import Platform
from danlu.model.attempt import AttemptKey
from danlu.ports.crash import crash_point
from danlu.ports.engine import Ref

log = logging.getLogger(__name__)


def sweep(platform: Platform) -> None:
    """Remove the engine's data of deleted jobs."""
    freed: set[str] = set()
    for job_id, attempt, token, tasks in platform.records.swept():
        for task in range(tasks):
            platform.engine.remove(Ref(job_id, attempt, task, token))
        freed.add(job_id)
    if freed:
        crash_point("sweep.before-forget")
    for forgotten in [platform.records.forget(job_id) for job_id in freed]:
        forgotten.result()


def sweep_orphans(platform: Platform) -> None:
    """End and remove tasks that no record names: their job was lost with a database."""
    for ref in platform.engine.known():
        if not platform.records.knows(AttemptKey(ref.job_id, ref.attempt, ref.token)):
            log.warning("task %s is on the engine but on no record; it is removed", ref.name)
            platform.engine.remove(ref)
