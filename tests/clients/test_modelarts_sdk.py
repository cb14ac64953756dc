"""Huawei's official SDKs, two pinned releases, against a live server and without a change."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.served import Served, served
from tests.services import sdk_python

VERSIONS = ("3.1.206", "3.1.219")
pytestmark = [pytest.mark.clients, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    # A region that Huawei has, and that we stand for: only the environment says so.
    with served(tmp_path_factory.mktemp("served"), "cn-north-4") as running:
        yield running


@pytest.fixture(scope="module", params=VERSIONS)
def driven(server: Served, request: pytest.FixtureRequest) -> Any:
    return {
        "version": request.param,
        **server.drive(sdk_python(request.param), "modelarts.py"),
    }


def test_a_job_runs_to_completed_and_says_so(driven: Any) -> None:
    assert driven["created"]["metadata"]["name"] == "driven-1"
    assert driven["created"]["status"]["phase"] in ("Pending", "Running", "Creating")
    completed = driven["completed"]
    assert completed["status"]["phase"] == "Completed"
    assert completed["status"]["tasks"] == ["worker-0"]
    assert completed["status"]["task_statuses"][0]["exit_code"] == 0
    assert completed["status"]["duration"] >= 0
    # The SDK's own model makes a list of what was sent as an object.
    assert completed["algorithm"]["environments"] == [{"DRIVEN_BY": "sdk"}]
    assert completed["algorithm"]["parameters"][0]["value"] == "你好 world"


def test_the_log_holds_what_was_printed(driven: Any) -> None:
    # The injected argument goes to the last command of the line.
    text = "sdk\ndone --greeting=你好 world\n"
    assert driven["preview"]["content"] == text
    assert driven["preview"]["full_size"] == len(text.encode())
    if driven["version"] == "3.1.206":
        assert driven["downloaded"] == text
    else:
        assert driven["lines"] == {
            "start_line": "1",
            "end_line": "2",
            "lines": 2,
            "content": text,
        }


def test_metrics_events_tasks_flavors_and_engines_answer(driven: Any) -> None:
    metrics = {item["metric"] for item in driven["metrics"]["metrics"]}
    assert metrics == {
        "cpuUsage", "memUsage", "gpuUtil", "gpuMemUsage", "npuUtil", "npuMemUsage",
    }  # fmt: skip
    messages = [event["message"] for event in driven["events"]["events"]]
    assert messages[0] == "submitted by admin"
    assert any(message.startswith("completed in") for message in messages)
    assert [task["task"] for task in driven["tasks"]["body"]] == ["worker-0"]
    flavors = driven["flavors"]
    assert flavors["total_count"] == len(flavors["flavors"]) > 0
    assert {flavor["flavor_type"] for flavor in flavors["flavors"]} == {"CPU"}
    assert driven["engines"]["items"][0]["engine_id"] == "default"


def test_jobs_are_listed_and_described(driven: Any) -> None:
    listed = driven["listed"]
    assert listed["count"] == 1
    assert listed["items"][0]["metadata"]["name"] == "driven-1"
    assert driven["described"] == "changed"


def test_a_running_job_is_terminated_and_deleted(driven: Any) -> None:
    assert driven["stopping"] == "Terminating"
    assert driven["terminated"]["status"]["phase"] == "Terminated"
    status, code, message, request_id = driven["deleted"]
    assert (status, code) == (404, "ModelArts.2775")
    assert "no training job" in message
    assert request_id


def test_a_wrong_secret_is_denied_with_a_reason(driven: Any) -> None:
    status, code, message = driven["wrong secret"]
    assert (status, code) == (401, "APIGW.0301")
    assert "secret key" in message


@pytest.mark.parametrize("version", VERSIONS)
def test_a_token_from_the_iam_sdk_lets_a_plain_client_in(server: Served, version: str) -> None:
    found = server.drive(sdk_python(version), "iam.py")
    assert found["wrong password"] == [401, "IAM.0101"]
    (project,) = found["projects"]["projects"]
    assert (project["id"], project["name"]) == (server.ready["project_id"], "cn-north-4")
    assert found["domains"]["domains"][0]["id"] == server.ready["domain_id"]
    assert found["body"]["project"]["id"] == server.ready["project_id"]
    path = f"/v2/{project['id']}/training-job-searches"
    headers = {"X-Auth-Token": found["token"], "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(server.ready["api"].partition("://")[2], timeout=30)
    try:
        connection.request("POST", path, b"{}", headers)
        assert "items" in json.loads(connection.getresponse().read())
    finally:
        connection.close()


def test_the_built_in_images_are_listed_and_shown(driven: Any) -> None:
    listed = driven["images"]["data"]
    assert driven["images"]["total"] == len(listed)
    assert {one["name"] for one in listed} >= {"pytorch-2.13-cpu", "pytorch-cuda-2.8"}
    assert {one["type"] for one in listed} == {"BUILD_IN"}
    assert driven["image"]["id"] == listed[0]["id"]
    status, message = driven["built in"]
    assert status == 409
    assert listed[0]["name"] in message
