"""Who may come in. Every route, every part of a signature, and names that are not ours."""

from __future__ import annotations

import hashlib
import secrets
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator

import pytest

from danlu.engines.memory_script import Script
from danlu.faces.http.gate import SAME_SECOND_S, Access, Fresh, host_name
from danlu.faces.http.route import DeclaredRoute
from danlu.model.storage import access_key_of
from tests.faces.http import signing
from tests.faces.http.live import Answer, Live, create_body


def routes(shared: Live) -> list[DeclaredRoute]:
    app = shared.server.config.loaded_app
    while not hasattr(app, "router"):
        app = app.app
    found = app.router.routes
    assert all(isinstance(route, DeclaredRoute) for route in found), "a route registered itself"
    return list(found)


def target(shared: Live, route: DeclaredRoute, job_id: str = "none") -> str:
    values = {
        "project_id": shared.project,
        "training_job_id": job_id,
        "notebook_id": job_id,
        "key_name": "laptop",
        "job_id": job_id,
        "task_id": "worker-0",
        "task": "worker-0",
        "digest": "0" * 64,
        "workspace": shared.project,
        "job": job_id,
    }
    return route.path.format_map(defaultdict(lambda: "none", values))


def test_every_route_declares_an_action_and_access(shared: Live) -> None:
    found = routes(shared)
    assert len(found) > 25
    for route in found:
        assert route.rule.action.count(":") == 2, route.path
        writes = route.method in ("PUT", "DELETE", "PATCH")
        assert not writes or route.rule.writes, route.path
    public = {route.path for route in found if route.rule.access is Access.PUBLIC}
    assert public == {"/danlu/v1/health", "/openapi.json", "/v3/auth/tokens"}


def test_no_route_lets_in_no_or_wrong_credentials(shared: Live) -> None:
    host = {"Host": shared.host}
    date = {"X-Sdk-Date": signing.now()}
    for route in routes(shared):
        if route.rule.access is Access.PUBLIC:
            continue
        path = target(shared, route)
        wrong = signing.signed((shared.key[0], "wrong"), route.method, path, {**host, **date})
        unknown = signing.signed(("NOBODY", "x"), route.method, path, {**host, **date})
        for headers in (
            host,
            {**host, "X-Auth-Token": "dlu_nothing"},
            {**host, "X-Auth-Token": ""},
            {**host, "Authorization": "Bearer x"},
            {**host, "Cookie": "session=1"},
            wrong,
            unknown,
        ):
            answer = shared.send(route.method, path, headers)
            assert answer.status == 401, (route.method, path, headers)
            assert answer.json["error_code"] == "APIGW.0301"
            assert answer.headers["www-authenticate"] == "SDK-HMAC-SHA256"


def test_the_key_of_a_job_opens_no_route(shared: Live) -> None:
    """A script is not its user: what it finds in its environment is for the storage."""
    name = f"job-{uuid.uuid4().hex[:8]}"
    shared.script(name, Script(duration_s=None))
    job_id = shared.submit(name)
    found = shared.running.platform.records.access_key(access_key_of(job_id, 1))
    assert found is not None
    pair = (found.access_key, found.secret.reveal())
    for route in routes(shared):
        if route.rule.access in (Access.CALLER, Access.PROJECT):
            answer = shared.call(route.method, target(shared, route, job_id), b"", key=pair)
            assert (answer.status, answer.key) == (403, "key-for-storage"), route.path


