"""Whether memory ran out: the kernel counts the processes that it killed for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

KILLED_WITHIN_S = 5.0
LOOK_EVERY_S = 2.0
FAILED_WITHIN_S = 30.0
"""A program whose worker was killed notices later, when it asks the worker for something."""


def counter() -> Path:
    """The file in which the kernel says how many processes it has killed here for memory.

    In a container with a memory controller of its own the count is the container's; otherwise
    it is the machine's, which may include somebody else's process.
    """
    own = _own_events()
    return own if own is not None and count_in(own) is not None else Path("/proc/vmstat")


def _own_events() -> Path | None:
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text("utf-8").splitlines():
            number, _, rest = line.partition(":")
            group = rest.partition(":")[2]
            if number == "0" and group not in ("", "/"):
                return Path(f"/sys/fs/cgroup{group}/memory.events")
    return None


def count_in(path: Path) -> int | None:
    """The count in one of these files; None where it holds none."""
    with suppress(OSError, ValueError):
        # Between line ends, so that neither the first nor another line is taken for it.
        _, found, rest = b"\n".join((b"", path.read_bytes())).partition(b"\noom_kill ")
        return int(rest.split(maxsplit=1)[0]) if found else None
    return None


class OomWatch:
    """Remembers when the kernel's count last rose. `count` reads it; without one, the count is
    that of the container or machine.
    """

    def __init__(
        self,
        count: Callable[[], int | None] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        file = counter()
        self._read = count or (lambda: count_in(file))
        self._monotonic = monotonic
        self._count = self._read() or 0
        self._rose_at: float | None = None

    def look(self) -> None:
        """Take notice of the count."""
        count = self._read() or 0
        if count > self._count:
            self._rose_at = self._monotonic()
        self._count = count

    def explains(self, *, killed: bool, failed: bool) -> bool:
        """Whether memory explains how a program just ended: `killed` by a SIGKILL that was not
        ours, or `failed` in another way shortly after one of its processes was killed.
        """
        self.look()
        if self._rose_at is None:
            return False
        since = self._monotonic() - self._rose_at
        return (killed and since <= KILLED_WITHIN_S) or (failed and since <= FAILED_WITHIN_S)
