"""A task's log as files, within its limit: the head, the latest of the tail, and marks.

```
log                           the head: from the first byte up to half of the limit
log.tail/<offset>-<lines>     what follows, in stretches; the oldest ones are removed
log.index                     marks of the head: where its lines are
```

A stretch is named by the absolute offset of its first byte and by how many line ends come before
it, so its name alone says what is missing in front of it: no second file has to agree with it,
and a crash between any two steps leaves a log that reads right. A mark is an offset, the number
of line ends before it, and a checksum; it is written after the bytes it counts. A mark that is
torn or not true to its checksum is not used, and lines are then counted from further back.
"""

from __future__ import annotations

import binascii
import io
import os
import struct
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from danlu.node.directory import open_end, open_plain, sync_directory
from danlu.ports import task_directory as files
from danlu.ports.engine import Dropped, LogChunk, Mark

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

UNLIMITED = 1 << 62
STRETCHES = 32
"""Of how many stretches the tail is made; the limit is kept to about one of them."""
MARK_EVERY = 64 << 10
PIECE = 256 << 10
ENTRY = struct.Struct("<QQI")
_PAIR = struct.Struct("<QQ")
ORIGIN = Mark(0, 0)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of the tail: the offset of its first byte, and the line ends before it."""

    path: str
    offset: int
    lines: int


def stretches(directory: str) -> list[Stretch]:
    """The tail's pieces, in order."""
    root = f"{directory}/{files.LOG_TAIL}"
    try:
        names = os.listdir(root)  # noqa: PTH208 -- at every look at a log's end
    except OSError:
        return []
    found = []
    for name in names:
        offset, _, lines = name.partition("-")
        if offset.isascii() and offset.isdigit() and lines.isascii() and lines.isdigit():
            found.append(Stretch(f"{root}/{name}", int(offset), int(lines)))
    found.sort(key=lambda stretch: stretch.offset)
    return found


# ---------------------------------------------------------------- writing


