"""Records against a model in memory: any run of calls, in any order, restarts between them."""

from __future__ import annotations

import itertools
import os
import tempfile
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from danlu.engines.memory import ManualClock
from danlu.model.attempt import (
    FINAL,
    LIVE,
    Attempt,
    AttemptKey,
    Event,
    Placement,
    State,
    after,
)
from danlu.model.errors import Missing
from danlu.model.event import JobEvent
from danlu.model.job import Intent, JobView, Task
from danlu.model.reason import Reason, ReasonCode
from danlu.ports.records import Again, EventQuery, Filter, JobQuery, Move, Records
from tests.contract.conftest import SQLITE
from tests.contract.samples import WAIT, WORKSPACE, Store, spec, submission
from tests.contract.test_records_moves import STAMP
from tests.postgres import Server

WS = WORKSPACE.id


@dataclass(slots=True)
class Known:
    """What must be on record of a job."""

    view: JobView
    events: list[JobEvent] = field(default_factory=list)
    deleted: bool = False
    forgotten: bool = False
    earlier: list[AttemptKey] = field(default_factory=list)

    @property
    def state(self) -> State:
        return self.view.attempt.state

    def put(self, tasks: list[Task]) -> None:
        rows = {task.index: task for task in (*self.view.tasks, *tasks)}
        self.view = replace(self.view, tasks=tuple(rows[index] for index in sorted(rows)))

    def change(self, **values: Any) -> None:
        self.view = replace(self.view, attempt=replace(self.view.attempt, **values))


INSTANTS = st.integers(0, 5)
EVENTS = st.lists(
    st.builds(JobEvent, INSTANTS, st.sampled_from(["job-queued", "job-placed"])), max_size=2
)
TASKS = st.lists(
    st.builds(Task, st.integers(0, 2), st.sampled_from(["", "n1"]), exit_code=st.none() | INSTANTS),
    max_size=2,
    unique_by=lambda task: task.index,
)
REASONS = st.none() | st.builds(Reason, st.sampled_from([ReasonCode.EXIT, ReasonCode.STOPPED]))
PLACES = st.none() | st.lists(st.builds(Placement, st.just(0), st.just("n"), INSTANTS, INSTANTS))


def again_after(key: AttemptKey, due_at: int | None) -> Again:
    """The attempt that follows `key`."""
    following = AttemptKey(key.job_id, key.number + 1, uuid.uuid4().hex)
    attempt = Attempt(following, State.QUEUED, 4, due_at=due_at)
    return Again(attempt, [JobEvent(4, "job-queued")])


