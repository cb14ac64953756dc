"""The gateway's own listener, on the event loop of the API's."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Generator

import uvicorn

from danlu.faces.obs.door import Door

LOOK_S = 0.005


class GatewayServer(uvicorn.Server):
    """uvicorn's server beside another one, which has the signals and says when to stop."""

    def __init__(self, config: uvicorn.Config, door: Door, opened: socket.socket) -> None:
        super().__init__(config)
        self._door = door
        self._opened = opened
        self._task: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """None: they belong to the server beside."""
        yield

    async def begin(self) -> None:
        """Start to listen; returns when clients are taken."""
        self._task = asyncio.create_task(self.serve(sockets=[self._opened]))
        while not self.started:
            if self._task.done():
                await self._task
                raise RuntimeError("the OBS gateway ended before it had begun")
            await asyncio.sleep(LOOK_S)

    async def ended(self) -> None:
        """Wait until the last client is gone, within the grace that is configured."""
        if self._task is not None:
            await self._task
        self._door.close()
