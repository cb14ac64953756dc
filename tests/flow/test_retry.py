"""Attempts after the first: who gets one, when it begins, and who wins the races."""

from __future__ import annotations

from dataclasses import replace

import pytest

from danlu.engines.memory_script import Script
from danlu.flow.delete import delete
from danlu.flow.explain import why
from danlu.model.attempt import FINAL, Attempt, State
from danlu.model.job import Intent
from danlu.model.reason import ReasonCode
from danlu.model.resources import GIB, Offer
from danlu.model.retry import MOST_DELAY_S, Cause, Retry
from danlu.ports.engine import Ref
from tests.flow.house import House

ALWAYS = Retry(2, tuple(Cause))


def attempts(house: House, job: str) -> list[Attempt]:
    return [attempt for attempt, _ in house.records.attempts("p1", job)]


def codes(house: House, job: str) -> list[ReasonCode | None]:
    """How each attempt ended."""
    return [one.reason.code if one.reason else None for one in attempts(house, job)]


def until_final(house: House, job: str, seconds: float = 400) -> State:
    for _ in range(round(seconds)):
        if house.state(job) in FINAL:
            break
        house.turn(1)
    return house.state(job)


def only(house: House, job: str) -> Ref:
    entry = house.board.get(job)
    assert entry is not None
    return entry.refs[0]


def scripted(house: House, *scripts: Script, name: str = "job") -> None:
    """The first attempt's script, the second's, …; the last one serves all that follow."""
    house.by_attempt[name] = scripts


def test_a_job_that_fails_twice_and_then_succeeds_has_succeeded(house: House) -> None:
    scripted(house, Script(exit_code=3), Script(exit_code=4), Script())
    job = house.submit(retry=ALWAYS)
    seen = set()
    for _ in range(60):
        seen.add(house.state(job))
        house.turn(1)
    assert house.state(job) is State.SUCCEEDED
    assert seen & FINAL == {State.SUCCEEDED}, "nobody saw it as failed in between"
    assert codes(house, job) == [ReasonCode.EXIT, ReasonCode.EXIT, ReasonCode.COMPLETED]
    history = house.history(job)
    assert history.count("job-retrying") == 2
    assert history.count("job-failed") == 2
    tokens = {one.key.token for one in attempts(house, job)}
    assert len(tokens) == 3


def test_a_budget_that_is_used_up_ends_the_job(house: House) -> None:
    """(case 31)"""
    scripted(house, Script(exit_code=3))
    job = house.submit(retry=ALWAYS)
    assert until_final(house, job) is State.FAILED
    assert len(attempts(house, job)) == 3
    assert house.history(job)[-1] == "retries-used"
    for _ in range(5):
        house.turn(100)
    assert len(attempts(house, job)) == 3, "terminal is terminal"


def test_without_a_policy_a_failure_is_the_end(house: House) -> None:
    scripted(house, Script(exit_code=3))
    job = house.submit()
    assert until_final(house, job) is State.FAILED
    assert len(attempts(house, job)) == 1
    assert "retries-used" not in house.history(job)


def test_what_the_platform_lost_is_tried_again_by_itself(house: House) -> None:
    scripted(house, Script(duration_s=None), Script(duration_s=2))
    job = house.submit()
    house.turn()
    house.turn()
    house.engine.vanish(only(house, job))
    assert until_final(house, job) is State.SUCCEEDED
    (first, second) = attempts(house, job)
    assert first.reason is not None
    assert (first.state, first.reason.code) == (State.LOST, ReasonCode.TASK_LOST)
    assert second.state is State.SUCCEEDED


def test_a_launch_that_is_refused_is_tried_again_after_a_wait(house: House) -> None:
    """(case 35) (case 38) Not in a hot loop: each refusal is followed by a longer wait."""
    house.engine.faults.refuse_launches = 2
    scripted(house, Script())
    job = house.submit()
    for _ in range(50):
        house.turn()
    assert house.engine.calls.count("launch") == 1
    assert until_final(house, job) is State.SUCCEEDED
    assert codes(house, job) == [
        ReasonCode.LAUNCH_FAILED,
        ReasonCode.LAUNCH_FAILED,
        ReasonCode.COMPLETED,
    ]


def test_an_engine_that_refuses_for_ever_is_given_up(house: House) -> None:
    """(case 42)"""
    house.engine.faults.refuse_launches = 1 << 30
    job = house.submit()
    assert until_final(house, job) is State.FAILED
    assert len(attempts(house, job)) == 4
    assert house.board.held() == {}


