"""All processes of a task, however they were started, and how to end every one of them.

A task's processes are the descendants of its shim, which is a subreaper: whoever forks twice,
starts a session of its own or loses its parent is given to the shim by the kernel and stays
below it. If the shim itself was killed they are below the agent; if both were, they are known
by a variable that every program of the task inherits (`marked`).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from danlu.node import identity
from danlu.node.identity import Process

Find = Callable[[], Iterable[Process]]

HURRY = -20
PAUSE_S = 0.002
MOST_PAUSE_S = 0.05


def processes() -> Iterator[Process]:
    """Every process of the machine that /proc shows."""
    for name in os.listdir("/proc"):  # noqa: PTH208 -- Path.iterdir costs three times as much
        if name.isdigit():
            process = identity.read(int(name))
            if process is not None:
                yield process


def descendants(roots: Collection[int]) -> list[Process]:
    """Every living process below these pids, the roots themselves not included."""
    children: dict[int, list[Process]] = {}
    for process in processes():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    queue = [child for root in roots for child in children.get(root, ())]
    while queue:
        process = queue.pop()
        if process.pid in roots:
            continue
        found.append(process)
        queue.extend(children.get(process.pid, ()))
    return [process for process in found if process.state not in identity.GONE]


def of(pids: Iterable[int]) -> list[Process]:
    """Those of these that live."""
    found = [identity.read(pid) for pid in pids]
    return [process for process in found if process and process.state not in identity.GONE]


def marked(variable: str) -> list[Process]:
    """Every living process that has `NAME=value` in the environment it was started with."""
    wanted = variable.encode()
    return [
        process
        for process in processes()
        if process.state not in identity.GONE and wanted in _environment(process.pid)
    ]


def _environment(pid: int) -> list[bytes]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return []


def signal_group(find: Find, group: int, number: signal.Signals) -> int:
    """Signal those of the found processes that are in a process group; returns how many."""
    reached = 0
    for process in find():
        if process.group == group and identity.send_to(process, number):
            reached += 1
            # A stopped process would not see the signal before it is continued.
            identity.send_to(process, signal.SIGCONT)
    return reached


def _nothing() -> None:
    """What need not be done."""


def kill_all(
    find: Find,
    limit_s: float,
    between: Callable[[], object] = _nothing,
    at_once: Callable[[], object] = _nothing,
) -> tuple[int, int]:
    """End every process that `find` gives, and those they start meanwhile.

    Each round first has `at_once` end what it can in one go (a control group). Then it stops what
    it finds until it finds nothing new (a stopped process cannot fork) and kills all of it, and
    the rounds go on until nothing is found. `between` runs after each round, for a parent that
    has to wait for its children. Returns how many were killed and how many were still there after
    `limit_s` (in an uninterruptible wait, say).
    """
    with _hurrying():
        until = time.monotonic() + limit_s
        killed: set[tuple[int, int]] = set()
        pause = PAUSE_S
        while True:
            killed.update(process.key for process in find())
            at_once()
            frozen = _freeze(find, until)
            for process in frozen:
                identity.send_to(process, signal.SIGKILL)
            killed.update(process.key for process in frozen)
            between()
            left = len(list(find()))
            if not left:
                return len(killed), 0
            if time.monotonic() > until:
                return len(killed) - left, left
            time.sleep(pause)
            pause = min(MOST_PAUSE_S, pause * 2)


@contextmanager
def _hurrying() -> Iterator[None]:
    """Have more than one process's share of the processors against a crowd, where we may."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, HURRY)
    except OSError:
        yield  # only root may, and only root could take it back
        return
    try:
        yield
    finally:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, before)


def _freeze(find: Find, until: float) -> list[Process]:
    frozen: dict[tuple[int, int], Process] = {}
    while True:
        fresh = [process for process in find() if process.key not in frozen]
        for process in fresh:
            identity.send_to(process, signal.SIGSTOP)
            frozen[process.key] = process
        if not fresh or time.monotonic() > until:
            return list(frozen.values())
