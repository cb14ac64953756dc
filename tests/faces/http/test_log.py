"""Logs: previews, links, lines, stretches, and followers that resume."""

from __future__ import annotations

import http.client
import itertools
import json
import secrets
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from danlu.engines.memory_script import Script
from danlu.faces.http import danlu_log
from danlu.faces.http.danlu_log import unfinished
from tests.faces.http import signing
from tests.faces.http.live import PATIENCE_S, Live

TEXT = "".join(f"第 {n} 行 — line {n}\n" for n in range(1, 201)).encode()
RUNS: dict[str, Any] = {"duration_s": None, "on_term_s": 0.0}


def named() -> str:
    return f"log-{uuid.uuid4().hex[:8]}"


def written(shared: Live, output: bytes, **script: Any) -> str:
    """A job that wrote `output` and has ended."""
    name = named()
    shared.script(name, Script(output=((0.0, output),), **script))
    job_id = shared.submit(name)
    shared.until(job_id, "succeeded")
    return job_id


def running(shared: Live, *output: tuple[float, bytes], **script: Any) -> str:
    """A job that runs, having written the first part of its output."""
    name = named()
    shared.script(name, Script(output=output, **{**RUNS, **script}))
    job_id = shared.submit(name)
    shared.until(job_id, "running")
    return job_id


def stop(shared: Live, job_id: str) -> None:
    assert shared.call("POST", f"/danlu/v1/{{p}}/jobs/{job_id}/stop").status == 202


@contextmanager
def opened(
    shared: Live, target: str, headers: Mapping[str, str] | None = None
) -> Iterator[http.client.HTTPResponse]:
    """A response that is still being sent."""
    target = target.replace("{p}", shared.project)
    sent = {
        "Host": shared.host,
        "X-Sdk-Date": signing.now(),
        "X-Nonce": secrets.token_hex(4),
        **(headers or {}),
    }
    connection = http.client.HTTPConnection("127.0.0.1", shared.port, timeout=PATIENCE_S)
    try:
        signed = signing.signed(shared.key, "GET", target, sent)
        connection.putrequest("GET", target, skip_host=True, skip_accept_encoding=True)
        for name, value in signed.items():
            connection.putheader(name, value)
        connection.endheaders()
        yield connection.getresponse()
    finally:
        connection.close()


# ---------------------------------------------------------------- ModelArts


def test_a_preview_holds_what_was_printed(shared: Live) -> None:
    job_id = written(shared, TEXT)
    said = shared.call("GET", f"/v2/{{p}}/training-jobs/{job_id}/tasks/worker-0/logs/preview").json
    assert said == {
        "content": TEXT.decode(),
        "current_size": len(TEXT),
        "full_size": len(TEXT),
    }


def test_a_preview_of_a_long_log_is_its_end(shared: Live) -> None:
    log = b"".join(b"%07d\n" % n for n in range(800_000))
    job_id = written(shared, log)
    said = shared.call("GET", f"/v2/{{p}}/training-jobs/{job_id}/tasks/worker-0/logs/preview").json
    assert said["full_size"] == len(log)
    assert said["current_size"] == 5 << 20
    assert said["content"].encode() == log[-(5 << 20) :]


