"""logs: the bytes that a task wrote, by absolute offset."""

from __future__ import annotations

from danlu.flow.platform import Platform
from danlu.flow.refs import ref
from danlu.model.attempt import FINAL, State
from danlu.model.job import JobView
from danlu.ports.engine import LogChunk

UNSTARTED = (State.QUEUED, State.PLACED)


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
