"""Who speaks on a connection that is to become a WebSocket: known when its Host header is read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Either(asyncio.Protocol):
    """Hands a connection to whom `choose` names for its host. uvicorn gives it the whole head of
    the request first.
    """

    def __init__(self, choose: Callable[[str], asyncio.Protocol]) -> None:
        self._choose = choose
        self._transport: asyncio.BaseTransport
        self._chosen: asyncio.Protocol | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember it."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Choose with the first, and hand on."""
        if self._chosen is None:
            self._chosen = self._choose(_host(data))
            self._chosen.connection_made(self._transport)
        self._chosen.data_received(data)

    def eof_received(self) -> bool | None:
        """Hand on."""
        return self._chosen.eof_received() if self._chosen is not None else None

    def connection_lost(self, exc: Exception | None) -> None:
        """Hand on."""
        if self._chosen is not None:
            self._chosen.connection_lost(exc)

    def pause_writing(self) -> None:
        """Hand on."""
        if self._chosen is not None:
            self._chosen.pause_writing()

    def resume_writing(self) -> None:
        """Hand on."""
        if self._chosen is not None:
            self._chosen.resume_writing()


def _host(head: bytes) -> str:
    """The Host header of a request's head; empty where there is not one."""
    lines = head.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]
    fields = [line.partition(b":") for line in lines]
    found = [value for name, _, value in fields if name.strip().lower() == b"host"]
    return found[0].strip().decode("latin-1") if len(found) == 1 else ""
