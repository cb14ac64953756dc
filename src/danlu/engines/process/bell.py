"""The socket on which agents say that something has changed."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from pathlib import Path

from danlu.node import wake
from danlu.ports.engine import WakeCallback

log = logging.getLogger(__name__)


class Bell:
    """Listens, and calls back for every ring. Several rings may come as one."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._socket = wake.listen(self.path)
        self._callbacks: list[WakeCallback] = []
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="engine-bell", daemon=True)
        self._thread.start()

    def on_ring(self, callback: WakeCallback) -> None:
        """Call `callback` whenever it rings."""
        self._callbacks.append(callback)

    def close(self) -> None:
        """Stop listening."""
        self._closing = True
        wake.send(self.path)
        self._thread.join(timeout=5)
        self._socket.close()
        with suppress(OSError):
            Path(self.path).unlink()

    def _run(self) -> None:
        while True:
            try:
                self._socket.recv(16)
            except OSError:
                return
            if self._closing:
                return
            for callback in self._callbacks:
                try:
                    callback()
                except Exception:
                    log.exception("a listener failed")
