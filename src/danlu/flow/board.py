"""The live attempts in memory: an index over the records, never a second truth.

It is rebuilt from the records at start, and every change goes to the records first in line. A
move is shown here as soon as it is queued; `settle` waits until everything queued is on disk,
and whatever the records refused is loaded anew. Verbs settle before they act on the world.
"""

from __future__ import annotations

import bisect
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from danlu.model.attempt import (
    FINAL,
    HOLDING,
    LIVE,
    Attempt,
    AttemptKey,
    Event,
    Placement,
    State,
    after,
)
from danlu.model.errors import Missing
from danlu.model.event import JobEvent, Level
from danlu.model.job import Intent, Job, JobView, Task
from danlu.model.log_rules import RuleAction
from danlu.model.prefixes import Prefixes
from danlu.model.queue import BACKFILL_DEPTH, Line, Waiting
from danlu.model.reason import Reason
from danlu.model.retry import MOST_DELAY_S
from danlu.model.url import Url
from danlu.ports.engine import Ref
from danlu.ports.records import Move, Records

AVOID = RuleAction.AVOID_NODE

_STAMPS = {
    State.PLACED: "placed_at",
    State.LAUNCHING: "launched_at",
    State.RUNNING: "started_at",
    State.COLLECTING: "exited_at",
    **dict.fromkeys(FINAL, "ended_at"),
}


Reply = State | bool
"""What the records say of a change that they have made."""


@dataclass(slots=True)
class Entry:
    """A live attempt. Replaced parts are immutable, so a reader sees one state or the next."""

    job: Job
    attempt: Attempt
    tasks: tuple[Task, ...]
    launched: bool = False
    """Whether this server has handed the attempt to the engine (False after a restart)."""
    told_to_stop: frozenset[int] = frozenset()
    """Tasks that this server has told the engine to stop."""
    avoid: frozenset[str] = frozenset()
    """Nodes that rules about the logs of earlier attempts exclude."""

    @property
    def key(self) -> AttemptKey:
        """The attempt's key."""
        return self.attempt.key

    @property
    def refs(self) -> tuple[Ref, ...]:
        """The engine's names for the tasks."""
        key = self.attempt.key
        return tuple(
            Ref(key.job_id, key.number, task, key.token) for task in range(self.job.spec.node_count)
        )

    @property
    def waiting(self) -> Waiting:
        """The attempt as the scheduler sees it."""
        spec, job = self.job.spec, self.job
        return Waiting(
            job.id,
            spec.priority,
            job.created_at,
            job.sequence,
            spec.shape,
            spec.node_count,
            self.avoid,
        )

    @property
    def view(self) -> JobView:
        """The attempt as faces see it."""
        return JobView(self.job, self.attempt, self.tasks)


