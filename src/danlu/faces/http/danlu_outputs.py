"""Danlu's own calls on a job's outputs: what was delivered, and whether it is still that."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator

from danlu.faces.http.call import Call
from danlu.faces.http.danlu_job import JOB, TAG, resolve
from danlu.faces.http.danlu_log import until_gone
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.reply import Answer, Streamed, encode, json_reply
from danlu.faces.http.route import Describe, Routes
from danlu.faces.http.server import Server
from danlu.flow import outputs
from danlu.model.manifest import Checked
from danlu.wire import danlu as wire
from danlu.wire import danlu_schemas as schemas

RULE = Rule("modelarts:trainJob:get", Access.PROJECT)
LINES = b"application/x-ndjson"
TOGETHER = 64
"""Files that are told of at once, where they are small."""
TOGETHER_BYTES = 16 << 20

routes = Routes()


@routes(
    "GET",
    f"{JOB}/outputs",
    rule=RULE,
    about=Describe("What a job delivered, by its manifests", {200: schemas.OUTPUTS}, tag=TAG),
)
async def job_outputs(server: Server, call: Call) -> Answer:
    """Each output of each task and how far its delivery is."""
    call.only()
    view = server.view(call.caller.workspace.id, resolve(server, call))
    found = await server.on_worker(outputs.delivered, server.platform, view)
    return json_reply({"outputs": [wire.delivered(one) for one in found]})


@routes(
    "GET",
    f"{JOB}/outputs/check",
    rule=RULE,
    about=Describe(
        "Read every delivered file and compare it with its manifest: one JSON object a file",
        {200: schemas.CHECKED},
        media=LINES.decode(),
        tag=TAG,
    ),
)
async def check_job_outputs(server: Server, call: Call) -> Answer:
    """The files of all outputs as they are read."""
    call.only()
    view = server.view(call.caller.workspace.id, resolve(server, call))
    checked = outputs.check(server.platform, view)
    return Streamed(until_gone(call, _lines(server, checked)), LINES)


async def _lines(server: Server, checked: Iterator[Checked | None]) -> AsyncGenerator[bytes, None]:
    """A worker is held for so many files or bytes at once, however large a file is."""
    more = True
    while more:
        lines, more = await server.on_worker(_some, checked)
        if lines:
            yield lines


def _some(checked: Iterator[Checked | None]) -> tuple[bytes, bool]:
    """Some lines, and whether there may be more."""
    lines: list[bytes] = []
    size = 0
    for one in checked:
        if one is None:
            return b"".join(lines), True
        lines.append(encode(wire.checked(one)) + b"\n")
        size += one.size
        if len(lines) >= TOGETHER or size >= TOGETHER_BYTES:
            return b"".join(lines), True
    return b"".join(lines), False
