"""The variables in which a job's program finds the storage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from danlu.model.codec import from_json, to_json
from danlu.model.script import Layout, TaskPlan, world
from danlu.model.storage import StorageAccess, access_key_of, attempt_of

ACCESS = StorageAccess("http://127.0.0.1:9", "here-1", "job-j-1", "the-secret")
LAYOUT = Layout("/home/ma-user", "/cache", "/tmp", "/usr/bin/python", "/bin", runtime="/r")
PLAN = TaskPlan("j", 1, 0, "t", "n", command="true", storage=ACCESS)


@pytest.mark.parametrize("job", ["j", "5a4d7b2e-0000-4000-8000-000000000000", "a-1-2"])
def test_an_access_key_names_its_attempt(job: str) -> None:
    assert attempt_of(access_key_of(job, 12)) == (job, 12)


@pytest.mark.parametrize("key", ["", "AKIA", "job-", "job-x", "job-x-0", "job-x-01", "job-x-1\n"])
def test_other_keys_are_users(key: str) -> None:
    assert attempt_of(key) is None


def test_libraries_find_the_storage() -> None:
    env = world(PLAN, LAYOUT).env

    for family in ("AWS", "OBS"):
        assert env[f"{family}_ACCESS_KEY_ID"] == "job-j-1"
        assert env[f"{family}_SECRET_ACCESS_KEY"] == "the-secret"
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "OBS_ENDPOINT", "S3_ENDPOINT"):
        assert env[name] == "http://127.0.0.1:9"
    assert (env["S3_USE_HTTPS"], env["S3_VERIFY_SSL"], env["AWS_ALLOW_HTTP"]) == ("0", "0", "true")
    secure = world(replace(PLAN, storage=replace(ACCESS, endpoint="https://obs.x")), LAYOUT).env
    assert (secure["S3_USE_HTTPS"], secure["S3_VERIFY_SSL"]) == ("1", "1")
    assert "AWS_ALLOW_HTTP" not in secure


def test_without_a_storage_there_are_none() -> None:
    env = world(replace(PLAN, storage=None), LAYOUT).env

    assert not [name for name in env if name.startswith(("AWS_", "OBS_", "S3_", "DANLU_OBS"))]


def test_who_brings_keys_of_his_own_is_not_sent_to_ours_with_them() -> None:
    own = {"AWS_ACCESS_KEY_ID": "AKIAOWN", "AWS_SECRET_ACCESS_KEY": "own"}

    env = world(replace(PLAN, environments=own), LAYOUT).env

    assert {name: env[name] for name in env if name.startswith("AWS_")} == own
    assert env["OBS_ACCESS_KEY_ID"] == env["DANLU_OBS_ACCESS_KEY"] == "job-j-1"


def test_the_secret_is_not_shown() -> None:
    assert "the-secret" not in repr(PLAN)
    assert from_json(TaskPlan, to_json(PLAN)) == PLAN


@pytest.mark.parametrize(
    ("endpoint", "here"),
    [
        ("http://127.0.0.1:9", True),
        ("http://[::1]:9", True),
        ("http://localhost:9", True),
        ("https://obs.example:9", False),
        ("http://10.0.0.1", False),
    ],
)
def test_who_can_reach_it(endpoint: str, *, here: bool) -> None:
    assert replace(ACCESS, endpoint=endpoint).on_this_machine is here


def test_the_storage_is_not_behind_a_proxy() -> None:
    assert ACCESS.past_proxies({"A": "b"}) == {"A": "b"}
    found = ACCESS.past_proxies({"HTTPS_PROXY": "http://p", "no_proxy": "localhost"})
    assert found["no_proxy"] == "localhost,127.0.0.1"
    assert found["NO_PROXY"] == "127.0.0.1"
