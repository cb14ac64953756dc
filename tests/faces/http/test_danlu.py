"""Danlu's own calls: references, long polls, plans, reasons, the server's state, code."""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import socket
import tarfile
import threading
import time
import uuid
from typing import Any

import pytest

import danlu
from danlu.engines.memory_script import Script
from danlu.model.code import CodeFile, digest
from danlu.ports.records import JobQuery, Page
from danlu.stores.sql.records import SqlRecords
from tests.faces.http import signing
from tests.faces.http.live import Live, create_body

JOBS = "/danlu/v1/{p}/jobs"
RUNS = Script(duration_s=None)
FULL = 8
"""Jobs of one core that fill the scripted node."""


def named() -> str:
    return f"own-{uuid.uuid4().hex[:8]}"


def running(shared: Live) -> str:
    name = named()
    shared.script(name, RUNS)
    job_id = shared.submit(name)
    shared.until(job_id, "running")
    return job_id


def stop(shared: Live, *jobs: str) -> None:
    for job_id in jobs:
        assert shared.call("POST", f"{JOBS}/{job_id}/stop").status == 202
    for job_id in jobs:
        shared.until(job_id, "cancelled", "succeeded")


def get(shared: Live, target: str) -> Any:
    answer = shared.call("GET", target)
    assert answer.status == 200, answer.body
    return answer.json


def test_health_needs_no_credentials(shared: Live) -> None:
    answer = shared.send("GET", "/danlu/v1/health", {"Host": shared.host})
    assert answer.json == {
        "status": "ok",
        "problem": "",
        "version": danlu.__version__,
        "server_id": shared.server.state.server_id,
    }
    assert len(answer.json["server_id"]) == 16


def test_a_job_in_our_words(shared: Live) -> None:
    body = create_body(named(), parameters=[{"name": "lr", "value": "0.1"}])
    body["metadata"]["description"] = "for us"
    answer = shared.call("POST", JOBS, body)
    assert answer.status == 201
    job = shared.until(answer.json["id"], "succeeded")
    assert job["name"] == body["metadata"]["name"]
    assert job["command"] == "true"
    assert job["parameters"] == [{"name": "lr", "value": "0.1"}]
    assert (job["exit"], job["exit_code"], job["intent"]) == (0, 0, "run")
    assert (job["description"], job["user"], job["flavor"]) == ("for us", "admin", "danlu.cpu.1u")
    assert job["reason"]["code"] == "completed"
    assert job["waiting"] is None
    assert job["log_bytes"] == 0
    assert job["tasks"][0]["state"] == "ended"
    instants = [job[f"{name}_at"] for name in ("created", "placed", "launched", "started", "ended")]
    assert instants == sorted(instants)


@pytest.mark.parametrize(
    ("script", "state", "exit_status", "code"),
    [
        (Script(exit_code=3), "failed", 1, 3),
        (Script(exit_code=137, signal="SIGKILL", out_of_memory=True), "failed", 1, 137),
    ],
)
def test_a_job_that_fails_says_how(
    shared: Live, script: Script, state: str, exit_status: int, code: int
) -> None:
    name = named()
    shared.script(name, script)
    job = shared.until(shared.submit(name), state)
    assert (job["exit"], job["exit_code"]) == (exit_status, code)
    assert job["reason"]["blame"] == "user"
    why = get(shared, f"{JOBS}/{job['id']}/why")
    assert why["key"] == job["reason"]["code"]
    assert why["sentence"] == job["reason"]["sentence"]
    shown = get(shared, f"/v2/{{p}}/training-jobs/{job['id']}")
    assert shown["status"]["phase"] == "Failed"
    assert shown["status"]["message"] == job["reason"]["sentence"]
    assert shown["status"]["task_statuses"][0]["exit_code"] == code
    assert shown["status"]["task_statuses"][0]["message"]


def test_a_job_is_named_by_prefix_by_name_and_as_the_last(shared: Live) -> None:
    name = named()
    first, second = shared.submit(name), shared.submit(name)
    assert get(shared, f"{JOBS}/{first}")["id"] == first
    assert get(shared, f"{JOBS}/{first[:12]}")["id"] == first
    assert get(shared, f"{JOBS}/{name}")["id"] == second
    assert get(shared, f"{JOBS}/@last")["id"] == second
    assert shared.call("GET", f"{JOBS}/{first[:3]}").status == 404
    assert shared.call("GET", f"{JOBS}/{uuid.uuid4()}").key == "job-missing"


