"""danlu logs: what a task printed."""

from __future__ import annotations

import re

from danlu.faces.cli import view
from danlu.faces.cli.failure import INTERRUPTED, USAGE, Failure
from danlu.faces.cli.http import HttpError
from danlu.faces.cli.session import Session, utf8
from danlu.faces.cli.sinks import found_lines, sink_for
from danlu.faces.cli.waiting import until_final
from danlu.faces.cli.watch import BYTES, Watch, begin

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any

    from danlu.faces.cli.sinks import Sink

BLOCK_BYTES = 1 << 20
TAIL_BYTES = 256 << 20
"""How far back lines are counted at most."""


def logs(
    session: Session,
    *,
    job: str,
    follow: bool,
    task: str | None,
    tail: int | None,
    grep: str | None,
) -> int:
    """Print a log from its beginning or its last lines; with --follow to the job's end."""
    pattern = _pattern(grep)
    found = session.get("jobs", job)
    name = utf8(task, "--task") if task else "worker-0"
    offset = 0 if tail is None else _tail_offset(session, found["id"], name, tail)
    sink: Sink = (
        found_lines(session, name, offset, pattern)
        if pattern is not None
        else sink_for(session, name, offset)
    )
    if not follow:
        _print(session, found["id"], name, offset, sink)
        return 0
    try:
        watch = Watch(session, found, name, sink, offset)
        watch.follow()
        ended = watch.job if watch.job["exit"] is not None else until_final(session, found["id"])
        return int(ended["exit"])
    except KeyboardInterrupt:
        session.terminal.wipe()
        if found["state"] in view.LIVE:
            session.say("detached", name=found["name"], id=found["id"][: view.ID_CHARS])
        return INTERRUPTED


def _pattern(grep: str | None) -> re.Pattern[bytes] | None:
    if grep is None:
        return None
    try:
        return re.compile(utf8(grep, "--grep").encode())
    except re.error as error:
        raise Failure(USAGE, "bad-pattern", pattern=grep, detail=error) from None


def _block(session: Session, job_id: str, task: str, offset: int, limit: int) -> Any:
    query = {"offset": offset, "limit": limit}
    path = ("jobs", job_id, "tasks", task, "log")
    return session.client().send("GET", path, query, headers=BYTES)


def _print(session: Session, job_id: str, task: str, offset: int, sink: Sink) -> None:
    """What is there now, block by block."""
    while True:
        response = _block(session, job_id, task, offset, BLOCK_BYTES)
        offset = begin(sink, offset, response)
        size = 0
        try:
            for data in response.chunks():
                sink.write(data)
                size += len(data)
        except HttpError:
            if not size:
                raise
        offset += size
        if not size:
            sink.end()
            return


def _tail_offset(session: Session, job_id: str, task: str, lines: int) -> int:
    """Where the last `lines` lines begin: blocks are read from the end until there are enough."""
    response = _block(session, job_id, task, -BLOCK_BYTES, BLOCK_BYTES)
    data = response.read()
    begin = int(response.headers.get("x-log-offset", "0"))
    end = begin + len(data)
    seen = 0
    if data.endswith(b"\n"):
        data = data[:-1]
    if lines == 0:
        return end
    while True:
        at = len(data)
        while seen < lines and (at := data.rfind(b"\n", 0, at)) >= 0:
            seen += 1
        if seen == lines:
            return begin + at + 1
        if begin == 0 or end - begin > TAIL_BYTES:
            return begin
        size = min(BLOCK_BYTES, begin)
        begin -= size
        data = _block(session, job_id, task, begin, size).read()
