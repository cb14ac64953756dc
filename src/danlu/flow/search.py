"""search: the lines of a log that hold a text.

The text is plain: a pattern of a client's could keep the server busy for ever (`(a+)+$`).
Whoever wants one asks for a text that it cannot do without, and looks through what comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from danlu.ports.engine import LogChunk

BLOCK = 1 << 20
LINE_BYTES = 1 << 20
"""Longer lines are searched in pieces of this size."""
MANY = 8
"""If at least every so manieth line is hit, looking at each line is faster than at each hit."""


class Search:
    """A search for `needle` from one offset to another. `read` gives at most so many bytes at an
    offset. `ends_before` says how many line ends lie before one: then each line is told with its
    number and offset, `NUMBER:OFFSET:line`.
    """

    def __init__(
        self,
        read: Callable[[int, int], LogChunk],
        needle: bytes,
        since: int,
        until: int,
        ends_before: Callable[[int], int] | None = None,
    ) -> None:
        self._read = read
        self._ends_before = ends_before
        self._needle = needle
        self._since = since
        self._until = until

    def blocks(self) -> Iterator[bytes]:
        """What was found in each stretch of the log, which may be nothing."""
        at, rest = self._since, b""
        while at < self._until:
            chunk = self._read(at, min(BLOCK, self._until - at))
            if not chunk.data:
                break
            if chunk.dropped is not None and rest:
                yield self._found(at - len(rest), rest)
                rest = b""
            data = rest + chunk.data if rest else chunk.data
            end = data.rfind(b"\n") + 1
            if not end and len(data) >= LINE_BYTES:
                end = len(data)
            begin, at = chunk.offset - len(rest), chunk.next
            yield self._found(begin, data[:end] if end < len(data) else data)
            rest = data[end:]
        yield self._found(at - len(rest), rest)

    def _found(self, begin: int, data: bytes) -> bytes:
        """The lines of `data`, which begins at offset `begin`, that hold the needle."""
        hits = data.count(self._needle)
        if not hits:
            return b""
        if self._ends_before is None and hits * MANY > data.count(b"\n"):
            lines = [line for line in data.split(b"\n") if self._needle in line]
            return b"\n".join(lines) + b"\n" if lines else b""
        return self._each(begin, data)

    def _each(self, begin: int, data: bytes) -> bytes:
        found: list[bytes] = []
        number = self._ends_before(begin) + 1 if self._ends_before else 0
        at = counted = 0
        while (hit := data.find(self._needle, at)) >= 0:
            start = data.rfind(b"\n", 0, hit) + 1
            end = data.find(b"\n", hit)
            end = len(data) if end < 0 else end
            if self._ends_before:
                number += data.count(b"\n", counted, start)
                counted = start
                found.append(b"%d:%d:%b\n" % (number, begin + start, data[start:end]))
            else:
                found.append(data[start:end] + b"\n")
            at = end + 1
        return b"".join(found)