def test_a_prefix_of_two_jobs_is_ambiguous(shared: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    made = iter([f"abcdef00-0000-4000-8000-{n:012x}" for n in (1, 2)])
    monkeypatch.setattr(type(shared.running.platform.dice), "job_id", lambda _self: next(made))
    alike = [shared.submit(named()) for _ in range(2)]
    answer = shared.call("GET", f"{JOBS}/abcdef00")
    assert (answer.status, answer.key) == (400, "job-ambiguous")
    assert all(job_id in answer.json["error_msg"] for job_id in alike)
    assert get(shared, f"{JOBS}/{alike[0]}")["id"] == alike[0]


def test_why_a_job_waits_with_its_position(shared: Live) -> None:
    full = [running(shared) for _ in range(FULL)]
    waiting = [shared.submit(named()) for _ in range(2)]
    job = get(shared, f"{JOBS}/{waiting[1]}")
    assert job["state"] == "queued"
    assert job["waiting"]["position"] == 2
    assert job["waiting"]["key"] == "waiting-resource"
    assert job["waiting"]["sentence"].startswith("1 job(s) ahead; needs 1 CPU")
    why = get(shared, f"{JOBS}/{waiting[1]}/why")
    assert {**job["waiting"], "state": "queued", "params": why["params"]} == why
    chinese = shared.call("GET", f"{JOBS}/{waiting[1]}/why", headers={"X-Language": "zh-cn"})
    assert chinese.json["sentence"].startswith("前面有 1 个作业；需要")
    assert get(shared, f"{JOBS}/{full[0]}/why")["key"] == "is-running"
    stop(shared, *full)
    for job_id in waiting:
        shared.until(job_id, "succeeded")


def test_long_polls_answer_when_the_job_changes(shared: Live) -> None:
    job_id = running(shared)
    found: dict[str, Any] = {}

    def poll(wanted: str) -> None:
        found[wanted] = get(shared, f"{JOBS}/{job_id}?wait={wanted}&timeout_s=30")

    threads = [threading.Thread(target=poll, args=(name,)) for name in ("final", "changed")]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    assert not found
    began = time.monotonic()
    stop(shared, job_id)
    for thread in threads:
        thread.join(30)
    assert time.monotonic() - began < 15
    assert found["final"]["state"] == "cancelled"
    assert found["changed"]["state"] != "running" or found["changed"]["intent"] == "stop"


def test_a_long_poll_ends_in_time_and_at_once_where_it_can(shared: Live) -> None:
    job_id = running(shared)
    assert get(shared, f"{JOBS}/{job_id}?wait=final&timeout_s=0")["state"] == "running"
    assert get(shared, f"{JOBS}/{job_id}?wait=running&timeout_s=60")["state"] == "running"
    stop(shared, job_id)
    assert get(shared, f"{JOBS}/{job_id}?wait=running&timeout_s=60")["state"] == "cancelled"
    assert shared.call("GET", f"{JOBS}/{job_id}?wait=final&timeout_s=61").status == 400
    assert shared.call("GET", f"{JOBS}/{job_id}?wait=done").status == 400


def test_a_plan_shows_what_would_run_and_makes_nothing(shared: Live) -> None:
    before = get(shared, f"{JOBS}?limit=1")["total"]
    body = create_body(
        named(),
        command="python train.py",
        parameters=[{"name": "lr", "value": "a b"}],
        outputs=[{"name": "out", "remote": {"obs": {"obs_url": "obs://danlu/o/"}}}],
        environments={"E": "1"},
    )
    body["spec"]["resource"] = {"node_count": 2, "flavor_id": "danlu.cpu.2u"}
    answer = shared.call("POST", f"{JOBS}/plan", body)
    assert answer.status == 200, answer.body
    plan = answer.json
    assert [task["task"] for task in plan["tasks"]] == ["worker-0", "worker-1"]
    out = plan["paths"]["outputs"]["out"]
    argv = plan["tasks"][0]["argv"]
    assert argv[:2] == ["/bin/bash", "-c"]
    assert argv[2] == f"python train.py '--lr=a b' --out={out}"
    assert plan["tasks"][1]["env"]["VC_TASK_INDEX"] == "1"
    assert plan["tasks"][0]["env"]["E"] == "1"
    assert plan["flavor"]["id"] == "danlu.cpu.2u"
    assert plan["spec"]["metadata"]["name"] == body["metadata"]["name"]
    assert plan["literal_paths"] is False
    assert get(shared, f"{JOBS}?limit=1")["total"] == before
    assert shared.call("POST", f"{JOBS}/plan", plan["spec"]).status == 200


def test_jobs_are_listed_by_state_name_and_page(shared: Live) -> None:
    prefix = named()
    made = [shared.submit(f"{prefix}-{n}") for n in range(3)]
    for job_id in made:
        shared.until(job_id, "succeeded")
    page = get(shared, f"{JOBS}?name={prefix}&state=succeeded,failed&limit=2&offset=1")
    assert page["total"] == 3
    assert [job["id"] for job in page["jobs"]] == [made[1], made[0]]
    ordered = get(shared, f"{JOBS}?name={prefix}&sort_by=name&order=asc")
    assert [job["id"] for job in ordered["jobs"]] == made
    assert get(shared, f"{JOBS}?name={prefix}&state=queued")["total"] == 0


def test_events_come_after_a_sequence_number(shared: Live) -> None:
    job_id = shared.submit(named())
    shared.until(job_id, "succeeded")
    every = get(shared, f"{JOBS}/{job_id}/events")["events"]
    assert every[0]["key"] == "job-submitted"
    assert every[-1]["key"] == "job-succeeded"
    numbers = [event["sequence"] for event in every]
    assert numbers == sorted(set(numbers))
    rest = get(shared, f"{JOBS}/{job_id}/events?after={numbers[2]}&limit=2")["events"]
    assert [event["sequence"] for event in rest] == numbers[3:5]
    chinese = shared.call("GET", f"{JOBS}/{job_id}/events", headers={"X-Language": "zh-cn"})
    assert chinese.json["events"][0]["sentence"] == "由 admin 提交"


def test_events_as_modelarts_pages_them(shared: Live) -> None:
    job_id = shared.submit(named())
    shared.until(job_id, "succeeded")
    base = f"/v2/{{p}}/training-jobs/{job_id}/events"
    whole = get(shared, base)
    assert whole["total"] == len(whole["events"])
    second = get(shared, f"{base}?limit=2&offset=1&order=desc")
    assert second["events"] == whole["events"][::-1][2:4]
    assert get(shared, f"{base}?pattern=submitted")["total"] == 1
    assert get(shared, f"{base}?level=Error")["events"] == []
    assert get(shared, f"{base}?start_time=0&end_time=1")["total"] == 0
    assert (
        get(shared, f"{base}?start_time=2020-01-01&end_time=2999-01-01T00:00:00Z")["total"]
        == whole["total"]
    )


def test_the_servers_state(shared: Live) -> None:
    job_id = running(shared)
    status = get(shared, "/danlu/v1/{p}/status")
    assert status["version"] == danlu.__version__
    assert status["jobs"]["running"] == 1
    assert status["pid"] == os.getpid()
    assert status["uptime_s"] > 0
    (node,) = status["capacity"]
    assert (node["cpus"], node["free"]["cpus"]) == (8, 7)
    assert status["default_flavor"] == "danlu.cpu.4u"
    assert (status["bucket"], status["engine"], status["local_paths"]) == ("danlu", "memory", True)
    stop(shared, job_id)
    known = get(shared, "/danlu/v1/{p}/flavors")["flavors"]
    assert [flavor["id"] for flavor in known if flavor["default"]] == ["danlu.cpu.4u"]
    assert all(flavor["fits"] for flavor in known)


def test_a_job_that_lives_cannot_be_deleted_and_one_that_ended_can(shared: Live) -> None:
    job_id = running(shared)
    assert shared.call("DELETE", f"{JOBS}/{job_id}").key == "job-live"
    stop(shared, job_id)
    deleted = shared.call("DELETE", f"{JOBS}/{job_id}")
    assert (deleted.status, deleted.json) == (202, {})
    assert shared.call("GET", f"{JOBS}/{job_id}").status == 404
    assert shared.call("POST", f"{JOBS}/{job_id}/stop").status == 404


# ---------------------------------------------------------------- code


def archive(files: dict[str, bytes], mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:  # type: ignore[call-overload]  # "w:gz"
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def content_digest(files: dict[str, bytes]) -> str:
    return digest(
        CodeFile(name, len(content), hashlib.sha256(content).hexdigest(), executable=False)
        for name, content in sorted(files.items())
    )


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_code_is_uploaded_once_and_found_by_its_content(shared: Live, mode: str) -> None:
    files = {"train.py": secrets.token_bytes(100_000), "lib/x.py": b"x = 1\n"}
    named_digest = content_digest(files)
    find = f"/danlu/v1/{{p}}/code/{named_digest}?name=project"
    missing = shared.call("GET", find)
    assert (missing.status, missing.key) == (404, "code-missing")
    target = f"/danlu/v1/{{p}}/code?digest={named_digest}&name=project"
    body = archive(files, mode)
    code_dir = f"obs://danlu/code/{named_digest}/project/"
    for content in ("UNSIGNED-PAYLOAD", hashlib.sha256(body).hexdigest()):
        headers = {"Content-Type": "application/x-tar", "X-Sdk-Content-Sha256": content}
        stored = shared.call("POST", target, body, headers=headers)
        assert stored.status == 201, stored.body
        said = {"digest": named_digest, "files": 2, "bytes": 100_006}
        assert stored.json == {"code_dir": code_dir, **said}
    assert get(shared, find) == {"code_dir": code_dir}
    job = create_body(named(), command="", code_dir=code_dir, boot_file="train.py")
    created = shared.call("POST", "/v2/{p}/training-jobs", job)
    assert created.status == 201, created.body
    assert created.json["algorithm"]["boot_file"] == f"{code_dir}train.py"


def test_code_that_is_not_what_was_announced_is_refused(shared: Live) -> None:
    body = archive({"train.py": secrets.token_bytes(1000)})
    headers = {"X-Sdk-Content-Sha256": "UNSIGNED-PAYLOAD", "Content-Type": "application/x-tar"}
    wrong = shared.call(
        "POST", f"/danlu/v1/{{p}}/code?digest={'0' * 64}&name=p", body, headers=headers
    )
    assert (wrong.status, wrong.key) == (400, "field-value")
    assert "digest" in wrong.json["error_msg"]
    changed = {**headers, "X-Sdk-Content-Sha256": hashlib.sha256(b"other").hexdigest()}
    other = shared.call("POST", "/danlu/v1/{p}/code?name=p", body, headers=changed)
    assert (other.status, other.key) == (401, "signature-body")
    signed = shared.call("POST", "/danlu/v1/{p}/code?name=p", body)
    assert (signed.status, signed.key) == (401, "signature-header-missing")


@pytest.mark.parametrize(
    ("body", "said"),
    [(b"", "cut off"), (b"not a tar" * 200, "code archive"), (b"\x1f\x8bbroken", "compression")],
)
def test_an_archive_that_is_none_is_refused(shared: Live, body: bytes, said: str) -> None:
    headers = {"X-Sdk-Content-Sha256": "UNSIGNED-PAYLOAD", "Content-Type": "application/x-tar"}
    answer = shared.call("POST", "/danlu/v1/{p}/code?name=p", body, headers=headers)
    assert (answer.status, answer.key) == (400, "code-archive")
    assert said in answer.json["error_msg"]


def test_an_upload_that_is_cut_off_leaves_nothing(shared: Live) -> None:
    files = {"train.py": secrets.token_bytes(2 << 20)}
    body = archive(files)
    target = f"/danlu/v1/{shared.project}/code?name=cut"
    headers = {
        "Host": shared.host,
        "X-Sdk-Date": signing.now(),
        "X-Sdk-Content-Sha256": "UNSIGNED-PAYLOAD",
    }
    signed = signing.signed(shared.key, "POST", target, headers, body)
    head = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
    with socket.create_connection(("127.0.0.1", shared.port), timeout=30) as peer:
        peer.sendall(
            f"POST {target} HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode()
        )
        peer.sendall(body[: 1 << 20])
    for _ in range(20):
        assert shared.call("GET", "/danlu/v1/health").status == 200
    find = f"/danlu/v1/{{p}}/code/{content_digest(files)}?name=cut"
    assert shared.call("GET", find).status == 404


def test_a_list_that_no_index_serves_is_made_beside_the_event_loop(
    shared: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(fault 58) Of 100,000 jobs it takes half a second, in which nobody else would be answered."""
    jobs, places = SqlRecords.jobs, []

    def noted(self: SqlRecords, workspace: str, query: JobQuery) -> Page:
        places.append(threading.current_thread().name.startswith("http-worker"))
        return jobs(self, workspace, query)

    monkeypatch.setattr(SqlRecords, "jobs", noted)
    for asked, beside in (
        ("sort_by=created_at", False),
        ("sort_by=name&state=running", False),
        ("sort_by=duration", True),
        ("sort_by=priority", True),
        ("name=x", True),
    ):
        places.clear()
        get(shared, f"{JOBS}?{asked}")
        assert places == [beside], asked