def test_another_projects_caller_sees_nothing_of_ours(shared: Live) -> None:
    """Every route, with our project and our job in the path and their key."""
    name = f"job-{uuid.uuid4().hex[:8]}"
    job_id = shared.submit(name)
    shared.until(job_id, "succeeded")
    theirs, key = shared.another(f"u{secrets.token_hex(3)}")
    for route in routes(shared):
        if route.rule.access is not Access.PROJECT:
            continue
        ours = target(shared, route, job_id)
        body = b"{}" if route.method in ("POST", "PUT") else None
        unread = {"X-Sdk-Content-Sha256": "UNSIGNED-PAYLOAD"} if route.body_limits.streamed else {}
        answer = shared.call(route.method, ours, body, key=key, headers=unread)
        assert (answer.status, answer.key) == (403, "project-denied"), ours
        # Their own project, our job's id: there is no such job.
        if "{training_job_id}" in route.path or "{job_id}" in route.path:
            swapped = ours.replace(shared.project, theirs.id)
            answer = shared.call(route.method, swapped, body, key=key)
            assert answer.status in (400, 404, 426), swapped
            assert job_id not in answer.headers.get("x-request-id", "")
            if answer.status == 404:
                assert answer.key == "job-missing"
    listed = shared.call("POST", f"/v2/{theirs.id}/training-job-searches", {}, key=key)
    assert listed.json["items"] == []
    assert shared.call("GET", f"/danlu/v1/{theirs.id}/jobs/{name}", key=key).status == 404
    assert shared.call("GET", f"/danlu/v1/{theirs.id}/jobs/@last", key=key).status == 404
    assert shared.call("GET", f"/danlu/v1/{{p}}/jobs/{job_id}").status == 200


Signed = tuple[str, str, dict[str, str], bytes]


def mutations(sent: Signed) -> Iterator[tuple[str, Signed]]:
    """Ways to change a signed request, each of which must make its signature void."""
    method, path, headers, body = sent
    yield "method", ("PUT" if method != "PUT" else "POST", path, headers, body)
    for where in (f"{path}x", f"{path}%20", f"/{path}", path.replace("/v", "/V", 1)):
        yield f"path {where}", (method, where, headers, body)
    for query in ("?a=1", "?a=", "?a", "?%00=1", "?x=../y"):
        yield f"query {query}", (method, path + query, headers, body)
    for what, changed in changed_authorizations(headers["Authorization"]):
        yield f"authorization {what}", (method, path, {**headers, "Authorization": changed}, body)
    for what, other in changed_headers(headers):
        # On a busy machine a second passes, and "a second ago" is the date that was signed.
        if other != headers:
            yield what, (method, path, other, body)
    for data in (body + b" ", b"", body[:-1], b"[" + body + b"]", body.replace(b"t", b"T")):
        if data != body:
            yield f"body {data[:8]!r}", (method, path, headers, data)


def changed_authorizations(authorization: str) -> Iterator[tuple[str, str]]:
    for index in (0, 1, 31, 62, 63):
        start = authorization.index("Signature=") + len("Signature=") + index
        digit = "0" if authorization[start] != "0" else "1"
        yield f"digit {index}", authorization[:start] + digit + authorization[start + 1 :]
    for what, old, new in (
        ("upper", "Signature=", "Signature=A"),
        ("short", "Signature=", "Signature"),
        ("access", "Access=", "Access=X"),
        ("no access", "Access=", ""),
        ("algorithm", "SDK-HMAC-SHA256", "SDK-HMAC-SM3"),
        ("lower", "SDK-HMAC-SHA256", "sdk-hmac-sha256"),
        ("no host", "host;", ""),
        ("no date", ";x-sdk-date", ""),
        ("more", "SignedHeaders=", "SignedHeaders=accept;"),
        ("twice", "SignedHeaders=", "SignedHeaders=host;"),
        ("underscore", "SignedHeaders=", "SignedHeaders=a_b;"),
        ("separator", ", Signature", "; Signature"),
        ("tail", "Signature=", "Signature=\t"),
    ):
        yield what, authorization.replace(old, new, 1)


