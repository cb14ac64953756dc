"""retry: carry out the ends that are due, each with the attempt that follows it, if one does.

The end and the beginning are one transaction: no client ever sees a job as failed that goes on.
"""

from __future__ import annotations

from dataclasses import replace

from danlu.flow.board import Board, Entry, nodes_to_avoid
from danlu.flow.platform import Platform
from danlu.model import queue
from danlu.model.attempt import Attempt, AttemptKey, State
from danlu.model.event import JobEvent, Level
from danlu.model.hang import HangAction
from danlu.model.job import Intent, JobSpec
from danlu.model.log_rules import RuleAction
from danlu.model.retry import Cause, Retry, Verdict, verdict
from danlu.ports.crash import crash_point
from danlu.ports.records import Again, Move


def retry(platform: Platform, board: Board) -> None:
    """Send every end to the records."""
    for move in board.ending():
        entry = board.get(move.key.job_id)
        if entry is not None and entry.key == move.key:
            followed = _followed(platform, entry, move)
            if followed.again is not None:
                crash_point("retry.before-commit")
            board.send(followed)


def _followed(platform: Platform, entry: Entry, move: Move) -> Move:
    """The move, with what follows."""
    reason = move.reason
    if reason is None or entry.job.intent is Intent.STOP:
        return move
    job = entry.job
    earlier: list[Attempt] = []
    if move.key.number > 1:
        known = platform.records.attempts(job.workspace, job.id)
        earlier = [one for one, _ in known if one.key.number < move.key.number]
    # As it will stand on record: every move that was put aside ends its attempt.
    ended = replace(entry.attempt, reason=reason, ended_at=move.at)
    found = verdict(
        _policy(job.spec),
        reason,
        [*earlier, ended],
        free=platform.limits.platform_retries,
        fraction=platform.dice.fraction(),
    )
    if found is None or reason.params.get("rule") == RuleAction.NO_RETRY:
        return move
    if found.delay_s is None:
        told = _told(move.at, "retries-used", found)
        return replace(move, events=(*move.events, told)) if found.most else move
    avoided = entry.avoid | nodes_to_avoid([ended])
    if avoided and not queue.ever_fits(entry.waiting, platform.engine.capacity(), avoided):
        told = JobEvent(
            move.at, "no-other-node", {"nodes": ", ".join(sorted(avoided))}, Level.WARNING
        )
        return replace(move, events=(*move.events, told))
    return replace(move, again=_again(platform, move, found))


def _policy(spec: JobSpec) -> Retry:
    """A job that wants a hang to be its end is not tried again after one."""
    if spec.hang.action is HangAction.RESTART:
        return spec.retry
    on = tuple(cause for cause in spec.retry.on if cause is not Cause.HANG)
    return replace(spec.retry, on=on)


def _again(platform: Platform, move: Move, found: Verdict) -> Again:
    now, delay_s = platform.clock.now(), found.delay_s or 0
    key = AttemptKey(move.key.job_id, move.key.number + 1, platform.dice.token())
    attempt = Attempt(key, State.QUEUED, now, due_at=now + round(delay_s * 1000))
    told = _told(now, "job-retrying", found, attempt=key.number, delay_s=f"{delay_s:.1f}")
    return Again(attempt, (told,))


def _told(at: int, key: str, found: Verdict, **more: str | int) -> JobEvent:
    params = {"cause": str(found.cause), "used": found.used, "most": found.most, **more}
    return JobEvent(at, key, params, Level.WARNING)
