"""How a task is told to end: the order in stop.json, the notice for the program, the deadline."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from danlu.node.directory import TaskDirectory, now_ms
from danlu.ports import task_directory as files
from danlu.ports.engine import StopReason
from danlu.ports.task_directory import NoticeFile

STOP = StopReason.STOP
HANG = StopReason.HANG
TIME_LIMIT = "time-limit"
REASONS = (*StopReason, TIME_LIMIT)
VARIABLE = "DANLU_STOP_FILE"
MOST_GRACE_S = 7 * 24 * 3600.0


def boot_clock() -> float:
    """Seconds since the machine started, sleep included; no one can set this clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def marker(path: str) -> str:
    """The variable that every process of a task inherits, as `NAME=value`; it also tells the
    program where it will find why it is being stopped.
    """
    return f"{VARIABLE}={path}/{files.NOTICE}"


def ordered_grace(directory: TaskDirectory) -> float | None:
    """The grace of a stop that was ordered, in seconds, or None if none was."""
    if not directory.exists(files.STOP):
        return None
    order = directory.read(files.STOP) or {}
    return _seconds(order.get("grace_s"))


def ordered_reason(directory: TaskDirectory) -> str:
    """Why a stop was ordered."""
    return _reason((directory.read(files.STOP) or {}).get("reason"))


def notice(directory: TaskDirectory) -> NoticeFile | None:
    """The notice that was given to the program, or None."""
    data = directory.read(files.NOTICE)
    if data is None:
        return None
    return {
        "reason": _reason(data.get("reason")),
        "at": _whole(data.get("at")),
        "grace_s": _seconds(data.get("grace_s")),
        "deadline": _whole(data.get("deadline")),
        "deadline_boot_s": _number(data.get("deadline_boot_s")),
    }


class Ending:
    """Whether and until when the program may still end by itself."""

    def __init__(self, directory: TaskDirectory) -> None:
        self._directory = directory
        given = notice(directory)
        self.deadline = given["deadline_boot_s"] if given else None
        """On `boot_clock`; None = nobody wants it to end."""
        self._reason = given["reason"] if given else ""

    def order(self, reason: str, grace_s: float) -> bool:
        """Give notice, or shorten the one given; True the first time, when SIGTERM is due."""
        now = boot_clock()
        deadline = now + grace_s
        first = self.deadline is None
        if self.deadline is not None and deadline >= self.deadline:
            return False
        self.deadline = deadline
        self._reason = self._reason or reason
        at = now_ms()
        given: NoticeFile = {
            "reason": self._reason,
            "at": at,
            "grace_s": grace_s,
            "deadline": at + round(grace_s * 1000),
            "deadline_boot_s": deadline,
        }
        with suppress(OSError):  # a full disk must not keep a task from being stopped
            self._directory.publish(files.NOTICE, given)
        return first

    def left_s(self) -> float | None:
        """Seconds until the deadline (negative when passed), None where there is none."""
        return None if self.deadline is None else self.deadline - boot_clock()


def _reason(value: Any) -> str:
    return value if value in REASONS else STOP


def _seconds(value: Any) -> float:
    return min(MOST_GRACE_S, max(0.0, _number(value)))


def _number(value: Any) -> float:
    number = float(value) if isinstance(value, int | float) else 0.0
    return number if number - number == 0 else 0.0  # NaN and infinities


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0
