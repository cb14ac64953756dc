"""Where the bytes of a log go: a pipe gets them as they are, a terminal only what is harmless."""

from __future__ import annotations

import codecs
import re

from danlu.faces.cli.session import Session
from danlu.model.progress import folded

HARMFUL = (
    r"\x1b(?!\[[0-9;:]{0,64}m)|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f"
    r"\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
"""Control characters but for tab, line feed, carriage return and colours (SGR); and characters
that are not seen and turn the direction of others or hide them.
"""
UNFINISHED = r"\x1b(?:\[[0-9;:]{0,64})?\Z"
RESET = ("\x1b[0m", "\x1b[m")
LINE_BYTES = 1 << 20

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Protocol

    class Sink(Protocol):
        """Takes a log's bytes in order."""

        def write(self, data: bytes) -> None:
            """The next bytes."""

        def skip(self, gap: Gap) -> None:
            """Here bytes were dropped by the log's limit."""

        def end(self) -> None:
            """No more will come."""


class Gap:
    """What a log's limit dropped: bytes, lines (None = unknown), and the offset and the number of
    the line at which it goes on.
    """

    __slots__ = ("line", "lines", "offset", "size")

    def __init__(self, offset: int, size: int, lines: int | None, line: int | None) -> None:
        self.offset = offset
        self.size = size
        self.lines = lines
        self.line = line

    def text(self, session: Session) -> str:
        """What is shown in its place."""
        if self.lines is None:
            return session.text("log-gap-bytes", bytes=self.size)
        return session.text("log-gap", bytes=self.size, lines=self.lines)


class Raw:
    """Byte for byte."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._unended = False

    def write(self, data: bytes) -> None:
        """The next bytes."""
        self._session.terminal.raw(data)
        self._unended = not data.endswith(b"\n")

    def skip(self, gap: Gap) -> None:
        """A line in their place."""
        line = f"{gap.text(self._session)}\n".encode()
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
        self._colored = False

    def write(self, data: bytes) -> None:
        """The next bytes."""
        self._show(self._decoder.decode(data), last=False)

    def skip(self, gap: Gap) -> None:
        """A line in their place."""
        self.end()
        self._decoder.reset()
        line = gap.text(self._session)
        self._out.write(f"{self._session.terminal.paint(line, 'dim')}\n")
        self._out.flush()

    def end(self) -> None:
        """Close colours and lines that were left open."""
        self._show(self._decoder.decode(b"", final=True), last=True)
        if self._colored:
            self._out.write("\x1b[0m")
            self._colored = False
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
            shown = harmless(text)
            self._out.write(shown)
            self._out.flush()
            self._column_0 = text.endswith("\n")
            color = shown.rfind("\x1b[")
            self._colored = self._colored if color < 0 else not shown.startswith(RESET, color)


class Fold:
    """Hands on whole lines, each as it stood at last: of a progress bar the final state."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._rest = b""

    def write(self, data: bytes) -> None:
        """The next bytes."""
        data = self._rest + data
        end = data.rfind(b"\n") + 1
        whole, self._rest = data[:end], data[end:]
        if b"\r" in whole:
            whole = b"\n".join(folded(line) for line in whole.split(b"\n"))
        if whole:
            self._sink.write(whole)
        if b"\r" in self._rest:
            # What was written over is not needed any more, however long the bar goes on.
            shown = self._rest.rstrip(b"\r")
            self._rest = self._rest[shown.rfind(b"\r") + 1 :]
        if len(self._rest) > LINE_BYTES:
            self._flush()

    def skip(self, gap: Gap) -> None:
        """The line in front of it does not go on behind it."""
        self._flush()
        self._sink.skip(gap)

    def end(self) -> None:
        """The last line may have no end."""
        self._flush()
        self._sink.end()

    def _flush(self) -> None:
        rest, self._rest = folded(self._rest), b""
        if rest:
            self._sink.write(rest)


class Numbered:
    """Puts its number in front of each line; `first` is that of the first one."""

    def __init__(self, sink: Sink, first: int) -> None:
        self._sink = sink
        self._next = first
        self._within = False

    def write(self, data: bytes) -> None:
        """The next bytes."""
        lines = data.split(b"\n")
        last = lines.pop()
        out = []
        for line in lines:
            out.append(line if self._within else self._number() + line)
            self._within = False
        if last:
            out.append(last if self._within else self._number() + last)
            self._within = True
        else:
            out.append(b"")
        self._sink.write(b"\n".join(out))

    def _number(self) -> bytes:
        self._next += 1
        return b"%6d  " % (self._next - 1)

    def skip(self, gap: Gap) -> None:
        """Go on with the number of the line behind it."""
        self._within = False
        self._next = gap.line or self._next
        self._sink.skip(gap)

    def end(self) -> None:
        """Nothing is held back."""
        self._sink.end()


class Found:
    """Only the lines in which `pattern` is found. `number` is that of the first line, None where
    nobody asked for it; `raw`: lines are searched and shown as they were written.
    """

    def __init__(
        self,
        lines: Lines,
        pattern: re.Pattern[bytes],
        offset: int,
        number: int | None = None,
        *,
        raw: bool = False,
    ) -> None:
        self._lines = lines
        self._pattern = pattern
        self._offset = offset
        self._number = number
        self._raw = raw
        self._rest = b""

    def write(self, data: bytes) -> None:
        """The next bytes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line, 1)
        if len(self._rest) > LINE_BYTES:
            self._line(self._rest, 0)
            self._rest = b""

    def skip(self, gap: Gap) -> None:
        """What is not there cannot be searched."""
        self.end()
        self._offset = gap.offset
        self._number = self._number and gap.line

    def end(self) -> None:
        """The last line may have no end."""
        if self._rest:
            self._line(self._rest, 0)
            self._rest = b""

    def _line(self, line: bytes, end: int) -> None:
        shown = line if self._raw else folded(line)
        if self._pattern.search(shown):
            self._lines.put(shown, self._number, self._offset)
        self._offset += len(line) + end
        if self._number is not None:
            self._number += end


class Lines:
    """Prints lines that were found."""

    def __init__(self, session: Session, task: str, *, raw: bool = False) -> None:
        self._session = session
        self._task = task
        self._raw = raw

    def put(self, line: bytes, number: int | None, offset: int | None) -> None:
        """One line; its number in front of it where that is given."""
        terminal = self._session.terminal
        if self._session.json:
            text = line.decode("utf-8", "replace")
            found = {"event": "line", "task": self._task, "offset": offset, "text": text}
            self._session.put_json(found if number is None else {**found, "line": number})
        else:
            shown = line if number is None else b"%6d  %b" % (number, line)
            if terminal.out_tty and not self._raw:
                self._session.put(harmless(shown.decode("utf-8", "replace")))
            else:
                terminal.raw(shown + b"\n")
        terminal.out.flush()


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

    def skip(self, gap: Gap) -> None:
        """An object in their place."""
        self.end()
        self._session.put_json(
            {
                "event": "gap",
                "task": self._task,
                "offset": self._offset,
                "next": gap.offset,
                "bytes": gap.size,
                "lines": gap.lines,
            }
        )
        self._offset = gap.offset

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


def sink_for(session: Session, task: str, offset: int, *, raw: bool = False) -> Sink:
    """The sink for what was asked for and for where it goes."""
    if session.json:
        return Json(session, task, offset)
    return Safe(session) if session.terminal.out_tty and not raw else Raw(session)


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
