"""The machine's clock and randomness, and what one server holds and lets go."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
import time
from pathlib import Path

from danlu.model.errors import PlatformError, Refused, Unavailable

LOCK_FILE = "server.lock"


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        """UTC, milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds since some start; never goes back."""
        return time.monotonic()


SCATTER = 0x9E37
"""Odd, so that 65,536 seconds in a row give as many numbers; far from 1, so that neighbours lie
apart.
"""


class SystemDice:
    """The machine's randomness, fetched a page at a time: a submit needs two draws, and a system
    call beside a busy writer thread costs more than the rest of its checks.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._page = b""
        self._at = 0

    def token(self) -> str:
        """128 fresh random bits as 32 hexadecimal digits."""
        return self._draw().hex()

    def job_id(self) -> str:
        """A fresh UUID in its usual form (version 8 of RFC 9562: the layout is our own).

        The first 16 bits stand for the second and 106 are random: what submits of one second add
        to the indexes by job lies side by side, in few pages, and jobs of two seconds differ
        in their first letters.
        """
        drawn = self._draw()
        text = drawn.hex()
        second = int(time.time()) * SCATTER & 0xFFFF
        variant = "89ab"[drawn[8] & 3]
        return (
            f"{second:04x}{text[4:8]}-{text[8:12]}-8{text[13:16]}-"
            f"{variant}{text[17:20]}-{text[20:]}"
        )

    def fraction(self) -> float:
        """A number from 0 up to, but not including, 1."""
        return int.from_bytes(self._draw()[:6], "big") / (1 << 48)

    def _draw(self) -> bytes:
        with self._lock:
            if self._at >= len(self._page):
                self._page, self._at = os.urandom(4096), 0
            drawn = self._page[self._at : self._at + 16]
            self._at += 16
            return drawn


class Ending:
    """Ends this server in good order when its records can no longer be trusted; the next one starts
    from what is on disk.
    """

    def __init__(self) -> None:
        self.problem: PlatformError | None = None
        """Why the server ends; None while nothing is wrong."""

    def __call__(self, problem: PlatformError) -> None:
        self.problem = problem
        signal.raise_signal(signal.SIGTERM)


class DataLock:
    """One server a data directory: held as long as the process lives, whatever ends it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not self._taken():
            pid = os.pread(self._descriptor, 20, 0).decode("ascii", "replace").strip() or "?"
            os.close(self._descriptor)
            raise Refused("data-dir-in-use", path=path.parent, pid=pid)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def _taken(self) -> bool:
        # Whoever asks whether a server lives (`danlu status`) holds the lock for a moment.
        for pause in (0.01, 0.03, 0.1, 0.3, 0.0):
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                time.sleep(pause)
            else:
                return True
        return False

    def release(self) -> None:
        """Let another server have the directory."""
        os.close(self._descriptor)


def locked(data: Path) -> DataLock:
    """The data directory, which is made if it is not there, for this process alone."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        return DataLock(data / LOCK_FILE)
    except OSError as error:
        raise Unavailable("data-dir-unusable", path=data, detail=error.strerror) from error
