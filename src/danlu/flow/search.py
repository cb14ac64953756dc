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
SAMPLE = 32 << 10
MANY = 64
"""Where there are more hits than these in a sample, looking at each line is faster than at each
hit.
"""


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
            data = chunk.data
            if not data:
                break
            if chunk.dropped is not None and rest:
                yield self._found(at - len(rest), rest, 0, len(rest))
                rest = b""
            begin, at = chunk.offset, chunk.next
            first, end = 0, data.rfind(b"\n") + 1
            if rest and end:
                # The line that began in the block before; the others are searched where they lie.
                first = data.index(b"\n") + 1
                line = rest + data[:first]
                yield self._found(begin - len(rest), line, 0, len(line))
            elif rest:
                begin, data = begin - len(rest), rest + data
            if not end and len(data) >= LINE_BYTES:
                end = len(data)
            yield self._found(begin, data, first, end)
            rest = data[end:]
        yield self._found(at - len(rest), rest, 0, len(rest))

    def _found(self, begin: int, data: bytes, start: int, end: int) -> bytes:
        """The lines between two places of `data`, which begins at offset `begin`, that hold the
        needle.
        """
        hit = data.find(self._needle, start, end)
        if hit < 0:
            return b""
        near = data.count(self._needle, hit, min(end, hit + SAMPLE))
        if self._ends_before is None and near > MANY:
            lines = data[start:end].split(b"\n")
            return b"".join([line + b"\n" for line in lines if self._needle in line])
        found: list[bytes] = []
        number = self._ends_before(begin + start) + 1 if self._ends_before else 0
        counted = start
        while hit >= 0:
            line = data.rfind(b"\n", start, hit) + 1 or start
            behind = data.find(b"\n", hit, end)
            behind = end if behind < 0 else behind
            if self._ends_before:
                number += data.count(b"\n", counted, line)
                counted = line
                found.append(b"%d:%d:%b\n" % (number, begin + line, data[line:behind]))
            else:
                found.append(data[line:behind] + b"\n")
            hit = data.find(self._needle, behind, end)
        return b"".join(found)
