"""Bodies that are too large, too deep, too slow or no JSON; and paths that are none."""

from __future__ import annotations

import json
import socket

import pytest

from danlu.faces.http import incoming
from danlu.model import limits
from tests.faces.http import signing
from tests.faces.http.live import Live, create_body

JOBS = "/v2/{p}/training-jobs"
MIB = 1 << 20


def total(shared: Live) -> int:
    answer = shared.call("POST", "/v2/{p}/training-job-searches", {"limit": 1})
    return int(answer.json["total"])


def test_a_parameter_of_100_mb_is_refused_with_its_size(shared: Live) -> None:
    before = total(shared)
    body = json.dumps(
        create_body("big", parameters=[{"name": "p", "value": "x" * (100 * MIB)}])
    ).encode()
    answer = shared.call("POST", JOBS, body)
    assert answer.status == 413
    assert answer.json["error_code"] == "APIGW.0201"
    assert str(len(body)) in answer.json["error_msg"]
    assert str(limits.BODY_BYTES) in answer.json["error_msg"]
    assert "pass it as an input" in answer.json["error_msg"]
    assert answer.headers["connection"] == "close"
    assert total(shared) == before


def test_a_body_is_refused_before_it_is_sent(shared: Live) -> None:
    """Content-Length alone is enough: nothing of the body is waited for."""
    head = (
        f"POST /v2/{shared.project}/training-jobs HTTP/1.1\r\nHost: {shared.host}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {1 << 40}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", shared.port), timeout=30) as peer:
        peer.sendall(head.encode())
        assert peer.recv(4096).startswith(b"HTTP/1.1 413")


def test_a_chunked_body_is_cut_off_at_the_limit(shared: Live) -> None:
    head = (
        f"POST /v2/{shared.project}/training-jobs HTTP/1.1\r\nHost: {shared.host}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    piece = b"%x\r\n%b\r\n" % (MIB, b" " * MIB)
    with socket.create_connection(("127.0.0.1", shared.port), timeout=30) as peer:
        peer.sendall(head.encode())
        for _ in range(6):
            peer.sendall(piece)
        peer.sendall(b"0\r\n\r\n")
        assert peer.recv(4096).startswith(b"HTTP/1.1 413")


def test_a_chunked_body_within_the_limit_is_taken(shared: Live) -> None:
    body = json.dumps(create_body("chunked")).encode()
    path = f"/v2/{shared.project}/training-jobs"
    headers = {"Host": shared.host, "X-Sdk-Date": signing.now()}
    signed = signing.signed(shared.key, "POST", path, headers, body)
    head = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
    with socket.create_connection(("127.0.0.1", shared.port), timeout=30) as peer:
        peer.sendall(f"POST {path} HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for start in range(0, len(body), 7):
            part = body[start : start + 7]
            peer.sendall(b"%x\r\n%b\r\n" % (len(part), part))
        peer.sendall(b"0\r\n\r\n")
        assert peer.recv(4096).startswith(b"HTTP/1.1 201")


def test_a_body_that_does_not_arrive_is_given_up(
    shared: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incoming, "READ_S", 0.2)
    head = (
        f"POST /v2/{shared.project}/training-jobs HTTP/1.1\r\nHost: {shared.host}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    with socket.create_connection(("127.0.0.1", shared.port), timeout=30) as peer:
        peer.sendall(head.encode())
        answer = peer.recv(4096)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b'"key":"busy"' in answer


NOT_JSON = [
    (b"", "it is empty"),
    (b"  ", "it is empty"),
    (b"{", "line 1"),
    (b"[]", "a list, not an object"),
    (b"null", "null, not an object"),
    (b'"x"', "a string, not an object"),
    (b"{} {}", "Extra data"),
    (b'{"a": 1, "a": 2}', "'a' stands twice"),
    (b'{"metadata": {"name": "x", "name": "y"}}', "'name' stands twice"),
    (b'{"a": NaN}', "NaN is not JSON"),
    (b'{"a": -Infinity}', "-Infinity is not JSON"),
    (b'{"a": 1e999}', "not finite"),
    (b'{"a": 9223372036854775808}', "64 bits"),
    (b'{"a": ' + b"9" * 5000 + b"}", "64 bits"),
    (b'{"a": "\xff"}', "not UTF-8"),
    (b'\xef\xbb\xbf{"a": 1}', "not valid JSON"),
    ('{"a": "é"}'.encode("utf-16"), "not UTF-8"),
    (b'{"a": ' * 33 + b"1" + b"}" * 33, "deeper than 32"),
    (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "deeper than 32"),
    (b'{"a": "\n"}', "control character"),
]


@pytest.mark.parametrize(("body", "said"), NOT_JSON, ids=map(str, range(len(NOT_JSON))))
@pytest.mark.parametrize("path", [JOBS, "/v2/{p}/training-job-searches", "/danlu/v1/{p}/jobs"])
def test_what_is_not_json_is_said_to_be(shared: Live, path: str, body: bytes, said: str) -> None:
    answer = shared.call("POST", path, body)
    assert answer.status == 400
    assert answer.json["error_code"] == "ModelArts.2787"
    assert said in answer.json["error_msg"]


def test_depth_and_large_numbers_that_are_allowed_pass(shared: Live) -> None:
    deep = b'{"status": ' + b'{"a": ' * 30 + b"-9223372036854775808" + b"}" * 30
    body = deep + b', "metadata": {"name": "deep"}, "algorithm": {"command": "true"}}'
    assert shared.call("POST", JOBS, body).status == 201
    many = create_body("brackets", parameters=[{"name": "p", "value": "[" * 1000}])
    assert shared.call("POST", JOBS, many).status == 201


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "APIGW.0101"),
        ("GET", "/docs", 404, "APIGW.0101"),
        ("GET", "/v2/{p}/services", 404, "APIGW.0101"),
        ("POST", "/v1/{p}/models", 404, "APIGW.0101"),
        ("GET", "/v2/{p}/training-jobs", 405, "APIGW.0103"),
        ("PATCH", "/v2/{p}/training-jobs/x", 405, "APIGW.0103"),
        ("HEAD", "/danlu/v1/health", 405, ""),
        ("OPTIONS", "/danlu/v1/health", 405, "APIGW.0103"),
        ("TRACE", "/danlu/v1/health", 405, "APIGW.0103"),
        ("GET", "/danlu/v1/health/", 404, "APIGW.0101"),
        ("GET", "/<script>alert(1)</script>", 404, "APIGW.0101"),
    ],
)
def test_what_is_not_there_answers_json(
    shared: Live, method: str, path: str, status: int, code: str
) -> None:
    answer = shared.send(method, path.replace("{p}", shared.project), {"Host": shared.host})
    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    if code:
        assert answer.json["error_code"] == code
    if status == 405:
        allowed = answer.headers["allow"].split(", ")
        assert allowed
        assert method not in allowed


