"""What a task uses, read from /proc: processor time and memory of its tree, and its GPUs.

Memory is the sum of the processes' resident sets (RSS): what they share counts once for each of
them. The proportional set (PSS) would be exact, but the kernel walks every page of the task for
it while holding a lock that the task needs.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from danlu.node import identity
from danlu.node.directory import TaskDirectory, now_ms
from danlu.node.hang import HangWatch
from danlu.node.identity import Process
from danlu.ports import task_directory as files
from danlu.ports.task_directory import AgentPlan, SampleLine, TaskFile

FIRST_AFTER_S = 0.2
"""Not at once: the program's own start is not to wait for a processor."""
DENSE_S = 60.0
DENSE_EVERY_S = 1.0
EVERY_S = 5.0
SHORTEST_S = 0.05
LONG_S = 24 * 3600.0
LONG_EVERY_S = 30.0

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def interval_s(age_s: float) -> float:
    """How long to wait after a sample of a task that has run for `age_s`."""
    if age_s < DENSE_S:
        return DENSE_EVERY_S
    return EVERY_S if age_s < LONG_S else LONG_EVERY_S


class Tree:
    """Follows the processes below one process with few reads: a pid that is known not to belong
    stays known until it disappears, because no stranger ever becomes a descendant.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._strangers: set[str] = set()
        """Names in /proc that are of no interest, those that are no pids included."""

    def look(self) -> dict[int, Process]:
        """The processes below the root now, by pid."""
        names = set(os.listdir("/proc"))  # noqa: PTH208 -- once a second and task
        self._strangers &= names
        seen = {
            process.pid: process
            for name in names - self._strangers
            if name.isdigit() and (process := identity.read(int(name))) is not None
        }
        below: dict[int, bool] = {self._root: True}
        for process in seen.values():
            self._decide(process, seen, below)
        self._strangers.update(str(pid) for pid in seen if not below[pid])
        self._strangers.update(name for name in names - self._strangers if not name.isdigit())
        return {pid: seen[pid] for pid in seen if below[pid] and pid != self._root}

    def _decide(self, process: Process, seen: dict[int, Process], below: dict[int, bool]) -> None:
        path = []
        at: Process | None = process
        while at is not None and at.pid not in below:
            path.append(at.pid)
            below[at.pid] = False
            at = seen.get(at.parent)
        answer = at is not None and below[at.pid]
        below.update(dict.fromkeys(path, answer))


class Meter:
    """Turns looks at a tree into processor cores and bytes."""

    def __init__(
        self,
        root: int,
        not_counted: Callable[[], int] = lambda: 0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = root
        self._not_counted = not_counted
        self._tree = Tree(root)
        self._monotonic = monotonic
        self._before: tuple[float, int] | None = None
        self.processes: list[Process] = []
        """Those of the last reading."""

    def read(self) -> SampleLine:
        """A sample. Cores are the mean since the one before, unknown in the first."""
        now = self._monotonic()
        processes = self._tree.look()
        processes.pop(self._not_counted(), None)
        root = identity.read(self._root)
        # Time of ended children moves to the parent that waited for them, the shim included.
        ticks = sum(p.busy_ticks + p.reaped_ticks for p in processes.values())
        ticks += root.reaped_ticks if root is not None else 0
        self.processes = list(processes.values())
        sample: SampleLine = {"at": now_ms()}
        if processes:
            sample["memory_bytes"] = sum(p.resident_pages for p in processes.values()) * _PAGE
        if self._before is not None and now > self._before[0]:
            busy_s = max(0, ticks - self._before[1]) / _TICKS
            sample["cpu_cores"] = round(busy_s / (now - self._before[0]), 3)
        self._before = (now, ticks)
        return sample


class Sampler:
    """A thread that writes a task's samples until it is told to stop. A driver that hangs hangs
    this thread and nothing else.
    """

    def __init__(self, directory: TaskDirectory, plan: AgentPlan, root: int) -> None:
        self._directory = directory
        self._plan = plan
        self._meter = Meter(root, self._first)
        self._hang = HangWatch(directory, plan)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more samples."""
        self._stopping.set()
        self._thread.join(timeout=1.0)

    def _first(self) -> int:
        task = cast("TaskFile | None", self._directory.read(files.TASK))
        return task["first"]["pid"] if task is not None and "first" in task else 0

    def _run(self) -> None:
        began = time.monotonic()
        gpus = _gpu_readings(self._plan)
        if self._stopping.wait(FIRST_AFTER_S):
            return
        while True:
            with suppress(OSError):
                sample = self._meter.read()
                found: dict[str, Any] = {**sample, **(gpus() if gpus is not None else {})}
                self._directory.append(files.SAMPLES, found)
                self._hang.look(cast("SampleLine", found), self._meter.processes)
            pause_s = interval_s(time.monotonic() - began)
            if self._hang.every_s:
                pause_s = min(pause_s, max(SHORTEST_S, self._hang.every_s))
            if self._stopping.wait(pause_s):
                return


def _gpu_readings(plan: AgentPlan) -> Callable[[], dict[str, float]] | None:
    """A way to read the task's GPUs, or None where it has none or they cannot be read."""
    if not plan.plan.gpus:
        return None
    from danlu.node.gpu import GpuMeter, shares

    meter = GpuMeter([gpu.uuid for gpu in plan.plan.gpus])
    return lambda: shares(meter.read())