def swift() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class History(RuleBasedStateMachine):
    """Every rule does a thing to the records and to the model, and compares the answers."""

    jobs: Bundle[str] = Bundle("jobs")
    where: Any = None
    """Gives each run a database of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, Known] = {}
        self.tokens: dict[str, str] = {}
        self.folder = tempfile.TemporaryDirectory(prefix="danlu-history-", dir=swift())
        root = Path(self.folder.name)
        self.store = Store(type(self).where(root), root / "key", ManualClock())
        self.records: Records = self.store.open()

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    @initialize(target=jobs)
    def first(self) -> Any:
        return self.submit(1, "")

    @rule(target=jobs, at=INSTANTS, token=st.sampled_from(["", "", "a", "b"]))
    def submit(self, at: int, token: str) -> Any:
        wanted = submission(spec(f"n{at}"), at=at, token=token)
        done = self.records.submit(wanted).result(WAIT)
        assert done.created == (token not in self.tokens)
        if not done.created:
            assert done.job.id == self.tokens[token]
            return multiple()
        if token:
            self.tokens[token] = wanted.job.id
        assert done.job == replace(wanted.job, sequence=done.job.sequence)
        self.known[wanted.job.id] = Known(JobView(done.job, wanted.attempt), list(wanted.events))
        return wanted.job.id

    @rule(
        job_id=jobs,
        event=st.sampled_from(Event),
        at=INSTANTS,
        events=EVENTS,
        tasks=TASKS,
        reason=REASONS,
        places=PLACES,
        due_at=st.none() | INSTANTS,
        again=st.booleans(),
    )
    def move(self, job_id: str, event: Event, at: int, **rest: Any) -> None:
        known = self.known[job_id]
        key = known.view.attempt.key
        move = Move(
            key,
            event,
            at,
            rest["events"],
            rest["reason"],
            rest["places"],
            rest["tasks"],
            again_after(key, rest["due_at"]) if rest["again"] else None,
        )
        expected = after(known.state, event)
        wanted = known.view.job.intent is Intent.RUN and not known.deleted
        begins = move.again is not None and expected in FINAL and wanted
        reached = self.records.move(move).result(WAIT)
        assert reached is (State.QUEUED if begins else expected)
        if expected is not None:
            self.apply(known, move, expected)
        if begins and move.again is not None:
            known.earlier.append(known.view.attempt.key)
            known.view = JobView(known.view.job, move.again.attempt)
            known.events += move.again.events

    def apply(self, known: Known, move: Move, reached: State) -> None:
        changes: dict[str, Any] = {"state": reached}
        if move.reason is not None:
            changes["reason"] = move.reason
        if move.placement is not None:
            changes["placement"] = tuple(move.placement)
        if reached in STAMP:
            changes[STAMP[reached]] = move.at
        if reached in FINAL:
            changes["unreachable"] = False
        if move.event is Event.UNPLACE:
            changes.update(placement=(), placed_at=None)
        known.change(**changes)
        known.put(list(move.tasks))
        known.events += move.events

    @rule(job_id=jobs, event=st.sampled_from(Event), token=st.sampled_from(["", "0" * 32]))
    def move_with_a_stale_token(self, job_id: str, event: Event, token: str) -> None:
        key = replace(self.known[job_id].view.attempt.key, token=token)
        move = Move(key, event, 1, [JobEvent(1, "job-placed")], tasks=[Task(0, "wrong")])
        assert self.records.move(move).result(WAIT) is None

    @rule(job_id=jobs, events=EVENTS, tasks=TASKS)
    def note(self, job_id: str, events: list[JobEvent], tasks: list[Task]) -> None:
        known = self.known[job_id]
        done = self.records.note(known.view.attempt.key, events, tasks).result(WAIT)
        assert done is (known.state in LIVE)
        if done:
            known.put(tasks)
            known.events += events

    @rule(job_id=jobs, unreachable=st.booleans())
    def flag(self, job_id: str, *, unreachable: bool) -> None:
        known = self.known[job_id]
        key = known.view.attempt.key
        done = self.records.flag(key, unreachable=unreachable).result(WAIT)
        assert done is (known.state in LIVE)
        if done:
            known.change(unreachable=unreachable)

    @rule(job_id=jobs, by=st.sampled_from(["bob", "time-limit"]))
    def want_stop(self, job_id: str, by: str) -> None:
        known = self.known[job_id]
        job, event = known.view.job, JobEvent(3, "stop-requested", {"user": by})
        done = self.records.want_stop(WS, job_id, by, event).result(WAIT)
        assert done is (known.state in LIVE and job.intent is Intent.RUN)
        if done:
            changed = replace(job, intent=Intent.STOP, stopped_by=by)
            known.view = replace(known.view, job=changed)
            known.events.append(event)

    @rule(job_id=jobs, text=st.sampled_from(["", "d", "描述"]))
    def describe(self, job_id: str, text: str) -> None:
        known = self.known[job_id]
        assert self.records.describe(WS, job_id, text).result(WAIT) is not known.deleted
        if not known.deleted:
            job = known.view.job
            job = replace(job, spec=replace(job.spec, description=text))
            known.view = replace(known.view, job=job)

    @rule(job_id=jobs)
    def delete(self, job_id: str) -> None:
        known = self.known[job_id]
        done = self.records.delete(WS, job_id).result(WAIT)
        assert done is (known.state in FINAL and not known.deleted)
        known.deleted = known.deleted or done

    @rule(job_id=consumes(jobs))
    def forget(self, job_id: str) -> None:
        known = self.known[job_id]
        done = self.records.forget(job_id).result(WAIT)
        assert done is (known.deleted and not known.forgotten)
        known.forgotten = known.forgotten or done

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.records = self.store.open()

    @rule(job_ids=st.lists(jobs, min_size=2, max_size=6), events=st.lists(st.sampled_from(Event)))
    def move_many_at_once(self, job_ids: list[str], events: list[Event]) -> None:
        """In one group, as the flow does it."""
        moves = [
            Move(self.known[job_id].view.attempt.key, event, 2, [JobEvent(2, "job-placed")])
            for job_id, event in zip(itertools.cycle(job_ids), events, strict=False)
        ]
        futures = [self.records.move(move) for move in moves]
        for move, future in zip(moves, futures, strict=True):
            known = self.known[move.key.job_id]
            expected = after(known.state, move.event)
            assert future.result(WAIT) is expected
            if expected is not None:
                self.apply(known, move, expected)

    @invariant()
    def all_is_on_record(self) -> None:
        visible = [known for known in self.known.values() if not known.deleted]
        page = self.records.jobs(WS, JobQuery(limit=1000, descending=False))
        order = sorted(visible, key=lambda one: (one.view.job.created_at, one.view.job.sequence))
        assert list(page.jobs) == [known.view for known in order]
        assert page.total == len(visible)
        assert list(self.records.live()) == [known.view for known in visible if known.state in LIVE]
        assert list(self.records.swept()) == [
            (key.job_id, key.number, key.token, 1)
            for one in self.known.values()
            for key in (*one.earlier, one.view.attempt.key)
            if one.deleted and not one.forgotten
        ]

    @invariant()
    def each_job_is_as_its_history_says(self) -> None:
        for job_id, known in list(self.known.items())[-2:]:
            assert self.records.knows(known.view.attempt.key)
            assert not self.records.knows(AttemptKey(job_id, 1, uuid.uuid4().hex))
            if known.deleted:
                with pytest.raises(Missing):
                    self.records.job(WS, job_id)
                continue
            assert self.records.job(WS, job_id) == known.view
            found = self.records.events(WS, job_id, EventQuery())
            assert [replace(event, sequence=0) for event in found] == known.events
            assert sorted(event.sequence for event in found) == [one.sequence for one in found]
            of_state = JobQuery((Filter("state", "in", [known.state]),), limit=1000)
            assert known.view in self.records.jobs(WS, of_state).jobs


@pytest.mark.parametrize("kind", [SQLITE, pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_any_history_is_kept(kind: str, request: pytest.FixtureRequest) -> None:
    def where(root: Path) -> str | Path:
        if kind == SQLITE:
            return root / "records.db"
        server: Server = request.getfixturevalue("postgres_server")
        return server.cleared()

    class Run(History):
        pass

    Run.where = staticmethod(where)
    run_state_machine_as_test(
        Run,
        settings=settings(
            max_examples=12 if kind == SQLITE else 6,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
