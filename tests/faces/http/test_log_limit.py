"""Logs that grew beyond their limit: what is kept, what is said of the rest, and true offsets."""

from __future__ import annotations

import itertools

import pytest

from danlu.engines.memory_script import Script
from tests.faces.http.live import Live, create_body
from tests.faces.http.test_log import SSE, events, link, named, opened

LONG = "".join(f"{number:09d}\n" for number in range(300_000)).encode()
HEAD = LONG.find(b"\n", 1 << 19) + 1
TAIL = LONG.find(b"\n", len(LONG) - (1 << 19)) + 1


def beyond(shared: Live) -> str:
    """A job whose log of 3 MB is kept to 1 MiB."""
    name = named()
    shared.script(name, Script(output=((0.0, LONG),)))
    body = {**create_body(name), "danlu": {"log_limit_mib": 1}}
    job_id = str(shared.call("POST", "/v2/{p}/training-jobs", body).json["metadata"]["id"])
    shared.until(job_id, "succeeded")
    return job_id


def marked(mark: bytes) -> bool:
    """Whether a line says in numbers what is missing."""
    counts = (str(TAIL - HEAD).encode(), str(LONG.count(b"\n", HEAD, TAIL)).encode())
    return mark.startswith(b"[danlu") and all(count in mark for count in counts)


def test_a_followed_log_has_one_line_for_what_was_dropped(shared: Live) -> None:
    """(fault 45)"""
    job_id = beyond(shared)
    target = f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log?follow=1"
    with opened(shared, target) as response:
        whole = response.read()
    mark = whole[HEAD : len(whole) - (len(LONG) - TAIL)]
    assert whole == LONG[:HEAD] + mark + LONG[TAIL:]
    assert marked(mark)
    assert mark.count(b"\n") == 1
    downloaded = shared.send("GET", link(shared, job_id), {"Host": shared.host}).body
    assert downloaded == whole
    preview = f"/v2/{{p}}/training-jobs/{job_id}/tasks/worker-0/logs/preview"
    said = shared.call("GET", preview).json
    assert (said["content"].encode(), said["full_size"]) == (whole, len(LONG))


def test_offsets_stay_true_across_a_gap(shared: Live) -> None:
    job_id = beyond(shared)
    target = f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log"
    with opened(shared, f"{target}?follow=1&gaps=stop") as response:
        assert response.read() == LONG[:HEAD]
    with opened(shared, f"{target}?follow=1&gaps=stop&offset={HEAD}") as response:
        assert response.headers["x-log-offset"] == str(TAIL)
        assert response.headers["x-log-dropped-bytes"] == str(TAIL - HEAD)
        assert response.headers["x-log-dropped-lines"] == str(LONG.count(b"\n", HEAD, TAIL))
        assert response.read() == LONG[TAIL:]
    answer = shared.call("GET", f"{target}?offset={HEAD}&limit=20")
    assert (answer.headers["x-log-offset"], answer.body) == (str(TAIL), LONG[TAIL : TAIL + 20])
    assert shared.call("GET", f"/danlu/v1/{{p}}/jobs/{job_id}").json["log_bytes"] == len(LONG)


def test_events_tell_of_a_gap_and_go_on_behind_it(shared: Live) -> None:
    job_id = beyond(shared)
    target = f"/danlu/v1/{{p}}/jobs/{job_id}/tasks/worker-0/log"
    with opened(shared, target, SSE) as response:
        found = [(kind, id_, data) for kind, id_, data in events(response) if kind != ""]
    gaps = [(id_, data) for kind, id_, data in found if kind == "gap"]
    lost = {"bytes": TAIL - HEAD, "lines": LONG.count(b"\n", HEAD, TAIL)}
    assert gaps == [(str(TAIL), {"offset": HEAD, "next": TAIL, **lost})]
    parts = [data for kind, _, data in found if kind in ("log", "gap")]
    assert all(a["next"] == b["offset"] for a, b in itertools.pairwise(parts))
    assert "".join(part.get("text", "") for part in parts).encode() == LONG[:HEAD] + LONG[TAIL:]


@pytest.mark.parametrize("limit", [0, -1, 1 << 21, "1", 1.5])
def test_limits_that_are_none(shared: Live, limit: object) -> None:
    body = {**create_body(named()), "danlu": {"log_limit_mib": limit}}
    answer = shared.call("POST", "/v2/{p}/training-jobs", body)
    assert answer.status == 400
    assert "log_limit_mib" in answer.json["error_msg"]
