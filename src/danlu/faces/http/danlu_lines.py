"""Danlu's own calls on a log's lines: a window by their numbers, and a search."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator

from danlu.faces.http.call import Call
from danlu.faces.http.danlu_job import JOB, TAG
from danlu.faces.http.danlu_log import (
    ATTEMPT,
    FURTHEST,
    LIMIT,
    MOST,
    attempted,
    place_headers,
    until_gone,
)
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.reply import BYTES, Answer, Reply, Streamed
from danlu.faces.http.route import Describe, Parameter, Routes
from danlu.faces.http.server import Log, Server
from danlu.flow import refs
from danlu.flow.search import Search
from danlu.model.errors import Invalid
from danlu.wire.shape import STRING

RULE = Rule("modelarts:trainJob:getLogs", Access.PROJECT)
BINARY = {200: {"type": "string", "format": "binary"}}
NEEDLE_CHARS = 256
MOMENT_S = 0.02
"""A client that hangs up is noticed, and others have their turn, this often."""

routes = Routes()


def _log(server: Server, call: Call) -> Log:
    task = call.params["task"]
    view = attempted(server, call)
    refs.ref(view, task)
    return server.log(view, task)


@routes(
    "GET",
    f"{JOB}/tasks/{{task}}/log/lines",
    rule=RULE,
    about=Describe(
        "Lines of a task's log by their numbers, as bytes; X-Log-Line, -Offset, -Next and -Until"
        " say which",
        BINARY,
        parameters=(
            Parameter("range", STRING, "FIRST:LAST, counted from 1; either may be left out"),
            Parameter("last", {"type": "integer", "minimum": 0}, "so many lines at the end"),
            Parameter("limit", {"type": "integer", "minimum": 1, "maximum": MOST}, "bytes"),
            ATTEMPT,
        ),
        media="application/octet-stream",
        tag=TAG,
    ),
)
async def task_log_lines(server: Server, call: Call) -> Answer:
    """The bytes of some lines. Where they are more than `limit`, or a gap lies among them, the
    rest is read by offset, from X-Log-Next up to X-Log-Until.
    """
    call.only("range", "last", "limit", "attempt")
    limit = call.number("limit", LIMIT, 1, MOST)
    last = call.number("last", 0, 0, FURTHEST) if call.query.get("last") else None
    first, final = _range(call.text("range"), last)
    return await server.on_worker(_lines, _log(server, call), first, final, last, limit)


def _range(text: str, last: int | None) -> tuple[int, int]:
    """First and last line of `FIRST:LAST`."""
    before, colon, behind = text.partition(":")
    numbers = [part or number for part, number in ((before, "1"), (behind, str(FURTHEST)))]
    good = all(part.isascii() and part.isdigit() and len(part) <= 16 for part in numbers)
    if text and (not colon or not good or int(numbers[0]) < 1 or last is not None):
        expected = "FIRST:LAST such as 100:199, 100: or :99, and not together with last"
        raise Invalid("field-value", field="range", value=text, expected=expected)
    return int(numbers[0]), int(numbers[1])


def _lines(log: Log, first: int, final: int, last: int | None, limit: int) -> Reply:
    index = log.index
    if last is not None:
        first = max(1, index.total() - last + 1)
    place = index.find(first)
    until = index.end() if final >= FURTHEST else index.find(final + 1).offset
    chunk = log.read(place.offset, max(0, min(limit, until - place.offset)))
    line = [] if place.dropped else [(b"x-log-line", str(place.lines + 1).encode())]
    headers = [
        *place_headers(place.offset, place.dropped),
        *line,
        (b"x-log-next", str(chunk.next).encode()),
        (b"x-log-until", str(max(until, place.offset)).encode()),
        (b"x-log-ended", b"true" if chunk.ended else b"false"),
    ]
    return Reply(chunk.data, 200, BYTES, headers)


@routes(
    "GET",
    f"{JOB}/tasks/{{task}}/log/search",
    rule=RULE,
    about=Describe(
        "The lines of a task's log, as it is now, that hold a text",
        BINARY,
        parameters=(
            Parameter("text", {**STRING, "maxLength": NEEDLE_CHARS}, "plain text, no pattern"),
            Parameter("offset", {"type": "integer", "minimum": 0}, "where to begin"),
            ATTEMPT,
            Parameter(
                "numbers",
                {"type": "string", "enum": ["0", "1"]},
                "1 = each line as NUMBER:OFFSET:line",
            ),
        ),
        media="application/octet-stream",
        tag=TAG,
    ),
)
async def task_log_search(server: Server, call: Call) -> Answer:
    """A stream of the lines that hold a text, as it is found."""
    call.only("text", "offset", "numbers", "attempt")
    needle = call.text("text", NEEDLE_CHARS).encode("utf-8", "surrogatepass")
    if not needle:
        raise Invalid("field-missing", field="text", remedy="say what to look for")
    if b"\n" in needle:
        expected = "a text within one line"
        raise Invalid("field-value", field="text", value=call.text("text"), expected=expected)
    offset = call.number("offset", 0, 0, FURTHEST)
    numbered = call.choice("numbers", "0", "1") == "1"
    log = _log(server, call)
    end = await server.on_worker(log.index.end)
    counted = log.index.ends_before if numbered else None
    search = Search(log.read, needle, offset, end, counted)
    return Streamed(until_gone(call, _found(server, search)), BYTES)


async def _found(server: Server, search: Search) -> AsyncGenerator[bytes, None]:
    blocks = search.blocks()
    while (found := await server.on_worker(_some, blocks)) is not None:
        if found:
            yield found


def _some(blocks: Iterator[bytes]) -> bytes | None:
    """What is found in a moment; None at the end."""
    until, found, size = time.monotonic() + MOMENT_S, [], 0
    for block in blocks:
        found.append(block)
        size += len(block)
        if size >= LIMIT or time.monotonic() >= until:
            break
    return b"".join(found) if found else None
