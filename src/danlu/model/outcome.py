"""How an attempt ended, from how its tasks ended. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from danlu.model.attempt import Event
from danlu.model.job import Job, Task
from danlu.model.reason import Reason, ReasonCode
from danlu.model.resources import size

LOST = (ReasonCode.TASK_LOST, ReasonCode.REBOOTED, ReasonCode.RESTORED)
"""Nobody saw the end: the attempt is lost, whatever was found of it afterwards."""


def outcome(
    job: Job,
    tasks: Sequence[Task],
    stopped_by: str,
    *,
    ended: Sequence[Reason] = (),
    storing: Sequence[Reason] = (),
    taken: Reason | None = None,
) -> tuple[Event, Reason]:
    """The event that ends a collecting attempt and its reason.

    `ended` are the platform's own causes of a task's end, first one first (an input that could
    not be staged, a time limit, a lost task); `storing` what went wrong with outputs and logs
    afterwards. `stopped_by` names who asked for the stop that took effect while the tasks ran,
    or is empty; `taken` is the reason of an attempt that the platform ended: it lost its place, or
    it hung.
    """
    limit = next((cause for cause in ended if cause.code is ReasonCode.TIME_LIMIT), None)
    if limit is not None:
        return Event.STOPPED, limit
    if stopped_by:
        return Event.STOPPED, Reason(ReasonCode.STOPPED, {"user": stopped_by})
    if taken is not None:
        # Outputs that were not stored wait for a hand that saves them; another attempt would not
        # have them.
        return Event.BAD, storing[0] if storing else taken
    if ended:
        return (Event.VANISHED if ended[0].code in LOST else Event.BAD), ended[0]
    first = first_failure(tasks)
    if first is not None:
        return Event.BAD, failure(job, first)
    if storing:
        return Event.BAD, storing[0]
    return Event.OK, Reason(ReasonCode.COMPLETED)


def first_failure(tasks: Sequence[Task]) -> Task | None:
    """The task that failed first: the others' ends may be our doing."""
    failed = [task for task in tasks if task.exit_code not in (0, None)]
    return min(failed, key=lambda task: (task.ended_at or 0, task.index), default=None)


def failure(job: Job, task: Task) -> Reason:
    """The reason that one failed task gives."""
    if task.out_of_memory:
        return Reason(
            ReasonCode.OUT_OF_MEMORY,
            {"task": task.name, "limit": size(job.spec.shape.memory_bytes)},
        )
    if task.signal:
        return Reason(ReasonCode.SIGNAL, {"task": task.name, "signal": task.signal})
    return Reason(ReasonCode.EXIT, {"task": task.name, "exit_code": task.exit_code or 1})
