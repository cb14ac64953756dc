"""A server that dies between any two steps loses nothing and does nothing twice."""

from __future__ import annotations

import time
from typing import Any

import pytest

from danlu.engines.memory_script import Script
from danlu.flow import loop
from danlu.model.attempt import FINAL, Event, State
from danlu.model.errors import Unavailable
from danlu.model.event import JobEvent
from danlu.model.queue import fit
from danlu.model.reason import ReasonCode
from danlu.model.retry import Cause, Retry
from danlu.ports.records import Move
from tests.flow.house import House


@pytest.mark.parametrize("turns", range(5))
def test_a_restart_after_any_turn_changes_nothing(house: House, turns: int) -> None:
    house.scripts["job"] = Script(
        duration_s=2, collect_s=1, notes=[(0, "task-started", {"pid": 1})]
    )
    job = house.submit()
    for _ in range(turns):
        house.turn(1)
    house.restart()
    for _ in range(8):
        house.turn(1)
    assert house.state(job) is State.SUCCEEDED
    history = house.history(job)
    assert len(history) == len(set(history)), "no event is recorded twice"
    assert len(house.cluster.tasks) == 1, "one launch, one task"


def test_a_server_killed_between_intent_and_launch_launches(house: House) -> None:
    """(case 28)"""
    job = house.submit()
    entry = house.board.get(job)
    assert entry is not None
    now = house.clock.now()
    places = fit(entry.waiting, house.engine.capacity())
    assert places is not None
    house.records.move(Move(entry.key, Event.PLACE, now, placement=places)).result()
    house.records.move(Move(entry.key, Event.LAUNCH, now)).result()
    house.restart()
    house.turn()
    house.turn()
    assert house.state(job) in {State.RUNNING, *FINAL}


def test_a_launch_that_was_accepted_before_the_kill_is_adopted(house: House) -> None:
    """(cases 27, 33)"""
    house.scripts["job"] = Script(duration_s=100)
    job = house.submit()
    house.turn()
    started = dict(house.cluster.tasks)
    house.restart()
    house.turn(1)
    house.turn(1)
    assert house.state(job) is State.RUNNING
    assert house.cluster.tasks.keys() == started.keys()
    assert all(house.cluster.tasks[ref] is started[ref] for ref in started)


def test_what_ended_while_the_server_was_down_is_recorded_as_it_was(house: House) -> None:
    """(cases 27, 61)"""
    house.scripts["job"] = Script(duration_s=10, exit_code=4)
    job = house.submit()
    house.turn()
    house.turn()
    began = house.view(job).attempt.started_at
    assert began is not None
    house.clock.advance(500)
    house.restart()
    house.turn()
    house.turn()
    view = house.view(job)
    assert view.attempt.state is State.FAILED
    assert view.tasks[0].ended_at == began + 10_000


def test_a_stop_that_was_wanted_before_the_kill_is_carried_out(house: House) -> None:
    """(case 29)"""
    house.scripts["job"] = Script(duration_s=None, on_term_s=1)
    job = house.submit()
    house.turn()
    house.turn()
    house.stop(job)
    house.restart()
    house.turn()
    house.turn(1)
    house.turn()
    assert house.state(job) is State.CANCELLED


def test_a_stop_is_sent_again_by_the_next_server(house: House) -> None:
    house.scripts["job"] = Script(duration_s=None, on_term_s=None)
    job = house.submit(grace_s=60)
    house.turn()
    house.turn()
    house.stop(job)
    house.turn()
    assert house.state(job) is State.STOPPING
    house.restart()
    house.turn(1)
    assert "stop" in house.engine.calls
    house.turn(60)
    house.turn()
    assert house.state(job) is State.CANCELLED


def test_what_ran_when_a_backup_was_made_is_lost_and_not_run_again(house: House) -> None:
    """(fault 31) The server is restored elsewhere: no task is there, and no time-out is waited for.
    What waited when the backup was made runs.
    """
    tried_again = Retry(3, tuple(Cause))
    house.scripts["job"] = Script(duration_s=None)
    running, stopping = house.submit(retry=tried_again), house.submit()
    house.turn()
    house.turn()
    house.stop(stopping)
    house.turn()
    launching = house.submit(retry=tried_again)
    entry = house.board.get(launching)
    assert entry is not None
    now = house.clock.now()
    places = fit(entry.waiting, house.engine.capacity())
    house.records.move(Move(entry.key, Event.PLACE, now, placement=places)).result()
    house.records.move(Move(entry.key, Event.LAUNCH, now)).result()
    waiting = house.submit("later")
    house.cluster.tasks.clear()
    house.clock.advance(60)
    house.restored_at = house.clock.now()
    house.restart()
    for _ in range(4):
        house.turn(1)

    for job in (running, launching):
        view = house.view(job)
        assert (view.attempt.state, view.attempt.key.number) == (State.LOST, 1)
        assert view.attempt.reason is not None
        assert view.attempt.reason.code is ReasonCode.RESTORED
    assert house.state(stopping) is State.CANCELLED
    assert house.state(waiting) in (State.RUNNING, State.SUCCEEDED)
    fresh = house.submit("fresh")
    for _ in range(4):
        house.turn(1)
    assert house.state(fresh) is State.SUCCEEDED


