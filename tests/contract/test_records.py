"""What Records promise of jobs, whatever the database: submit, read, wish, delete."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import replace

import pytest

from danlu.model.attempt import FINAL, LIVE, AttemptKey, Event, State
from danlu.model.errors import Invalid, Missing, Refused
from danlu.model.event import JobEvent, Level
from danlu.model.job import Intent, JobView
from danlu.ports.records import EventQuery, JobQuery, Move, Records, Submitted
from tests.contract.samples import (
    OTHER,
    WAIT,
    WORKSPACE,
    Store,
    brought_to,
    full_spec,
    spec,
    submission,
    submitted,
)

WS = WORKSPACE.id
STOP = JobEvent(9, "stop-requested", {"user": "bob"})


def every_event(records: Records, job_id: str) -> list[JobEvent]:
    return list(records.events(WS, job_id, EventQuery()))


# ---------------------------------------------------------------- submit


def test_a_job_comes_back_as_it_was_submitted(records: Records) -> None:
    wanted = submission(full_spec(), token="once", user="älice")

    done = records.submit(wanted).result(WAIT)

    assert done.created
    assert done.job == replace(wanted.job, sequence=done.job.sequence)
    assert done.job.sequence > 0
    assert records.job(WS, wanted.job.id) == JobView(done.job, wanted.attempt, ())


def test_events_of_a_submission_are_kept_in_order(records: Records) -> None:
    wanted = submission()
    submitted(records, wanted)

    found = every_event(records, wanted.job.id)

    assert [replace(event, sequence=0) for event in found] == list(wanted.events)
    assert found[0].sequence < found[1].sequence
    assert found[1].level is Level.WARNING


def test_numbers_follow_the_order_of_submission(records: Records) -> None:
    wanted = [submission() for _ in range(150)]

    futures = [records.submit(one) for one in wanted]

    numbers = [future.result(WAIT).job.sequence for future in futures]
    assert numbers == sorted(set(numbers))
    stored = [records.job(WS, one.job.id).job.sequence for one in wanted]
    assert stored == numbers


def test_a_client_token_makes_one_job(records: Records) -> None:
    first, second = submission(token="t"), submission(spec("another"), token="t")

    made = records.submit(first).result(WAIT)
    again = records.submit(second).result(WAIT)

    assert made.created
    assert again == Submitted(made.job, created=False)
    assert records.jobs(WS, JobQuery()).total == 1
    assert len(every_event(records, first.job.id)) == 2
    with pytest.raises(Missing):
        records.job(WS, second.job.id)


def test_a_client_token_means_something_in_its_workspace_only(records: Records) -> None:
    mine, theirs = submission(token="t"), submission(token="t", workspace=OTHER.id)

    done = [records.submit(one).result(WAIT) for one in (mine, theirs)]

    assert [one.created for one in done] == [True, True]


def test_jobs_without_a_token_are_all_made(records: Records) -> None:
    futures = [records.submit(submission()) for _ in range(5)]

    assert all(future.result(WAIT).created for future in futures)


def test_a_token_counts_inside_one_group(records: Records) -> None:
    """Queued faster than they are written, so that several land in one transaction."""
    wanted = [submission(token=f"t{i % 7}") for i in range(210)]

    futures = [records.submit(one) for one in wanted]

    done = [future.result(WAIT) for future in futures]
    assert [one.created for one in done] == [i < 7 for i in range(210)]
    assert [one.job.id for one in done] == [wanted[i % 7].job.id for i in range(210)]
    assert records.jobs(WS, JobQuery()).total == 7


def test_a_token_counts_between_threads(records: Records) -> None:
    done: list[Submitted] = []
    start = threading.Barrier(20)

    def submit() -> None:
        one = submission(token="same")
        start.wait(WAIT)
        done.append(records.submit(one).result(WAIT))

    threads = [threading.Thread(target=submit) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)

    assert len(done) == 20
    assert sum(one.created for one in done) == 1
    assert len({one.job.id for one in done}) == 1


def test_a_token_counts_after_a_restart_and_for_a_deleted_job(store: Store) -> None:
    records = store.open()
    wanted = submission(token="t")
    key = submitted(records, wanted)[0]
    records.move(Move(key, Event.STOP, 1)).result(WAIT)
    assert records.delete(WS, key.job_id).result(WAIT)
    store.close()

    again = store.open().submit(submission(token="t")).result(WAIT)

    assert not again.created
    assert again.job.id == wanted.job.id


def test_one_bad_submission_does_not_hurt_its_neighbours(records: Records) -> None:
    taken = submission()
    submitted(records, taken)
    wanted = [submission() for _ in range(60)]
    wanted[30] = submission(job_id=taken.job.id)

    futures = [records.submit(one) for one in wanted]

    with pytest.raises(Refused) as refused:
        futures[30].result(WAIT)
    assert refused.value.key == "record-conflict"
    assert all(future.result(WAIT).created for i, future in enumerate(futures) if i != 30)
    assert records.jobs(WS, JobQuery()).total == 60


@pytest.mark.parametrize("field", ["name", "description", "flavor"])
@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_no_column_can_hold_is_refused(records: Records, field: str, text: str) -> None:
    with pytest.raises(Invalid) as refused:
        records.submit(submission(spec(**{field: text}))).result(WAIT)

    assert refused.value.key == "field-characters"
    assert field in str(refused.value)
    assert records.jobs(WS, JobQuery()).total == 0


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 0])
def test_numbers_of_64_bits_are_kept(records: Records, number: int) -> None:
    wanted = submission(spec(node_count=number, priority=number), at=number)
    submitted(records, wanted)

    job = records.job(WS, wanted.job.id).job

    assert (job.created_at, job.spec.node_count, job.spec.priority) == (number,) * 3


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**40])
def test_numbers_beyond_64_bits_are_refused(records: Records, number: int) -> None:
    with pytest.raises(Invalid):
        records.submit(submission(at=number)).result(WAIT)
    with pytest.raises(Invalid):
        records.submit(submission(spec(priority=number))).result(WAIT)
    assert records.jobs(WS, JobQuery()).total == 0


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize("job_id", ["", "x", "' OR 1=1 --", "a\0b", "\ud800", "%", "é" * 5000])
def test_an_unknown_job_is_missing(records: Records, job_id: str) -> None:
    submitted(records)

    with pytest.raises(Missing) as missing:
        records.job(WS, job_id)
    assert missing.value.key == "job-missing"
    with pytest.raises(Missing):
        records.events(WS, job_id, EventQuery())
    with pytest.raises(Missing):
        records.attempts(WS, job_id)


def test_another_workspace_sees_and_changes_nothing(records: Records) -> None:
    key = submitted(records, submission(spec("secret")))[0]

    for read in (records.job, records.attempts):
        with pytest.raises(Missing):
            read(OTHER.id, key.job_id)
    with pytest.raises(Missing):
        records.events(OTHER.id, key.job_id, EventQuery())
    assert records.jobs(OTHER.id, JobQuery()).jobs == ()
    assert records.find(OTHER.id, key.job_id) == []
    assert records.find(OTHER.id, "secret") == []
    assert not records.describe(OTHER.id, key.job_id, "x").result(WAIT)
    assert not records.want_stop(OTHER.id, key.job_id, "bob", STOP).result(WAIT)
    records.move(Move(key, Event.STOP, 1)).result(WAIT)
    assert not records.delete(OTHER.id, key.job_id).result(WAIT)
    assert records.job(WS, key.job_id).job.intent is Intent.RUN


def test_jobs_are_found_by_the_beginning_of_their_id_or_by_name(records: Records) -> None:
    ids = ["aaaa-1", "aaaa-2", "aaab-1", "b-1"]
    for at, job_id in enumerate(ids):
        submitted(records, submission(spec(f"n{at % 2}"), job_id=job_id, at=at))

    assert records.find(WS, "aaaa") == ["aaaa-2", "aaaa-1"]
    assert records.find(WS, "b-1") == ["b-1"]
    assert records.find(WS, "n1") == ["b-1", "aaaa-2"]
    assert records.find(WS, "n") == []
    assert records.find(WS, "") == ids[::-1]
    assert records.find(WS, "aaa", limit=1) == ["aaab-1"]
    assert records.find(WS, "%") == records.find(WS, "a\0") == records.find(WS, "\ud800") == []


def test_a_name_that_begins_like_an_id_finds_both_once(records: Records) -> None:
    submitted(records, submission(spec("abc"), job_id="abc-1", at=1))
    submitted(records, submission(spec("abc"), job_id="zzz-1", at=2))

    assert records.find(WS, "abc") == ["zzz-1", "abc-1"]


def test_live_jobs_come_in_order_of_submission(records: Records) -> None:
    """(case 39) Equal instants: the number of submission decides."""
    wanted = [submission(at=5) for _ in range(20)]
    keys = submitted(records, *wanted)
    for key in keys[::3]:
        records.move(Move(key, Event.STOP, 6)).result(WAIT)

    live = records.live()

    assert [view.job.id for view in live] == [k.job_id for i, k in enumerate(keys) if i % 3]
    assert all(view == records.job(WS, view.job.id) for view in live)


@pytest.mark.parametrize("state", State)
def test_live_are_the_states_that_something_is_to_be_done_about(
    records: Records, state: State
) -> None:
    key = brought_to(records, state)

    assert [view.job.id for view in records.live()] == ([key.job_id] if state in LIVE else [])


def test_events_by_level_instant_and_cursor(records: Records) -> None:
    key = submitted(records, submission(at=1))[0]
    for at in (5, 3, 5):
        event = JobEvent(at, "task-started", {"pid": at}, Level.ERROR, "worker-0")
        assert records.note(key, [event]).result(WAIT)

    def found(query: EventQuery) -> list[int]:
        return [event.at for event in records.events(WS, key.job_id, query)]

    assert found(EventQuery()) == [1, 1, 5, 3, 5]
    assert found(EventQuery(levels=["Error"])) == [5, 3, 5]
    assert found(EventQuery(levels=["Info", "Warning"])) == [1, 1]
    assert found(EventQuery(levels=["no such", "\0"])) == []
    assert found(EventQuery(since=3)) == [5, 3, 5]
    assert found(EventQuery(until=3)) == [1, 1, 3]
    assert found(EventQuery(since=3, until=4)) == [3]
    assert found(EventQuery(limit=2)) == [1, 1]
    assert found(EventQuery(limit=0)) == []
    second = records.events(WS, key.job_id, EventQuery(limit=2))[1]
    after = EventQuery(after_sequence=second.sequence, limit=2)
    assert found(after) == [5, 3]
    assert found(EventQuery(after_sequence=2**63 - 1)) == []
    with pytest.raises(Invalid):
        found(EventQuery(after_sequence=2**63))
    with pytest.raises(Invalid):
        found(EventQuery(limit=-1))


def test_a_thousand_events_of_one_instant_keep_their_order(records: Records) -> None:
    """(case 14) Nothing is dropped or sorted by an instant that many share."""
    key = submitted(records, submission(at=1))[0]
    futures = [
        records.note(key, [JobEvent(7, "task-started", {"pid": 10 * i + j}) for j in range(10)])
        for i in range(100)
    ]
    assert all(future.result(WAIT) for future in futures)

    found = every_event(records, key.job_id)[2:]

    assert [event.params["pid"] for event in found] == list(range(1000))


def test_event_values_of_any_kind_of_text_are_kept(records: Records) -> None:
    odd: dict[str, str | int] = {"name": "\ud800\0\x1b[31m训练🔥", "count": 2**70, "empty": ""}
    key = submitted(records, submission())[0]

    records.note(key, [JobEvent(1, "output-stored", odd)]).result(WAIT)

    assert every_event(records, key.job_id)[-1].params == odd


# ---------------------------------------------------------------- wishes


def test_a_description_changes_and_nothing_else(records: Records) -> None:
    wanted = submission(full_spec())
    submitted(records, wanted)
    before = records.job(WS, wanted.job.id)

    assert records.describe(WS, wanted.job.id, "新的 'text'").result(WAIT)

    job = replace(before.job, spec=replace(before.job.spec, description="新的 'text'"))
    assert records.job(WS, wanted.job.id) == replace(before, job=job)
    assert not records.describe(WS, "unknown", "x").result(WAIT)
    with pytest.raises(Invalid):
        records.describe(WS, wanted.job.id, "a\0").result(WAIT)


@pytest.mark.parametrize("state", State)
def test_a_stop_is_wanted_of_live_jobs_only_and_once(records: Records, state: State) -> None:
    key = brought_to(records, state)
    events = len(every_event(records, key.job_id))

    first = records.want_stop(WS, key.job_id, "bob", STOP).result(WAIT)
    second = records.want_stop(WS, key.job_id, "eve", STOP).result(WAIT)

    assert (first, second) == (state in LIVE, False)
    job = records.job(WS, key.job_id).job
    assert (job.intent, job.stopped_by) == (
        (Intent.STOP, "bob") if state in LIVE else (Intent.RUN, "")
    )
    assert len(every_event(records, key.job_id)) == events + (state in LIVE)
    assert not records.want_stop(WS, "unknown", "bob", STOP).result(WAIT)
    assert not records.want_stop(WS, "a\0", "bob", STOP).result(WAIT)


@pytest.mark.parametrize("state", State)
def test_only_final_jobs_are_deleted(records: Records, state: State) -> None:
    key = brought_to(records, state)

    assert records.delete(WS, key.job_id).result(WAIT) is (state in FINAL)
    assert not records.delete(WS, key.job_id).result(WAIT)


def test_a_deleted_job_is_gone_for_every_reader(records: Records) -> None:
    key = brought_to(records, State.SUCCEEDED)
    records.describe(WS, key.job_id, "mine").result(WAIT)
    assert records.delete(WS, key.job_id).result(WAIT)

    with pytest.raises(Missing):
        records.job(WS, key.job_id)
    with pytest.raises(Missing):
        records.events(WS, key.job_id, EventQuery())
    with pytest.raises(Missing):
        records.attempts(WS, key.job_id)
    assert records.jobs(WS, JobQuery()).total == 0
    assert records.find(WS, key.job_id[:6]) == []
    assert records.live() == []
    assert not records.describe(WS, key.job_id, "x").result(WAIT)
    assert records.knows(key)


def test_what_a_deleted_job_left_is_swept_once(records: Records) -> None:
    wanted = [submission(spec(node_count=3)), submission(), submission()]
    keys = submitted(records, *wanted)
    for key in keys:
        records.move(Move(key, Event.STOP, 1)).result(WAIT)
    assert records.swept() == []
    for key in keys[:2]:
        records.delete(WS, key.job_id).result(WAIT)

    assert records.swept() == [
        (keys[0].job_id, 1, keys[0].token, 3),
        (keys[1].job_id, 1, keys[1].token, 1),
    ]
    assert records.forget(keys[0].job_id).result(WAIT)
    assert not records.forget(keys[0].job_id).result(WAIT)
    assert not records.forget(keys[2].job_id).result(WAIT)
    assert not records.forget("unknown").result(WAIT)
    assert [row[0] for row in records.swept()] == [keys[1].job_id]


def test_an_attempt_is_known_by_its_token(records: Records) -> None:
    key = submitted(records, submission())[0]

    assert records.knows(key)
    assert not records.knows(replace(key, token="0" * 32))
    assert not records.knows(replace(key, number=2))
    assert not records.knows(AttemptKey("unknown", 1, key.token))


def test_a_cancelled_write_is_not_an_error(records: Records) -> None:
    """A caller that goes away cancels its future; the writer goes on."""
    futures: list[Future[Submitted]] = [records.submit(submission()) for _ in range(50)]
    gone = [future.cancel() for future in futures[25:]]

    made = sum(future.result(WAIT).created for future in futures if not future.cancelled())

    assert made == 50 - sum(gone)
    assert records.submit(submission()).result(WAIT).created
    assert records.jobs(WS, JobQuery()).total == made + 1
