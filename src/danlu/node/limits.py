"""What a task's limits did to it: told while it runs, and weighed when its program has ended."""

from __future__ import annotations

import time
from collections.abc import Callable

from danlu.model.event import Level
from danlu.model.reason import ReasonCode
from danlu.model.resources import size
from danlu.node.cgroup import Group, Limits
from danlu.node.directory import TaskDirectory
from danlu.node.oom import FAILED_WITHIN_S, LOOK_EVERY_S, OomWatch
from danlu.ports import task_directory as files
from danlu.ports.task_directory import ExitFile


class LimitWatch:
    """Looks at the kernel's counts of one task: processes killed for memory, processes refused."""

    def __init__(
        self,
        directory: TaskDirectory,
        group: Group,
        limits: Limits,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._group = group
        self._limits = limits
        self._monotonic = monotonic
        own = group.oom_kills() is not None
        self._oom = OomWatch(count=group.oom_kills if own else None, monotonic=monotonic)
        self._killed = 0
        """How many the last look found. They are told one look later: if the program itself is
        the one that was killed, its end tells it."""
        self._told_killed = 0
        self._refused = 0
        self._refused_at: float | None = None
        self._looked_at = monotonic()

    def look_again(self) -> None:
        """Take notice of the counts while the program runs, if the last time was a while ago."""
        if self._monotonic() - self._looked_at >= LOOK_EVERY_S:
            self._tell_of_workers(self._killed)
            self._look()

    def weigh(self, record: ExitFile) -> None:
        """Say in the record of a program's end if a limit explains it."""
        self._look()
        told_to_end = self._directory.exists(files.NOTICE)
        killed = record["signal"] == "SIGKILL"
        failed = record["exit_code"] != 0
        by_memory = not told_to_end and self._oom.explains(killed=killed, failed=failed)
        record["out_of_memory"] = by_memory
        self._tell_of_workers(self._killed - (1 if by_memory and killed else 0))
        if failed and not told_to_end and not by_memory and self._lately_refused():
            record["problem"] = str(ReasonCode.PIDS_LIMIT)
            record["detail"] = {
                **record.get("detail", {}),
                "limit": self._limits.pids,
                "exit_code": record["exit_code"],
            }

    def _look(self) -> None:
        self._looked_at = self._monotonic()
        self._oom.look()
        self._killed = self._group.oom_kills() or 0
        before, self._refused = self._refused, self._group.refused_forks() or 0
        if self._refused > before:
            self._refused_at = self._looked_at
            if not before:
                self._directory.note("pids-refused", Level.WARNING, limit=self._limits.pids)

    def _lately_refused(self) -> bool:
        at = self._refused_at
        return at is not None and self._monotonic() - at <= FAILED_WITHIN_S

    def _tell_of_workers(self, killed: int) -> None:
        if killed > self._told_killed:
            self._directory.note(
                "worker-out-of-memory",
                Level.WARNING,
                count=killed - self._told_killed,
                limit=size(self._limits.memory_bytes),
            )
            self._told_killed = killed