class Board:
    """Every live attempt, the queue in order, and what is held. Thread-safe."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._lock = threading.RLock()
        self._entries: dict[str, Entry] = {}
        self._by_state: dict[State, dict[str, Entry]] = {state: {} for state in LIVE}
        self._to_stop: set[str] = set()
        self._outputs = Prefixes()
        self._claims: dict[str, Job] = {}
        """Jobs that have their outputs and are on their way to the records."""
        self._queue: list[tuple[tuple[int, int, int], Waiting]] = []
        self._resting: dict[str, float | None] = {}
        """Queued attempts that are not due: until when, by the monotonic clock (None = not read
        off yet)."""
        self._ending: list[Move] = []
        self._pending: list[tuple[Job, Future[Any], Reply]] = []
        self._unsettled: Counter[str] = Counter()
        """How many changes of a job are queued and not known to be on disk."""
        self._listeners: list[Callable[[str], None]] = []
        self._changed: set[str] = set()
        self.due = True
        """Whether a scheduling pass could find something: a place freed, or a new job in reach."""

    def load(self) -> None:
        """Fill the board from the records."""
        with self._lock:
            for view in self._records.live():
                self.add(view)

    def reload(self) -> None:
        """Forget everything and take the records' word again (after a write failed)."""
        with self._lock:
            # Records that cannot be read say nothing: all is read before anything is forgotten.
            fresh = [self._entry(view) for view in self._records.live()]
            self._pending = []
            self._unsettled.clear()
            launched = {entry.key for entry in self._entries.values() if entry.launched}
            for job_id in list(self._entries):
                self._drop(job_id)
            self._queue, self._resting, self._ending, self.due = [], {}, [], True
            for entry in fresh:
                entry.launched = entry.key in launched
                self._admit(entry)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with a job's id, from any thread, after it changed on disk."""
        self._listeners.append(listener)

    def add(self, view: JobView) -> None:
        """Take in a live attempt that is on record."""
        with self._lock:
            if view.job.id in self._entries or view.attempt.state in FINAL:
                return
            self._admit(self._entry(view))

    def claim(self, job: Job) -> tuple[int, str] | None:
        """Give a new job its outputs before it is recorded, all or none: which output another job
        has, and that job. A second sending of the same submit is no other job.
        """
        with self._lock:
            for index, output in enumerate(job.spec.outputs):
                owner = self._outputs.owner(str(output.url))
                if owner is not None and not _same_sending(self._claims.get(owner), job):
                    return index, owner
            self._claims[job.id] = job
            for output in job.spec.outputs:
                self._outputs.add(str(output.url), job.id)
        return None

    def disclaim(self, job: Job) -> None:
        """Take back what `claim` gave to a job that was not recorded after all."""
        with self._lock:
            if self._claims.pop(job.id, None) is not None:
                for output in job.spec.outputs:
                    self._outputs.remove(str(output.url), job.id)

    def describe(self, job_id: str, description: str) -> None:
        """Show a description that is on record."""
        with self._lock:
            entry = self._entries.get(job_id)
            if entry is not None:
                entry.job = replace(
                    entry.job, spec=replace(entry.job.spec, description=description)
                )

    def want_stop(self, job_id: str, by: str) -> None:
        """Show that a stop is on record."""
        with self._lock:
            entry = self._entries.get(job_id)
            if entry is not None:
                entry.job = replace(entry.job, intent=Intent.STOP, stopped_by=by)
                self._to_stop.add(job_id)

    def get(self, job_id: str) -> Entry | None:
        """The live attempt of a job, or None."""
        with self._lock:
            return self._entries.get(job_id)

    def settled(self, job_id: str) -> JobView | None:
        """A live job exactly as it is on record; None for one that is not live, or that has a
        change on its way to the disk.
        """
        with self._lock:
            entry = self._entries.get(job_id)
            if entry is None or job_id in self._unsettled:
                return None
            return entry.view

    def entries(self, *states: State) -> list[Entry]:
        """The live attempts in these states (all where none is given)."""
        with self._lock:
            if not states:
                return list(self._entries.values())
            return [entry for state in states for entry in self._by_state[state].values()]

    def to_stop(self) -> list[Entry]:
        """The live attempts of jobs that shall stop."""
        with self._lock:
            return [self._entries[job_id] for job_id in self._to_stop]

    def writer(self, url: Url) -> str | None:
        """The live job on record that writes to `url`, above it or below it."""
        with self._lock:
            owner = self._outputs.owner(str(url))
            return None if owner in self._claims else owner

    def queue(self) -> list[Waiting]:
        """The queue in order."""
        with self._lock:
            return [waiting for _, waiting in self._queue]

    def head(self, depth: int) -> list[Waiting]:
        """The first `depth` of the queue that are due, in order."""
        with self._lock:
            due = (one for _, one in self._queue if one.job_id not in self._resting)
            return list(itertools.islice(due, depth))

    def line(self, job_id: str) -> Line | None:
        """Where a job stands among those of the queue that are due, due itself or not; None where
        it is not in the queue. The queue is not gone through.
        """
        with self._lock:
            entry = self._entries.get(job_id)
            at = None if entry is None else self._at(entry)
            if entry is None or at is None:
                return None
            me = self._queue[at][1]
            resting = (self._entries[one].waiting.order for one in self._resting)
            before = at - sum(order < me.order for order in resting)
            head = self.head(1) if before else []
            return Line(me, head[0] if head else me, before + 1)

    def ripen(self, now: int, monotonic: float) -> None:
        """Take notice of attempts whose wait is over. Once begun, a wait follows the clock that
        nobody can set; none is longer than the longest there is.
        """
        with self._lock:
            for job_id, until in list(self._resting.items()):
                due_at = self._entries[job_id].attempt.due_at or 0
                wait_s = min(MOST_DELAY_S, max(0, due_at - now) / 1000)
                ends = monotonic + wait_s if until is None else until
                if ends > monotonic:
                    self._resting[job_id] = ends
                else:
                    del self._resting[job_id]
                    self.due = True

    def rests(self, job_id: str) -> bool:
        """Whether a queued attempt is not due yet."""
        return job_id in self._resting

    def queued(self) -> int:
        """How many jobs wait."""
        return len(self._queue)

    def held(self) -> dict[str, tuple[Placement, ...]]:
        """What each attempt that holds a place holds."""
        with self._lock:
            return {
                job_id: entry.attempt.placement
                for state in HOLDING
                for job_id, entry in self._by_state[state].items()
            }

    def send(self, move: Move) -> Future[State | None] | None:
        """Queue a move and show it; None where it does not apply. `settle` makes sure of it."""
        with self._lock:
            entry = self._entries.get(move.key.job_id)
            if entry is None or entry.key != move.key:
                return None
            reached = after(entry.attempt.state, move.event)
            if reached is None:
                return None
            begins = move.again is not None and reached in FINAL
            expected = State.QUEUED if begins else reached
            future = self._records.move(move)
            self._sent(entry.job, future, expected)
            self._show(entry, move, reached)
            if move.again is not None and begins:
                avoid = entry.avoid | nodes_to_avoid([entry.attempt])
                self._begin(Entry(entry.job, move.again.attempt, (), avoid=avoid))
            return future

    def stop(self, entry: Entry, reason: Reason, at: int) -> Future[State | None] | None:
        """Queue the move that ends an attempt for `reason`, with its event. What has no program yet
        is cancelled at once; otherwise the intent is on record before anything is done, and the
        verbs that stop and finish carry it out, in this server or the next.
        """
        told: dict[str, str | int] = {**reason.told()}
        if entry.attempt.state in (State.QUEUED, State.PLACED):
            key = "job-cancelled"
        else:
            key = "job-stopping"
            told.setdefault("grace_s", entry.job.spec.grace_s)
        event = JobEvent(at, key, told, Level.WARNING)
        return self.send(Move(entry.key, Event.STOP, at, events=(event,), reason=reason))

    def end(self, move: Move) -> None:
        """Put a move aside that ends an attempt: `retry` says whether another one follows."""
        with self._lock:
            self._ending.append(move)

    def ending(self) -> list[Move]:
        """The moves that were put aside, once."""
        with self._lock:
            ending, self._ending = self._ending, []
            return ending

    def note(
        self, entry: Entry, events: Sequence[JobEvent] = (), tasks: Sequence[Task] = ()
    ) -> None:
        """Queue events and task facts without a change of state."""
        with self._lock:
            future = self._records.note(entry.key, events, tasks)
            self._sent(entry.job, future, True)
            entry.tasks = _merged(entry.tasks, tasks)
            self._changed.add(entry.job.id)

    def flag(self, entry: Entry, *, unreachable: bool) -> None:
        """Set or clear the unreachable flag."""
        with self._lock:
            if entry.attempt.unreachable != unreachable:
                future = self._records.flag(entry.key, unreachable=unreachable)
                self._sent(entry.job, future, True)
                entry.attempt = replace(entry.attempt, unreachable=unreachable)
                self._changed.add(entry.job.id)

    def settle(self) -> None:
        """Wait until everything queued is on disk; load anew what the records refused."""
        with self._lock:
            pending, self._pending = self._pending, []
        for job, future, expected in pending:
            if future.result() != expected:
                self._reload(job)
            self._arrived(job.id)
        with self._lock:
            changed, self._changed = self._changed, set()
        for job_id in changed:
            self.tell(job_id)

    def _sent(self, job: Job, future: Future[Any], expected: Reply) -> None:
        self._pending.append((job, future, expected))
        self._unsettled[job.id] += 1

    def _arrived(self, job_id: str) -> None:
        with self._lock:
            self._unsettled[job_id] -= 1
            if self._unsettled[job_id] <= 0:
                del self._unsettled[job_id]

    def tell(self, job_id: str) -> None:
        """Tell every listener that a job changed."""
        for listener in self._listeners:
            listener(job_id)

    def _show(self, entry: Entry, move: Move, reached: State) -> None:
        attempt = replace(entry.attempt, state=reached, reason=move.reason or entry.attempt.reason)
        if reached in _STAMPS:
            stamp: dict[str, Any] = {_STAMPS[reached]: move.at}
            attempt = replace(attempt, **stamp)
        if move.placement is not None:
            attempt = replace(attempt, placement=tuple(move.placement))
        was = entry.attempt.state
        entry.attempt = attempt
        self._by_state[was].pop(entry.job.id, None)
        if reached in LIVE:
            self._by_state[reached][entry.job.id] = entry
        entry.tasks = _merged(entry.tasks, move.tasks)
        self._changed.add(entry.job.id)
        if was is State.QUEUED:
            self._dequeue(entry)
        if reached is State.QUEUED:
            self._enqueue(entry)
        if reached not in HOLDING:
            self.due = True
        if reached in FINAL:
            self._drop(entry.job.id)

    def _reload(self, job: Job) -> None:
        with self._lock:
            entry = self._drop(job.id)
            if entry is not None:
                self._dequeue(entry)
            with suppress(Missing):
                self.add(self._records.job(job.workspace, job.id))
            self.due = True

    def _entry(self, view: JobView) -> Entry:
        return Entry(view.job, view.attempt, view.tasks, avoid=self._avoided(view))

    def _admit(self, entry: Entry) -> None:
        self._claims.pop(entry.job.id, None)
        self._begin(entry)

    def _avoided(self, view: JobView) -> frozenset[str]:
        """Only a job with rules and with earlier attempts can have any."""
        if view.attempt.key.number == 1 or not view.job.spec.log_rules:
            return frozenset()
        known = self._records.attempts(view.job.workspace, view.job.id)
        return nodes_to_avoid([attempt for attempt, _ in known])

    def _begin(self, entry: Entry) -> None:
        self._take_in(entry)
        if entry.attempt.state is State.QUEUED:
            if entry.attempt.due_at is not None:
                self._resting[entry.job.id] = None
            self._enqueue(entry)

    def _take_in(self, entry: Entry) -> None:
        job = entry.job
        self._entries[job.id] = entry
        self._by_state[entry.attempt.state][job.id] = entry
        if job.intent is Intent.STOP:
            self._to_stop.add(job.id)
        for output in job.spec.outputs:
            self._outputs.add(str(output.url), job.id)

    def _drop(self, job_id: str) -> Entry | None:
        entry = self._entries.pop(job_id, None)
        if entry is not None:
            self._to_stop.discard(job_id)
            self._resting.pop(job_id, None)
            self._by_state.get(entry.attempt.state, {}).pop(job_id, None)
            for output in entry.job.spec.outputs:
                self._outputs.remove(str(output.url), job_id)
        return entry

    def _enqueue(self, entry: Entry) -> None:
        item = (entry.waiting.order, entry.waiting)
        at = bisect.bisect_left(self._queue, item[0], key=lambda queued: queued[0])
        self._queue.insert(at, item)
        if at <= BACKFILL_DEPTH:
            self.due = True

    def _dequeue(self, entry: Entry) -> None:
        at = self._at(entry)
        if at is not None:
            del self._queue[at]

    def _at(self, entry: Entry) -> int | None:
        """Where an entry is in the queue."""
        order = entry.waiting.order
        at = bisect.bisect_left(self._queue, order, key=lambda queued: queued[0])
        while at < len(self._queue) and self._queue[at][0] == order:
            if self._queue[at][1].job_id == entry.job.id:
                return at
            at += 1
        return None


def _same_sending(one: Job | None, other: Job) -> bool:
    """Whether two jobs that are being recorded come from one submit, which the records will see."""
    if one is None or not other.client_token:
        return False
    return (one.workspace, one.client_token) == (other.workspace, other.client_token)


def nodes_to_avoid(attempts: Iterable[Attempt]) -> frozenset[str]:
    """The nodes that rules about the logs of these attempts exclude."""
    reasons = [one.reason for one in attempts if one.reason is not None]
    named = (one.params["avoid"] for one in reasons if one.params.get("rule") == AVOID)
    return frozenset(str(node) for node in named)


def _merged(tasks: Iterable[Task], changed: Iterable[Task]) -> tuple[Task, ...]:
    by_index = {task.index: task for task in tasks}
    by_index.update((task.index, task) for task in changed)
    return tuple(by_index[index] for index in sorted(by_index))