def changed_headers(headers: dict[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    for off in (-1, 1, 60, -901, 901, 86400, -86400):
        yield f"date {off}", {**headers, "X-Sdk-Date": signing.now(off)}
    for value in ("", "x", "20260230T000000Z", "99999999T999999Z", "0"):
        yield f"date {value!r}", {**headers, "X-Sdk-Date": value}
    for name, value in headers.items():
        if name not in ("Host", "Authorization"):
            yield f"without {name}", {key: headers[key] for key in headers if key != name}
            yield f"other {name}", {**headers, name: f"{value}1"}
            yield f"longer {name}", {**headers, name: f"{value} 1"}
    port = headers["Host"].partition(":")[2]
    for host in (f"localhost:{port}", "127.0.0.1", f"[::1]:{port}", "127.0.0.1:1"):
        yield f"host {host}", {**headers, "Host": host}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v2/{p}/training-job-flavors", b""),
        ("POST", "/v2/{p}/training-job-searches", b'{"limit": 1}'),
        ("POST", "/danlu/v1/{p}/jobs/plan", b'{"metadata": {"name": "t"}}'),
        ("DELETE", "/v2/{p}/training-jobs/none", b""),
        ("GET", "/v3/projects", b""),
    ],
)
def test_a_changed_request_is_denied(shared: Live, method: str, path: str, body: bytes) -> None:
    path = path.replace("{p}", shared.project)
    headers = {
        "Host": shared.host,
        "X-Sdk-Date": signing.now(),
        "X-Project-Id": shared.project,
        "X-Language": "en-us",
        "User-Agent": "test",
        **({"Content-Type": "application/json"} if body else {}),
    }
    signed = signing.signed(shared.key, method, path, headers, body)
    tried = 0
    for what, (verb, where, sent, data) in mutations((method, path, signed, body)):
        answer = shared.send(verb, where, sent, data)
        tried += 1
        # Another method or path may have no route: then there is nothing to be let in to.
        unrouted = answer.status in (404, 405) and what.startswith(("method", "path"))
        assert answer.status == 401 or unrouted, (what, answer.status, answer.body)
        assert shared.key[1].encode() not in answer.body
    assert tried >= 50
    for value in (hashlib.sha256(b"x").hexdigest(), "UNSIGNED-PAYLOAD"):
        # What was not signed along counts for nothing, and changes nothing.
        added = {**signed, "X-Sdk-Content-Sha256": value}
        if method != "DELETE":
            assert shared.send(method, path, added, body).status != 401
    assert shared.send(method, path, signed, body).status != 401


def test_a_secret_that_is_not_ours_says_what_to_check(shared: Live) -> None:
    answer = shared.call("GET", "/v2/{p}/training-job-flavors", key=(shared.key[0], "wrong"))
    assert (answer.status, answer.key) == (401, "signature-mismatch")
    assert "secret key" in answer.json["error_msg"]
    assert shared.host in answer.json["error_msg"]


def test_a_write_is_taken_only_within_the_second_that_its_date_names(shared: Live) -> None:
    """A loop of the SDK signs equal writes alike; whoever recorded one comes too late with it."""
    path = f"/v2/{shared.project}/training-jobs"
    body = b'{"metadata":{"name":"once"},"algorithm":{"command":"true"}}'
    headers = {"Host": shared.host, "X-Sdk-Date": signing.now(), "X-Nonce": secrets.token_hex(4)}
    signed = signing.signed(shared.key, "POST", path, headers, body)
    first = shared.send("POST", path, signed, body)
    assert first.status == 201
    begun = time.monotonic()
    again = shared.send("POST", path, signed, body)
    if time.monotonic() - begun < SAME_SECOND_S / 2:  # the machine did not stand still
        assert again.status == 201
        assert again.json["metadata"]["id"] != first.json["metadata"]["id"]
    time.sleep(SAME_SECOND_S + 0.1)
    late = shared.send("POST", path, signed, body)
    assert (late.status, late.key) == (401, "signature-replayed")


def test_signatures_stay_fresh_from_their_first_use_on() -> None:
    fresh = Fresh()
    fresh.add("a", 10.0)
    fresh.add("b", 11.0)
    assert fresh.holds("a", 10.0 + SAME_SECOND_S)
    assert not fresh.holds("a", 10.1 + SAME_SECOND_S), "asking does not make it younger"
    assert fresh.holds("b", 10.1 + SAME_SECOND_S)
    assert not fresh.holds("c", 10.0)


def test_a_read_may_be_repeated(shared: Live) -> None:
    for method, where, body in (
        ("GET", "/v2/{p}/training-job-flavors", b""),
        ("POST", "/v2/{p}/training-job-searches", b"{}"),
    ):
        path = where.replace("{p}", shared.project)
        headers = {"Host": shared.host, "X-Sdk-Date": signing.now()}
        signed = signing.signed(shared.key, method, path, headers, body)
        assert [shared.send(method, path, signed, body).status for _ in range(2)] == [200, 200]


