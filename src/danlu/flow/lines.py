"""lines: where a log ends and which bytes its lines are, without reading it twice.

A log only grows, so what was once counted stays true. An index keeps one number a mebibyte.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from danlu.ports.engine import LogChunk

Read = Callable[[int, int], LogChunk]
"""Reads at most so many bytes from an absolute offset."""

BLOCK = 1 << 20
PROBE = 64 << 10
MOST_BYTES = 4 << 20
"""What one page of lines holds at most; longer ones are cut there."""


@dataclass(frozen=True, slots=True)
class Page:
    """Lines without their ends. `first` is the number of the first one, counted from 1."""

    first: int
    lines: tuple[bytes, ...]


class Index:
    """What is known of one log. Safe to use from several threads."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._counts: list[int] = []
        self._unended = False
        """Whether the last whole block ends within a line."""
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
        """How many lines there are; one that is not ended yet counts."""
        with self._lock:
            tail = self._scan()
            unended = not tail.endswith(b"\n") if tail else self._unended
            return sum(self._counts) + tail.count(b"\n") + unended

    def page(self, first: int, count: int) -> Page:
        """At most `count` lines from line `first` on."""
        with self._lock:
            self._scan()
            before, block = 0, 0
            while block < len(self._counts) and before + self._counts[block] < first - 1:
                before += self._counts[block]
                block += 1
            # The block in which line `first` begins; the line before it ends there.
            data, skip = b"", first - 1 - before
            while len(data) < MOST_BYTES and data.count(b"\n") < skip + count:
                more = self._block(block)
                data += more
                block += 1
                if len(more) < BLOCK:
                    break
        lines = data.split(b"\n")
        ended = lines.pop()
        if ended and len(lines) < skip + count:
            lines.append(ended)
        return Page(first, tuple(lines[skip : skip + count]))

    def _has(self, offset: int) -> bool:
        return bool(self._read(offset, 1).data)

    def _scan(self) -> bytes:
        """Count the blocks that are whole by now; what follows the last of them."""
        while True:
            data = self._block(len(self._counts))
            if len(data) < BLOCK:
                return data
            self._counts.append(data.count(b"\n"))
            self._unended = not data.endswith(b"\n")

    def _block(self, number: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while size < BLOCK:
            data = self._read(number * BLOCK + size, BLOCK - size).data
            if not data:
                break
            parts.append(data)
            size += len(data)
        return b"".join(parts)
