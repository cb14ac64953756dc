"""danlu logs: what a task printed."""

from __future__ import annotations

import re

from danlu.faces.cli import literal, view
from danlu.faces.cli.failure import INTERRUPTED, USAGE, Failure
from danlu.faces.cli.http import HttpError
from danlu.faces.cli.session import Session, utf8
from danlu.faces.cli.sinks import Fold, Found, Gap, Lines, Numbered, sink_for
from danlu.faces.cli.waiting import until_final
from danlu.faces.cli.watch import BYTES, Watch, begin, gap_of
from danlu.model.progress import folded

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any

    from danlu.faces.cli.http import Response
    from danlu.faces.cli.sinks import Sink

BLOCK_BYTES = 1 << 20
RANGE = re.compile(r"([0-9]{1,15})?(:)?([0-9]{1,15})?")


class Start:
    """Where printing begins: an offset and the number of the line there; where it ends (None =
    with the log); and what was dropped in front of it.
    """

    __slots__ = ("gap", "line", "offset", "until")

    def __init__(
        self, offset: int = 0, line: int = 1, until: int | None = None, gap: Gap | None = None
    ) -> None:
        self.offset = offset
        self.line = line
        self.until = until
        self.gap = gap


class Log:
    """One task's log on the server, and how it is to be shown."""

    def __init__(
        self,
        session: Session,
        job_id: str,
        task: str,
        attempt: int | None,
        *,
        numbers: bool,
        raw: bool,
    ) -> None:
        self.session = session
        self.job_id = job_id
        self.task = task
        self.attempt = attempt
        self.numbers = numbers
        self.raw = raw

    def ask(self, query: dict[str, object], *below: str) -> Response:
        """Bytes of it."""
        path = ("jobs", self.job_id, "tasks", self.task, "log", *below)
        if self.attempt is not None:
            query = {**query, "attempt": self.attempt}
        return self.session.client().send("GET", path, query, headers=BYTES)

    def start(self, tail: int | None, lines: str | None) -> Start:
        """Where the last `tail` lines begin, or the lines that `lines` names."""
        if tail is None and lines is None:
            return Start()
        query: dict[str, object] = {"limit": 1}
        query.update({"last": tail} if lines is None else {"range": lines})
        response = self.ask(query, "lines")
        response.read()
        offset, line, until = (
            int(response.headers[f"x-log-{name}"]) for name in ("offset", "line", "until")
        )
        dropped = response.headers.get("x-log-dropped-bytes")
        gap = None if dropped is None else gap_of(offset, int(dropped), response)
        return Start(offset, line, None if lines is None else until, gap)


def logs(
    session: Session,
    *,
    job: str,
    follow: bool,
    task: str | None,
    tail: int | None,
    grep: str | None,
    **how: Any,
) -> int:
    """Print a log from its beginning or some of its lines; with --follow to the job's end."""
    pattern = _pattern(grep)
    wanted = _range(how["lines"], tail, follow=follow)
    found = session.get("jobs", job)
    name = utf8(task, "--task") if task else "worker-0"
    attempt: int | None = how["attempt"]
    log = Log(session, found["id"], name, attempt, numbers=how["numbers"], raw=how["raw"])
    needle = literal.required(grep) if grep and tail is None and wanted is None else ""
    if pattern is not None and needle and not follow:
        _search(log, pattern, utf8(needle, "--grep"))
        return 0
    start = log.start(tail, wanted)
    sink = _sink(log, start, pattern, follow=follow)
    if start.gap is not None:
        sink.skip(start.gap)
    if not follow:
        _print(log, start, sink)
        return 0
    if attempt is not None:
        found = {**found, "attempt": attempt}
    only = attempt is not None
    again = None if only else (lambda: _sink(log, Start(), pattern, follow=follow))
    return _follow(Watch(session, found, name, sink, start.offset, again))


def _sink(log: Log, start: Start, pattern: re.Pattern[bytes] | None, *, follow: bool) -> Sink:
    if pattern is not None:
        lines = Lines(log.session, log.task, raw=log.raw)
        number = start.line if log.numbers else None
        return Found(lines, pattern, start.offset, number, raw=log.raw)
    sink = sink_for(log.session, log.task, start.offset, raw=log.raw)
    if log.session.json:
        return sink
    sink = Numbered(sink, start.line) if log.numbers else sink
    # What is followed is shown as it comes: a progress bar moves.
    return sink if follow or log.raw else Fold(sink)


def _follow(watch: Watch) -> int:
    session, found = watch.session, watch.job
    try:
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


def _range(lines: str | None, tail: int | None, *, follow: bool) -> str | None:
    """The lines that --lines names, as the server reads them."""
    if lines is None:
        return None
    match = RANGE.fullmatch(lines)
    if match is None or not lines.strip(":") or match[1] == "0":
        raise Failure(USAGE, "bad-lines", value=lines)
    if tail is not None or follow:
        raise Failure(USAGE, "lines-alone")
    return lines if match[2] else f"{lines}:{lines}"


def _print(log: Log, start: Start, sink: Sink) -> None:
    """What is there now, block by block."""
    offset, until = start.offset, start.until
    while until is None or offset < until:
        limit = BLOCK_BYTES if until is None else min(BLOCK_BYTES, until - offset)
        response = log.ask({"offset": offset, "limit": limit})
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
            break
    sink.end()


def _search(log: Log, pattern: re.Pattern[bytes], needle: str) -> None:
    """The lines in which `pattern` is found. The server sends those that hold `needle`, without
    which there is no match.
    """
    numbered = log.numbers or log.session.json
    plain = pattern.pattern == needle.encode() and not numbered
    lines = Lines(log.session, log.task, raw=log.raw)
    whole = sink_for(log.session, log.task, 0, raw=log.raw)
    rest = b""
    for data in log.ask({"text": needle, "numbers": int(numbered)}, "search").chunks():
        block, newline, rest = (rest + data).rpartition(b"\n")
        if plain and (log.raw or b"\r" not in block):
            whole.write(block + newline)
            continue
        for found in block.split(b"\n") if newline else ():
            number, offset, line = found.split(b":", 2) if numbered else (b"", b"0", found)
            shown = line if log.raw else folded(line)
            if pattern.search(shown):
                lines.put(shown, int(number) if log.numbers else None, int(offset))
    if plain:
        whole.end()
