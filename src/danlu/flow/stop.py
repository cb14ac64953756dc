"""stop: what the user no longer wants, and the rest of a gang of which one task has failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future

from danlu.flow.board import Board, Entry
from danlu.flow.platform import Platform
from danlu.model.attempt import FINAL, State
from danlu.model.errors import Refused
from danlu.model.event import JobEvent
from danlu.model.identity import Caller
from danlu.model.reason import Reason, ReasonCode
from danlu.ports.crash import crash_point
from danlu.ports.engine import Phase, Ref, Seen, StopReason

STOPPABLE = (State.QUEUED, State.PLACED, State.LAUNCHING, State.RUNNING)


def want_stop(
    platform: Platform, board: Board, caller: Caller, job_id: str, wake: Callable[[], None]
) -> Future[bool]:
    """Record that a user wants a job stopped; Missing if unknown, Refused if it has ended.

    Done with False where the stop was already wanted: asking twice is not an error.
    """
    view = platform.records.job(caller.workspace.id, job_id)
    if view.attempt.state in FINAL:
        raise Refused("job-final", job=job_id, state=view.attempt.state)
    by = caller.user.name
    event = JobEvent(platform.clock.now(), "stop-requested", {"user": by})
    future = platform.records.want_stop(caller.workspace.id, job_id, by, event)

    def recorded(done: Future[bool]) -> None:
        if not done.cancelled() and done.exception() is None and done.result():
            crash_point("stop.after-commit")
            board.want_stop(job_id, by)
            wake()

    future.add_done_callback(recorded)
    return future


def stop(platform: Platform, board: Board, seen: Mapping[Ref, Seen]) -> None:
    """Carry out the stops that are on record, and those that a failed task makes necessary."""
    for entry in board.to_stop():
        if entry.attempt.state in STOPPABLE:
            reason = Reason(ReasonCode.STOPPED, {"user": entry.job.stopped_by})
            board.stop(entry, reason, platform.clock.now())
    stopping = [e for e in board.entries(State.STOPPING) if len(e.told_to_stop) < len(e.refs)]
    failed = [e for e in board.entries(State.LAUNCHING, State.RUNNING) if _one_failed(e, seen)]
    if not stopping and not failed:
        return
    board.settle()
    for entry in [*stopping, *failed]:
        if board.get(entry.job.id) is not entry:
            continue
        grace_s = _grace_s(entry)
        for ref in entry.refs:
            if ref.task not in entry.told_to_stop:
                crash_point("stop.before-order")
                platform.engine.stop(ref, grace_s, _why(entry))
                crash_point("stop.after-order")
        entry.told_to_stop = frozenset(ref.task for ref in entry.refs)


def _why(entry: Entry) -> StopReason:
    """What the program may learn of the stop."""
    if entry.attempt.state is not State.STOPPING:
        return StopReason.GANG
    code = entry.attempt.reason.code if entry.attempt.reason else None
    found = {ReasonCode.PREEMPTED: StopReason.PREEMPTION, ReasonCode.HUNG: StopReason.HANG}
    return found.get(code, StopReason.STOP) if code else StopReason.STOP


def _grace_s(entry: Entry) -> int:
    """The job's own grace, or the one with which its place is taken away."""
    reason = entry.attempt.reason
    if reason is not None and reason.code is ReasonCode.PREEMPTED:
        return int(reason.params.get("grace_s", entry.job.spec.grace_s))
    return entry.job.spec.grace_s


def _one_failed(entry: Entry, seen: Mapping[Ref, Seen]) -> bool:
    """Whether a task of a gang failed while others go on: they would wait for it for ever."""
    looks = [seen[ref] for ref in entry.refs if ref in seen]
    if len(looks) < 2 or len(entry.told_to_stop) == len(entry.refs):
        return False
    failed = any(
        look.phase is Phase.ABSENT or (look.exit is not None and look.exit.exit_code != 0)
        for look in looks
    )
    return failed and any(look.phase in (Phase.LAUNCHING, Phase.RUNNING) for look in looks)