def test_headers_that_were_not_signed_are_not_read(shared: Live) -> None:
    path = f"/v2/{shared.project}/training-jobs/none"
    headers = {"Host": shared.host, "X-Sdk-Date": signing.now()}
    signed = signing.signed(shared.key, "GET", path, headers)
    added = shared.send("GET", path, {**signed, "X-Language": "zh-cn"})
    assert "there is no training job" in added.json["error_msg"]

    create = f"/v2/{shared.project}/training-jobs"
    tokens = {"X-Client-Token": secrets.token_hex(8)}
    made = []
    for _ in range(2):
        body = str(create_body(f"job-{secrets.token_hex(4)}")).replace("'", '"').encode()
        fresh = {**headers, "X-Nonce": secrets.token_hex(4)}
        sent = signing.signed(shared.key, "POST", create, fresh, body)
        made.append(shared.send("POST", create, {**sent, **tokens}, body).status)
    assert made == [201, 201]


FOREIGN = """
evil.example  evil.example:{port}  127.0.0.1.evil.example  localhost.evil.example  127.0.0.2:{port}
10.0.0.1  0.0.0.0:{port}  [::2]:{port}  2130706433  0x7f000001  127.1  xn--lcalhost-7ya
localhost:{port}:1  localhost@evil.example  localhost/  [::1  [::1]x  :{port}  localhost:x
localhost:9999999  localhost..  *  127.0.0.1%00  127.0.0.1,evil.example
"""


@pytest.mark.parametrize("host", [*FOREIGN.split(), "", "a localhost"])
def test_a_foreign_host_is_refused(shared: Live, host: str) -> None:
    host = host.format(port=shared.port)
    answer = shared.send("GET", "/danlu/v1/health", {"Host": host})
    assert answer.status in (400, 403), answer.body
    if answer.status == 403:
        assert answer.key == "host-refused"
        assert answer.headers["content-type"] == "application/json"


OWN = "localhost LOCALHOST:{port} 127.0.0.1 [::1]:{port} localhost.:{port} localhost:1"


@pytest.mark.parametrize("host", OWN.split())
def test_our_own_names_are_taken(shared: Live, host: str) -> None:
    answer = shared.send("GET", "/danlu/v1/health", {"Host": host.format(port=shared.port)})
    assert answer.status == 200


def test_a_request_without_a_host_or_with_two_is_refused(shared: Live) -> None:
    assert shared.send("GET", "/danlu/v1/health", {}).status in (400, 403)
    twice = {"Host": shared.host, "host": "evil.example"}
    assert shared.send("GET", "/danlu/v1/health", twice).status in (400, 403)


@pytest.mark.parametrize(
    ("host", "name"),
    [("a:1", "a"), ("A.B.", "a.b"), ("[::1]:80", "::1"), ("[::1]", "::1"), ("a:b", ""), ("[a", "")],
)
def test_a_host_header_is_a_name_and_perhaps_a_port(host: str, name: str) -> None:
    assert host_name(host) == name


ODD = """
/v2/{p}/training-jobs/a%2Fb  /v2/{p}/training-jobs/%00  /v2/{p}/training-jobs/..
/v2/{p}/training-jobs/%2e%2e  /v2/{p}/training-jobs/%2e%2e%2f{p}  /v2/{p}/training-jobs/%
/v2/{p}/training-jobs/%FF%FE  /v2/{p}/training-jobs/%ED%A0%80  /v2/{p}/training-jobs/a;b
/v2/{p}//training-jobs/x  /v2/{p}/../{p}/training-jobs/x  /danlu/v1/{p}/jobs/%00
/danlu/v1/{p}/jobs/%2F  /danlu/v1/{p}/jobs/@last%00  /danlu/v1/{p}/jobs/x/tasks/..%2fetc/log
"""


@pytest.mark.parametrize("path", [*ODD.split(), f"/v2/{{p}}/training-jobs/{'x' * 4000}"])
def test_odd_paths_name_nothing(shared: Live, path: str) -> None:
    answer: Answer = shared.call("GET", path)
    assert answer.status == 404, answer.body
    assert answer.key in ("job-missing", "no-such-path")


def test_an_escaped_project_is_the_project(shared: Live) -> None:
    escaped = "".join(f"%{ord(c):02X}" for c in shared.project)
    assert shared.call("GET", f"/v2/{escaped}/training-job-flavors").status == 200
    other = shared.call("GET", "/v2/other%2Fproject/training-job-flavors")
    assert (other.status, other.key) == (403, "project-denied")
