"""Bytes on their way from the event loop to the thread that stores them, within bounds."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import AsyncIterator, Iterator

from danlu.model.errors import Unavailable

HELD_BYTES = 1 << 20
PATIENCE_S = 120.0
"""How long the thread waits for the event loop, which has a shorter limit of its own."""
SLOW_S = 60.0
SLOW_BYTES = 64 << 10
"""Fewer bytes than that in that time are taken for a client that only holds a place."""


class Abandoned(Exception):
    """Nobody waits for what the thread does any more."""


class Feed:
    """A bounded queue of pieces, filled on the event loop (`pump`), emptied by one thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[bytes | BaseException] = queue.SimpleQueue()
        self._room = asyncio.Event()
        self._waiting = False
        # Each is changed by one side alone, so that neither needs a lock.
        self._put = 0
        self._taken = 0

    async def pump(self, pieces: AsyncIterator[bytes]) -> None:
        """Hand everything over; what goes wrong meanwhile is raised in the thread."""
        window_ends, window_bytes = self._loop.time() + SLOW_S, 0
        try:
            async for piece in pieces:
                window_bytes += len(piece)
                if self._loop.time() > window_ends:
                    if window_bytes < SLOW_BYTES:
                        detail = (
                            f"the body comes with less than {SLOW_BYTES} bytes in {SLOW_S:.0f} s"
                        )
                        raise Unavailable("busy", http=408, detail=detail)  # noqa: TRY301 - handed on
                    window_ends, window_bytes = self._loop.time() + SLOW_S, 0
                self._put += len(piece)
                self._queue.put(piece)
                if self._put - self._taken > HELD_BYTES:
                    await self._wait_for_room()
                    window_ends, window_bytes = self._loop.time() + SLOW_S, 0
            self._queue.put(b"")
        except Exception as problem:
            self._queue.put(problem)

    def abandon(self) -> None:
        """Let the thread go that still waits."""
        self._queue.put(Abandoned())

    def pieces(self) -> Iterator[bytes]:
        """The pieces, in the thread. Raises what went wrong on the way."""
        while True:
            try:
                piece = self._queue.get(timeout=PATIENCE_S)
            except queue.Empty:
                detail = "the body did not go on"
                raise Unavailable("busy", http=408, detail=detail) from None
            if isinstance(piece, BaseException):
                raise piece
            if not piece:
                return
            self._taken += len(piece)
            if self._waiting and self._put - self._taken <= HELD_BYTES // 2:
                self._waiting = False
                self._loop.call_soon_threadsafe(self._room.set)
            yield piece

    async def _wait_for_room(self) -> None:
        """Until half of it is free. The thread looks at `_waiting` after it has taken a piece."""
        self._room.clear()
        self._waiting = True
        while self._put - self._taken > HELD_BYTES // 2:
            await self._room.wait()
            self._room.clear()
            self._waiting = self._put - self._taken > HELD_BYTES // 2
        self._waiting = False
