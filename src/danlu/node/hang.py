"""Watches a task for a hang: looks at it now and then, records its stacks, tells the server."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from danlu.model.event import Level
from danlu.model.hang import Look, Still, still
from danlu.node import stacks
from danlu.node.directory import TaskDirectory, now_ms
from danlu.node.identity import Process
from danlu.node.log_files import LogFiles
from danlu.ports import task_directory as files
from danlu.ports.engine import TASK_HANGS
from danlu.ports.task_directory import AgentPlan, HungFile, SampleLine

LOOKS = 20
"""Looks in the time after which a task is taken to hang."""
KEPT = 4 * LOOKS


class HangWatch:
    """One task's. `look` is called with every sample; nothing is done for a job that wants none."""

    def __init__(self, directory: TaskDirectory, plan: AgentPlan) -> None:
        self._directory = directory
        self._packages = plan.packages
        self._after_s = plan.plan.hang_after_s
        self._every_s = self._after_s / LOOKS
        self._log = LogFiles(directory.path)
        self._looks: deque[Look] = deque(maxlen=KEPT)
        self._hung = directory.exists(files.HUNG)

    @property
    def every_s(self) -> float:
        """How often a look is needed, in seconds; 0 = not at all."""
        return self._every_s

    def look(self, sample: SampleLine, processes: Collection[Process]) -> None:
        """Take notice of a sample, and act if nothing moves or something moves again."""
        now = time.monotonic()
        if not self._after_s or (self._looks and now - self._looks[-1].at_s < self._every_s * 0.9):
            return
        self._looks.append(
            Look(
                now,
                self._log.end(),
                io_bytes(processes),
                sample.get("cpu_cores"),
                sample.get("gpu_busy"),
            )
        )
        found = still(list(self._looks), self._after_s)
        if found is not None and not self._hung:
            self._tell(found, now, processes)
        elif found is None and self._hung and moved(self._looks):
            self._hung = False
            # Told before the flag drops, as it was told before the flag rose.
            self._directory.note("task-moves")
            with suppress(OSError):
                Path(self._directory.file(files.HUNG)).unlink()

    def _tell(self, found: Still, now: float, processes: Collection[Process]) -> None:
        self._hung = True
        python = stacks.record(self._directory, list(processes), self._packages)
        since = now_ms() - round((now - found.since_s) * 1000)
        hung: HungFile = {"since": since, "at": now_ms()}
        self._directory.note(
            TASK_HANGS,
            Level.WARNING,
            seconds=round(self._after_s),
            busy=busy(found),
            count=len(processes),
            python=python,
            path=self._directory.file(files.STACKS),
        )
        with suppress(OSError):
            self._directory.publish(files.HUNG, hung)


def moved(looks: Collection[Look]) -> bool:
    """Whether the last look differs from the one before in log or I/O."""
    if len(looks) < 2:
        return False
    *_, before, last = looks
    return (before.log_bytes, before.io_bytes) != (last.log_bytes, last.io_bytes)


def busy(found: Still) -> str:
    """What is busy while nothing moves, in words that need no language."""
    parts = [] if found.gpu_busy is None else [f"GPU {found.gpu_busy:.0%}"]
    if found.cpu_cores is not None:
        parts.append(f"CPU {found.cpu_cores:.1f}")
    return ", ".join(parts)


def io_bytes(processes: Collection[Process]) -> int | None:
    """Bytes that these processes have read and written, sockets by `read` and `write` included;
    None where the system does not tell.
    """
    total, known = 0, False
    for process in processes:
        with suppress(OSError, ValueError, IndexError):
            descriptor = os.open(f"/proc/{process.pid}/io", os.O_RDONLY | os.O_CLOEXEC)
            try:
                lines = os.read(descriptor, 4096).split(b"\n")
            finally:
                os.close(descriptor)
            total += int(lines[0].split()[1]) + int(lines[1].split()[1])
            known = True
    return total if known else None
