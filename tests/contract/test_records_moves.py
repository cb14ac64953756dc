"""What Records promise of attempts: every move of the table, no other, and only by the token."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from dataclasses import replace
from typing import Any

import pytest

from danlu.model.attempt import FINAL, LIVE, MOVES, AttemptKey, Event, Placement, State
from danlu.model.errors import Invalid, Refused
from danlu.model.event import JobEvent
from danlu.model.job import Task
from danlu.model.reason import Reason, ReasonCode
from danlu.ports.records import EventQuery, Filter, JobQuery, Move, Records
from danlu.stores.sql.opening import open_database
from tests.contract.samples import (
    WAIT,
    WORKSPACE,
    Store,
    brought_to,
    spec,
    submission,
    submitted,
    way_to,
)

WS = WORKSPACE.id
STAMP = {
    State.PLACED: "placed_at",
    State.LAUNCHING: "launched_at",
    State.RUNNING: "started_at",
    State.COLLECTING: "exited_at",
    State.SUCCEEDED: "ended_at",
    State.FAILED: "ended_at",
    State.CANCELLED: "ended_at",
    State.LOST: "ended_at",
}
SAID = JobEvent(77, "task-exit", {"task": "worker-0", "exit_code": 3})
PLACES = (Placement(0, "node-1", 2, 1 << 40, ("GPU-a", "GPU-b")), Placement(1, "节点", 2, 0))
TASK = Task(0, "node-1", "10.0.0.1", 5, 6, 137, "SIGKILL", out_of_memory=True, notes_seen=4)


def kept(records: Records, key: AttemptKey) -> tuple[Any, ...]:
    """All that is on record of a job."""
    events = records.events(WS, key.job_id, EventQuery())
    return (records.job(WS, key.job_id), records.attempts(WS, key.job_id), list(events))


@pytest.mark.parametrize("event", Event)
def test_every_state_and_event_do_as_the_table_says(records: Records, event: Event) -> None:
    for source in State:
        key = brought_to(records, source)
        before = kept(records, key)
        reason = Reason(ReasonCode.EXIT, {"task": "worker-0", "exit_code": 3})
        move = Move(key, event, 77, (SAID,), reason, PLACES, (TASK,))

        reached = records.move(move).result(WAIT)

        assert reached is MOVES.get((source, event)), (source, event)
        if reached is None:
            assert kept(records, key) == before
            continue
        view, attempts, events = kept(records, key)
        assert view.attempt.state is reached
        assert view.attempt.reason == reason
        assert view.attempt.placement == (() if event is Event.UNPLACE else PLACES)
        assert view.tasks == (TASK,)
        assert attempts == [(view.attempt, [TASK])]
        assert [replace(one, sequence=0) for one in events[len(before[2]) :]] == [SAID]


@pytest.mark.parametrize("state", State)
def test_instants_are_stamped_by_the_state_reached(records: Records, state: State) -> None:
    key = submitted(records, submission(at=1))[0]
    expected: dict[str, int | None] = dict.fromkeys(STAMP.values())
    reached = State.QUEUED
    for at, event in enumerate(way_to(state), start=100):
        reached = records.move(Move(key, event, at)).result(WAIT) or reached
        if reached in STAMP:
            expected[STAMP[reached]] = at

    attempt = records.job(WS, key.job_id).attempt

    assert {name: getattr(attempt, name) for name in expected} == expected
    assert attempt.created_at == 1


def test_a_place_that_is_given_back_leaves_nothing(records: Records) -> None:
    key = submitted(records, submission())[0]
    records.move(Move(key, Event.PLACE, 5, placement=PLACES)).result(WAIT)
    records.move(Move(key, Event.UNPLACE, 6)).result(WAIT)

    attempt = records.job(WS, key.job_id).attempt

    assert attempt.state is State.QUEUED
    assert attempt.placement == ()
    assert attempt.placed_at is None


def test_what_a_move_does_not_bring_is_kept(records: Records) -> None:
    key = submitted(records, submission())[0]
    reason = Reason(ReasonCode.STOPPED, {"user": "bob"})
    records.move(Move(key, Event.PLACE, 5, placement=PLACES, tasks=(TASK,))).result(WAIT)
    records.move(Move(key, Event.LAUNCH, 6, reason=reason)).result(WAIT)
    records.move(Move(key, Event.STARTED, 7, tasks=(Task(1, "b"),))).result(WAIT)

    view = records.job(WS, key.job_id)

    assert (view.attempt.placement, view.attempt.reason) == (PLACES, reason)
    assert view.tasks == (TASK, Task(1, "b"))


def test_tasks_are_replaced_whole(records: Records) -> None:
    key = submitted(records, submission(spec(node_count=3)))[0]
    records.move(Move(key, Event.PLACE, 1, tasks=(Task(2), Task(0), TASK))).result(WAIT)
    assert records.job(WS, key.job_id).tasks == (TASK, Task(2))

    records.note(key, tasks=[Task(0, "moved")]).result(WAIT)

    assert records.job(WS, key.job_id).tasks == (Task(0, "moved"), Task(2))


def test_moves_of_one_group_apply_in_order(records: Records) -> None:
    """Queued together: each sees what those before it have done."""
    wanted = submission()
    key = wanted.attempt.key
    events = [Event.PLACE, Event.UNPLACE, Event.UNPLACE, Event.PLACE, Event.LAUNCH, Event.STARTED]
    futures: list[Any] = [records.submit(wanted)]
    for at, event in enumerate(events):
        futures.append(
            records.move(
                Move(key, event, at, (JobEvent(at, "job-queued"),), tasks=(Task(0, str(at)),))
            )
        )

    reached = [future.result(WAIT) for future in futures[1:]]

    assert reached == [
        State.PLACED,
        State.QUEUED,
        None,
        State.PLACED,
        State.LAUNCHING,
        State.RUNNING,
    ]
    told = records.events(WS, key.job_id, EventQuery())[2:]
    assert [event.at for event in told] == [0, 1, 3, 4, 5]
    assert records.job(WS, key.job_id).tasks == (Task(0, "5"),)


@pytest.mark.parametrize("state", State)
def test_a_stale_token_writes_nothing(records: Records, state: State) -> None:
    """(case 33) Neither a token of another attempt nor another number or job gets through."""
    key, neighbour = brought_to(records, state), brought_to(records, state)
    before = kept(records, key)
    for stale in (
        replace(key, token="0" * 32),
        replace(key, token=neighbour.token),
        replace(key, token=""),
        replace(key, token=key.token.upper() + " "),
        replace(key, number=2),
        replace(key, job_id="unknown"),
    ):
        for event in Event:
            move = Move(stale, event, 1, (SAID,), Reason(ReasonCode.EXIT), PLACES, (TASK,))
            assert records.move(move).result(WAIT) is None
        assert not records.note(stale, [SAID], [TASK]).result(WAIT)
        assert not records.flag(stale, unreachable=True).result(WAIT)

    assert kept(records, key) == before


@pytest.mark.parametrize("state", FINAL)
def test_a_final_attempt_never_changes(records: Records, state: State) -> None:
    """(case 73) (case 31) Not by an event, not by a flag, and not by a wish."""
    key = brought_to(records, state)
    before = records.attempts(WS, key.job_id)
    for event in Event:
        assert records.move(Move(key, event, 99, (SAID,))).result(WAIT) is None
    assert not records.flag(key, unreachable=True).result(WAIT)
    assert not records.want_stop(WS, key.job_id, "bob", SAID).result(WAIT)

    assert records.attempts(WS, key.job_id) == before


@pytest.mark.parametrize("state", FINAL)
def test_the_database_itself_keeps_final_attempts(store: Store, state: State) -> None:
    """(case 73) Whoever writes past this program is stopped by a trigger."""
    records = store.open()
    key = brought_to(records, state)
    before = records.attempts(WS, key.job_id)
    database = open_database(store.where)
    with contextlib.closing(database.connect(writing=True)) as connection:
        for change in (
            "UPDATE attempts SET state = 'running'",
            "UPDATE attempts SET reason = NULL",
            "UPDATE attempts SET token = 'x' WHERE number = 1",
            "UPDATE attempts SET unreachable = 1",
        ):
            with pytest.raises(database.errors, match="a final attempt never changes"):
                connection.execute(change)

    assert records.attempts(WS, key.job_id) == before


def test_the_database_itself_knows_the_states(store: Store) -> None:
    records = store.open()
    key = submitted(records, submission())[0]
    database = open_database(store.where)
    with contextlib.closing(database.connect(writing=True)) as connection:
        for change in (
            "UPDATE attempts SET state = 'unreachable'",
            "UPDATE attempts SET state = 'QUEUED'",
            "UPDATE jobs SET intent = 'pause'",
            """INSERT INTO attempts (job_id, number, token, state, created_at)
            SELECT job_id, number, token, state, created_at FROM attempts""",
            """INSERT INTO tasks (job_id, number, "index", node, host, signal, notes_seen)
            VALUES ('nobody', 1, 0, '', '', '', 0)""",
        ):
            with pytest.raises(database.errors) as refused:
                connection.execute(change)
            assert isinstance(database.translate(refused.value), Refused), change

    assert records.job(WS, key.job_id).attempt.state is State.QUEUED


@pytest.mark.parametrize("state", State)
def test_a_note_adds_facts_until_the_attempt_has_ended(records: Records, state: State) -> None:
    """(case 33) What is told of an attempt that is over comes too late."""
    key = brought_to(records, state)
    before, attempts, events = kept(records, key)

    assert records.note(key, [SAID, SAID], [TASK, Task(1)]).result(WAIT) is (state in LIVE)

    if state in FINAL:
        assert kept(records, key) == (before, attempts, events)
        return
    view = records.job(WS, key.job_id)
    assert view == replace(before, tasks=(TASK, Task(1)))
    told = records.events(WS, key.job_id, EventQuery())[len(events) :]
    assert [replace(one, sequence=0) for one in told] == [SAID, SAID]
    assert records.note(key).result(WAIT)


@pytest.mark.parametrize("state", State)
def test_the_unreachable_flag_is_for_live_attempts(records: Records, state: State) -> None:
    key = brought_to(records, state)
    live = state in LIVE

    assert records.flag(key, unreachable=True).result(WAIT) is live
    assert records.job(WS, key.job_id).attempt.unreachable is live
    assert records.flag(key, unreachable=False).result(WAIT) is live
    assert not records.job(WS, key.job_id).attempt.unreachable


@pytest.mark.parametrize(("state", "event"), MOVES)
def test_the_unreachable_flag_lasts_until_the_end(
    records: Records, state: State, event: Event
) -> None:
    key = brought_to(records, state)
    records.flag(key, unreachable=True).result(WAIT)

    reached = records.move(Move(key, event, 1)).result(WAIT)

    assert records.job(WS, key.job_id).attempt.unreachable is (reached in LIVE)


def test_lists_show_the_state_that_the_attempt_has(records: Records) -> None:
    """The copy that lists are searched by follows every move."""
    for state in State:
        brought_to(records, state)
    for state in State:
        found = records.jobs(WS, JobQuery((Filter("state", "in", [state]),)))
        assert [view.attempt.state for view in found.jobs] == [state]


ODD = ["a\0b", "\udfff"]


@pytest.mark.parametrize("text", ODD)
def test_text_that_no_column_can_hold_moves_nothing(records: Records, text: str) -> None:
    key = submitted(records, submission())[0]
    before = kept(records, key)
    moves = [
        Move(replace(key, token=text), Event.PLACE, 1),
        Move(replace(key, job_id=text), Event.PLACE, 1),
        Move(key, Event.PLACE, 1, tasks=(Task(0, node=text),)),
        Move(key, Event.PLACE, 1, tasks=(Task(0, signal=text),)),
        Move(key, Event.PLACE, 1, events=(JobEvent(1, text),)),
        Move(key, Event.PLACE, 1, events=(JobEvent(1, "job-placed", task=text),)),
    ]
    for move in moves:
        with pytest.raises(Invalid):
            records.move(move).result(WAIT)

    assert kept(records, key) == before


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_numbers_beyond_64_bits_move_nothing(records: Records, number: int) -> None:
    key = submitted(records, submission())[0]
    before = kept(records, key)
    moves = [
        Move(key, Event.PLACE, number),
        Move(replace(key, number=number), Event.PLACE, 1),
        Move(key, Event.PLACE, 1, events=(JobEvent(number, "job-placed"),)),
        *(
            Move(key, Event.PLACE, 1, tasks=(task,))
            for task in (
                Task(number),
                Task(0, started_at=number),
                Task(0, ended_at=number),
                Task(0, exit_code=number),
                Task(0, notes_seen=number),
            )
        ),
    ]
    for move in moves:
        with pytest.raises(Invalid):
            records.move(move).result(WAIT)

    assert kept(records, key) == before


def test_instants_and_codes_of_64_bits_are_kept(records: Records) -> None:
    key = submitted(records, submission())[0]
    most, least = 2**63 - 1, -(2**63)
    task = Task(most, started_at=most, ended_at=least, exit_code=least, notes_seen=most)
    move = Move(key, Event.PLACE, most, (JobEvent(least, "job-placed"),), tasks=(task,))

    assert records.move(move).result(WAIT) is State.PLACED

    view = records.job(WS, key.job_id)
    assert (view.attempt.placed_at, view.tasks) == (most, (task,))
    assert records.events(WS, key.job_id, EventQuery())[-1].at == least


def test_one_bad_move_does_not_hurt_its_neighbours(records: Records) -> None:
    """A row that the database refuses undoes its own transaction only."""
    keys = submitted(records, *(submission() for _ in range(40)))
    ghost = dataclasses.replace(submission(), events=(JobEvent(1, "job-queued"),))
    broken = replace(ghost, job=replace(ghost.job, id=keys[0].job_id))
    broken = replace(broken, attempt=replace(broken.attempt, key=keys[0]))

    first = [records.move(Move(key, Event.PLACE, 1)) for key in keys[:20]]
    bad = records.submit(broken)
    then = [records.move(Move(key, Event.PLACE, 1)) for key in keys[20:]]

    with pytest.raises(Refused):
        bad.result(WAIT)
    reached = [future.result(WAIT) for future in itertools.chain(first, then)]
    assert reached == [State.PLACED] * 40
