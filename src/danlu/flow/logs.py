"""logs: the bytes that a task wrote, by absolute offset."""

from __future__ import annotations

from danlu.flow.platform import Platform
from danlu.model.attempt import FINAL, State
from danlu.model.errors import Missing
from danlu.model.job import JobView, task_index
from danlu.ports.engine import LogChunk, Ref

UNSTARTED = (State.QUEUED, State.PLACED)


def ref(view: JobView, task: str) -> Ref:
    """The engine's name of the task called `worker-N`; Missing if the job has none such."""
    index = task_index(task, view.job.spec.node_count)
    if index is None:
        names = ", ".join(f"worker-{i}" for i in range(min(view.job.spec.node_count, 20)))
        raise Missing("task-missing", job=view.job.id, task=task, tasks=names)
    key = view.attempt.key
    return Ref(key.job_id, key.number, index, key.token)


def read(
    platform: Platform, view: JobView, task: str, since: int, limit: int = 1 << 20
) -> LogChunk:
    """At most `limit` bytes of a task's log from offset `since`.

    A job that has not started has no log yet: nothing, and not ended. `ended` is only said when
    no further byte can come.
    """
    wanted = ref(view, task)
    if view.attempt.state in UNSTARTED:
        return LogChunk(since, b"", ended=False)
    chunk = platform.engine.logs(wanted, since, limit)
    if chunk.ended and not chunk.data and view.attempt.state not in FINAL:
        return LogChunk(since, b"", ended=view.attempt.state is State.COLLECTING)
    return chunk
