"""Says when the event loop stands still, and where: one blocking call there holds up everyone."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback

log = logging.getLogger(__name__)

LIMIT_S = 1.0
BEAT_S = 0.25
FRAMES = 12
"""The innermost frames that are shown."""


class Watchdog:
    """A thread that expects a beat from the running event loop, and logs where it hangs if none
    comes for `limit_s`. Made on the loop's thread.
    """

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self._limit_s = limit_s
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._closing = threading.Event()
        self._beat_at = time.monotonic()
        self._hung = False
        self._beat()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop expecting."""
        self._closing.set()

    def _beat(self) -> None:
        now = time.monotonic()
        if self._hung:
            self._hung = False
            log.warning("the event loop goes on after %.1f s", now - self._beat_at)
        self._beat_at = now
        if not self._closing.is_set():
            self._loop.call_later(BEAT_S, self._beat)

    def _watch(self) -> None:
        looked_at = time.monotonic()
        while not self._closing.wait(BEAT_S):
            now = time.monotonic()
            if now - looked_at > self._limit_s:
                # This thread stood still as well: the whole process was stopped, or starved.
                self._beat_at = now
            looked_at = now
            if now - self._beat_at > self._limit_s and not self._hung:
                self._hung = True
                self._tell(now - self._beat_at)

    def _tell(self, late_s: float) -> None:
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 -- there is no other way
        stack = traceback.extract_stack(frame)[-FRAMES:] if frame else []
        log.warning(
            "the event loop has stood still for %.1f s, at:\n%s",
            late_s,
            "".join(traceback.format_list(stack)).rstrip(),
        )
