"""What Records promise of attempts after the first: one at a time, and a stop wins every race."""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import replace

import pytest

from danlu.model.attempt import FINAL, Attempt, AttemptKey, Event, State
from danlu.model.event import JobEvent
from danlu.model.job import Task
from danlu.model.reason import Reason, ReasonCode
from danlu.ports.records import Again, EventQuery, Filter, JobQuery, Move, Records
from danlu.stores.sql.opening import open_database
from tests.contract.samples import WAIT, WORKSPACE, Store, brought_to

WS = WORKSPACE.id
SAID = JobEvent(9, "job-queued")
FAILED = Reason(ReasonCode.EXIT, {"task": "worker-0", "exit_code": 3})


def again_after(key: AttemptKey, due_at: int | None = 12) -> Again:
    following = AttemptKey(key.job_id, key.number + 1, uuid.uuid4().hex)
    return Again(Attempt(following, State.QUEUED, 9, due_at=due_at), [SAID])


def bad(key: AttemptKey, again: Again | None) -> Move:
    return Move(key, Event.BAD, 8, reason=FAILED, tasks=(Task(0, exit_code=3),), again=again)


def test_the_next_attempt_begins_with_the_end_of_the_one_before(records: Records) -> None:
    key = brought_to(records, State.COLLECTING)
    again = again_after(key)

    assert records.move(bad(key, again)).result(WAIT) is State.QUEUED

    view = records.job(WS, key.job_id)
    assert (view.attempt, view.tasks) == (again.attempt, ())
    (first, tasks), (second, none) = records.attempts(WS, key.job_id)
    assert (first.state, first.reason, first.ended_at) == (State.FAILED, FAILED, 8)
    assert (list(tasks), second, list(none)) == ([Task(0, exit_code=3)], again.attempt, [])
    assert [one.job.id for one in records.live()] == [key.job_id]
    queued = records.jobs(WS, JobQuery((Filter("state", "in", ["queued"]),)))
    assert [one.job.id for one in queued.jobs] == [key.job_id]
    assert replace(list(records.events(WS, key.job_id, EventQuery()))[-1], sequence=0) == SAID


def test_an_end_that_is_told_twice_begins_one_attempt(records: Records) -> None:
    """(case 33) The same death is counted once, whoever finds it how often."""
    key = brought_to(records, State.COLLECTING)
    first, second = again_after(key), again_after(key)
    futures = [records.move(bad(key, first)), records.move(bad(key, second))]

    assert [future.result(WAIT) for future in futures] == [State.QUEUED, None]

    attempts = records.attempts(WS, key.job_id)
    assert [attempt.key.token for attempt, _ in attempts] == [key.token, first.attempt.key.token]


@pytest.mark.parametrize("wish", ["stop", "stop-queued-ahead"])
def test_a_stop_wins_the_race_with_the_next_attempt(records: Records, wish: str) -> None:
    """(case 29) Whoever is first on disk: a job that shall stop is not begun again."""
    key = brought_to(records, State.COLLECTING)
    stopped = records.want_stop(WS, key.job_id, "bob", SAID)
    if wish == "stop":
        assert stopped.result(WAIT)
    ended = records.move(bad(key, again_after(key)))

    assert ended.result(WAIT) is State.FAILED

    assert len(records.attempts(WS, key.job_id)) == 1
    assert list(records.live()) == []


def test_a_stop_after_the_next_attempt_began_stops_that_one(records: Records) -> None:
    key = brought_to(records, State.COLLECTING)
    again = again_after(key)
    ended = records.move(bad(key, again))
    stopped = records.want_stop(WS, key.job_id, "bob", SAID)
    assert (ended.result(WAIT), stopped.result(WAIT)) == (State.QUEUED, True)

    assert records.move(Move(again.attempt.key, Event.STOP, 10)).result(WAIT) is State.CANCELLED


@pytest.mark.parametrize("event", Event)
def test_what_the_earlier_attempt_still_says_is_not_taken(records: Records, event: Event) -> None:
    """(case 31) (case 33) Reports with the token of an attempt that is over change nothing."""
    key = brought_to(records, State.COLLECTING)
    records.move(bad(key, again_after(key))).result(WAIT)
    before = (records.attempts(WS, key.job_id), list(records.events(WS, key.job_id, EventQuery())))

    assert records.move(Move(key, event, 99, (SAID,), tasks=(Task(0),))).result(WAIT) is None
    assert not records.note(key, [SAID], [Task(0)]).result(WAIT)
    assert not records.flag(key, unreachable=True).result(WAIT)

    after = (records.attempts(WS, key.job_id), list(records.events(WS, key.job_id, EventQuery())))
    assert after == before


def test_a_move_that_ends_nothing_begins_nothing(records: Records) -> None:
    key = brought_to(records, State.RUNNING)
    again = again_after(key)
    move = Move(key, Event.EXITED, 5, again=again)

    assert records.move(move).result(WAIT) is State.COLLECTING

    assert len(records.attempts(WS, key.job_id)) == 1


@pytest.mark.parametrize("change", ["number", "job_id"])
def test_only_the_next_number_of_the_same_job_can_follow(records: Records, change: str) -> None:
    key = brought_to(records, State.COLLECTING)
    again = again_after(key)
    other: dict[str, object] = {"number": 3} if change == "number" else {"job_id": "other"}
    wrong = replace(again.attempt, key=replace(again.attempt.key, **other))  # type: ignore[arg-type]  # either field

    with pytest.raises(ValueError, match="followed by the next one"):
        records.move(bad(key, replace(again, attempt=wrong)))


@pytest.mark.parametrize("state", FINAL)
def test_a_deleted_job_is_swept_with_all_its_attempts(records: Records, state: State) -> None:
    key = brought_to(records, State.COLLECTING)
    again = again_after(key, None)
    records.move(bad(key, again)).result(WAIT)
    second = again.attempt.key
    for event in (Event.PLACE, Event.LAUNCH, Event.EXITED):
        records.move(Move(second, event, 20))
    last = {State.SUCCEEDED: Event.OK, State.CANCELLED: Event.STOPPED, State.LOST: Event.VANISHED}
    assert records.move(Move(second, last.get(state, Event.BAD), 21)).result(WAIT) is state
    assert records.delete(WS, key.job_id).result(WAIT)

    assert [one[:3] for one in records.swept()] == [
        (key.job_id, 1, key.token),
        (key.job_id, 2, second.token),
    ]


def test_the_database_itself_keeps_attempts_apart(store: Store) -> None:
    """(case 49) No two attempts of one number, however they are written."""
    key = brought_to(store.open(), State.FAILED)
    database = open_database(str(store.where))
    with contextlib.closing(database.connect(writing=True)) as connection:
        for number, refused in ((1, True), (2, False), (2, True)):
            row = f"('{key.job_id}', {number}, 't', 'queued', 1)"
            sql = f"INSERT INTO attempts (job_id, number, token, state, created_at) VALUES {row}"  # noqa: S608 -- our own values
            with pytest.raises(database.errors) if refused else contextlib.nullcontext():
                connection.execute(sql)
