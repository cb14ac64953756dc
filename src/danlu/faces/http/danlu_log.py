"""Danlu's own calls on logs: bytes by absolute offset, followed as a stream or as events (SSE)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

from danlu.faces.http.call import Call
from danlu.faces.http.danlu_job import JOB, TAG, resolve
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.reply import BYTES, EVENT_STREAM, Answer, Reply, Streamed, encode
from danlu.faces.http.route import Describe, Parameter, Routes
from danlu.faces.http.server import Server
from danlu.flow import logs, refs
from danlu.model.errors import Invalid, Missing
from danlu.model.job import JobView
from danlu.model.texts import Language
from danlu.ports.engine import Dropped, LogChunk
from danlu.wire.shape import STRING

LIMIT = 1 << 20
MOST = 8 << 20
PING_S = 15.0
FURTHEST = 1 << 53

OFFSET = Parameter(
    "offset", {"type": "integer"}, "bytes from the start, or from the end if below 0"
)
ATTEMPT = Parameter(
    "attempt", {"type": "integer", "minimum": 0}, "which attempt's log; the latest's by default"
)
PARAMETERS = (
    OFFSET,
    Parameter("limit", {"type": "integer", "minimum": 1, "maximum": MOST}),
    Parameter("follow", {"type": "string", "enum": ["0", "1"]}, "until the task has ended"),
    Parameter(
        "gaps",
        {"type": "string", "enum": ["mark", "stop"]},
        "where the log's limit dropped bytes, a stream has a line that says so, or ends",
    ),
    ATTEMPT,
    Parameter("Last-Event-ID", STRING, "the offset to go on from (SSE)", "header"),
)

routes = Routes()


@routes(
    "GET",
    f"{JOB}/tasks/{{task}}/log",
    rule=Rule("modelarts:trainJob:getLogs", Access.PROJECT),
    about=Describe(
        "A task's log: bytes, or with Accept: text/event-stream as events",
        {200: {"type": "string", "format": "binary"}},
        parameters=PARAMETERS,
        media="application/octet-stream",
        tag=TAG,
    ),
)
async def task_log(server: Server, call: Call) -> Answer:
    """A stretch of a log, or everything from an offset on as it is written."""
    call.only("offset", "limit", "follow", "gaps", "attempt")
    task = call.params["task"]
    view = attempted(server, call)
    refs.ref(view, task)
    offset = call.number("offset", 0, -FURTHEST, FURTHEST)
    limit = call.number("limit", LIMIT, 1, MOST)
    follows = call.choice("follow", "0", "1") == "1"
    events = "text/event-stream" in call.header("accept")
    if events:
        offset = _resumed(call, offset)
    if offset < 0 or follows or events:
        # A client that resumes beyond the end would wait for what is never written.
        end = await server.on_worker(server.index(view, task).end)
        offset = max(0, end + offset) if offset < 0 else min(offset, end)
    if events:
        stream = _events(server, view, task, offset)
        return Streamed(until_gone(call, stream), EVENT_STREAM)
    if follows:
        return await _followed(server, call, view, task, offset)
    return await _stretch(server, view, task, offset, limit)


def attempted(server: Server, call: Call) -> JobView:
    """The job with the attempt that is asked for."""
    number = call.number("attempt", 0, 0, FURTHEST)
    return server.attempt(call.caller.workspace.id, resolve(server, call), number)


def _resumed(call: Call, offset: int) -> int:
    last = call.header("last-event-id")
    if not last:
        return offset
    if last.isascii() and last.isdigit() and int(last[:17]) <= FURTHEST and len(last) <= 17:
        return int(last)
    expected = "the id of an event of this log: its offset"
    raise Invalid("field-value", field="Last-Event-ID", value=last, expected=expected)


async def _stretch(server: Server, view: JobView, task: str, offset: int, limit: int) -> Reply:
    chunk = await server.on_worker(logs.read, server.platform, view, task, offset, limit)
    headers = [
        *place_headers(chunk.offset, chunk.dropped),
        (b"x-log-next", str(chunk.next).encode()),
        (b"x-log-ended", b"true" if chunk.ended else b"false"),
    ]
    return Reply(chunk.data, 200, BYTES, headers)


def place_headers(offset: int, dropped: Dropped | None) -> list[tuple[bytes, bytes]]:
    """Headers that say where bytes begin, and what was dropped in front of them."""
    headers = [(b"x-log-offset", str(offset).encode())]
    if dropped is not None:
        headers.append((b"x-log-dropped-bytes", str(dropped.size).encode()))
        if dropped.lines is not None:
            headers.append((b"x-log-dropped-lines", str(dropped.lines).encode()))
        headers.append((b"x-log-line", str(dropped.line_ends_before + 1).encode()))
    return headers


async def _followed(server: Server, call: Call, view: JobView, task: str, offset: int) -> Streamed:
    """The log as a stream of bytes. With gaps=stop, offsets can be counted: it begins where its
    headers say, and ends in front of the next gap.
    """
    stops = call.choice("gaps", "mark", "stop") == "stop"
    headers = [(b"x-log-offset", str(offset).encode())]
    if stops:
        chunk = await server.on_worker(logs.read, server.platform, view, task, offset, 1)
        headers, offset = place_headers(chunk.offset, chunk.dropped), chunk.offset
    stream = _bytes(server, view, task, offset, None if stops else call.language)
    return Streamed(until_gone(call, stream), BYTES, headers)


async def _bytes(
    server: Server, view: JobView, task: str, offset: int, language: Language | None
) -> AsyncGenerator[bytes, None]:
    """The bytes from `offset`; what was dropped is marked in `language`, or ends the stream."""
    unended = False
    async with contextlib.aclosing(server.tails.follow(view, task, offset)) as chunks:
        async for chunk in chunks:
            if chunk is None:
                continue
            if chunk.dropped is not None:
                if language is None:
                    return
                yield b"\n" * unended + chunk.dropped.line(language)
            unended = not chunk.data.endswith(b"\n")
            yield chunk.data


async def _events(
    server: Server, view: JobView, task: str, offset: int
) -> AsyncGenerator[bytes, None]:
    """The log as events. A character is never split over two of them."""
    held = b""
    yield b": danlu\n\n"
    async with contextlib.aclosing(server.tails.follow(view, task, offset, PING_S)) as chunks:
        async for chunk in chunks:
            if chunk is None:
                yield b": ping\n\n"
                continue
            if chunk.dropped is not None:
                if held:
                    yield _event(offset, held)
                    offset, held = offset + len(held), b""
                yield _gap(offset, chunk)
                offset = chunk.offset
            data = held + chunk.data
            held = unfinished(data)
            whole = data[: len(data) - len(held)]
            if whole:
                yield _event(offset, whole)
                offset += len(whole)
    if held:
        yield _event(offset, held)
        offset += len(held)
    with contextlib.suppress(Missing):
        view = server.view(view.job.workspace, view.job.id)
    end = encode({"next": offset, "state": view.attempt.state.value})
    yield b"event: end\ndata: %b\n\n" % end


def _event(offset: int, data: bytes) -> bytes:
    following = offset + len(data)
    text = data.decode("utf-8", "replace")
    body = encode({"offset": offset, "next": following, "text": text})
    return b"id: %d\nevent: log\ndata: %b\n\n" % (following, body)


def _gap(offset: int, chunk: LogChunk) -> bytes:
    lines = chunk.dropped.lines if chunk.dropped is not None else None
    body = encode(
        {"offset": offset, "next": chunk.offset, "bytes": chunk.offset - offset, "lines": lines}
    )
    return b"id: %d\nevent: gap\ndata: %b\n\n" % (chunk.offset, body)


def unfinished(data: bytes) -> bytes:
    """The bytes at the end of `data` that begin a UTF-8 character and do not finish it."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte < 0x80:
            return b""
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[-back:] if length > back and byte < 0xF8 else b""
    return b""


async def until_gone(
    call: Call, stream: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """`stream`, given up as soon as the client hangs up or the server closes."""
    gone = call.gone()
    try:
        async with contextlib.aclosing(stream) as chunks:
            async for chunk in call.unless(gone, chunks):
                yield chunk
    finally:
        gone.cancel()
