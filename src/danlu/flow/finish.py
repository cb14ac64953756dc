"""finish: when everything of an attempt is collected, record how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from danlu.flow.board import Board, Entry
from danlu.flow.platform import Platform
from danlu.model.attempt import Event, State, after
from danlu.model.event import JobEvent, Level
from danlu.model.log_rules import RuleAction
from danlu.model.outcome import outcome
from danlu.model.reason import Reason, ReasonCode
from danlu.ports.crash import crash_point
from danlu.ports.engine import LOG_MATCHED, Phase, Ref, Seen
from danlu.ports.records import Move


def finish(platform: Platform, board: Board, seen: Mapping[Ref, Seen]) -> None:
    """End every collecting attempt whose tasks have nothing left to do."""
    for entry in board.entries(State.COLLECTING):
        looks = [seen[ref] for ref in entry.refs if ref in seen]
        if len(looks) == len(entry.refs) and all(
            look.phase in (Phase.DONE, Phase.ABSENT) and not look.unreachable for look in looks
        ):
            move = _end(platform, entry, looks)
            crash_point("finish.before-commit")
            board.end(move)


def _end(platform: Platform, entry: Entry, looks: Sequence[Seen]) -> Move:
    now = platform.clock.now()
    wanted = entry.attempt.reason
    ours = wanted is not None and wanted.code in (ReasonCode.PREEMPTED, ReasonCode.HUNG)
    if ours:
        # Whoever asked for a stop while we were ending the job ourselves gets it.
        stopped_by = entry.job.stopped_by
    else:
        stopped_by = str(wanted.params.get("user", "")) if wanted else ""
    event, reason = outcome(
        entry.job,
        entry.tasks,
        stopped_by,
        ended=_ended(platform, entry, looks),
        storing=_storing(looks),
        taken=wanted if ours else None,
    )
    if event in (Event.BAD, Event.VANISHED):
        reason = _ruled(entry, reason, looks)
    reached = after(State.COLLECTING, event)
    if event is Event.OK:
        began = entry.attempt.started_at or entry.attempt.created_at
        params: dict[str, str | int] = {"duration_s": _seconds(now - began)}
        history = JobEvent(now, f"job-{reached}", params)
    else:
        level = Level.WARNING if event is Event.STOPPED else Level.ERROR
        history = JobEvent(now, f"job-{reached}", reason.told(), level)
    return Move(entry.key, event, now, events=(history,), reason=reason)


def _ruled(entry: Entry, reason: Reason, looks: Sequence[Seen]) -> Reason:
    """The reason with what a rule about the log makes of it; not trying again goes first."""
    found = [
        (note.params.get("rule") != RuleAction.NO_RETRY, note.at, index, note)
        for index, look in enumerate(looks)
        for note in look.notes
        if note.key == LOG_MATCHED
    ]
    if not found:
        return reason
    *_, index, note = min(found, key=lambda one: one[:3])
    nodes = {place.task: place.node for place in entry.attempt.placement}
    told = {key: note.params.get(key, "") for key in ("rule", "match", "line")}
    added = {**told, "log_of": f"worker-{index}", "avoid": nodes.get(index, "")}
    return Reason(reason.code, {**reason.params, **added})


def _ended(platform: Platform, entry: Entry, looks: Sequence[Seen]) -> list[Reason]:
    """The platform's own causes of the tasks' ends, in the order in which they happened."""
    ends = sorted(
        (
            (look.exit.ended_at, index, look.exit.problem, look.exit.detail)
            for index, look in enumerate(looks)
            if look.exit is not None and look.exit.problem is not None
        ),
        key=lambda end: end[:2],
    )
    lost = [index for index, look in enumerate(looks) if look.phase is Phase.ABSENT]
    return [
        *(
            Reason(problem, {"task": f"worker-{index}", **detail})
            for _, index, problem, detail in ends
        ),
        *(platform.lost(entry.attempt, f"worker-{index}") for index in lost),
    ]


def _storing(looks: Sequence[Seen]) -> list[Reason]:
    """What went wrong with outputs and logs."""
    return [
        Reason(look.problem, {"task": f"worker-{index}", **look.detail})
        for index, look in enumerate(looks)
        if look.problem is not None
    ]


def _seconds(milliseconds: int) -> str:
    return f"{max(0, milliseconds) / 1000:.1f}"
