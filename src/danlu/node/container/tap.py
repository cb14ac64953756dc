"""Beside a container: its output goes to the log, and its limits are looked at."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable

from danlu.node.log_files import LogWriter
from danlu.node.logs import Pump
from danlu.node.oom import LOOK_EVERY_S


class Tap:
    """A thread that empties the pipe `source` into a log until it is told to stop, and has a look
    now and then.
    """

    def __init__(self, source: int, log: LogWriter, look: Callable[[], object]) -> None:
        self.pump = Pump(source, log)
        self._look = look
        self._stopped, self._stop = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Empty the pipe for the last time: whoever could write into it has ended."""
        os.close(self._stop)
        self._thread.join()
        os.close(self._stopped)
        poll = select.poll()
        poll.register(self.pump.source, select.POLLIN)
        while poll.poll(0):
            self.pump.move()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self.pump.source, select.POLLIN)
        poll.register(self._stopped, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll(LOOK_EVERY_S * 1000)}
            if self._stopped in ready:
                return
            if self.pump.source in ready:
                self.pump.move()
            self._look()
