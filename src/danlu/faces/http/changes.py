"""From other threads to the event loop: wake whoever waits for a job or notebook to change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self

from danlu.flow.board import Board
from danlu.flow.notebooks import Notebooks


class Changes:
    """Who waits for which job. Costs nothing for jobs that nobody waits for."""

    def __init__(self, *sources: Board | Notebooks) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._closers: set[asyncio.Event] = set()
        self.closing = False
        """Whether the server is about to end: nobody should wait any longer."""
        for source in sources:
            source.listen(self._changed)

    def watch(self, job_id: str) -> Watch:
        """Begin to watch a job. Look at the job after this, then wait: no change is missed."""
        self._loop = asyncio.get_running_loop()
        return Watch(self, job_id)

    def close(self) -> None:
        """Let everyone go, for good. On the event loop."""
        self.closing = True
        for events in self._waiting.values():
            for event in events:
                event.set()

    def join(self, job_id: str, event: asyncio.Event) -> None:
        """Have `event` set whenever the job changes."""
        self._waiting.setdefault(job_id, set()).add(event)
        if self.closing:
            event.set()

    def leave(self, job_id: str, event: asyncio.Event) -> None:
        """No longer."""
        events = self._waiting.get(job_id)
        if events is not None:
            events.discard(event)
            if not events:
                del self._waiting[job_id]

    def _changed(self, job_id: str) -> None:
        """Called by a source, on any thread."""
        loop = self._loop
        if loop is not None and job_id in self._waiting:
            _call_soon(loop, lambda: self._wake(job_id))

    def _wake(self, job_id: str) -> None:
        for event in self._waiting.get(job_id, ()):
            event.set()


class Watch:
    """One waiter: `async with changes.watch(job) as watch: … await watch.wait(s)`."""

    def __init__(self, changes: Changes, job_id: str) -> None:
        self._changes = changes
        self._job_id = job_id
        self._event = asyncio.Event()

    def __enter__(self) -> Self:
        """Join."""
        self._changes.join(self._job_id, self._event)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave."""
        self._changes.leave(self._job_id, self._event)

    @property
    def closing(self) -> bool:
        """Whether the server is about to end."""
        return self._changes.closing

    def clear(self) -> None:
        """Forget changes so far; look at the job after this."""
        self._event.clear()

    async def wait(self, timeout_s: float) -> bool:
        """Wait for a change, at most `timeout_s`. False if there was none."""
        if self._changes.closing:
            return True
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return False
        return True


def _call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        # The event loop has ended; so has everyone who waited.
        return
