"""How fast bytes may move, all transfers of one command together."""

from __future__ import annotations

import threading
import time


class Limiter:
    """At most `rate` bytes a second; 0 = no limit."""

    def __init__(self, rate: int = 0) -> None:
        self._rate = rate
        self._lock = threading.Lock()
        self._free_at = 0.0

    def take(self, count: int) -> None:
        """Wait until `count` bytes more may move."""
        if not self._rate:
            return
        with self._lock:
            now = time.monotonic()
            begin = max(now, self._free_at)
            self._free_at = begin + count / self._rate
        if begin > now:
            time.sleep(begin - now)