def test_a_log_that_was_not_written_yet_is_empty(shared: Live) -> None:
    """(case 12) asked for before anything was written: empty, not an error"""
    full = [running(shared) for _ in range(8)]
    name = named()
    job_id = shared.submit(name)
    assert shared.call("GET", f"/danlu/v1/{{p}}/jobs/{job_id}").json["state"] == "queued"
    base = f"/v2/{{p}}/training-jobs/{job_id}"
    preview = shared.call("GET", f"{base}/tasks/worker-0/logs/preview")
    assert (preview.status, preview.json["content"]) == (200, "")
    assert shared.call("GET", f"{base}/logs/worker-0").json["lines"] == 0
    assert shared.call("GET", f"{base}/metrics/worker-0").json["metrics"][0]["value"] == []
    stretch = shared.call("GET", f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log")
    assert (stretch.body, stretch.headers["x-log-ended"]) == (b"", "false")
    stop(shared, job_id)
    for other in full:
        stop(shared, other)
    shared.until(job_id, "cancelled")


def test_bytes_that_are_no_utf8_are_replaced_and_nothing_stops(shared: Live) -> None:
    """(case 17) an invalid byte must not end a log"""
    job_id = written(shared, b"a\xff\xfeb\n\x00c\n")
    said = shared.call("GET", f"/v2/{{p}}/training-jobs/{job_id}/tasks/worker-0/logs/preview").json
    assert said["content"] == "a��b\n\0c\n"
    raw = shared.call("GET", f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log")
    assert raw.body == b"a\xff\xfeb\n\x00c\n"


@pytest.mark.parametrize("task", ["worker-1", "worker-00", "worker", "master-0", "worker--1", "x"])
def test_a_task_that_is_none_is_named(shared: Live, task: str) -> None:
    job_id = written(shared, b"x")
    for path in (f"tasks/{task}/logs/preview", f"logs/{task}", f"metrics/{task}"):
        answer = shared.call("GET", f"/v2/{{p}}/training-jobs/{job_id}/{path}")
        assert (answer.status, answer.key) == (404, "task-missing")
        assert "worker-0" in answer.json["error_msg"]


def lines(shared: Live, job_id: str, query: str = "") -> Any:
    answer = shared.call("GET", f"/v2/{{p}}/training-jobs/{job_id}/logs/worker-0{query}")
    assert answer.status == 200, answer.body
    return answer.json


def test_lines_are_paged_forwards_by_their_numbers(shared: Live) -> None:
    """(case 21) pages of old logs are in order and not empty"""
    job_id = written(shared, TEXT)
    seen, base = "", ""
    while True:
        page = lines(shared, job_id, f"?order=asc&lines=60&base_line={base}")
        if not page["lines"]:
            break
        seen += page["content"]
        base = page["end_line"]
    assert seen.encode() == TEXT
    assert base == "200"


def test_lines_are_paged_backwards_from_the_end(shared: Live) -> None:
    job_id = written(shared, TEXT)
    page = lines(shared, job_id)
    assert (page["start_line"], page["end_line"], page["lines"]) == ("200", "151", 50)
    assert page["content"].splitlines()[0] == "第 200 行 — line 200"
    seen = page["content"].splitlines()
    while page["lines"]:
        page = lines(shared, job_id, f"?base_line={page['end_line']}&lines=77&order=desc")
        seen += page["content"].splitlines()
    assert seen[::-1] == TEXT.decode().splitlines()


def test_a_line_that_is_not_ended_counts(shared: Live) -> None:
    job_id = written(shared, b"one\ntwo\nthr")
    assert lines(shared, job_id, "?order=asc")["content"] == "one\ntwo\nthr\n"
    assert lines(shared, job_id, "?order=asc&base_line=3")["lines"] == 0


@pytest.mark.parametrize("query", ["?lines=0", "?lines=501", "?base_line=-1", "?order=up", "?x=1"])
def test_lines_that_cannot_be_asked_for(shared: Live, query: str) -> None:
    job_id = written(shared, b"x")
    answer = shared.call("GET", f"/v2/{{p}}/training-jobs/{job_id}/logs/worker-0{query}")
    assert (answer.status, answer.json["error_code"]) == (400, "ModelArts.2788")


def link(shared: Live, job_id: str, query: str = "") -> str:
    path = f"/v2/{{p}}/training-jobs/{job_id}/tasks/worker-0/logs/url{query}"
    answer = shared.call("GET", path)
    assert answer.status == 200, answer.body
    url = str(answer.json["obs_url"])
    base = f"http://{shared.host}"
    assert url.startswith(base)
    return url.removeprefix(base)


def test_a_link_downloads_the_whole_log_without_credentials(shared: Live) -> None:
    job_id = written(shared, TEXT)
    answer = shared.send("GET", link(shared, job_id), {"Host": shared.host})
    assert (answer.status, answer.body) == (200, TEXT)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    octets = link(shared, job_id, "?Content-Type=application%2Foctet-stream")
    answer = shared.send("GET", octets, {"Host": shared.host})
    assert (answer.body, answer.headers["content-type"]) == (TEXT, "application/octet-stream")


def test_a_link_is_good_for_one_log_and_five_minutes(
    shared: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id, other = written(shared, TEXT), written(shared, b"other")
    target = link(shared, job_id)
    host = {"Host": shared.host}
    path, _, query = target.partition("?")
    for changed in (
        target.replace(job_id, other),
        target.replace("worker-0", "worker-1"),
        target.replace("text%2Fplain", "text%2Fhtml"),
        target.replace("signature=", "signature=0"),
        target.replace("expires=", "expires=9"),
        path,
        f"{path}?signature=",
        f"{path}?{query}&expires=1",
    ):
        assert shared.send("GET", changed, host).status in (400, 401), changed
    now = shared.server.state.now
    monkeypatch.setattr(shared.server.state, "now", lambda: now() + 299_000)
    assert shared.send("GET", target, host).status == 200
    monkeypatch.setattr(shared.server.state, "now", lambda: now() + 302_000)
    late = shared.send("GET", target, host)
    assert (late.status, late.key) == (401, "link-invalid")


def test_a_link_is_never_a_page(shared: Live) -> None:
    job_id = written(shared, b"<script>alert(1)</script>")
    path = f"/v2/{{p}}/training-jobs/{job_id}/tasks/worker-0/logs/url?Content-Type=text%2Fhtml"
    assert shared.call("GET", path).status == 400


# ---------------------------------------------------------------- stretches


def test_a_stretch_by_offset_from_both_ends(shared: Live) -> None:
    job_id = written(shared, b"0123456789")
    target = f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log"
    for query, body, offset, following in (
        ("", b"0123456789", 0, 10),
        ("?offset=3&limit=4", b"3456", 3, 7),
        ("?offset=-3", b"789", 7, 10),
        ("?offset=-300", b"0123456789", 0, 10),
        ("?offset=10", b"", 10, 10),
    ):
        answer = shared.call("GET", target + query)
        assert answer.body == body, query
        assert answer.headers["x-log-offset"] == str(offset)
        assert answer.headers["x-log-next"] == str(following)
        assert answer.headers["content-type"] == "application/octet-stream"
    assert shared.call("GET", target).headers["x-log-ended"] == "true"


# ---------------------------------------------------------------- following


def test_a_follower_waits_for_a_queued_job_and_reads_to_its_end(shared: Live) -> None:
    """(case 10) following a job that waits does not end before it has run"""
    full = [running(shared) for _ in range(8)]
    name = named()
    shared.script(name, Script(output=((0.0, b"hello\n"),)))
    job_id = shared.submit(name)
    with opened(shared, f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log?follow=1") as response:
        assert response.status == 200
        for other in full:
            stop(shared, other)
        assert response.read() == b"hello\n"
    assert shared.until(job_id, "succeeded")


def test_a_follower_gets_what_is_written_while_it_follows(shared: Live) -> None:
    parts = [(n * 0.05, b"part %d\n" % n) for n in range(10)]
    name = named()
    shared.script(name, Script(duration_s=0.6, output=parts))
    job_id = shared.submit(name)
    with opened(shared, f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log?follow=1") as response:
        whole = response.read()
    assert whole == b"".join(data for _, data in parts)


def events(response: http.client.HTTPResponse) -> Iterator[tuple[str, str, Any]]:
    """(event, id, data) of each event; comments as ("", "", text)."""
    fields: dict[str, str] = {}
    for line in response:
        text = line.decode().rstrip("\n")
        if text:
            name, _, value = text.partition(": ")
            fields[name] = value
            continue
        if "data" in fields:
            yield fields.get("event", ""), fields.get("id", ""), json.loads(fields["data"])
        else:
            yield "", "", fields.get("", "")
        fields = {}


SSE = {"Accept": "text/event-stream"}


def test_events_carry_absolute_offsets_and_end_with_the_state(shared: Live) -> None:
    job_id = written(shared, TEXT)
    target = f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log?follow=1"
    with opened(shared, target, SSE) as response:
        assert response.headers["content-type"] == "text/event-stream"
        found = [event for event in events(response) if event[0]]
    logs = [data for kind, _, data in found if kind == "log"]
    assert "".join(data["text"] for data in logs).encode() == TEXT
    assert logs[0]["offset"] == 0
    assert all(a["next"] == b["offset"] for a, b in itertools.pairwise(logs))
    assert [int(id_) for kind, id_, _ in found if kind == "log"] == [d["next"] for d in logs]
    assert found[-1] == ("end", "", {"next": len(TEXT), "state": "succeeded"})


def test_a_follower_resumes_where_it_was_cut_off(shared: Live) -> None:
    job_id = written(shared, TEXT)
    target = f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log?follow=1"
    cut = TEXT.index("第 77".encode())
    with opened(shared, target, {**SSE, "Last-Event-ID": str(cut)}) as response:
        rest = "".join(data["text"] for kind, _, data in events(response) if kind == "log")
    assert rest.encode() == TEXT[cut:]
    with opened(shared, f"{target}&offset={cut}") as response:
        assert response.read() == TEXT[cut:]
    with opened(shared, f"{target}&offset=-100") as response:
        assert response.read() == TEXT[-100:]
    with opened(shared, f"{target}&offset=1000000") as response:
        assert response.read() == b""


@pytest.mark.parametrize("value", ["x", "-1", "1.5", "9" * 30])
def test_a_last_event_id_that_is_none(shared: Live, value: str) -> None:
    job_id = written(shared, b"x")
    target = f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log"
    answer = shared.call("GET", target, headers={**SSE, "Last-Event-ID": value})
    assert (answer.status, answer.key) == (400, "field-value")


def test_no_event_splits_a_character(shared: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("danlu.faces.http.follow.BITE", 7)
    text = "a中文字𝄞é" * 50
    job_id = written(shared, text.encode() + b"\xe4\xb8")
    target = f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log"
    with opened(shared, target, SSE) as response:
        found = [data for kind, _, data in events(response) if kind == "log"]
    assert "".join(data["text"] for data in found) == text + "�"
    assert "�" not in "".join(data["text"] for data in found[:-1])


@pytest.mark.parametrize(
    ("data", "rest"),
    [
        (b"", b""), (b"abc", b""), ("é".encode(), b""), (b"a\xc3", b"\xc3"),
        ("中".encode(), b""), (b"\xe4\xb8", b"\xe4\xb8"), (b"\xe4", b"\xe4"),
        (b"\xf0\x9d\x84", b"\xf0\x9d\x84"), (b"a\xf0\x9d", b"\xf0\x9d"), (b"\xff", b""),
        (b"\x80\x80\x80\x80", b""), (b"\xc3\xc3", b"\xc3"), (b"\xf8\x80", b""),
    ],
)  # fmt: skip
def test_what_is_left_of_a_character(data: bytes, rest: bytes) -> None:
    assert unfinished(data) == rest


def test_a_silent_log_is_pinged(shared: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(danlu_log, "PING_S", 0.05)
    job_id = running(shared, (0.0, b"one\n"))
    target = f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log"
    with opened(shared, target, SSE) as response:
        stream = events(response)
        while next(stream)[2] != "ping":
            pass
        stop(shared, job_id)
        assert [event for event in stream if event[0]][-1][0] == "end"


def tails(shared: Live) -> int:
    return shared.server.state.tails.count()


def until(what: Any) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_a_client_that_hangs_up_is_forgotten(shared: Live) -> None:
    job_id = running(shared, (0.0, b"x\n"))
    before = tails(shared)
    for headers in (SSE, {}):
        target = f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log?follow=1"
        with opened(shared, target, headers):
            until(lambda: tails(shared) == before + 1)
        until(lambda: tails(shared) == before)
    stop(shared, job_id)


def test_a_client_that_does_not_read_holds_little(shared: Live) -> None:
    """A log of 64 MiB is followed and never read: the server keeps bites, not the log."""
    job_id = written(shared, b"x" * (64 << 20))
    target = f"/danlu/v1/{shared.project}/jobs/{job_id}/tasks/worker-0/log?follow=1"
    headers = {"Host": shared.host, "X-Sdk-Date": signing.now()}
    signed = signing.signed(shared.key, "GET", target, headers)
    head = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
    with socket.create_connection(("127.0.0.1", shared.port), timeout=PATIENCE_S) as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.sendall(f"GET {target} HTTP/1.1\r\n{head}\r\n".encode())
        until(lambda: tails(shared) > 0)
        # Others are served meanwhile, and what is queued for the silent one stays bounded.
        for _ in range(20):
            assert shared.call("GET", "/danlu/v1/health").status == 200
        connections = shared.server.server_state.connections
        queued = [each.transport.get_write_buffer_size() for each in list(connections)]
        assert max(queued, default=0) < 1 << 20


def test_hundreds_follow_one_log_and_all_get_all_of_it(shared: Live) -> None:
    parts = [(0.2 + n * 0.01, b"line %d\n" % n) for n in range(50)]
    job_id = running(shared, *parts)
    target = f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log?follow=1"
    found: list[bytes] = []

    def follow() -> None:
        with opened(shared, target) as response:
            found.append(response.read())

    threads = [threading.Thread(target=follow) for _ in range(200)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    stop(shared, job_id)
    for thread in threads:
        thread.join(PATIENCE_S)
    assert found == [b"".join(data for _, data in parts)] * 200


def test_a_follower_ends_when_the_job_is_deleted(shared: Live) -> None:
    job_id = written(shared, b"x\n")
    assert shared.call("DELETE", f"/danlu/v1/{{p}}/jobs/{job_id}").status == 202
    answer = shared.call("GET", f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log?follow=1")
    assert answer.status == 404
