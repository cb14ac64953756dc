"""The two streams of a command: data goes to stdout, everything said on the way to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import TextIO

COLORS = {"green": "32", "red": "31", "yellow": "33", "blue": "34", "dim": "2", "bold": "1"}


class Terminal:
    """Where a command writes. Text leaves as UTF-8 whatever the locale; nothing is wrapped."""

    def __init__(
        self,
        out: TextIO,
        err: TextIO,
        *,
        color: bool | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.out = out
        self.err = err
        dumb = environ.get("TERM") == "dumb"
        self.out_tty = out.isatty()
        self.err_tty = err.isatty() and not dumb
        self.color = _color(environ, wanted=color, tty=self.out_tty and not dumb)
        self._line = False

    def put(self, line: str) -> None:
        """A line of data."""
        self.out.write(f"{line}\n")

    def raw(self, data: bytes) -> None:
        """Bytes of data as they are, at once."""
        self.out.flush()
        self.out.buffer.write(data)
        self.out.buffer.flush()

    def say(self, line: str) -> None:
        """A line beside the data."""
        self.wipe()
        self.out.flush()
        self.err.write(f"{line}\n")
        self.err.flush()

    def status(self, line: str) -> None:
        """A line that the next one replaces; only for a terminal."""
        if self.err_tty:
            self.err.write(f"\r\x1b[K{cut(line, terminal_width() - 1)}")
            self.err.flush()
            self._line = True

    def wipe(self) -> None:
        """Remove what `status` wrote."""
        if self._line:
            self.err.write("\r\x1b[K")
            self.err.flush()
            self._line = False

    def paint(self, text: str, color: str) -> str:
        """`text` in a colour, where colours are wanted."""
        return f"\x1b[{COLORS[color]}m{text}\x1b[0m" if self.color and color else text

    def table(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        colors: Mapping[str, str] | None = None,
    ) -> None:
        """Aligned columns; `colors` paints cells by their text. Only a terminal cuts lines."""
        if not rows:
            return
        table = [list(header), *([str(cell) for cell in row] for row in rows)]
        widths = [max(width(row[i]) for row in table) for i in range(len(header))]
        room = terminal_width() if self.out_tty else 1 << 30
        for number, row in enumerate(table):
            left, cells = room, []
            for i, cell in enumerate(row):
                if left <= 0:
                    break
                last = i == len(row) - 1
                plain = cut(cell, left)
                padding = "" if last else " " * (widths[i] - width(plain) + 2)
                color = "dim" if number == 0 else (colors or {}).get(cell, "")
                cells.append(self.paint(plain, color) + padding)
                left -= widths[i] + 2
            self.put("".join(cells).rstrip())


def streams() -> tuple[TextIO, TextIO]:
    """The process's streams, writing UTF-8 also where the locale says otherwise. Python has none
    for what was closed when it started; nobody reads there.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 -- for the process's life
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 -- the same
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")
    return sys.stdout, sys.stderr


def terminal_width() -> int:
    """Columns of the terminal; 80 where nobody knows."""
    for number in (1, 2):
        try:
            return os.get_terminal_size(number).columns or 80
        except OSError:
            continue
    return 80


def width(text: str) -> int:
    """How many columns `text` takes: Chinese characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in ("W", "F") else 1 for c in text)


def cut(text: str, columns: int) -> str:
    """`text` in at most that many columns, with an ellipsis where something is missing."""
    if width(text) <= columns:
        return text
    kept = text[: max(0, columns)]
    while kept and width(kept) > columns - 1:
        kept = kept[:-1]
    return f"{kept}…" if columns > 0 else ""


def _color(environ: Mapping[str, str], *, wanted: bool | None, tty: bool) -> bool:
    """The flag, else NO_COLOR, else FORCE_COLOR, else whether a terminal is there to show it."""
    if wanted is not None:
        return wanted
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return environ["FORCE_COLOR"] != "0"
    return tty