@pytest.mark.parametrize("code", [ReasonCode.PREEMPTED, ReasonCode.REBOOTED, ReasonCode.AGENT_LOST])
def test_ends_that_the_engine_reports_are_the_platforms(house: House, code: ReasonCode) -> None:
    scripted(house, Script(duration_s=3, exit_code=137, problem=code), Script())
    job = house.submit()
    assert until_final(house, job) is State.SUCCEEDED
    first = attempts(house, job)[0]
    assert first.reason is not None
    assert first.reason.code is code
    assert first.state is (State.LOST if code is ReasonCode.REBOOTED else State.FAILED)


def test_the_wait_is_visible(house: House) -> None:
    scripted(house, Script(exit_code=3))
    job = house.submit(retry=ALWAYS)
    house.turn()
    house.turn()
    waiting = attempts(house, job)[-1]
    assert (waiting.key.number, waiting.state) == (2, State.QUEUED)
    said = why(house.platform, house.board, job)
    assert said is not None
    assert (said.key, said.position) == ("waiting-retry", 1)
    assert said.params == {
        "attempt": 2,
        "delay_s": "2",
        "because": "exit",
        "task": "worker-0",
        "exit_code": 3,
    }


def test_a_job_that_rests_holds_nobody_up(house: House) -> None:
    """It has no place while it waits, and who comes later does not wait for it."""
    scripted(house, Script(exit_code=3), name="first")
    first = house.submit("first", retry=ALWAYS, flavor="danlu.cpu.8u", priority=3)
    house.turn()
    house.turn()
    assert house.board.rests(first)
    assert house.board.held() == {}
    scripted(house, Script(duration_s=60), name="second")
    second = house.submit("second", flavor="danlu.cpu.8u")
    behind = why(house.platform, house.board, second)
    assert behind is not None
    assert behind.position == 1, "who rests is in nobody's way"
    resting = why(house.platform, house.board, first)
    assert resting is not None
    assert (resting.key, resting.position) == ("waiting-retry", 1)
    house.turn()
    house.turn()
    assert house.state(second) is State.RUNNING
    house.turn(10)
    assert not house.board.rests(first)
    said = why(house.platform, house.board, first)
    assert said is not None
    assert said.key == "waiting-resource"


def test_retries_keep_the_jobs_place_in_the_queue(house: House) -> None:
    """(case 39) By priority, then by age, then by the order of submission: the attempt's own age
    counts for nothing."""
    house.nodes = [Offer("memory-0", 1, 32 * GIB)]
    house.restart()
    scripted(house, Script(exit_code=3), Script(), name="old")
    scripted(house, Script(duration_s=8), name="long")
    old = house.submit("old", retry=ALWAYS)
    house.turn()
    house.submit("long")
    new = house.submit("new")
    house.turn()
    house.turn(6)
    assert [one.job_id for one in house.board.queue()] == [old, new]


@pytest.mark.parametrize("turns", range(6))
def test_a_stop_wins_whenever_it_comes(house: House, turns: int) -> None:
    """(case 29) (case 31) Before the end, with it, while the next attempt waits, and after."""
    scripted(house, Script(duration_s=1, exit_code=3))
    job = house.submit(retry=Retry(100, tuple(Cause)))
    for _ in range(turns):
        house.turn(1)
    house.stop(job)
    for _ in range(3):
        house.turn(1)
    count = len(attempts(house, job))
    assert house.state(job) in FINAL
    for _ in range(10):
        house.turn(100)
    assert len(attempts(house, job)) == count
    assert house.records.live() == []


