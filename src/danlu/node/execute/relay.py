"""Between a command and whoever wants to see it: streams both ways, none of them ahead of its
reader, until the command has ended, or its job, or nobody is there any more.

`wire` is the server's end: a socket of messages (SOCK_SEQPACKET, `model/execute.py`). It ends with
the server, however that ends.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from danlu.model import execute as words

READ_BYTES = words.PIECE
AHEAD_BYTES = 256 << 10
"""So much of its stdin may wait for a command."""
LOOK_EVERY_S = 0.25
LAST_LOOKS_S = 0.05
DRAIN_S = 2.0
"""What a command left running may hold its output open this long."""
KILLED = 128 + 9


class Ran(Protocol):
    """A command that runs, on any engine."""

    @property
    def quiet_s(self) -> float:
        """What it printed is here at the latest so long after it has ended."""

    def outputs(self) -> dict[int, int]:
        """Descriptors to read from, with their channels (words.STDOUT where `unpack` tells)."""

    def unpack(self, descriptor: int, data: bytes) -> list[bytes]:
        """The messages of what was read."""

    def closed(self, descriptor: int) -> None:
        """There is nothing more to read from a descriptor."""

    def stdin(self) -> int:
        """The descriptor to write to, -1 where there is none (any more)."""

    def end_stdin(self) -> None:
        """There is nothing more to read for it."""

    def resize(self, columns: int, rows: int) -> None:
        """Its terminal has another size."""

    def signal(self, name: str) -> None:
        """Send it a signal."""

    def exit_code(self) -> int | None:
        """How it ended, as a shell gives it; None while it runs."""

    def job_ended(self) -> bool:
        """Whether the task's own program has ended."""

    def watched(self) -> list[int]:
        """Descriptors that become readable when one of the two may have changed."""

    def end(self) -> None:
        """End it and what it started, at once or nearly so."""


@dataclass(slots=True)
class Relay:
    """One command's."""

    wire: socket.socket
    ran: Ran
    _waiting: deque[bytes] = field(default_factory=deque)
    """Messages for the server."""
    _input: bytearray = field(default_factory=bytearray)
    _input_ends: bool = False
    _open: dict[int, int] = field(default_factory=dict)
    _gone: bool = False
    _job_first: bool = False
    """Whether the job ended before the command."""

    def run(self) -> None:
        """Until it is over. The last message says how."""
        self.wire.setblocking(False)
        self._open = self.ran.outputs()
        for descriptor in (*self._open, self.ran.stdin()):
            if descriptor >= 0:
                os.set_blocking(descriptor, False)
        ended_at: float | None = None
        heard_at = time.monotonic()
        while not self._gone:
            if self._turn():
                heard_at = time.monotonic()
            code = self.ran.exit_code()
            if code is None and not self.ran.job_ended():
                continue
            now = time.monotonic()
            ended_at = ended_at or now
            if code is None:
                self._job_first = True
                self.ran.end()
            if self._job_first or code is None:
                code = KILLED
            quiet = now - max(heard_at, ended_at) > self.ran.quiet_s
            late = now - ended_at > DRAIN_S + self.ran.quiet_s
            if not self._waiting and (not self._open or quiet or late):
                self._say_last(self._how(code))
                break
        self.ran.end()

    def _how(self, code: int) -> bytes:
        if code == KILLED and (self._job_first or self.ran.job_ended()):
            return words.ended(code, words.JOB_ENDED, "the job has ended")
        return words.ended(code)

    def _turn(self) -> bool:
        """Wait for something, and move it; whether the command said something."""
        poll = select.poll()
        if self._waiting:
            poll.register(self.wire, select.POLLOUT)
        else:
            for descriptor in self._open:
                poll.register(descriptor, select.POLLIN)
        flags = select.POLLIN if len(self._input) < AHEAD_BYTES else 0
        poll.register(self.wire, flags | (select.POLLOUT if self._waiting else 0))
        stdin = self.ran.stdin()
        if self._input and stdin >= 0:
            # A terminal and a hijacked connection are read and written through one descriptor.
            reads = select.POLLIN if stdin in self._open and not self._waiting else 0
            poll.register(stdin, select.POLLOUT | reads)
        running = self.ran.exit_code() is None
        for descriptor in self.ran.watched() if running else ():
            poll.register(descriptor, select.POLLIN)
        wait_s = LOOK_EVERY_S if running else LAST_LOOKS_S
        ready = dict(poll.poll(wait_s * 1000))
        if self.wire.fileno() in ready:
            self._flush()
            if ready[self.wire.fileno()] & (select.POLLIN | select.POLLHUP | select.POLLERR):
                self._receive()
        if stdin in ready and ready[stdin] & (select.POLLOUT | select.POLLERR | select.POLLHUP):
            self._feed(stdin)
        heard = False
        for descriptor in [one for one in self._open if ready.get(one, 0) & ~select.POLLOUT]:
            if not self._waiting:
                heard = self._read(descriptor) or heard
        return heard

    def _read(self, descriptor: int) -> bool:
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:  # what a terminal says when nobody has it open
            data = b""
        if not data:
            del self._open[descriptor]
            self.ran.closed(descriptor)
            return False
        self._waiting.extend(self.ran.unpack(descriptor, data))
        self._flush()
        return True

    def _flush(self) -> None:
        try:
            while self._waiting:
                self.wire.send(self._waiting[0])
                self._waiting.popleft()
        except BlockingIOError:
            return
        except OSError:
            self._gone = True

    def _receive(self) -> None:
        try:
            packet = self.wire.recv(words.MESSAGE_BYTES + 1)
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        if not packet:
            self._gone = True
            return
        channel, data = packet[0], packet[1:]
        if channel == words.STDIN and not self._input_ends and self.ran.stdin() >= 0:
            self._input += data
            if self._input:
                self._feed(self.ran.stdin())
        elif channel == words.CLOSE and data[:1] in (b"", b"\0"):
            self._input_ends = True
            self._end_input()
        elif channel == words.RESIZE and (found := words.size(data)) is not None:
            self.ran.resize(*found)
        elif channel == words.SIGNAL and data.decode("ascii", "replace") in words.SIGNALS:
            self.ran.signal(data.decode("ascii"))

    def _feed(self, stdin: int) -> None:
        try:
            while self._input:
                del self._input[: os.write(stdin, self._input[:READ_BYTES])]
        except BlockingIOError:
            return
        except OSError:  # it reads no more
            self._input.clear()
            self._input_ends = True
        self._end_input()

    def _end_input(self) -> None:
        if self._input_ends and not self._input:
            self.ran.end_stdin()

    def _say_last(self, status: bytes) -> None:
        self.wire.setblocking(True)
        with suppress(OSError):
            self.wire.settimeout(DRAIN_S)
            for one in self._waiting:
                self.wire.send(one)
            self.wire.send(status)
        hang_up(self.wire)


def hang_up(wire: socket.socket) -> None:
    """Say nothing more, and hear what was still on its way: a socket that is closed before tells
    the other side of an error instead of the last messages.
    """
    with suppress(OSError):
        wire.settimeout(DRAIN_S)
        wire.shutdown(socket.SHUT_WR)
        while wire.recv(words.MESSAGE_BYTES):
            pass