def test_a_405_names_everything_that_the_path_takes(shared: Live) -> None:
    answer = shared.send("PATCH", f"/v2/{shared.project}/training-jobs/x", {"Host": shared.host})
    assert answer.headers["allow"] == "DELETE, GET, PUT"


def test_every_reply_carries_the_security_headers_and_an_id(shared: Live) -> None:
    seen = set()
    for path in ("/danlu/v1/health", "/nothing", f"/v2/{shared.project}/training-job-flavors"):
        headers = shared.send("GET", path, {"Host": shared.host}).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert headers["cache-control"] == "no-store"
        assert not [name for name in headers if name.startswith("access-control-")]
        assert "server" not in headers
        seen.add(headers["x-request-id"])
    assert len(seen) == 3


@pytest.mark.parametrize(
    "target",
    [
        "/v2/{p}/training-job-flavors?flavor_type=TPU",
        "/v2/{p}/training-job-flavors?flavor_type=CPU&flavor_type=GPU",
        "/v2/{p}/training-job-flavors?colour=red",
        "/v2/{p}/training-jobs/none/events?limit=101",
        "/v2/{p}/training-jobs/none/events?limit=x",
        "/v2/{p}/training-jobs/none/events?offset=-1",
        "/v2/{p}/training-jobs/none/events?start_time=1",
        "/v2/{p}/training-jobs/none/events?start_time=x&end_time=y",
        "/v2/{p}/training-jobs/none/events?level=Fatal",
        "/danlu/v1/{p}/jobs?limit=0",
        "/danlu/v1/{p}/jobs?state=done",
        "/danlu/v1/{p}/jobs?name=%00",
        "/danlu/v1/{p}/jobs?" + "&".join(f"a{i}=1" for i in range(101)),
    ],
)
def test_a_query_that_cannot_be_served_is_refused(shared: Live, target: str) -> None:
    answer = shared.call("GET", target)
    assert answer.status == 400
    assert answer.json["error_code"] == "ModelArts.2788"
