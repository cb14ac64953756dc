"""Replies: every state has a phase, and nothing that would break the SDK."""

from __future__ import annotations

from typing import Any

import pytest

from danlu.model.attempt import Attempt, AttemptKey, State
from danlu.model.errors import Invalid
from danlu.model.event import JobEvent, Level
from danlu.model.flavor import Flavor
from danlu.model.job import Intent, Job, JobSpec, JobView, Task
from danlu.model.reason import Reason, ReasonCode
from danlu.model.resources import GIB, Shape
from danlu.model.texts import TEXTS
from danlu.model.texts.errors import ERRORS
from danlu.wire import modelarts_catalog as catalog
from danlu.wire import modelarts_training_reply as replies
from danlu.wire import modelarts_training_watch as watch
from danlu.wire.modelarts_errors import CODES, code, error

SPEC = JobSpec("n", "f", Shape(2, 3 * GIB), node_count=2, command="true", environments={"A": "1"})
NOW = 1_700_000_100_000


def view(
    state: State, intent: Intent = Intent.RUN, tasks: tuple[Task, ...] = (), **attempt: Any
) -> JobView:
    job = Job("j", "w", SPEC, 1_700_000_000_000, "alice", intent)
    return JobView(
        job, Attempt(AttemptKey("j", 1, "t"), state, 1_700_000_000_000, **attempt), tasks
    )


def test_every_state_has_a_phase_that_modelarts_knows() -> None:
    assert replies.PHASES.keys() == set(State)
    assert {phase for phase, _ in replies.PHASES.values()} <= set(replies.MODELARTS_PHASES)


@pytest.mark.parametrize(
    ("shown", "phases"),
    [
        (view(State.QUEUED), ("Pending", "Queuing")),
        (view(State.QUEUED, Intent.STOP), ("Terminating", "Terminating")),
        (view(State.RUNNING, Intent.STOP), ("Terminating", "Terminating")),
        (view(State.RUNNING, unreachable=True), ("Running", "Unknown")),
        (view(State.COLLECTING), ("Running", "Running")),
        (view(State.COLLECTING, reason=Reason(ReasonCode.STOPPED)), ("Terminating", "Terminating")),
        (view(State.CANCELLED, Intent.STOP), ("Terminated", "Terminated")),
        (view(State.FAILED, reason=Reason(ReasonCode.LAUNCH_FAILED)), ("Failed", "CreateFailed")),
        (view(State.SUCCEEDED, Intent.STOP), ("Completed", "Completed")),
        (view(State.LOST), ("Abnormal", "Lost")),
    ],
)
def test_the_phase_says_what_the_user_asked_for(shown: JobView, phases: tuple[str, str]) -> None:
    assert replies.phases(shown) == phases


def status(shown: JobView, earlier: tuple[Attempt, ...] = ()) -> Any:
    return replies.job(shown, NOW, "en", earlier)["status"]


def test_times_are_numbers_whatever_happened() -> None:
    waits = status(view(State.QUEUED))
    assert (waits["duration"], waits["start_time"]) == (0, 0)
    assert waits["running_records"] == waits["node_count_metrics"] == []
    runs = status(view(State.RUNNING, started_at=1_700_000_090_000))
    assert (runs["duration"], runs["start_time"]) == (10_000, 1_700_000_090_000)
    assert runs["running_records"] == [
        {"start_at": 1_700_000_090, "start_type": "init_or_rescheduled"}
    ]
    ended = status(
        view(
            State.FAILED,
            started_at=1_700_000_090_000,
            exited_at=1_700_000_093_000,
            ended_at=1_700_000_095_000,
            reason=Reason(ReasonCode.EXIT, {"task": "worker-1", "exit_code": 3}),
        )
    )
    assert ended["duration"] == 3000
    assert ended["node_count_metrics"] == [[1_700_000_090_000, 2], [1_700_000_093_000, 0]]
    (record,) = ended["running_records"]
    assert (record["end_at"], record["end_related_task"]) == (1_700_000_093, "worker-1")
    assert ended["message"] == "task worker-1 exited with code 3"


def test_earlier_attempts_are_running_records_too() -> None:
    first = view(
        State.LOST, started_at=1000, ended_at=2000, reason=Reason(ReasonCode.TASK_LOST)
    ).attempt
    records = status(view(State.RUNNING, started_at=5000), (first,))["running_records"]
    assert [record["start_at"] for record in records] == [1, 5]
    assert records[0]["end_recover"] == "job_reschedule"
    # The reason came without its task: the reply still shows what is known.
    assert records[0]["end_reason"].startswith("task ? disappeared")