def test_free_capacity_is_the_same_before_and_after_a_restart(house: House) -> None:
    """(case 46)"""
    for name in ("a", "b", "c"):
        house.scripts[name] = Script(duration_s=None)
        house.submit(name, flavor="danlu.cpu.2u")
    house.turn()
    house.turn()
    before = house.board.held()
    house.restart()
    assert house.board.held() == before
    assert len(before) == 3


def test_the_queue_keeps_its_order_over_a_restart(house: House) -> None:
    house.scripts["big"] = Script(duration_s=None)
    house.submit("big", flavor="danlu.cpu.8u")
    house.turn()
    waiting = [house.submit(f"w{i}", priority=1 + i % 3) for i in range(6)]
    before = [item.job_id for item in house.board.queue()]
    assert set(before) == set(waiting)
    house.restart()
    assert [item.job_id for item in house.board.queue()] == before


def test_a_move_that_no_longer_applies_is_taken_back(house: House) -> None:
    job = house.submit()
    entry = house.board.get(job)
    assert entry is not None
    now = house.clock.now()
    cancelled = JobEvent(now, "job-cancelled", {"because": "x"})
    house.records.move(Move(entry.key, Event.STOP, now, events=(cancelled,))).result()
    house.turn()
    assert house.state(job) is State.CANCELLED
    assert house.board.get(job) is None
    assert "launch" not in house.engine.calls


def test_what_a_cleaner_removed_is_not_made_again(house: House) -> None:
    """(case 32) Nothing is left on the engine of a job that has ended: it stays as it ended."""
    job = house.submit()
    for _ in range(3):
        house.turn(1)
    ended = house.view(job)
    assert ended.attempt.state is State.SUCCEEDED
    for ref in house.engine.known():
        house.engine.remove(ref)
    for _ in range(2):
        house.turn(3600)
        house.restart()
    house.turn(3600)
    assert house.view(job) == ended
    assert house.engine.known() == []


def test_a_board_that_cannot_be_read_again_keeps_what_it_has(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> None:
        raise Unavailable("busy", detail="no descriptors")

    house.scripts["job"] = Script(duration_s=None)
    job = house.submit()
    house.turn()
    held = house.board.held()
    assert held
    monkeypatch.setattr(house.records, "live", gone)
    with pytest.raises(Unavailable):
        house.board.reload()
    assert house.board.get(job) is not None
    assert house.board.held() == held


def test_the_loop_goes_on_when_the_records_can_be_read_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(fault 57) A turn fails, and so does reading the board again, several times."""
    house.scripts["job"] = Script(duration_s=5)
    job = house.submit()
    observe, live, fails = house.engine.observe, house.records.live, iter([1, 1, 1])

    def unwell(answer: Any) -> Any:
        def ask(*given: Any) -> Any:
            if watch["failed"] and next(fails, 0):
                raise Unavailable("busy", detail="no descriptors")
            return answer(*given)

        return ask

    def fail_once(refs: Any) -> Any:
        if refs and not watch["failed"]:
            watch["failed"] = True
            raise Unavailable("busy", detail="no descriptors")
        return observe(refs)

    watch = {"failed": False}
    monkeypatch.setattr(loop, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(house.engine, "observe", fail_once)
    monkeypatch.setattr(house.records, "live", unwell(live))
    house.loop.start()
    try:
        ends = time.monotonic() + 60
        while house.state(job) is not State.SUCCEEDED:
            assert time.monotonic() < ends, "the job was forgotten"
            house.clock.advance(1)
            time.sleep(0.01)
    finally:
        house.loop.close()
    assert next(fails, 0) == 0, "the board could not be read three times"
    assert house.loop.failed_turns == 1


def test_an_engine_that_does_not_answer_has_refused_nothing(house: House) -> None:
    """(case 75) (case 29) A new server asks for the launch again, and the engine is deaf just then:
    the task that runs is neither failed nor left behind."""
    house.scripts["job"] = Script(stage_s=5, duration_s=20)
    job = house.submit()
    house.turn()
    started = dict(house.cluster.tasks)
    house.restart()
    house.engine.faults.deaf = True
    house.turn(1)
    view = house.view(job)
    assert (view.attempt.state, view.attempt.unreachable) == (State.LAUNCHING, True)
    house.engine.faults.deaf = False
    for _ in range(4):
        house.turn(10)
    view = house.view(job)
    assert (view.attempt.state, view.attempt.key.number) == (State.SUCCEEDED, 1)
    assert house.cluster.tasks.keys() == started.keys()
