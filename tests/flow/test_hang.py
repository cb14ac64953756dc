"""A task that hangs: by default that is told, and nothing is done about it."""

from __future__ import annotations

import pytest

from danlu.engines.memory_script import Script
from danlu.model.errors import Invalid
from danlu.model.hang import Hang, HangAction
from danlu.model.job import Task
from danlu.model.reason import ReasonCode
from danlu.model.retry import Cause, Retry
from danlu.wire import danlu as wire
from tests.flow.house import House
from tests.flow.test_retry import attempts, codes, until_final

SAID: dict[str, str | int] = {
    "seconds": 1800,
    "busy": "CPU 0.0",
    "count": 1,
    "python": 1,
    "path": "/x/stacks.txt",
}
HANGS = Script(duration_s=None, hangs_after_s=5, notes=[(5.0, "task-hangs", SAID)], on_term_s=None)
RESTART = {"hang": Hang(action=HangAction.RESTART), "retry": Retry(1, (Cause.HANG,))}


def begun(house: House, **wanted: object) -> str:
    job = house.submit(**wanted)  # type: ignore[arg-type]  # fields of a spec
    house.turn()
    house.turn(1)
    return job


def test_a_hang_is_told_and_nothing_else_happens(house: House) -> None:
    house.scripts["job"] = HANGS
    job = begun(house)
    house.turn(10)
    view = house.view(job)
    assert view.attempt.state.value == "running"
    assert view.tasks[0].hung_at is not None
    assert "task-hangs" in house.history(job)
    said = wire.why(view, None, "en")
    assert said["key"] == "is-hung"
    assert said["params"]["task"] == "worker-0"
    house.turn(7200)
    assert house.state(job).value == "running"
    assert "stop" not in house.engine.calls


def test_a_task_that_moves_again_hangs_no_more(house: House) -> None:
    house.scripts["job"] = HANGS
    job = begun(house)
    house.turn(10)
    for task in house.cluster.tasks.values():
        task.script = Script(duration_s=None)
    house.turn(1)
    view = house.view(job)
    assert view.tasks == (Task(0, "memory-0", started_at=view.tasks[0].started_at, notes_seen=1),)
    assert wire.why(view, None, "en")["key"] == "is-running"


def test_a_hang_can_be_the_jobs_end(house: House) -> None:
    house.scripts["job"] = HANGS
    job = begun(house, hang=Hang(action=HangAction.STOP), retry=Retry(5, tuple(Cause)), grace_s=2)
    house.turn(10)
    assert house.state(job).value == "stopping"
    assert until_final(house, job).value == "failed"
    reason = house.view(job).attempt.reason
    assert reason is not None
    assert reason.code is ReasonCode.HUNG
    assert "/x/stacks.txt" in reason.sentence("en")
    assert len(attempts(house, job)) == 1


def test_a_hang_can_be_followed_by_another_attempt_which_is_counted(house: House) -> None:
    house.by_attempt["job"] = (HANGS, HANGS)
    job = begun(house, **RESTART, grace_s=2)
    assert until_final(house, job).value == "failed"
    assert codes(house, job) == [ReasonCode.HUNG, ReasonCode.HUNG]
    assert house.history(job)[-1] == "retries-used"


def test_all_ranks_are_told_that_one_hangs(house: House) -> None:
    """(case 64) One hangs, all are ended; each of them records its stacks first."""
    house.scripts["gang"] = Script(duration_s=None, on_term_s=0.5)
    house.by_task["gang", 1, 1] = HANGS
    for task in range(3):
        house.by_task["gang", 2, task] = Script(duration_s=3)
    job = house.submit(
        "gang",
        node_count=3,
        grace_s=2,
        hang=Hang(action=HangAction.RESTART),
        retry=Retry(1, (Cause.HANG,)),
    )
    house.turn()
    house.turn(1)
    house.turn(10)
    assert house.engine.calls.count("stop") == 3
    assert until_final(house, job).value == "succeeded"
    assert codes(house, job) == [ReasonCode.HUNG, ReasonCode.COMPLETED]


def test_a_users_stop_wins_over_the_restart(house: House) -> None:
    """(case 29)"""
    house.scripts["job"] = HANGS
    job = begun(house, **RESTART, grace_s=2)
    house.turn(10)
    assert house.state(job).value == "stopping"
    house.stop(job)
    assert until_final(house, job).value == "cancelled"
    assert len(attempts(house, job)) == 1


def test_a_server_that_dies_in_between_goes_on_with_it(house: House) -> None:
    house.by_attempt["job"] = (HANGS, Script(duration_s=1))
    job = begun(house, **RESTART, grace_s=2)
    house.turn(10)
    house.restart()
    assert until_final(house, job).value == "succeeded"
    assert codes(house, job) == [ReasonCode.HUNG, ReasonCode.COMPLETED]


@pytest.mark.parametrize("retry", [Retry(), Retry(2, (Cause.USER_ERROR,))])
def test_a_restart_without_a_retry_is_refused(house: House, retry: Retry) -> None:
    with pytest.raises(Invalid) as refused:
        house.submit(hang=Hang(action=HangAction.RESTART), retry=retry)
    assert refused.value.params["field"] == "danlu.on_hang"


@pytest.mark.parametrize(("asked", "planned"), [(None, 1800), (0, 0), (77, 77)])
def test_the_time_is_the_jobs_own_or_the_servers(
    house: House, asked: int | None, planned: int
) -> None:
    house.scripts["job"] = Script(duration_s=None)
    begun(house, hang=Hang(asked))
    (task,) = house.cluster.tasks.values()
    assert task.plan.hang_after_s == planned
