"""Danlu's own JSON: exit statuses, sentences, short commands."""

from __future__ import annotations

from typing import Any

import pytest

from danlu.model.attempt import FINAL, Attempt, AttemptKey, State
from danlu.model.flavor import Flavor
from danlu.model.job import Job, JobSpec, JobView, Parameter, Task
from danlu.model.queue import Why
from danlu.model.reason import Reason, ReasonCode
from danlu.model.resources import GIB, Gpu, Offer, Shape
from danlu.model.url import ObjectUrl
from danlu.wire import danlu as wire

SPEC = JobSpec("n", "f", Shape(1, GIB), command="python  train.py\n --x")


def view(
    state: State, spec: JobSpec = SPEC, tasks: tuple[Task, ...] = (), **attempt: Any
) -> JobView:
    job = Job("j", "w", spec, 1000, "alice")
    return JobView(job, Attempt(AttemptKey("j", 1, "t"), state, 1000, **attempt), tasks)


def ended(state: State, code: ReasonCode) -> int | None:
    return wire.exit_status(view(state, reason=Reason(code)).attempt)


@pytest.mark.parametrize(
    ("state", "code", "status"),
    [
        (State.SUCCEEDED, ReasonCode.COMPLETED, 0),
        (State.FAILED, ReasonCode.EXIT, 1),
        (State.FAILED, ReasonCode.OUT_OF_MEMORY, 1),
        (State.FAILED, ReasonCode.INPUT_FAILED, 1),
        (State.CANCELLED, ReasonCode.STOPPED, 1),
        (State.CANCELLED, ReasonCode.TIME_LIMIT, 124),
        (State.FAILED, ReasonCode.LAUNCH_FAILED, 70),
        (State.FAILED, ReasonCode.OUTPUT_FAILED, 70),
        (State.LOST, ReasonCode.TASK_LOST, 70),
    ],
)
def test_the_exit_status_of_a_client_that_waited(
    state: State, code: ReasonCode, status: int
) -> None:
    assert ended(state, code) == status


def test_a_job_that_lives_has_no_exit_status_and_one_that_ended_has() -> None:
    for state in State:
        status = wire.exit_status(view(state).attempt)
        assert (status is not None) == (state in FINAL)


def test_the_exit_code_is_the_first_failing_tasks() -> None:
    two = JobSpec("n", "f", Shape(1, GIB), node_count=2, command="x")
    first = (Task(0, ended_at=9, exit_code=143), Task(1, ended_at=5, exit_code=3))
    assert wire.exit_code(view(State.FAILED, two, first)) == 3
    assert wire.exit_code(view(State.RUNNING, two, (Task(0, ended_at=1, exit_code=0),))) is None
    both = tuple(Task(index, ended_at=1, exit_code=0) for index in (0, 1))
    assert wire.exit_code(view(State.SUCCEEDED, two, both)) == 0


def test_a_waiting_job_says_how_many_are_before_it() -> None:
    why = Why("waiting-resource", 3, {"needs": "8 GiB", "free": "3 GiB", "holders": "X"})
    assert wire.waiting_sentence(why, "en") == (
        "2 job(s) ahead; needs 8 GiB, 3 GiB free until X end(s)"
    )
    assert wire.waiting_sentence(why, "zh").startswith("前面有 2 个作业；需要 8 GiB")
    first = Why("waiting-placing", 1, {})
    assert wire.waiting_sentence(first, "en") == "being placed now"


def test_a_job_that_does_not_wait_says_what_it_does() -> None:
    for state in State:
        said = wire.why(view(state), None, "en")
        assert said["sentence"]
        assert said["position"] is None


def test_a_command_is_shown_in_short() -> None:
    assert wire.command(SPEC) == "python train.py --x"
    long = JobSpec("n", "f", Shape(1, 1), command="x" * 500)
    assert len(wire.command(long)) == wire.COMMAND_CHARS
    boot = JobSpec("n", "f", Shape(1, 1), code=ObjectUrl("b", "c/"), boot_file="t.py",
                   parameters=(Parameter("a", "1 2"),))  # fmt: skip
    assert wire.command(boot) == "t.py --a=1 2"


def test_every_task_is_listed_before_it_runs() -> None:
    spec = JobSpec("n", "f", Shape(1, GIB), node_count=3, command="x")
    shown = wire.job(view(State.RUNNING, spec, (Task(1, started_at=5),)), wire.Shown(10))
    assert [task["state"] for task in shown["tasks"]] == ["waiting", "running", "waiting"]
    assert shown["duration_ms"] is None


def test_what_is_free_is_never_less_than_nothing() -> None:
    gpu = Gpu("u", 0, "V100", 16 * GIB)
    total = Offer("n", 8, 32 * GIB, (gpu,))
    (shown,) = wire.capacity([total], [Offer("n", -2, -1, ())])
    assert shown["free"] == {"cpus": 0, "memory_bytes": 0, "gpus": 0}
    assert shown["gpus"] == [{"uuid": "u", "model": "V100", "memory_bytes": 16 * GIB}]


def test_flavors_say_which_is_the_default_and_which_fit() -> None:
    known = [Flavor("small", Shape(1, GIB)), Flavor("large", Shape(64, GIB))]
    shown = wire.flavors(known, "small", lambda flavor: flavor.shape.cpus < 8)["flavors"]
    assert [(item["default"], item["fits"]) for item in shown] == [(True, True), (False, False)]
