"""The log: bytes from the program's pipe to a file.

The pipe, and not the file itself, is the program's stdout: `echo note > /dev/stderr` opens
whatever stderr is anew, and a file would be cut to nothing by that.
"""

from __future__ import annotations

import fcntl
import os
import select
import time
from contextlib import suppress

from danlu.node.log_files import LogWriter

CHUNK = 1 << 16
PIPE_BYTES = 1 << 20
NAP_S = 0.002
"""After a small read. A program that prints line by line then wakes the pump 500 times a second
and not 50,000 times; the pipe holds what comes meanwhile."""


def open_pipe() -> tuple[int, int]:
    """A pipe with room for a burst of output."""
    read, write = os.pipe()
    with suppress(OSError):
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return read, write


class Pump:
    """Moves what a pipe holds to the end of a log."""

    def __init__(self, source: int, log: LogWriter) -> None:
        self.source = source
        self.dropped_bytes = 0
        """What the disk did not take. The program is not held up for it."""
        self._log = log

    def move(self) -> bool:
        """Move what is there, waiting if nothing is; False at the end of the pipe."""
        data = os.read(self.source, CHUNK)
        if not data:
            return False
        self.dropped_bytes += self._log.write(data)
        if len(data) < CHUNK:
            time.sleep(NAP_S)
        return True

    def drain(self, limit_s: float) -> bool:
        """Move everything up to the end of the pipe; False if it is still open after `limit_s`."""
        until = time.monotonic() + limit_s
        poll = select.poll()
        poll.register(self.source, select.POLLIN)
        while (left_s := until - time.monotonic()) > 0 and poll.poll(left_s * 1000):
            if not self.move():
                return True
        return False

    def sync(self) -> None:
        """Put the log on disk. Raises OSError."""
        self._log.sync()
