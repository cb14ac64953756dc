"""Signals as something to wait for: they make a pipe readable and do nothing else."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress

PROMPT_ONLY = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
"""What a terminal sends; neither agent nor shim belongs to one."""


class SignalPipe:
    """Collects the signals of interest of this process. One a process."""

    def __init__(
        self, interest: Iterable[signal.Signals], ignore: Iterable[signal.Signals]
    ) -> None:
        self.descriptor, write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in ignore:
            signal.signal(number, signal.SIG_IGN)
        for number in interest:
            signal.signal(number, _noted)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def taken(self) -> bool:
        """Whether any of them came since the last question."""
        came = False
        with suppress(BlockingIOError):
            while os.read(self.descriptor, 512):
                came = True
        return came


def _noted(_number: int, _frame: object) -> None:
    """The wake-up pipe has told already."""
