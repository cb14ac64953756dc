"""ModelArts' calls on training jobs, over HTTP."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from danlu.engines.memory_script import Script
from tests.faces.http.live import Live, create_body

JOBS = "/v2/{p}/training-jobs"
RUNS = Script(duration_s=None)


def named() -> str:
    return f"job-{uuid.uuid4().hex[:8]}"


def search(shared: Live, **body: Any) -> Any:
    answer = shared.call("POST", "/v2/{p}/training-job-searches", body)
    assert answer.status == 200, answer.body
    return answer.json


def count(shared: Live) -> int:
    return int(search(shared, limit=1)["total"])


def test_a_job_from_create_to_completed(shared: Live) -> None:
    name = named()
    created = shared.call(
        "POST", JOBS, create_body(name, parameters=[{"name": "lr", "value": "1"}])
    )
    assert created.status == 201
    job_id = created.json["metadata"]["id"]
    assert created.json["status"]["phase"] in ("Pending", "Running", "Completed")
    shared.until(job_id, "succeeded")

    shown = shared.call("GET", f"{JOBS}/{job_id}").json
    assert shown["metadata"]["name"] == name
    assert shown["status"]["phase"] == "Completed"
    assert shown["status"]["tasks"] == ["worker-0"]
    assert shown["status"]["task_statuses"] == [{"task": "worker-0", "exit_code": 0, "message": ""}]
    assert shown["algorithm"]["parameters"] == [{"name": "lr", "value": "1"}]


def test_what_is_shown_is_taken_as_a_create_body(shared: Live) -> None:
    body = create_body(
        named(),
        parameters=[{"name": "lr", "value": "a b=c"}],
        environments={"A": "1"},
        working_dir="/home/ma-user/x",
    )
    body["spec"]["auto_stop"] = {"time_unit": "HOURS", "duration": 2}
    body["spec"]["schedule_policy"] = {"priority": 3}
    body["danlu"] = {"grace_s": 5}
    first = shared.call("POST", JOBS, body).json
    shared.until(first["metadata"]["id"], "succeeded")
    detail = shared.call("GET", f"{JOBS}/{first['metadata']['id']}").json

    again = shared.call("POST", JOBS, detail)

    assert again.status == 201, again.body
    assert again.json["metadata"]["id"] != detail["metadata"]["id"]
    for block in ("algorithm", "spec", "danlu"):
        assert again.json[block] == detail[block]


def test_a_job_is_stopped_and_then_deleted(shared: Live) -> None:
    name = named()
    shared.script(name, RUNS)
    job_id = shared.submit(name)
    shared.until(job_id, "running")
    too_early = shared.call("DELETE", f"{JOBS}/{job_id}")
    assert (too_early.status, too_early.key) == (409, "job-live")

    for _ in range(2):
        stopped = shared.call("POST", f"{JOBS}/{job_id}/actions", {"action_type": "terminate"})
        assert stopped.status in (202, 409)
    ended = shared.until(job_id, "cancelled")
    assert ended["reason"]["code"] == "stopped"
    assert shared.call("GET", f"{JOBS}/{job_id}").json["status"]["phase"] == "Terminated"
    late = shared.call("POST", f"{JOBS}/{job_id}/actions", {"action_type": "terminate"})
    assert (late.status, late.key) == (409, "job-final")

    deleted = shared.call("DELETE", f"{JOBS}/{job_id}", {})
    assert (deleted.status, deleted.body) == (202, b"")
    gone = shared.call("GET", f"{JOBS}/{job_id}")
    assert (gone.status, gone.json["error_code"]) == (404, "ModelArts.2775")


def test_a_job_that_shall_stop_is_terminating_at_once(shared: Live) -> None:
    name = named()
    shared.script(name, Script(duration_s=None, on_term_s=None))
    job_id = shared.submit(name)
    shared.until(job_id, "running")
    said = shared.call("POST", f"{JOBS}/{job_id}/actions", {"action_type": "terminate"})
    assert said.json["status"]["phase"] == "Terminating"
    assert shared.call("GET", f"{JOBS}/{job_id}").json["status"]["phase"] == "Terminating"


def test_the_description_changes_and_nothing_else(shared: Live) -> None:
    name = named()
    shared.script(name, RUNS)
    job_id = shared.submit(name)
    changed = shared.call("PUT", f"{JOBS}/{job_id}", {"description": "新的"})
    assert changed.status == 200
    assert changed.json["metadata"]["description"] == "新的"
    assert shared.call("GET", f"{JOBS}/{job_id}").json["metadata"]["description"] == "新的"
    refused = shared.call(
        "PUT",
        f"{JOBS}/{job_id}",
        {"description": "x", "spec": {"schedule_policy": {"priority": 3}}},
    )
    assert (refused.status, refused.key) == (400, "field-unsupported")
    long = shared.call("PUT", f"{JOBS}/{job_id}", {"description": "x" * 257})
    assert (long.status, long.key) == (400, "field-too-long")
    shared.call("POST", f"{JOBS}/{job_id}/actions", {"action_type": "terminate"})


def test_the_offset_of_a_search_is_the_number_of_a_page(shared: Live) -> None:
    prefix = named()
    made = [shared.submit(f"{prefix}-{index}") for index in range(5)]
    wanted = [{"key": "name", "operator": "like", "value": [prefix]}]
    pages = [
        search(shared, offset=page, limit=2, filters=wanted, sort_by="create_time", order="asc")
        for page in range(3)
    ]
    found = [item["metadata"]["id"] for page in pages for item in page["items"]]
    assert found == made
    assert [page["offset"] for page in pages] == [0, 1, 2]
    assert {page["count"] for page in pages} == {5}
    assert pages[0]["total"] >= 5


@pytest.mark.parametrize(
    ("key", "operator", "values"),
    [
        ("phase", "in", ["Terminated"]),
        ("status", "not", ["Completed", "Running", "Pending", "Failed", "Terminating"]),
        ("job_name", "in", ["{name}"]),
        ("name", "like", ["{name}"]),
        ("create_time", "between", ["0", "9999999999999"]),
        ("node_count", "in", ["1"]),
        ("priority", "not", ["3", "2"]),
        ("user_name", "in", ["admin"]),
        ("flavor_id", "in", ["danlu.cpu.1u"]),
    ],
)
def test_a_search_filters_by(shared: Live, key: str, operator: str, values: list[str]) -> None:
    name = named()
    shared.script(name, RUNS)
    job_id = shared.submit(name)
    shared.call("POST", f"{JOBS}/{job_id}/actions", {"action_type": "terminate"})
    shared.until(job_id, "cancelled")
    value = [item.replace("{name}", name) for item in values]
    own = {"key": "id", "operator": "in", "value": [job_id]}
    found = search(shared, filters=[own, {"key": key, "operator": operator, "value": value}])
    assert [item["metadata"]["id"] for item in found["items"]] == [job_id]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"limit": 51}, "limit"),
        ({"limit": 0}, "limit"),
        ({"offset": -1}, "offset"),
        ({"offset": 1 << 62}, "offset"),
        ({"sort_by": "colour"}, "sort_by"),
        ({"order": "up"}, "order"),
        ({"group_by": "name"}, "group_by"),
        ({"workspace_id": "7"}, "workspace_id"),
        ({"tags": [{"key": "a", "values": []}]}, "tags"),
        ({"host_ips": ["10.0.0.1"]}, "host_ips"),
        ({"train_type": "ftjob"}, "train_type"),
        ({"filter": []}, "filter"),
        ({"filters": [{"key": "x", "operator": "in", "value": ["a"]}]}, "filters[0].key"),
        ({"filters": [{"key": "name", "operator": "is", "value": ["a"]}]}, "filters[0].operator"),
        ({"filters": [{"key": "name", "operator": "between", "value": ["a", "b"]}]}, "operator"),
        ({"filters": [{"key": "phase", "operator": "in", "value": ["Done"]}]}, "filters[0].value"),
        ({"filters": [{"key": "priority", "operator": "in", "value": ["x"]}]}, "filters[0].value"),
        ({"filters": [{"key": "name", "operator": "in", "value": []}]}, "filters[0].value"),
        ({"filters": [{"key": "name", "operator": "in", "value": ["a\0b"]}]}, "filters[0].value"),
    ],
)
def test_a_search_that_cannot_be_served_names_its_field(
    shared: Live, body: dict[str, Any], field: str
) -> None:
    answer = shared.call("POST", "/v2/{p}/training-job-searches", body)
    assert answer.status == 400
    assert field in answer.json["error_msg"]


def test_the_same_client_token_gives_the_same_job(shared: Live) -> None:
    """(case 28) a submit that is sent again does not make a second job"""
    token = {"X-Client-Token": uuid.uuid4().hex}
    first = shared.call("POST", JOBS, create_body(named()), headers=token)
    again = shared.call("POST", JOBS, create_body(named()), headers=token)
    assert (first.status, again.status) == (201, 200)
    assert first.json["metadata"]["id"] == again.json["metadata"]["id"]
    long = shared.call("POST", JOBS, create_body(named()), headers={"X-Client-Token": "x" * 129})
    assert (long.status, long.key) == (400, "field-too-long")


BAD: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    (
        "a code directory that does not exist",
        {"algorithm": {"code_dir": "obs://danlu/nothing/", "boot_file": "train.py"}},
        ("algorithm.code_dir", "obs://danlu/nothing/", "upload"),
    ),
    (
        "an input that does not exist",
        {
            "algorithm": {
                "command": "x",
                "inputs": [{"name": "d", "remote": {"obs": {"obs_url": "obs://danlu/none/"}}}],
            }
        },
        ("algorithm.inputs[0].remote.obs.obs_url", "obs://danlu/none/", "check"),
    ),
    (
        "an obs path of another project",
        {
            "algorithm": {
                "command": "x",
                "inputs": [
                    {"name": "d", "remote": {"obs": {"obs_url": "s3://their-bucket/data/"}}}
                ],
            }
        },
        ("algorithm.inputs[0].remote.obs.obs_url", "their-bucket", "its buckets are danlu"),
    ),
    (
        "an output in another project",
        {
            "algorithm": {
                "command": "x",
                "outputs": [{"name": "d", "remote": {"obs": {"obs_url": "/their-bucket/data/"}}}],
            }
        },
        ("algorithm.outputs[0].remote.obs.obs_url", "their-bucket", "its buckets are danlu"),
    ),
    (
        "an unknown flavor",
        {"spec": {"resource": {"flavor_id": "modelarts.vm.v100"}}},
        ("spec.resource.flavor_id", "modelarts.vm.v100", "danlu.cpu.1u"),
    ),
    (
        "a flavor that does not fit",
        {"spec": {"resource": {"flavor_id": "danlu.cpu.8u", "node_count": 2}}},
        ("spec.resource.flavor_id", "danlu.cpu.8u", "choose one of"),
    ),
    (
        "a name of 65 characters",
        {"metadata": {"name": "n" * 65}},
        ("metadata.name", "65", "shorten"),
    ),
    (
        "a NUL in a parameter",
        {"algorithm": {"command": "x", "parameters": [{"name": "p", "value": "a\0b"}]}},
        ("algorithm.parameters[0].value", "NUL", "remove"),
    ),
    (
        "an = in a parameter's name",
        {"algorithm": {"command": "x", "parameters": [{"name": "p=q", "value": "a"}]}},
        ("algorithm.parameters[0].name", "p=q", "value only"),
    ),
    (
        "a newline in a parameter's name",
        {"algorithm": {"command": "x", "parameters": [{"name": "p\nq", "value": "a"}]}},
        ("algorithm.parameters[0].name", "white space", "--name=value"),
    ),
    (
        "a NUL in a variable",
        {"algorithm": {"command": "x", "environments": {"A": "\0"}}},
        ("algorithm.environments.A", "NUL", "remove"),
    ),
    (
        "half a surrogate pair",
        {"metadata": {"name": "x", "description": "\ud800"}},
        ("metadata.description", "surrogate", "UTF-8"),
    ),
    (
        "a boot file outside the code",
        {"algorithm": {"code_dir": "/danlu/a/", "boot_file": "/danlu/b/t.py"}},
        ("algorithm.boot_file", "/danlu/b/t.py", "code_dir"),
    ),
    (
        "an unknown engine",
        {"algorithm": {"command": "x", "engine": {"engine_id": "tf-1"}}},
        ("algorithm.engine", "tf-1", "default"),
    ),
]


@pytest.mark.parametrize(("what", "changes", "said"), BAD, ids=[what for what, _, _ in BAD])
@pytest.mark.parametrize("path", [JOBS, "/danlu/v1/{p}/jobs", "/danlu/v1/{p}/jobs/plan"])
def test_bad_input_is_refused_by_name_and_nothing_is_made(
    shared: Live, path: str, what: str, changes: dict[str, Any], said: tuple[str, ...]
) -> None:
    before = count(shared)
    answer = shared.call("POST", path, {**create_body(named()), **changes})
    assert answer.status in (400, 404, 409), answer.body
    for part in said:
        assert part in answer.json["error_msg"]
    assert answer.json["error_code"].startswith("ModelArts.")
    assert answer.json["request_id"] == answer.headers["x-request-id"]
    assert count(shared) == before


def test_values_with_newlines_quotes_and_equals_signs_arrive(shared: Live) -> None:
    """(case 92, 94) what a value may hold is not what a shell makes of it"""
    value = "a=b\n\"c\" 'd' $HOME `x` \\ 中文 "
    body = create_body(
        named(), parameters=[{"name": "p", "value": value}], environments={"E": value}
    )
    job = shared.call("POST", JOBS, body).json
    assert job["algorithm"]["parameters"][0]["value"] == value
    assert job["algorithm"]["environments"]["E"] == value


def test_messages_come_in_the_language_that_is_asked_for(shared: Live) -> None:
    for headers in ({"X-Language": "zh-cn"}, {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}):
        answer = shared.call("GET", f"{JOBS}/none", headers=headers)
        assert "没有训练作业" in answer.json["error_msg"]
        assert answer.json["error_code"] == "ModelArts.2775"


def test_a_job_of_two_tasks_lists_them(shared: Live) -> None:
    name = named()
    body = create_body(name)
    body["spec"]["resource"]["node_count"] = 2
    job_id = shared.call("POST", JOBS, body).json["metadata"]["id"]
    shared.until(job_id, "succeeded")
    tasks = shared.call("GET", f"{JOBS}/{job_id}/tasks").json
    assert [(task["task"], task["name"], task["schedule_count"]) for task in tasks] == [
        ("worker-0", "worker-0", 1),
        ("worker-1", "worker-1", 1),
    ]
    assert shared.call("GET", f"{JOBS}/{job_id}/tasks?schedule_count=2").json == []
    assert json.dumps(tasks)