def test_tasks_that_ended_say_how() -> None:
    tasks = (
        Task(0, "n", "10.0.0.1", 1, 2, 0),
        Task(1, "n", "10.0.0.2", 1, 2, 137, "SIGKILL", out_of_memory=True),
    )
    said = status(view(State.FAILED, tasks=tasks))
    assert said["task_statuses"] == [
        {"task": "worker-0", "exit_code": 0, "message": ""},
        {
            "task": "worker-1",
            "exit_code": 137,
            "message": "task worker-1 was killed because memory ran out (it had 3 GiB)",
        },
    ]
    assert said["task_ips"][1] == {
        "task": "worker-1",
        "ip": "10.0.0.2",
        "host_ip": "10.0.0.2",
        "schedule_count": 1,
    }


def test_what_is_an_object_is_never_a_list() -> None:
    shown = replies.job(view(State.QUEUED), NOW)
    assert shown["metadata"]["annotations"] == {}
    assert shown["algorithm"]["environments"] == {"A": "1"}


def test_metrics_have_numbers_only() -> None:
    said = watch.metrics({"cpuUsage": [1.5, None], "gpuUtil": [None, None]})["metrics"]
    by_name = {item["metric"]: item["value"] for item in said}
    assert by_name["cpuUsage"] == [1.5, -1]
    assert by_name["npuUtil"] == [-1, -1]
    assert watch.metrics({})["metrics"][0]["value"] == []


def test_lines_are_numbered_in_the_direction_that_is_asked_for() -> None:
    up = watch.lines([b"a", b"b\xff"], 7, 8, descending=False)
    assert up == {"start_line": "7", "end_line": "8", "lines": 2, "content": "a\nb�\n"}
    down = watch.lines([b"a", b"b"], 7, 8, descending=True)
    assert down == {"start_line": "8", "end_line": "7", "lines": 2, "content": "b\na\n"}
    assert watch.lines([], 1, 0, descending=True)["content"] == ""


def test_an_event_in_both_languages() -> None:
    happened = JobEvent(
        1_700_000_000_123,
        "task-exit",
        {"task": "worker-0", "exit_code": 1},
        Level.ERROR,
        "worker-0",
    )
    said = watch.event(happened, "zh")
    assert said["time"] == "2023-11-14T22:13:20.123Z"
    assert said["level"] == "Error"
    assert said["source"] == "Task"
    assert "退出码 1" in said["message"]


def test_flavors_with_and_without_gpus() -> None:
    flavors = [Flavor("c", Shape(2, 3 * GIB)), Flavor("g", Shape(8, 60 * GIB, 1, "V100"))]
    assert [item["flavor_type"] for item in catalog.flavors(flavors)["flavors"]] == ["CPU", "GPU"]
    (gpu,) = catalog.flavors(flavors, "GPU")["flavors"]
    assert gpu["flavor_info"]["gpu"] == {"unit_num": 1, "product_name": "V100", "memory": ""}
    assert catalog.flavors(flavors, "Ascend") == {"total_count": 0, "flavors": []}
    (engine,) = catalog.engines([("default", "3.11", "2.9.0")])["items"]
    assert engine["engine_version"] == "pytorch_2.9.0-py_3.11"


def test_every_error_has_a_code() -> None:
    assert CODES.keys() <= ERRORS.keys()
    for key in ERRORS:
        family, _, number = code(key).partition(".")
        assert family in ("ModelArts", "APIGW", "IAM", "Danlu")
        assert number
    assert {code(key) for key in ERRORS} >= {f"ModelArts.{number}" for number in (
        2757, 2758, 2759, 2760, 2761, 2763, 2775, 2776, 2780, 2781, 2787, 2788, 2791,
    )}  # fmt: skip


def test_an_error_carries_code_sentence_key_and_request() -> None:
    said = error(Invalid("flavor-unknown", field="f", value="x", flavors="a, b"), "r1", "zh")
    assert said["error_code"] == "ModelArts.2781"
    assert "a, b" in said["error_msg"]
    assert (said["key"], said["request_id"]) == ("flavor-unknown", "r1")


def test_states_that_do_not_wait_have_a_sentence() -> None:
    for state in set(State) - {State.QUEUED}:
        assert f"is-{state}" in TEXTS
