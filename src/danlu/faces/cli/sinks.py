"""Where the bytes of a log go: a pipe gets them as they are, a terminal only what is harmless."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

from danlu.faces.cli.session import Session

HARMFUL = r"\x1b(?!\[[0-9;:]{0,64}m)|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]"
"""Control characters but for tab, line feed, carriage return and colours (SGR)."""
UNFINISHED = r"\x1b(?:\[[0-9;:]{0,64})?\Z"
LINE_BYTES = 1 << 20

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Protocol

    class Sink(Protocol):
        """Takes a log's bytes in order."""

        def write(self, data: bytes) -> None:
            """The next bytes."""

        def skip(self, offset: int, size: int, lines: int | None) -> None:
            """`size` bytes (`lines` lines, where that is known) were dropped by the log's limit;
            the next ones begin at `offset`.
            """

        def end(self) -> None:
            """No more will come."""


class Raw:
    """Byte for byte."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._unended = False

    def write(self, data: bytes) -> None:
        """The next bytes."""
        self._session.terminal.raw(data)
        self._unended = not data.endswith(b"\n")

    def skip(self, offset: int, size: int, lines: int | None) -> None:  # noqa: ARG002 -- a Sink
        """A line in their place."""
        line = f"{gap(self._session, size, lines)}\n".encode()
        self._session.terminal.raw(b"\n" * self._unended + line)
        self._unended = False

    def end(self) -> None:
        """Nothing is held back."""


class Safe:
    """For a terminal: everything that could move its cursor or change its state is escaped."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._out = session.terminal.out
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._column_0 = True

    def write(self, data: bytes) -> None:
        """The next bytes."""
        self._show(self._decoder.decode(data), last=False)

    def skip(self, offset: int, size: int, lines: int | None) -> None:  # noqa: ARG002 -- a Sink
        """A line in their place."""
        self.end()
        self._decoder.reset()
        line = gap(self._session, size, lines)
        self._out.write(f"{self._session.terminal.paint(line, 'dim')}\n")
        self._out.flush()

    def end(self) -> None:
        """Close lines that were left open."""
        self._show(self._decoder.decode(b"", final=True), last=True)
        if not self._column_0:
            self._out.write("\n")
            self._out.flush()
            self._column_0 = True

    def _show(self, text: str, *, last: bool) -> None:
        text = self._held + text
        held = None if last else re.search(UNFINISHED, text)
        self._held = held[0] if held else ""
        text = text[: len(text) - len(self._held)]
        if text:
            self._out.write(harmless(text))
            self._out.flush()
            self._column_0 = text.endswith("\n")


class Found:
    """Only the lines in which `pattern` is found; `put` gets each with its absolute offset."""

    def __init__(
        self, put: Callable[[int, bytes], None], pattern: re.Pattern[bytes], offset: int
    ) -> None:
        self._put = put
        self._pattern = pattern
        self._offset = offset
        self._rest = b""

    def write(self, data: bytes) -> None:
        """The next bytes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line, 1)
        if len(self._rest) > LINE_BYTES:
            self._line(self._rest, 0)
            self._rest = b""

    def skip(self, offset: int, size: int, lines: int | None) -> None:  # noqa: ARG002 -- a Sink
        """What is not there cannot be searched."""
        self.end()
        self._offset = offset

    def end(self) -> None:
        """The last line may have no end."""
        if self._rest:
            self._line(self._rest, 0)
            self._rest = b""

    def _line(self, line: bytes, end: int) -> None:
        if self._pattern.search(line):
            self._put(self._offset, line)
        self._offset += len(line) + end


class Json:
    """Objects with the absolute offsets of a piece and its text; invalid UTF-8 is replaced."""

    def __init__(self, session: Session, task: str, offset: int) -> None:
        self._session = session
        self._task = task
        self._offset = offset
        self._rest = b""

    def write(self, data: bytes) -> None:
        """The next bytes."""
        data = self._rest + data
        whole = len(data) - _partial(data)
        self._put(data[:whole])
        self._rest = data[whole:]

    def skip(self, offset: int, size: int, lines: int | None) -> None:
        """An object in their place."""
        self.end()
        self._session.put_json(
            {
                "event": "gap",
                "task": self._task,
                "offset": self._offset,
                "next": offset,
                "bytes": size,
                "lines": lines,
            }
        )
        self._offset = offset

    def end(self) -> None:
        """The last character may be half."""
        self._put(self._rest)
        self._rest = b""

    def _put(self, data: bytes) -> None:
        if not data:
            return
        following = self._offset + len(data)
        self._session.put_json(
            {
                "event": "log",
                "task": self._task,
                "offset": self._offset,
                "next": following,
                "text": data.decode("utf-8", "replace"),
            }
        )
        self._session.terminal.out.flush()
        self._offset = following


def sink_for(session: Session, task: str, offset: int) -> Sink:
    """The sink for what was asked for and for where it goes."""
    if session.json:
        return Json(session, task, offset)
    return Safe(session) if session.terminal.out_tty else Raw(session)


def found_lines(session: Session, task: str, offset: int, pattern: re.Pattern[bytes]) -> Found:
    """The sink of `--grep`: lines as text, or with --json as objects."""

    def put(at: int, line: bytes) -> None:
        if session.json:
            text = line.decode("utf-8", "replace")
            session.put_json({"event": "line", "task": task, "offset": at, "text": text})
        elif session.terminal.out_tty:
            session.put(harmless(line.decode("utf-8", "replace")))
        else:
            session.terminal.raw(line + b"\n")
        session.terminal.out.flush()

    return Found(put, pattern, offset)


def gap(session: Session, size: int, lines: int | None) -> str:
    """What is shown in place of what a log's limit dropped."""
    if lines is None:
        return session.text("log-gap-bytes", bytes=size)
    return session.text("log-gap", bytes=size, lines=lines)


def harmless(text: str) -> str:
    """`text` for a terminal: everything that could move its cursor or change its state escaped."""
    return re.sub(HARMFUL, _escape, text)


def _escape(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]


def _partial(data: bytes) -> int:
    """How many bytes at the end of `data` may be the beginning of a character."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if back < needed else 0
        if byte < 0x80:
            break
    return 0