def test_a_stop_that_the_board_has_not_heard_of_wins_too(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(case 29) The wish is on disk before the end is: the database decides."""
    scripted(house, Script(duration_s=5, exit_code=3))
    job = house.submit(retry=ALWAYS)
    house.turn()
    house.turn(1)
    with monkeypatch.context() as deaf:
        deaf.setattr(house.board, "want_stop", lambda *_: None)
        house.stop(job)
    entry = house.board.get(job)
    assert entry is not None
    assert entry.job.intent is Intent.RUN
    house.turn(5)
    assert house.state(job) is State.FAILED
    assert house.board.get(job) is None
    assert len(attempts(house, job)) == 1


@pytest.mark.parametrize("turns", range(8))
def test_a_restart_at_any_turn_changes_nothing(house: House, turns: int) -> None:
    """(case 26) (case 33)"""
    scripted(house, Script(duration_s=1, exit_code=3), Script(duration_s=1))
    job = house.submit(retry=ALWAYS)
    for _ in range(turns):
        house.turn(1)
    house.restart()
    assert until_final(house, job) is State.SUCCEEDED
    assert len(attempts(house, job)) == 2
    assert len(house.cluster.tasks) == 2, "each attempt was launched once"
    history = house.history(job)
    assert history.count("job-retrying") == 1


def test_a_clock_that_is_set_back_delays_an_attempt_by_no_more_than_the_longest_wait(
    house: House,
) -> None:
    """(case 112)"""
    scripted(house, Script(exit_code=3), Script())
    job = house.submit(retry=ALWAYS)
    house.turn()
    house.turn()
    house.clock._start_ms -= 3_600_000
    house.restart()
    house.turn()
    house.turn(MOST_DELAY_S)
    house.turn(1)
    assert house.state(job) is State.SUCCEEDED


def test_a_gang_fails_and_comes_back_as_one(house: House) -> None:
    """(case 34) (case 64) One rank fails: all are ended, and all of them begin again together."""
    house.scripts["gang"] = Script(duration_s=None, on_term_s=0.5)
    house.by_task["gang", 1, 2] = Script(duration_s=3, exit_code=7)
    for task in range(4):
        house.by_task["gang", 2, task] = Script(duration_s=5)
    job = house.submit("gang", node_count=4, retry=ALWAYS)
    for _ in range(6):
        house.turn(1)
    first, second = attempts(house, job)
    assert first.reason is not None
    assert dict(first.reason.params) == {"task": "worker-2", "exit_code": 7}
    assert second.key.number == 2
    assert until_final(house, job) is State.SUCCEEDED
    launched = sorted((ref.attempt, ref.task) for ref in house.cluster.tasks)
    assert launched == [(attempt, task) for attempt in (1, 2) for task in range(4)]


def test_a_gang_without_room_for_all_waits_whole(house: House) -> None:
    """(case 34) All or nothing: no rank of the new attempt holds a place the others wait for."""
    house.nodes = [Offer("a", 1, GIB), Offer("b", 1, GIB)]
    house.restart()
    scripted(house, Script(exit_code=3), Script(), name="gang")
    scripted(house, Script(duration_s=30), name="other")
    job = house.submit("gang", node_count=2, retry=ALWAYS)
    house.turn()
    house.turn()
    house.submit("other")
    house.turn()
    house.turn(8)
    assert house.state(job) is State.QUEUED
    assert job not in house.board.held()
    said = why(house.platform, house.board, job)
    assert said is not None
    assert said.key == "waiting-nodes"
    assert until_final(house, job) is State.SUCCEEDED


def test_an_earlier_attempt_that_still_runs_is_ended_before_the_next_begins(house: House) -> None:
    """An engine that lost sight of a task, and finds it again: two never run side by side."""
    scripted(house, Script(duration_s=None))
    job = house.submit()
    house.turn()
    house.turn()
    ref = only(house, job)
    lost = house.cluster.tasks.pop(ref)
    house.turn()
    house.cluster.tasks[ref] = lost
    house.turn(5)
    house.turn()
    assert house.view(job).attempt.key.number == 2
    assert lost.stops[-1][1] == 0
    assert house.state(job) is State.RUNNING


def test_a_deleted_job_takes_the_tasks_of_all_its_attempts_along(house: House) -> None:
    scripted(house, Script(exit_code=3))
    job = house.submit(retry=ALWAYS)
    assert until_final(house, job) is State.FAILED
    assert len(house.cluster.tasks) == 3
    assert delete(house.platform, house.caller, job).result()
    house.turn(10)
    assert house.cluster.tasks == {}
    assert house.records.swept() == []


def test_later_attempts_are_told_that_they_resume(house: House) -> None:
    house.scripts["job"] = Script(exit_code=3)
    job = house.submit(retry=ALWAYS)
    until_final(house, job)
    plans = {ref.attempt: task.plan for ref, task in house.cluster.tasks.items()}
    created = house.view(job).job.created_at
    assert [plans[n].resumes_from for n in (1, 2, 3)] == [0, created, created]


def test_out_of_memory_can_be_left_out_of_a_policy(house: House) -> None:
    scripted(house, Script(exit_code=137, signal="SIGKILL", out_of_memory=True))
    job = house.submit(retry=replace(ALWAYS, on=(Cause.USER_ERROR,)))
    assert until_final(house, job) is State.FAILED
    assert codes(house, job) == [ReasonCode.OUT_OF_MEMORY]
