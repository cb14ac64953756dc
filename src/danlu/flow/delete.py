"""delete: hide a job that has ended; what it left on the engine is freed soon after."""

from __future__ import annotations

from concurrent.futures import Future

from danlu.flow.platform import Platform
from danlu.model.attempt import FINAL
from danlu.model.errors import Refused
from danlu.model.identity import Caller


def delete(platform: Platform, caller: Caller, job_id: str) -> Future[bool]:
    """Delete a job. Missing if it is unknown, Refused while it lives. Its outputs stay."""
    view = platform.records.job(caller.workspace.id, job_id)
    if view.attempt.state not in FINAL:
        raise Refused("job-live", job=job_id, state=view.attempt.state)
    return platform.records.delete(caller.workspace.id, job_id)
