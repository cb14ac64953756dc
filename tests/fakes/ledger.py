"""Records in memory that keep the port's promises, and forget what was not committed in a crash.

A write is queued when it is asked for and committed when somebody waits for it (or when the group
is full, as chance wills), so a simulated server can die between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from danlu.model.attempt import FINAL, LIVE, Attempt, AttemptKey, Event, State, after
from danlu.model.errors import Missing, PlatformError, Unavailable
from danlu.model.event import JobEvent
from danlu.model.job import Intent, Job, JobView, Output, Task
from danlu.model.notebook import Notebook
from danlu.ports.records import EventQuery, Move, Submission, Submitted

STAMPS = {
    State.PLACED: "placed_at",
    State.LAUNCHING: "launched_at",
    State.RUNNING: "started_at",
    State.COLLECTING: "exited_at",
    **dict.fromkeys(FINAL, "ended_at"),
}


@dataclass(slots=True)
class Row:
    """All that is on record of a job."""

    job: Job
    attempts: list[Attempt]
    tasks: dict[int, dict[int, Task]] = field(default_factory=dict)
    events: list[JobEvent] = field(default_factory=list)
    deleted: bool = False
    forgotten: bool = False

    @property
    def view(self) -> JobView:
        """The job with its latest attempt."""
        latest = self.attempts[-1]
        return JobView(self.job, latest, self.tasks_of(latest.key.number))

    def tasks_of(self, number: int) -> tuple[Task, ...]:
        """The tasks of an attempt, in order."""
        known = self.tasks.get(number, {})
        return tuple(known[index] for index in sorted(known))


class Disk:
    """What is committed: it outlives every server. `ends` remembers how final attempts looked."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.ends: dict[AttemptKey, tuple[Attempt, tuple[Task, ...]]] = {}
        self.touched: set[str] = set()
        """Jobs that were written since somebody emptied this."""

    def find(self, key: AttemptKey) -> tuple[Row, int] | None:
        """The row and the place of this very attempt, token included; somebody means to write."""
        self.touched.add(key.job_id)
        row = self.rows.get(key.job_id)
        if row is None or not 0 < key.number <= len(row.attempts):
            return None
        found = row.attempts[key.number - 1].key == key
        return (row, key.number - 1) if found else None


class Waiter(Future[Any]):
    """A future whose `result` commits everything that was queued before it, and it."""

    commit: Callable[[], None] = staticmethod(lambda: None)

    def result(self, timeout: float | None = None) -> Any:
        """The answer of the write, once it is on disk."""
        if not self.done():
            self.commit()
        return super().result(timeout)


