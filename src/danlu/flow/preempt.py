"""preempt: take a running job's place away; it begins again by its retry policy."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from danlu.flow.board import Board
from danlu.flow.platform import Platform
from danlu.model.attempt import State
from danlu.model.errors import Refused
from danlu.model.identity import Caller
from danlu.model.reason import Reason, ReasonCode


def preempt(
    platform: Platform,
    board: Board,
    caller: Caller,
    job_id: str,
    grace_s: int,
    wake: Callable[[], None],
) -> Future[State | None]:
    """Record that a running job loses its place; Missing if unknown, Refused if it does not run.

    `grace_s`: seconds between SIGTERM and SIGKILL; 0 is what a power cut is like.
    """
    view = platform.records.job(caller.workspace.id, job_id)
    entry = board.get(job_id)
    if entry is None or entry.attempt.state is not State.RUNNING:
        raise Refused("job-not-running", job=job_id, state=view.attempt.state)
    reason = Reason(ReasonCode.PREEMPTED, {"user": caller.user.name, "grace_s": grace_s})
    future = board.stop(entry, reason, platform.clock.now())
    if future is None:
        raise Refused("job-not-running", job=job_id, state=entry.attempt.state)
    future.add_done_callback(lambda _: wake())
    return future
