"""lines: where a log ends and where its lines are, without reading all of it.

A log only grows, so what was once counted stays true. Engines may know marks of their own
(`ports.engine.Marks`); what is read on top of them is remembered, one mark a mebibyte.
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from danlu.model.progress import folded
from danlu.model.texts import Language
from danlu.ports.engine import Dropped, LogChunk, Mark

Read = Callable[[int, int], LogChunk]
"""Reads at most so many bytes from an absolute offset."""
Known = Callable[[int, int], Mark]
"""The last mark before a line begins that is not behind an offset."""

BITE = 64 << 10
OWN_EVERY = 1 << 20
PROBE = 64 << 10
MOST_BYTES = 4 << 20
"""What one page of lines holds at most; longer ones are cut there."""
FURTHEST = 1 << 62
ORIGIN = Mark(0, 0)


def unknown(_line: int, _offset: int) -> Mark:
    """The marks of an engine that keeps none."""
    return ORIGIN


@dataclass(frozen=True, slots=True)
class Place:
    """Where a line begins: an offset and the line ends before it. Where it was dropped, the place
    behind the gap, what the gap cost, and the line ends in front of it.
    """

    offset: int
    lines: int
    dropped: Dropped | None = None
    lines_before_gap: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """Lines without their ends, the first and the last with their numbers, counted from 1. A line
    that stands for what was dropped has no number.
    """

    first: int
    last: int
    lines: tuple[bytes, ...]


class Index:
    """What is known of one log. Safe to use from several threads."""

    def __init__(self, read: Read, known: Known = unknown) -> None:
        self._read = read
        self._known = known
        self._lock = threading.Lock()
        self._own: list[tuple[int, int]] = []
        """Line ends and offset of each mark."""
        self._end = 0

    def end(self) -> int:
        """How many bytes the log has now. Found by probing: engines are asked for bytes only."""
        with self._lock:
            if self._has(self._end):
                low, step = self._end, PROBE
                while self._has(low + step):
                    low, step = low + step, step * 2
                high = low + step
                while high - low > 1:
                    middle = (low + high) // 2
                    low, high = (middle, high) if self._has(middle) else (low, middle)
                self._end = high
            return self._end

    def total(self) -> int:
        """How many lines there are, dropped ones included; one that is not ended yet counts."""
        mark = self._before(FURTHEST)
        lines, last = mark.lines, b""
        for chunk, before, count in self._walk(mark):
            lines, last = before + count, chunk.data
        last = last or self._read(max(0, mark.offset - 1), 1).data
        return lines + (last != b"" and not last.endswith(b"\n"))

    def find(self, line: int) -> Place:
        """Where line `line` begins; where the log ends if it has fewer lines; behind the gap if
        it was dropped.
        """
        wanted = max(0, line - 1)
        mark = end = self._before(line)
        if mark.lines >= wanted:
            return Place(mark.offset, mark.lines)
        for chunk, before, count in self._walk(mark):
            if before > wanted:
                return Place(chunk.offset, before, chunk.dropped, end.lines)
            if before + count >= wanted:
                return Place(chunk.offset + _behind(chunk.data, wanted - before), wanted)
            end = Mark(chunk.next, before + count)
        return Place(end.offset, end.lines)

    def kept(self, line: int) -> int:
        """The last line up to `line` that was not dropped."""
        while (place := self.find(line)).dropped is not None and place.lines >= line:
            line = place.lines_before_gap
        return line

    def ends_before(self, offset: int) -> int:
        """How many line ends lie before an offset at which a byte is kept."""
        mark = self._before(FURTHEST, offset)
        lines = mark.lines
        for chunk, before, count in self._walk(mark):
            if chunk.next >= offset:
                return before + chunk.data.count(b"\n", 0, max(0, offset - chunk.offset))
            lines = before + count
        return lines

    def page(self, first: int, count: int, last: int = FURTHEST, language: Language = "en") -> Page:
        """At most `count` lines from line `first` to line `last`, each as a terminal would show it
        in the end.
        """
        place = self.find(first)
        shown = [] if place.dropped is None else [place.dropped.line(language)[:-1]]
        number = reached = place.lines
        rest, size = b"", 0
        for chunk, before, _ in self._walk(Mark(place.offset, place.lines)):
            if chunk.dropped is not None:
                if rest:
                    shown.append(rest)
                    reached = number + 1
                if len(shown) >= count:
                    break
                shown.append(chunk.dropped.line(language)[:-1])
                number = reached = before
                rest = b""
            *whole, rest = (rest + chunk.data).split(b"\n")
            whole = whole[: max(0, min(count - len(shown), last - number))]
            number += len(whole)
            shown += whole
            reached = number if whole else reached
            size += len(chunk.data)
            if len(shown) >= count or number >= last or size >= MOST_BYTES:
                break
        if rest and len(shown) < count and number < last:
            shown.append(rest)
            reached = number + 1
        return Page(place.lines + 1, reached, tuple(folded(line) for line in shown[:count]))

    def _has(self, offset: int) -> bool:
        return bool(self._read(offset, 1).data)

    def _before(self, line: int, offset: int = FURTHEST) -> Mark:
        """The last mark that anybody has before a line begins, not behind an offset."""
        with self._lock:
            at = bisect.bisect_left(self._own, (line - 1, -1))
            while at and self._own[at - 1][1] > offset:
                at -= 1
            own = Mark(self._own[at - 1][1], self._own[at - 1][0]) if at else ORIGIN
        return max(own, self._known(line, offset), key=lambda mark: mark.offset)

    def _walk(self, mark: Mark) -> Iterator[tuple[LogChunk, int, int]]:
        """The log from a mark on: each piece, the line ends before it, and those in it."""
        offset, lines = mark.offset, mark.lines
        while (chunk := self._read(offset, BITE)).data:
            if chunk.dropped is not None:
                lines = chunk.dropped.line_ends_before
            self._remember(offset, chunk.offset, lines)
            count = chunk.data.count(b"\n")
            yield chunk, lines, count
            lines, offset = lines + count, chunk.next

    def _remember(self, asked: int, offset: int, lines: int) -> None:
        with self._lock:
            if asked < offset:  # places that were dropped lead nowhere any more
                self._own = [mark for mark in self._own if not asked <= mark[1] < offset]
            if offset >= (self._own[-1][1] if self._own else 0) + OWN_EVERY:
                self._own.append((lines, offset))


def _behind(data: bytes, number: int) -> int:
    """The place behind the `number`-th line end of `data`, which has that many."""
    low, high = 0, len(data)
    while high - low > 1024:
        middle = (low + high) // 2
        here = data.count(b"\n", low, middle)
        if here >= number:
            high = middle
        else:
            low, number = middle, number - here
    at = low - 1
    for _ in range(number):
        at = data.find(b"\n", at + 1)
    return at + 1
