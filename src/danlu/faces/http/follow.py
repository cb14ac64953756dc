"""Followers of logs: each log is read once for all who follow it, in small bites.

A reader that finds nothing new looks again after 5 ms, then ever more rarely up to 100 ms; a
change of the job wakes it at once, and a job that has not started is not looked at before that.
A slow client holds no more than the bite that is being sent to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace

from danlu.faces.http.changes import Changes
from danlu.flow import logs
from danlu.flow.board import Board
from danlu.flow.platform import Platform
from danlu.model.attempt import FINAL
from danlu.model.errors import Missing
from danlu.model.job import JobView
from danlu.ports.engine import LogChunk

BITE = 64 << 10
SOONEST_S = 0.005
LATEST_S = 0.1
SLOWER = 1.5
QUEUED_S = 15.0


@dataclass(slots=True)
class Tail:
    """The end of one log and everyone who waits for it to grow."""

    workspace: str
    job_id: str
    attempt: int
    task: str
    followers: int = 0
    waiting: dict[asyncio.Future[None], int] = field(default_factory=dict)
    last: LogChunk | None = None
    final: JobView | None = None
    poller: asyncio.Task[None] | None = None


class Tails:
    """Every log that is followed now."""

    def __init__(self, platform: Platform, board: Board, changes: Changes) -> None:
        self._platform = platform
        self._board = board
        self._changes = changes
        self._tails: dict[tuple[str, int, str], Tail] = {}

    def count(self) -> int:
        """How many logs are followed."""
        return len(self._tails)

    async def follow(
        self, view: JobView, task: str, offset: int, idle_s: float | None = None
    ) -> AsyncGenerator[LogChunk | None, None]:
        """Chunks from `offset` until the log has ended; None after `idle_s` without one.

        Ends early where the job is deleted or the server closes.
        """
        tail = self._join(view, task)
        try:
            while not self._changes.closing:
                chunk = self._read(tail, offset)
                if chunk is None:
                    return
                if chunk.data:
                    offset = chunk.next
                    yield chunk
                    # Let the others have their turn, however much there is to read.
                    await asyncio.sleep(0)
                elif chunk.ended:
                    return
                elif not await self._grown(tail, offset, idle_s):
                    yield None
        finally:
            self._leave(tail)

    def view(self, tail: Tail) -> JobView:
        """The job with the attempt that is followed, as it is now; Missing where it was deleted."""
        if tail.final is not None:
            return tail.final
        entry = self._board.get(tail.job_id)
        if entry is not None and entry.key.number == tail.attempt:
            return entry.view
        view = self._platform.records.job(tail.workspace, tail.job_id)
        view = self._platform.attempt(view, tail.attempt) or view
        if view.attempt.state in FINAL:
            tail.final = view
        return view

    def _join(self, view: JobView, task: str) -> Tail:
        number = view.attempt.key.number
        key = (view.job.id, number, task)
        tail = self._tails.get(key)
        if tail is None:
            tail = self._tails[key] = Tail(view.job.workspace, view.job.id, number, task)
        tail.followers += 1
        return tail

    def _leave(self, tail: Tail) -> None:
        tail.followers -= 1
        if tail.followers == 0:
            self._tails.pop((tail.job_id, tail.attempt, tail.task), None)
            if tail.poller is not None:
                tail.poller.cancel()

    def _read(self, tail: Tail, offset: int) -> LogChunk | None:
        """The bite at `offset`; None where the job is gone."""
        last = tail.last
        if last is not None and last.offset == offset:
            return last
        try:
            chunk = logs.read(self._platform, self.view(tail), tail.task, offset, BITE)
        except Missing:
            return None
        if chunk.data:
            # Whoever comes to its beginning next did not ask for what was dropped in front of it.
            tail.last = replace(chunk, dropped=None)
        return chunk

    async def _grown(self, tail: Tail, offset: int, timeout_s: float | None) -> bool:
        """Wait until there may be something new at `offset`; False after `timeout_s`."""
        loop = asyncio.get_running_loop()
        grown: asyncio.Future[None] = loop.create_future()
        tail.waiting[grown] = offset
        if tail.poller is None or tail.poller.done():
            tail.poller = loop.create_task(self._poll(tail))
        try:
            async with asyncio.timeout(timeout_s):
                await grown
        except TimeoutError:
            return False
        finally:
            tail.waiting.pop(grown, None)
        return True

    async def _poll(self, tail: Tail) -> None:
        pause_s = SOONEST_S
        with self._changes.watch(tail.job_id) as watch:
            while tail.waiting and not watch.closing:
                watch.clear()
                chunk = self._read(tail, min(tail.waiting.values()))
                if chunk is None or chunk.data or chunk.ended:
                    _wake(tail)
                    pause_s = SOONEST_S
                    # Those who were woken read, and wait again before the next look.
                    await asyncio.sleep(0)
                elif self._unstarted(tail):
                    await watch.wait(QUEUED_S)
                    continue
                if await watch.wait(pause_s):
                    pause_s = SOONEST_S
                else:
                    pause_s = min(LATEST_S, pause_s * SLOWER)
        _wake(tail)

    def _unstarted(self, tail: Tail) -> bool:
        try:
            return self.view(tail).attempt.state in logs.UNSTARTED
        except Missing:
            return False


def _wake(tail: Tail) -> None:
    for grown in tail.waiting:
        if not grown.done():
            grown.set_result(None)
