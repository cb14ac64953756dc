"""Waiting for the records' writer: one wake-up of the event loop for each group it commits."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


class Durable:
    """Turns the writer's futures into awaitable results.

    `asyncio.wrap_future` would wake the event loop once a write; the writer finishes dozens at a
    time.
    """

    def __init__(self) -> None:
        self._done: deque[asyncio.Future[None]] = deque()
        self._scheduled = False

    async def __call__(self, written: Future[T]) -> T:
        """What the write gave, once it is on disk; its error where it failed."""
        if not written.done():
            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = loop.create_future()
            written.add_done_callback(lambda _: self._finished(loop, waiter))
            await waiter
        return written.result()

    def _finished(self, loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[None]) -> None:
        """Called by the writer, on its thread."""
        self._done.append(waiter)
        if not self._scheduled:
            self._scheduled = True
            try:
                loop.call_soon_threadsafe(self._wake)
            except RuntimeError:
                # The event loop has ended, and with it everyone who waited.
                self._done.clear()

    def _wake(self) -> None:
        # Before the queue is looked at: what is appended after that schedules another look.
        self._scheduled = False
        while self._done:
            waiter = self._done.popleft()
            if not waiter.done():
                waiter.set_result(None)