class Ledger:
    """One server's way to the disk."""

    def __init__(self, disk: Disk, dice: Random) -> None:
        self.disk = disk
        self._dice = dice
        self._queued: list[tuple[Waiter, Callable[[], Any]]] = []
        self.unreadable = 0
        """So many times the live jobs cannot be read."""

    def crash(self) -> None:
        """The server dies: a part of what is queued reaches the disk, the rest never does."""
        keep = self._dice.randint(0, len(self._queued))
        queued, self._queued = self._queued[:keep], []
        for _, write in queued:
            write()

    def commit(self) -> None:
        """Everything that is queued reaches the disk."""
        queued, self._queued = self._queued, []
        for future, write in queued:
            future.set_result(write())

    def _write(self, write: Callable[[], Any]) -> Future[Any]:
        future = Waiter()
        future.commit = self.commit
        self._queued.append((future, write))
        if self._dice.random() < 0.1:
            self.commit()
        return future

    # reading

    def job(self, workspace: str, job_id: str) -> JobView:
        """A job with its latest attempt."""
        return self._row(workspace, job_id).view

    def submitted(self, workspace: str, client_token: str) -> Job | None:
        """The job of a client token."""
        for row in self.disk.rows.values():
            if (row.job.workspace, row.job.client_token) == (workspace, client_token):
                return row.job
        return None

    def attempts(self, workspace: str, job_id: str) -> list[tuple[Attempt, Sequence[Task]]]:
        """Every attempt with its tasks."""
        row = self._row(workspace, job_id)
        return [(one, row.tasks_of(one.key.number)) for one in row.attempts]

    def events(self, workspace: str, job_id: str, query: EventQuery) -> list[JobEvent]:
        """A job's history, all of it."""
        del query
        return self._row(workspace, job_id).events

    def live(self) -> list[JobView]:
        """Every job whose latest attempt is live."""
        if self.unreadable:
            self.unreadable -= 1
            raise Unavailable("busy", detail="not now")
        return [row.view for row in self.disk.rows.values() if row.attempts[-1].state in LIVE]

    def live_notebooks(self) -> list[Notebook]:
        """None: the lives that are simulated are those of jobs."""
        return []

    def knows(self, key: AttemptKey) -> bool:
        """Whether this very attempt is on record."""
        return self.disk.find(key) is not None

    def swept(self) -> list[tuple[str, int, str, int]]:
        """Attempts of deleted jobs."""
        return [
            (row.job.id, one.key.number, one.key.token, row.job.spec.node_count)
            for row in self.disk.rows.values()
            for one in row.attempts
            if row.deleted and not row.forgotten
        ]

    def swept_outputs(self, job_id: str) -> Sequence[Output]:
        """The outputs of a deleted job."""
        row = self.disk.rows[job_id]
        return row.job.spec.outputs if row.deleted and not row.forgotten else ()

    def trouble(self) -> PlatformError | None:
        """There is always room here."""
        return None

    def _row(self, workspace: str, job_id: str) -> Row:
        row = self.disk.rows.get(job_id)
        if row is None or row.deleted or row.job.workspace != workspace:
            raise Missing("job-missing", job=job_id)
        return row

    # writing

    def submit(self, submission: Submission) -> Future[Submitted]:
        """A job and its first attempt."""

        def write() -> Submitted:
            job, rows = submission.job, self.disk.rows
            known = self.submitted(job.workspace, job.client_token) if job.client_token else None
            if known is not None:
                return Submitted(known, created=False)
            made = replace(job, sequence=len(rows) + 1)
            self.disk.touched.add(job.id)
            rows[job.id] = Row(made, [submission.attempt], events=list(submission.events))
            return Submitted(made, created=True)

        return self._write(write)

    def want_stop(self, workspace: str, job_id: str, by: str, event: JobEvent) -> Future[bool]:
        """The wish that a live job shall stop."""

        def write() -> bool:
            row = self.disk.rows.get(job_id)
            if row is None or row.deleted or row.job.workspace != workspace:
                return False
            if row.attempts[-1].state in FINAL or row.job.intent is Intent.STOP:
                return False
            self.disk.touched.add(job_id)
            row.job = replace(row.job, intent=Intent.STOP, stopped_by=by)
            row.events.append(event)
            return True

        return self._write(write)

    def delete(self, workspace: str, job_id: str) -> Future[bool]:
        """Hide a final job."""

        def write() -> bool:
            row = self.disk.rows.get(job_id)
            if row is None or row.deleted or row.job.workspace != workspace:
                return False
            row.deleted = row.attempts[-1].state in FINAL
            return row.deleted

        return self._write(write)

    def forget(self, job_id: str) -> Future[bool]:
        """A deleted job has nothing left on the engine."""

        def write() -> bool:
            row = self.disk.rows[job_id]
            before, row.forgotten = row.forgotten, row.deleted
            return row.forgotten and not before

        return self._write(write)

    def move(self, move: Move) -> Future[State | None]:
        """One event of the state machine, guarded by token and state."""
        return self._write(lambda: self._move(move))

    def _move(self, move: Move) -> State | None:
        found = self.disk.find(move.key)
        if found is None:
            return None
        row, at = found
        reached = after(row.attempts[at].state, move.event)
        if reached is None:
            return None
        changes: dict[str, Any] = {"reason": move.reason or row.attempts[at].reason}
        if move.placement is not None:
            changes["placement"] = tuple(move.placement)
        if reached in STAMPS:
            changes[STAMPS[reached]] = move.at
        if move.event is Event.UNPLACE:
            changes.update(placement=(), placed_at=None)
        row.attempts[at] = _in_state(replace(row.attempts[at], **changes), reached)
        self._keep(row, move.key, move.events, move.tasks)
        if reached not in FINAL:
            return reached
        self.disk.ends[move.key] = (row.attempts[at], row.tasks_of(move.key.number))
        if move.again is None or row.job.intent is Intent.STOP or row.deleted:
            return reached
        row.attempts.append(move.again.attempt)
        row.events.extend(move.again.events)
        return State.QUEUED

    def note(
        self, key: AttemptKey, events: Sequence[JobEvent] = (), tasks: Sequence[Task] = ()
    ) -> Future[bool]:
        """Facts about a live attempt."""

        def write() -> bool:
            found = self.disk.find(key)
            if found is None or found[0].attempts[found[1]].state in FINAL:
                return False
            self._keep(found[0], key, events, tasks)
            return True

        return self._write(write)

    def flag(self, key: AttemptKey, *, unreachable: bool) -> Future[bool]:
        """The flag of a live attempt."""

        def write() -> bool:
            found = self.disk.find(key)
            if found is None or found[0].attempts[found[1]].state in FINAL:
                return False
            row, at = found
            row.attempts[at] = replace(row.attempts[at], unreachable=unreachable)
            return True

        return self._write(write)

    def _keep(
        self, row: Row, key: AttemptKey, events: Sequence[JobEvent], tasks: Sequence[Task]
    ) -> None:
        row.events.extend(events)
        known = row.tasks.setdefault(key.number, {})
        known.update((task.index, task) for task in tasks)


def _in_state(attempt: Attempt, reached: State) -> Attempt:
    """The one place of this fake where a state is written."""
    unreachable = attempt.unreachable and reached in LIVE
    changed: dict[str, Any] = {"state": reached, "unreachable": unreachable}
    return replace(attempt, **changed)
