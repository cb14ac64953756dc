"""Bytes from one end to the other, both ways, no more of them in memory than one end can take."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Protocol

import asyncssh

Counter = Callable[[int], None]


class Peer(Protocol):
    """The other end: an SSH channel, or a transport of asyncio's."""

    def write(self, data: Any) -> None:
        """Send."""

    def write_eof(self) -> None:
        """Say that nothing more will be sent."""

    def pause_reading(self) -> None:
        """Take no more for now."""

    def resume_reading(self) -> None:
        """Take more again."""

    def close(self) -> None:
        """Send what is left, then let go."""


class End:
    """One end of a relay: hands everything on to `peer`."""

    def __init__(self, count: Counter) -> None:
        self.peer: Peer | None = None
        self.own: Any = None
        self._count = count

    def connection_made(self, own: Any) -> None:
        """This end is there."""
        self.own = own

    def data_received(self, data: bytes, datatype: object = None) -> None:
        """Hand on."""
        del datatype
        self._count(len(data))
        if self.peer is not None:
            self.peer.write(data)

    def eof_received(self) -> bool:
        """The other direction stays open."""
        if self.peer is not None:
            # The other end may be closing already.
            with contextlib.suppress(OSError, RuntimeError):
                self.peer.write_eof()
        return True

    def pause_writing(self) -> None:
        """This end is full: the other one is to take no more."""
        if self.peer is not None:
            with contextlib.suppress(RuntimeError):
                self.peer.pause_reading()

    def resume_writing(self) -> None:
        """There is room again."""
        if self.peer is not None:
            with contextlib.suppress(RuntimeError):
                self.peer.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        """This end is gone, and so is the other."""
        del error
        if self.peer is not None:
            self.peer.close()
            self.peer = None


class Channel(End, asyncssh.SSHTCPSession[bytes]):
    """An end that is a channel of SSH."""


class UnixChannel(End, asyncssh.SSHUNIXSession[bytes]):
    """The same, to a unix socket."""


class Stream(End, asyncio.Protocol):
    """An end that is a socket. It takes nothing before the other one is there."""

    def __init__(self, count: Counter, ended: Callable[[], None]) -> None:
        super().__init__(count)
        self._ended = ended

    def connection_made(self, own: Any) -> None:
        """This end is there."""
        super().connection_made(own)
        own.pause_reading()

    def connection_lost(self, error: Exception | None) -> None:
        """This end is gone, and so is the other."""
        super().connection_lost(error)
        self._ended()


class Led(Channel):
    """A guest's end, joined to the `other` one, which is there already, as soon as it is open."""

    def __init__(self, count: Counter, other: End) -> None:
        super().__init__(count)
        self._other = other

    def connection_made(self, own: Any) -> None:
        """Both ends are there: hand on."""
        super().connection_made(own)
        self.peer, self._other.peer = self._other.own, own
        if isinstance(self._other, Stream):
            self._other.own.resume_reading()
