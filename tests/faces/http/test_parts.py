"""The small parts of the HTTP face, each by itself."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
import uuid
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from danlu.engines.memory import ManualClock
from danlu.faces.http.call import path_params, plain_id
from danlu.faces.http.durable import Durable
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.headers import Headers
from danlu.faces.http.limiter import MOST_NAMES, Limiter
from danlu.faces.http.paths import Paths
from danlu.faces.http.reply import encode, json_reply, language_of
from danlu.faces.http.route import Describe, Routes
from danlu.model.errors import Denied, Refused
from danlu.wiring.world import SCATTER, SystemDice


def paths() -> Paths[str]:
    found: Paths[str] = Paths()
    found.add("GET", "/jobs/{id}", "show")
    found.add("DELETE", "/jobs/{id}", "delete")
    found.add("POST", "/jobs/plan", "plan")
    found.add("GET", "/jobs/{id}/tasks/{task}/log", "log")
    found.add("GET", "/jobs/new/tasks", "new")
    return found


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/jobs/7", ("show", {"id": "7"})),
        ("GET", "/jobs/a%2Fb", ("show", {"id": "a%2Fb"})),
        ("POST", "/jobs/plan", ("plan", {})),
        # A fixed part comes first, and a method that it lacks is not looked for elsewhere.
        ("GET", "/jobs/plan", None),
        ("GET", "/jobs/plan/tasks/w/log", ("log", {"id": "plan", "task": "w"})),
        ("GET", "/jobs/new/tasks/w/log", ("log", {"id": "new", "task": "w"})),
        ("GET", "/jobs/new/tasks", ("new", {})),
        ("GET", "/jobs/", None),
        ("GET", "/jobs", None),
        ("GET", "/jobs/7/", None),
        ("GET", "//jobs/7", None),
        ("GET", "", None),
        ("PUT", "/jobs/7", None),
    ],
)
def test_a_path_leads_to_its_route(method: str, path: str, expected: Any) -> None:
    assert paths().find(method, path) == expected


def test_a_path_says_what_it_takes_and_takes_nothing_twice() -> None:
    assert paths().methods("/jobs/7") == ["DELETE", "GET"]
    assert paths().methods("/nothing") == []
    with pytest.raises(ValueError, match="twice"):
        paths().add("GET", "/jobs/{other}", "again")


def test_parts_of_a_path_are_decoded_by_themselves() -> None:
    assert path_params({"a": "x%2Fy", "b": "%E4%B8%AD", "c": "%FF", "d": "plain"}) == {
        "a": "x/y",
        "b": "中",
        "c": "�",
        "d": "plain",
    }


@pytest.mark.parametrize("text", ["a", "A-b_9", "x" * 64])
def test_ids_are_plain(text: str) -> None:
    assert plain_id(text)


@pytest.mark.parametrize("text", ["", "-", "x" * 65, "a/b", "a b", "é", "٣", "a\n", "@last", "\0"])
def test_other_texts_name_nothing(text: str) -> None:
    assert not plain_id(text)


def test_a_header_that_is_sent_twice_is_refused_when_it_matters() -> None:
    headers = Headers([(b"a", b"1"), (b"a", b"2"), (b"b", b" 3 ")])
    with pytest.raises(Denied, match="twice"):
        headers.get("a")
    assert headers.single("a") == ""
    assert (headers.any("b"), headers.get("b"), headers.get("c")) == ("3", " 3 ", None)


@pytest.mark.parametrize(
    ("wanted", "accepted", "language"),
    [
        ("zh-cn", "", "zh"),
        ("en-us", "zh", "en"),
        ("", "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("", "fr, zh;q=0.5", "zh"),
        ("", "fr", "en"),
        ("", "", "en"),
        ("de", "zh", "zh"),
    ],
)
def test_the_language_of_messages(wanted: str, accepted: str, language: str) -> None:
    assert language_of(wanted, accepted) == language


@given(st.recursive(st.none() | st.text() | st.integers(), st.lists, max_leaves=5))
def test_whatever_is_said_is_sent_as_utf8(value: Any) -> None:
    assert encode(value).decode()
    assert json_reply({"a": "\ud800"}).body == b'{"a":"\\ud800"}'


# ---------------------------------------------------------------- registration

DESCRIBED = Describe("x", {200: None})


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/x", Rule("", Access.PUBLIC)),
        ("/x", Rule("a:b:c", Access.PROJECT)),
        ("/{project_id}/x", Rule("a:b:c", Access.CALLER)),
        ("/{project_id}/x", Rule("a:b:c", Access.PUBLIC)),
    ],
)
def test_a_route_that_does_not_say_who_may_call_it_does_not_register(path: str, rule: Rule) -> None:
    with pytest.raises(ValueError, match="x"):
        Routes()("GET", path, rule=rule, about=DESCRIBED)


def test_a_route_cannot_be_declared_without_a_rule() -> None:
    with pytest.raises(TypeError):
        Routes()("GET", "/x", about=DESCRIBED)  # type: ignore[call-arg]  # what must not pass


def test_a_route_registers_once() -> None:
    routes = Routes()
    for _ in range(2):
        routes("GET", "/x", rule=Rule("a:b:c", Access.PUBLIC), about=DESCRIBED)(_handler)
    app = FastAPI()
    app.state.server = None
    app.state.paths = Paths()
    with pytest.raises(ValueError, match="twice"):
        routes.register(app)


async def _handler(server: Any, call: Any) -> Any:
    """Never called."""


# ---------------------------------------------------------------- limiter


def test_failures_are_counted_in_a_window() -> None:
    clock = ManualClock()
    limiter = Limiter(clock, tries=3, window_s=60)
    for _ in range(3):
        limiter.check("a")
        limiter.failed("a")
    with pytest.raises(Refused) as caught:
        limiter.check("a")
    assert caught.value.params["wait_s"] == 60
    limiter.check("b")
    clock.advance(59)
    with pytest.raises(Refused):
        limiter.check("a")
    clock.advance(1)
    limiter.check("a")


def test_who_shows_who_they_are_starts_anew() -> None:
    limiter = Limiter(ManualClock(), tries=1, window_s=60)
    limiter.failed("a")
    limiter.succeeded("a")
    limiter.check("a")


def test_names_are_bounded() -> None:
    limiter = Limiter(ManualClock(), tries=1, window_s=60)
    for number in range(MOST_NAMES + 10):
        limiter.failed(str(number))
    limiter.check("0")
    with pytest.raises(Refused):
        limiter.check(str(MOST_NAMES + 9))


# ---------------------------------------------------------------- waiting for the writer


def test_writes_are_awaited_whenever_they_finish() -> None:
    async def run() -> list[int]:
        durable = Durable()
        writes: list[Future[int]] = [Future() for _ in range(200)]
        writes[0].set_result(0)

        def finish() -> None:
            for number, write in enumerate(writes[1:], 1):
                if number % 7 == 0:
                    time.sleep(0.001)
                write.set_result(number)

        thread = threading.Thread(target=finish)
        waiting = [asyncio.ensure_future(durable(write)) for write in writes]
        thread.start()
        async with asyncio.timeout(30):
            found = await asyncio.gather(*waiting)
        thread.join()
        return list(found)

    assert asyncio.run(run()) == list(range(200))


def test_a_write_that_fails_raises_and_one_that_nobody_awaits_harms_nobody() -> None:
    async def run() -> None:
        durable = Durable()
        failed: Future[None] = Future()
        given_up: Future[None] = Future()
        waiting = asyncio.ensure_future(durable(given_up))
        await asyncio.sleep(0)
        waiting.cancel()
        threading.Timer(
            0.01, failed.set_exception, [Refused("queue-full", count=1, limit=1)]
        ).start()
        with pytest.raises(Refused):
            async with asyncio.timeout(30):
                await durable(failed)
        given_up.set_result(None)
        await asyncio.sleep(0.01)

    asyncio.run(run())


def test_randomness_does_not_repeat_itself_whoever_draws_it() -> None:
    dice = SystemDice()
    drawn: list[str] = []

    def draw() -> None:
        drawn.extend(dice.token() for _ in range(1000))
        drawn.extend(dice.job_id() for _ in range(1000))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(set(drawn)) == len(drawn) == 8000
    assert {len(text) for text in drawn} == {32, 36}


def test_jobs_of_one_second_lie_side_by_side_and_those_of_the_next_elsewhere() -> None:
    ids = [uuid.UUID(SystemDice().job_id()) for _ in range(1000)]
    assert {(one.version, one.variant) for one in ids} == {(8, uuid.RFC_4122)}
    assert len({one.bytes[:2] for one in ids}) < 50
    assert len({one.bytes[2:4] for one in ids}) > 900
    heads = [second * SCATTER & 0xFFFF for second in range(65_536)]
    assert len(set(heads)) == 65_536
    assert min(abs(a - b) for a, b in itertools.pairwise(heads)) > 0x1000


def test_no_file_of_the_face_registers_routes_by_itself() -> None:
    """Only `Routes` may: `app.get(...)` would be a route without a rule."""
    folder = Path(__file__).parents[3] / "src" / "danlu" / "faces" / "http"
    for path in folder.glob("*.py"):
        source = path.read_text("utf-8")
        for word in ("@app.", "add_api_route", "app.mount(", "include_router", "app.get("):
            assert word not in source, path
