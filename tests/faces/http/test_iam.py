"""IAM's calls: projects by region, domains, and tokens that let in."""

from __future__ import annotations

import hashlib
import json
import secrets
from pathlib import Path
from typing import Any

import pytest

from tests.faces.http.live import Answer, Live, live


def sign_in(shared: Live, name: str, password: str, **scope: Any) -> Answer:
    body = {
        "auth": {
            "identity": {
                "methods": ["password"],
                "password": {
                    "user": {"name": name, "password": password, "domain": {"name": name}}
                },
            },
            "scope": scope or {"project": {"name": "cn-north-4"}},
        }
    }
    return shared.send(
        "POST",
        "/v3/auth/tokens",
        {"Host": shared.host, "Content-Type": "application/json"},
        json.dumps(body).encode(),
    )


def password(shared: Live) -> str:
    return (shared.running.settings.data / "admin-password").read_text().strip()


def test_a_project_is_found_under_the_regions_name(shared: Live) -> None:
    for region in (shared.running.workspace.region, "cn-north-4", "my-lab-1"):
        found = shared.call("GET", f"/v3/projects?name={region}").json["projects"]
        assert [(item["id"], item["name"]) for item in found] == [(shared.project, region)]
    (own,) = shared.call("GET", "/v3/projects").json["projects"]
    assert own["name"] == shared.running.workspace.region
    assert shared.call("GET", "/v3/projects?name=%3Cb%3E").json["projects"] == []
    assert shared.call("GET", "/v3/projects?colour=red").status == 400


def test_the_callers_domain(shared: Live) -> None:
    (domain,) = shared.call("GET", "/v3/auth/domains").json["domains"]
    assert domain["id"] == shared.running.admin.user.domain_id
    assert domain["enabled"] is True


def test_a_token_lets_in_like_a_key(shared: Live) -> None:
    answer = sign_in(shared, "admin", password(shared))
    assert answer.status == 201, answer.body
    token = answer.headers["x-subject-token"]
    assert token.startswith("dlu_")
    assert len(token) >= 40
    said = answer.json["token"]
    assert said["project"]["id"] == shared.project
    assert said["user"]["name"] == "admin"
    assert said["expires_at"] > said["issued_at"]
    headers = {"Host": shared.host, "X-Auth-Token": token}
    listed = shared.send("GET", f"/v2/{shared.project}/training-job-flavors", headers)
    assert listed.status == 200
    refused = shared.send("GET", "/v2/other/training-job-flavors", headers)
    assert (refused.status, refused.key) == (403, "project-denied")
    # A token that signs nothing carries every header it is sent with.
    chinese = shared.send(
        "GET", f"/v2/{shared.project}/training-jobs/x", {**headers, "X-Language": "zh-cn"}
    )
    assert "没有" in chinese.json["error_msg"]


def test_only_the_digest_of_a_token_is_kept(shared: Live) -> None:
    token = sign_in(shared, "admin", password(shared)).headers["x-subject-token"]
    data = shared.running.settings.data
    kept = b"".join(path.read_bytes() for path in data.glob("danlu.sqlite*"))
    assert token.encode() not in kept
    assert hashlib.sha256(token.encode()).hexdigest().encode() in kept


def test_an_expired_token_is_unknown(shared: Live) -> None:
    token = f"dlu_{secrets.token_hex(16)}"
    digest = hashlib.sha256(token.encode()).hexdigest()
    now = shared.running.platform.clock.now()
    user = shared.running.admin.user.id
    shared.running.platform.records.add_token(digest, user, now - 1).result()
    path = f"/v2/{shared.project}/training-job-flavors"
    answer = shared.send("GET", path, {"Host": shared.host, "X-Auth-Token": token})
    assert (answer.status, answer.key) == (401, "token-unknown")


@pytest.mark.parametrize("scope", [{"project": {"id": "someone-elses"}}, {"project": {"id": "x"}}])
def test_a_token_is_for_the_users_own_project(shared: Live, scope: dict[str, Any]) -> None:
    answer = sign_in(shared, "admin", password(shared), **scope)
    assert (answer.status, answer.key) == (403, "project-denied")


@pytest.mark.parametrize(
    ("identity", "said"),
    [
        ({"methods": ["token"], "token": {"id": "x"}}, "auth.identity"),
        ({"methods": ["totp"]}, "methods"),
        ({"methods": []}, "auth.identity"),
        ({"methods": ["password"]}, "auth.identity.password"),
        ({"methods": ["password"], "password": {"user": {"name": "a"}}}, "user.password"),
        ({"methods": ["password"], "password": {"user": {"password": "b"}}}, "user.name"),
        ({"methods": ["password"], "password": {"user": {"name": "a", "password": 5}}}, "password"),
        (
            {"methods": ["password"], "password": {"user": {"name": "a", "password": "s3cret\0"}}},
            "NUL",
        ),
    ],
)
def test_a_sign_in_that_cannot_be_read(shared: Live, identity: Any, said: str) -> None:
    body = {"auth": {"identity": identity}}
    answer = shared.call("POST", "/v3/auth/tokens", body)
    assert answer.status == 400, answer.body
    assert said in answer.json["error_msg"]
    assert "s3cret" not in answer.json["error_msg"]


def test_too_many_wrong_passwords_lock_the_account_and_no_other(tmp_path: Path) -> None:
    with live(tmp_path) as server:
        server.another("carol", "right")
        for _ in range(10):
            answer = sign_in(server, "carol", "wrong")
            assert (answer.status, answer.key) == (401, "password-wrong")
        locked = sign_in(server, "carol", "right")
        assert (locked.status, locked.key) == (429, "too-many-tries")
        assert locked.json["error_code"] == "APIGW.0308"
        assert 0 < int(locked.headers["retry-after"]) <= 900
        assert sign_in(server, "admin", password(server)).status == 201
        assert sign_in(server, "nobody", "x").key == "password-wrong"


def test_too_many_wrong_passwords_from_one_address(tmp_path: Path) -> None:
    with live(tmp_path) as server:
        limiter = server.server.state.by_address
        for _ in range(100):
            limiter.failed("127.0.0.1")
        assert sign_in(server, "admin", password(server)).status == 429


def test_a_user_without_a_password_cannot_sign_in(shared: Live) -> None:
    shared.another("keys-only")
    assert sign_in(shared, "keys-only", "").key == "password-wrong"
