"""A job's life through every verb, on a clock that stands still between turns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from danlu.engines.memory_script import Script
from danlu.flow.delete import delete
from danlu.flow.loop import Loop
from danlu.model.attempt import State
from danlu.model.errors import Missing, Refused
from danlu.model.reason import Blame, ReasonCode
from danlu.model.resources import Offer
from danlu.model.retry import Cause, Retry
from danlu.model.script import TaskPlan
from danlu.model.storage import StorageAccess, access_key_of
from danlu.ports.records import EventQuery
from tests.flow.house import House


def test_submit_to_success(house: House) -> None:
    house.scripts["job"] = Script(duration_s=5, notes=[(0, "task-started", {"pid": 7})])
    job = house.submit()
    assert house.state(job) is State.QUEUED
    house.turn()
    house.turn()
    assert house.state(job) is State.RUNNING
    house.turn(5)
    view = house.view(job)
    assert view.attempt.state is State.SUCCEEDED
    assert view.attempt.reason is not None
    assert view.attempt.reason.code is ReasonCode.COMPLETED
    assert [task.exit_code for task in view.tasks] == [0]
    assert house.history(job) == [
        "job-submitted",
        "job-placed",
        "job-launching",
        "task-started",
        "job-running",
        "task-exit",
        "job-collecting",
        "job-succeeded",
    ]
    times = view.attempt
    assert times.started_at is not None
    assert times.exited_at == times.started_at + 5000
    assert house.board.entries() == []


def test_nothing_waits_for_a_tick_between_submit_and_launch(house: House) -> None:
    house.submit()
    house.turn()
    assert house.engine.calls.count("launch") == 1


def test_a_granted_place_is_not_yet_a_job_that_runs(house: House) -> None:
    """(case 37) Who looks meanwhile sees another state and no start."""
    house.scripts["job"] = Script(stage_s=5, duration_s=20)
    job = house.submit()
    seen = []
    for seconds in (0.0, 1.0, 5.0):
        seen.append((house.state(job), house.view(job).attempt.started_at is not None))
        house.turn(seconds)
    assert seen == [(State.QUEUED, False), (State.LAUNCHING, False), (State.LAUNCHING, False)]
    assert (house.state(job), house.view(job).attempt.started_at is not None) == (
        State.RUNNING,
        True,
    )


def test_the_intent_is_on_disk_before_the_engine_is_asked(house: House) -> None:
    job = house.submit()
    seen: list[State] = []
    launch = house.engine.launch

    def watch(launches: object) -> None:
        seen.append(house.state(job))
        launch(launches)  # type: ignore[arg-type]  # handed through as it came

    house.engine.launch = watch  # type: ignore[method-assign]  # a spy on the fake
    house.turn()
    assert seen == [State.LAUNCHING]


def test_a_failing_task_gives_its_exit_code(house: House) -> None:
    house.scripts["job"] = Script(exit_code=3)
    job = house.submit()
    house.turn()
    house.turn()
    reason = house.view(job).attempt.reason
    assert reason is not None
    assert (house.state(job), reason.code, reason.blame) == (
        State.FAILED,
        ReasonCode.EXIT,
        Blame.USER,
    )
    assert reason.sentence() == "task worker-0 exited with code 3"


def test_out_of_memory_is_told_from_a_plain_kill(house: House) -> None:
    """(case 59)"""
    house.scripts["a"] = Script(exit_code=137, signal="SIGKILL", out_of_memory=True)
    house.scripts["b"] = Script(exit_code=137, signal="SIGKILL")
    a, b = house.submit("a"), house.submit("b")
    house.turn()
    house.turn()
    codes = [reason.code for j in (a, b) if (reason := house.view(j).attempt.reason)]
    assert codes == [ReasonCode.OUT_OF_MEMORY, ReasonCode.SIGNAL]


def test_the_first_failing_task_is_named_and_the_others_are_stopped(house: House) -> None:
    """(case 64)"""
    by_index = {
        0: Script(duration_s=None, on_term_s=1),
        1: Script(duration_s=2, exit_code=9),
        2: Script(duration_s=None, on_term_s=None),
    }
    house.engine._script_of = lambda plan: by_index[plan.index]
    job = house.submit(node_count=3, grace_s=10)
    house.turn()
    house.turn()
    assert house.state(job) is State.RUNNING
    house.turn(2)
    assert house.state(job) is State.RUNNING
    house.turn(10)
    house.turn()
    view = house.view(job)
    assert view.attempt.state is State.FAILED
    assert view.attempt.reason is not None
    assert view.attempt.reason.params == {"task": "worker-1", "exit_code": 9}
    assert [task.exit_code for task in view.tasks] == [143, 9, 137]


def test_a_gang_waits_for_all_its_places(house: House) -> None:
    """(case 34)"""
    blocker = house.submit("blocker", flavor="danlu.cpu.4u")
    house.scripts["blocker"] = Script(duration_s=60)
    house.turn()
    gang = house.submit("gang", flavor="danlu.cpu.4u", node_count=2)
    house.turn()
    assert house.state(gang) is State.QUEUED
    assert house.board.held().keys() == {blocker}
    house.turn(60)
    house.turn()
    assert house.state(gang) is not State.QUEUED


def test_stop_while_queued_cancels_at_once(house: House) -> None:
    job = house.submit()
    assert house.stop(job)
    house.turn()
    view = house.view(job)
    assert view.attempt.state is State.CANCELLED
    assert view.attempt.reason is not None
    assert view.attempt.reason.sentence() == "stopped by alice"
    assert "launch" not in house.engine.calls


def test_stop_of_a_running_job_is_graceful_and_ends_cancelled(house: House) -> None:
    house.scripts["job"] = Script(duration_s=None, on_term_s=3, on_term_code=0)
    job = house.submit()
    house.turn()
    house.turn()
    house.stop(job)
    house.turn()
    assert house.state(job) is State.STOPPING
    house.turn(3)
    house.turn()
    view = house.view(job)
    assert view.attempt.state is State.CANCELLED
    assert [task.exit_code for task in view.tasks] == [0]


def test_asking_twice_to_stop_is_no_error_but_a_final_job_says_so(house: House) -> None:
    house.scripts["job"] = Script(duration_s=None, on_term_s=5)
    job = house.submit()
    house.turn()
    house.turn()
    assert house.stop(job)
    assert not house.stop(job)
    house.turn()
    house.turn(5)
    house.turn()
    with pytest.raises(Refused, match="already ended"):
        house.stop(job)
    with pytest.raises(Missing):
        house.stop("no-such-job")


def test_a_time_limit_ends_cancelled_with_its_own_reason(house: House) -> None:
    house.scripts["job"] = Script(duration_s=None)
    job = house.submit(time_limit_s=60)
    house.turn()
    house.turn()
    house.turn(60)
    house.turn()
    view = house.view(job)
    assert view.attempt.state is State.CANCELLED
    assert view.attempt.reason is not None
    assert view.attempt.reason.code is ReasonCode.TIME_LIMIT


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (
            Script(
                starts=False,
                problem=ReasonCode.INPUT_FAILED,
                detail={"name": "data", "detail": "gone"},
            ),
            ReasonCode.INPUT_FAILED,
        ),
        (
            Script(
                storing_problem=ReasonCode.OUTPUT_FAILED,
                storing_detail={"detail": "disk full", "path": "/x"},
            ),
            ReasonCode.OUTPUT_FAILED,
        ),
    ],
)
def test_what_the_platform_could_not_do_is_the_reason(
    house: House, script: Script, code: ReasonCode
) -> None:
    house.scripts["job"] = script
    job = house.submit()
    house.turn()
    house.turn()
    reason = house.view(job).attempt.reason
    assert reason is not None
    assert (house.state(job), reason.code) == (State.FAILED, code)


def test_a_failing_program_is_the_reason_even_if_its_outputs_fail_too(house: House) -> None:
    house.scripts["job"] = Script(
        exit_code=1,
        storing_problem=ReasonCode.OUTPUT_FAILED,
        storing_detail={"detail": "x", "path": "/x"},
    )
    job = house.submit()
    house.turn()
    house.turn()
    reason = house.view(job).attempt.reason
    assert reason is not None
    assert reason.code is ReasonCode.EXIT


def test_success_is_only_said_when_outputs_are_stored(house: House) -> None:
    house.scripts["job"] = Script(duration_s=1, collect_s=30)
    job = house.submit()
    house.turn()
    house.turn(1)
    assert house.state(job) is State.COLLECTING
    house.turn(29)
    assert house.state(job) is State.COLLECTING
    house.turn(1)
    assert house.state(job) is State.SUCCEEDED


def test_a_launch_that_the_engine_refuses_is_a_failure_with_its_cause(house: House) -> None:
    house.engine.faults.refuse_launches = 1
    job = house.submit(retry=Retry(on=()))
    house.turn()
    reason = house.view(job).attempt.reason
    assert reason is not None
    assert (house.state(job), reason.code, reason.blame) == (
        State.FAILED,
        ReasonCode.LAUNCH_FAILED,
        Blame.PLATFORM,
    )
    assert house.board.held() == {}


def test_a_task_that_is_proven_absent_is_lost(house: House) -> None:
    """(cases 23, 26)"""
    house.scripts["job"] = Script(duration_s=None)
    job = house.submit(retry=Retry(on=()))
    house.turn()
    house.turn()
    entry = house.board.get(job)
    assert entry is not None
    house.engine.vanish(entry.refs[0])
    house.turn()
    assert house.state(job) is State.LOST
    assert house.board.held() == {}


def test_an_engine_that_does_not_answer_is_a_flag_and_nothing_else(house: House) -> None:
    """(cases 75, 76)"""
    house.scripts["job"] = Script(duration_s=None)
    job = house.submit()
    house.turn()
    house.turn()
    house.engine.faults.deaf = True
    house.turn(3600)
    view = house.view(job)
    assert (view.attempt.state, view.attempt.unreachable) == (State.RUNNING, True)
    house.engine.faults.deaf = False
    house.turn()
    assert not house.view(job).attempt.unreachable


def test_ten_jobs_that_fail_together_leave_the_capacity_whole(house: House) -> None:
    """(case 44)"""
    for i in range(10):
        house.scripts[f"j{i}"] = Script(exit_code=1)
    jobs = [house.submit(f"j{i}") for i in range(10)]
    for _ in range(4):
        house.turn()
    assert {house.state(job) for job in jobs} == {State.FAILED}
    assert house.board.held() == {}
    large = house.submit("large", flavor="danlu.cpu.8u")
    house.turn()
    house.turn()
    assert house.state(large) is State.SUCCEEDED


def test_a_job_whose_node_is_gone_can_be_deleted_and_frees_its_place(house: House) -> None:
    """(case 45)"""
    house.scripts["job"] = Script(duration_s=None)
    job = house.submit(retry=Retry(on=()))
    house.turn()
    house.turn()
    with pytest.raises(Refused, match="stop it first"):
        delete(house.platform, house.caller, job)
    house.engine.nodes = (Offer("memory-1", 8, 1 << 35),)
    entry = house.board.get(job)
    assert entry is not None
    house.engine.vanish(entry.refs[0])
    house.turn()
    assert delete(house.platform, house.caller, job).result()
    with pytest.raises(Missing):
        house.view(job)
    house.turn(10)
    assert house.records.swept() == []


def test_every_attempt_has_a_key_of_its_own_for_the_storage(house: House) -> None:
    seen: list[StorageAccess] = []

    def script(plan: TaskPlan) -> Script:
        assert plan.storage is not None
        seen.append(plan.storage)
        return Script(exit_code=1 if plan.attempt == 1 else 0)

    house.records.add_user(house.caller.user).result()
    house.platform = replace(house.platform, obs="http://127.0.0.1:9", region="here")
    house.loop = Loop(house.platform, house.board)
    house.engine._script_of = script
    job = house.submit(node_count=2, retry=Retry(1, (Cause.USER_ERROR,)))
    for _ in range(12):
        house.turn(10)

    assert house.view(job).attempt.state is State.SUCCEEDED
    assert [one.access_key for one in seen] == [
        *[access_key_of(job, 1)] * 2,
        *[access_key_of(job, 2)] * 2,
    ]
    assert {one.endpoint for one in seen} == {"http://127.0.0.1:9"}
    assert len({one.secret_key for one in seen}) == 2
    told = repr([*house.records.events("p1", job, EventQuery()), house.view(job)])
    assert not [one for one in seen if one.secret_key in told]
    assert house.records.access_key(access_key_of(job, 2)) is None


def test_orphans_of_a_lost_database_are_ended(house: House) -> None:
    house.scripts["job"] = Script(duration_s=None)
    house.submit()
    house.turn()
    assert house.engine.known()
    house.records.close()
    (house.root / "db.sqlite").unlink()
    for side in house.root.glob("db.sqlite[-.]*"):
        side.unlink()
    house._open()
    house.loop.start()
    house.loop.close()
    assert house.engine.known() == []
