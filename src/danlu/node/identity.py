"""Processes by identity: pid, start time and boot, because pids are used again and boots end.

A remembered pid is never signalled. A process is opened as a pidfd, its start time compared
after that, and only then does it get the signal: whatever the pid means later, the pidfd stays
with the process that was compared.
"""

from __future__ import annotations

import errno
import functools
import os
import signal
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from danlu.ports.task_directory import ProcessIdentity

GONE = ("Z", "X")
"""States of a process that has ended, whether or not its parent has taken notice."""


STARVED = (errno.EMFILE, errno.ENFILE)
"""Whoever has no descriptor left has learnt nothing about what he could not open."""


@dataclass(frozen=True, slots=True)
class Process:
    """One line of /proc/<pid>/stat. Times are clock ticks, memory is pages (proc(5))."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    start_ticks: int
    busy_ticks: int
    """User and system time of the process itself."""
    reaped_ticks: int
    """User and system time of its children that have ended and been waited for."""
    resident_pages: int
    address_bytes: int

    @property
    def ending(self) -> bool:
        """Whether it runs nothing any more: it has given its memory back. The first process of a
        namespace may still wait like that for somebody to take notice of the others.
        """
        return self.address_bytes == 0

    @property
    def key(self) -> tuple[int, int]:
        """What makes the process itself within one boot."""
        return self.pid, self.start_ticks


@functools.cache
def boot_id() -> str:
    """The kernel's random name of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def read(pid: int) -> Process | None:
    """What the kernel says of `pid`, or None if there is no such process. OSError if it cannot be
    asked for want of descriptors.
    """
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in STARVED:
            raise
        return None
    try:
        return parse(os.read(descriptor, 1024))
    except OSError:
        return None
    finally:
        os.close(descriptor)


def parse(line: bytes) -> Process | None:
    """Read a line of /proc/<pid>/stat. The name in it may hold anything, `)` and spaces too."""
    head, _, tail = line.rpartition(b")")
    fields = tail.split()
    if len(fields) < 22:
        return None
    return Process(
        pid=int(head[: head.index(b" ")]),
        state=fields[0].decode("ascii"),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        start_ticks=int(fields[19]),
        busy_ticks=int(fields[11]) + int(fields[12]),
        reaped_ticks=int(fields[13]) + int(fields[14]),
        resident_pages=int(fields[21]),
        address_bytes=int(fields[20]),
    )


def of(pid: int) -> ProcessIdentity | None:
    """The identity of a process that is there now."""
    process = read(pid)
    if process is None:
        return None
    return {"pid": pid, "start_ticks": process.start_ticks, "boot_id": boot_id()}


def mine() -> ProcessIdentity:
    """The identity of this process."""
    identity = of(os.getpid())
    if identity is None:
        raise ProcessLookupError("/proc does not show this process; is it mounted?")
    return identity


def alive(identity: ProcessIdentity | None) -> bool:
    """Whether this very process still runs. One that ended and was not waited for does not."""
    if identity is None or identity["boot_id"] != boot_id():
        return False
    process = read(identity["pid"])
    return (
        process is not None
        and process.start_ticks == identity["start_ticks"]
        and process.state not in GONE
    )


def open_process(identity: ProcessIdentity) -> int | None:
    """A pidfd of this very process, or None if it is gone."""
    if identity["boot_id"] != boot_id():
        return None
    return _open_same(identity["pid"], identity["start_ticks"])


def send(identity: ProcessIdentity, number: signal.Signals) -> bool:
    """Signal this very process; False if it is gone."""
    descriptor = open_process(identity)
    return descriptor is not None and _send_and_close(descriptor, number)


def send_to(process: Process, number: signal.Signals) -> bool:
    """Signal a process that was just seen in a scan; False if it is gone."""
    descriptor = _open_same(process.pid, process.start_ticks)
    return descriptor is not None and _send_and_close(descriptor, number)


def kill_members(members: Callable[[], Collection[int]]) -> None:
    """SIGKILL to every process of a set that the kernel keeps (a control group). A pid that is
    still in the set after a pidfd was opened for it is that of the process we mean.
    """
    opened: dict[int, int] = {}
    for pid in members():
        with suppress(OSError, ValueError):
            opened[pid] = os.pidfd_open(pid)
    still = set(members()) if opened else ()
    for pid, descriptor in opened.items():
        if pid in still:
            _send_and_close(descriptor, signal.SIGKILL)
        else:
            os.close(descriptor)


def _open_same(pid: int, start_ticks: int) -> int | None:
    try:
        descriptor = os.pidfd_open(pid)
    except (OSError, ValueError, OverflowError):
        return None
    process = read(pid)
    # The pidfd was opened before this look. If the look shows the process we mean, the pid
    # cannot have passed to another one in between.
    if process is None or process.start_ticks != start_ticks or process.state == "X":
        os.close(descriptor)
        return None
    return descriptor


def _send_and_close(descriptor: int, number: signal.Signals) -> bool:
    try:
        with suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(descriptor, number)
            return True
        return False
    finally:
        os.close(descriptor)