class LogWriter:
    """Appends to a task's log and keeps it within `limit_bytes` (0 = none), whatever a writer
    before it has left.
    """

    def __init__(self, directory: str, limit_bytes: int) -> None:
        limit = limit_bytes or UNLIMITED
        self._directory = directory
        self._head_bytes = limit // 2
        self._stretch_bytes = max(1, (limit - self._head_bytes) // STRETCHES)
        self._limit_bytes = limit
        self._tail: deque[Stretch] = deque(stretches(directory))
        self._tail_bytes = 0
        self._marks: int | None = None
        if self._tail:
            last = self._tail[-1]
            self._tail_bytes = limit - head_size(directory)
            self._open(last.path, last.offset, last.lines)
        else:
            self._open_head()

    def write(self, data: bytes) -> int:
        """Append; how many bytes the disk did not take."""
        start = 0
        while start < len(data):
            end, whole = self._share(data, start)
            if not self._append(data, start, end):
                return len(data) - start
            start = end
            if whole:
                try:
                    self._rotate()
                except OSError:
                    return len(data) - start
        return 0

    def sync(self) -> None:
        """Put the log on disk. Raises OSError."""
        os.fsync(self._descriptor)
        if self._tail:
            sync_directory(f"{self._directory}/{files.LOG_TAIL}")

    def close(self) -> None:
        """Let go of the files."""
        os.close(self._descriptor)
        self._end_marks()

    def _share(self, data: bytes, start: int) -> tuple[int, bool]:
        """Where the part of `data` ends that belongs to the file of the moment, and whether that
        file is full then: it ends with a line, unless the line is a very long one.
        """
        bound = self._stretch_bytes if self._tail else self._head_bytes
        size = self._offset - self._began
        left = bound - size
        if len(data) - start < left:
            return len(data), False
        end = data.find(b"\n", start + max(0, left - 1)) + 1
        hard = start + max(1, left + self._stretch_bytes)
        if end and end <= hard:
            return end, True
        return (hard, True) if len(data) >= hard else (len(data), False)

    def _append(self, data: bytes, start: int, end: int) -> bool:
        view = memoryview(data)
        while start < end:
            try:
                written = os.write(self._descriptor, view[start:end])
            except OSError:
                return False
            self._lines += data.count(b"\n", start, start + written)
            self._offset += written
            start += written
            if not self._tail and self._offset - self._marked >= MARK_EVERY:
                self._mark()
        return True

    def _rotate(self) -> None:
        """Begin the next stretch, and remove the oldest ones as far as it needs their room."""
        if not self._tail:
            self._mark()
            self._tail_bytes = self._limit_bytes - self._offset
        room = self._tail_bytes - 2 * self._stretch_bytes
        while len(self._tail) > 1 and self._offset - self._tail[0].offset > room:
            with suppress(FileNotFoundError):
                os.unlink(self._tail[0].path)  # noqa: PTH108 -- paths as text
            self._tail.popleft()
        root = f"{self._directory}/{files.LOG_TAIL}"
        with suppress(FileExistsError):
            os.mkdir(root, 0o700)  # noqa: PTH102 -- as above
        path = f"{root}/{self._offset:016d}-{self._lines:016d}"
        before = self._descriptor
        self._open(path, self._offset, self._lines)
        self._tail.append(Stretch(path, self._offset, self._lines))
        os.close(before)
        self._end_marks()

    def _open(self, path: str, offset: int, lines: int) -> None:
        """Go on with a stretch that may hold something already."""
        self._descriptor = open_end(path)
        size, more = _count(path, 0)
        self._began, self._offset, self._lines = offset, offset + size, lines + more

    def _open_head(self) -> None:
        path = f"{self._directory}/{files.LOG}"
        self._descriptor = open_end(path)
        size = os.fstat(self._descriptor).st_size
        last = last_mark(self._directory, size)
        _, more = _count(path, last.offset)
        self._began, self._offset, self._lines = 0, size, last.lines + more
        self._marked = last.offset
        with suppress(OSError):  # no mark is worth a line
            index = f"{self._directory}/{files.LOG_INDEX}"
            self._marks = open_end(index)
            # What a crash left behind the last good mark would be taken for marks of new bytes.
            os.ftruncate(self._marks, _good_marks(index, size) * ENTRY.size)

    def _mark(self) -> None:
        self._marked = self._offset
        if self._marks is not None:
            whole = 0
            with suppress(OSError):
                whole = os.write(self._marks, entry(self._offset, self._lines))
            if whole < ENTRY.size:
                self._end_marks()  # a torn one, and the next ones would not be found behind it

    def _end_marks(self) -> None:
        if self._marks is not None:
            os.close(self._marks)
            self._marks = None


def entry(offset: int, lines: int) -> bytes:
    """A mark as it is written."""
    return ENTRY.pack(offset, lines, binascii.crc32(_PAIR.pack(offset, lines)))


def _count(path: str, start: int) -> tuple[int, int]:
    """How large a file is, and how many line ends it holds from `start` on."""
    size, lines = start, 0
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        while data := os.pread(descriptor, 1 << 20, size):
            size += len(data)
            lines += data.count(b"\n")
    finally:
        os.close(descriptor)
    return size, lines


# ---------------------------------------------------------------- marks


def _entry_at(descriptor: int, number: int) -> Mark | None:
    """A mark of the index, or None if it is torn or damaged."""
    data = os.pread(descriptor, ENTRY.size, number * ENTRY.size)
    if len(data) < ENTRY.size:
        return None
    offset, lines, check = ENTRY.unpack(data)
    return Mark(offset, lines) if binascii.crc32(data[: _PAIR.size]) == check else None


def _good_marks(path: str, size: int) -> int:
    """How many marks an index has up to the last good one that speaks of the first `size` bytes
    only.
    """
    index = open_plain(path)
    try:
        count = os.fstat(index).st_size // ENTRY.size
        while count:
            found = _entry_at(index, count - 1)
            if found is not None and found.offset <= size:
                break
            count -= 1
        return count
    finally:
        os.close(index)


def last_mark(directory: str, size: int, below: int = 1 << 62) -> Mark:
    """The last mark within the head's first `size` bytes that has fewer than `below` line ends
    before it; the log's beginning where there is none.
    """
    try:
        index = open_plain(f"{directory}/{files.LOG_INDEX}")
    except OSError:
        return ORIGIN
    try:
        low, high, found = 0, os.fstat(index).st_size // ENTRY.size, ORIGIN
        while low < high:
            middle = (low + high) // 2
            mark = _entry_at(index, middle)
            if mark is not None and mark.offset <= size and mark.lines < below:
                low, found = middle + 1, mark
            else:
                high = middle
        return found
    finally:
        os.close(index)


# ---------------------------------------------------------------- reading


class LogFiles:
    """A task's log as it is read, by absolute offset. Keeps nothing; the writer goes on."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def read(self, since: int, limit: int) -> LogChunk:
        """At most `limit` bytes from `since`, or from the next byte that was not dropped.

        `ended` says only that nothing is there behind them yet.
        """
        since = max(0, since)
        data, head = _read(f"{self._directory}/{files.LOG}", since, limit)
        if since < head:
            drained = since + len(data) >= head and not stretches(self._directory)
            return LogChunk(since, data, drained)
        while True:
            try:
                return self._read_tail(since, limit, head)
            except FileNotFoundError:
                continue  # the writer has just removed it: what is the oldest one now?

    def mark(self, line: int, offset: int = 1 << 62) -> Mark:
        """The last place that is known to lie before line `line` (from 1) begins, and not behind
        `offset`.
        """
        for stretch in reversed(stretches(self._directory)):
            if stretch.lines < line - 1 and stretch.offset <= offset:
                return Mark(stretch.offset, stretch.lines)
        return last_mark(self._directory, min(offset, head_size(self._directory)), line - 1)

    def end(self) -> int:
        """The offset behind the last byte."""
        found = stretches(self._directory)
        if not found:
            return head_size(self._directory)
        return found[-1].offset + os.stat(found[-1].path).st_size  # noqa: PTH116 -- as text

    def _read_tail(self, since: int, limit: int, head: int) -> LogChunk:
        found = stretches(self._directory)
        behind = [number for number, stretch in enumerate(found) if stretch.offset <= since]
        for number in range(behind[-1] if behind else 0, len(found)):
            stretch = found[number]
            start = max(since, stretch.offset)
            data, size = _read(stretch.path, start - stretch.offset, limit, there=True)
            last = number == len(found) - 1
            if start >= stretch.offset + size and not last:
                continue
            drained = last and start + len(data) >= stretch.offset + size
            return LogChunk(start, data, drained, self._dropped(since, start, head, stretch))
        return LogChunk(since, b"", ended=True)

    def _dropped(self, since: int, start: int, head: int, stretch: Stretch) -> Dropped | None:
        if start == since:
            return None
        before = self._lines_of_head(head) if since == head else None
        lines = None if before is None else stretch.lines - before
        return Dropped(start - since, lines, stretch.lines)

    def _lines_of_head(self, head: int) -> int:
        mark = last_mark(self._directory, head)
        return mark.lines + _count(f"{self._directory}/{files.LOG}", mark.offset)[1]


class LogStream(io.RawIOBase):
    """All that is kept of a log, with a line in place of what was dropped."""

    def __init__(self, files: LogFiles) -> None:
        self._files = files
        self._at = 0
        self._unended = False
        self._pending = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        if not self._pending:
            chunk = self._files.read(self._at, PIECE)
            mark = chunk.dropped.line() if chunk.dropped is not None else b""
            self._pending = b"\n" * (self._unended and mark != b"") + mark + chunk.data
            self._at = chunk.next
            self._unended = not chunk.data.endswith(b"\n")
        view = memoryview(buffer).cast("B")
        count = min(len(view), len(self._pending))
        view[:count] = self._pending[:count]
        self._pending = self._pending[count:]
        return count


def head_size(directory: str) -> int:
    """The size of a log's head."""
    try:
        return os.stat(f"{directory}/{files.LOG}").st_size  # noqa: PTH116 -- as text
    except OSError:
        return 0


def _read(path: str, at: int, limit: int, *, there: bool = False) -> tuple[bytes, int]:
    """Bytes of a file and its size. A file that cannot be read is empty, unless it is `there`."""
    try:
        descriptor = open_plain(path)
    except FileNotFoundError:
        if there:
            raise
        return b"", 0
    except OSError:
        return b"", 0
    try:
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, max(0, min(limit, size - at)), at), size
    finally:
        os.close(descriptor)
