"""A small WebSocket client (RFC 6455) over the command line's own connection.

The command line imports the standard library and click only, and neither has one. It does what a
command in a job needs: whole messages of bytes both ways, pings, and why the other side closed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from danlu.faces.cli.http import Broken, Connection, Garbled, Headers, HttpError

CONTINUED, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
NO_STATUS, ABNORMAL = 1005, 1006
MESSAGE_BYTES = 1 << 20
KEY_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
HELLO_S = 60.0


class Closed(Exception):
    """The other side has closed the WebSocket, with a code and perhaps a reason."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(f"{code} {reason}".strip())
        self.code = code
        self.reason = reason


def headers() -> tuple[Headers, str]:
    """What asks for a WebSocket, and the answer that proves that it was understood."""
    from base64 import b64encode
    from hashlib import sha1

    key = b64encode(os.urandom(16))
    expected = b64encode(sha1(key + KEY_MAGIC, usedforsecurity=False).digest()).decode()
    asked = (
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", key.decode()),
    )
    return asked, expected


class WebSocket:
    """A connection that has become one. Not thread-safe, but one may read while another writes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._parts = bytearray()
        self.on_ping: Callable[[bytes], None] = lambda data: self.frame(PONG, data)
        """Answers a ping; whoever lets another thread do the sending lets it do this too."""

    def send(self, data: bytes) -> None:
        """Send a message. HttpError where the connection has ended."""
        self.frame(BINARY, data)

    def close(self) -> None:
        """Say that this is the end, and hang up."""
        with suppress(HttpError):
            self.frame(CLOSE, (1000).to_bytes(2, "big"))
        self._connection.close()

    def hang_up(self) -> None:
        """End the connection under whoever waits for a message."""
        self._connection.shut()

    def receive(self) -> bytes | None:
        """The next message, or None where what came was none. Closed, or HttpError."""
        first, second = self._exactly(2)
        kind, size = first & 0x0F, second & 0x7F
        if size > 125:
            size = int.from_bytes(self._exactly(2 if size == 126 else 8), "big")
        if first & 0x70 or second & 0x80 or size > MESSAGE_BYTES:
            raise Garbled("a malformed WebSocket frame")
        data = self._exactly(size)
        if kind == PING:
            self.on_ping(data)
        elif kind == CLOSE:
            code = int.from_bytes(data[:2], "big") if len(data) >= 2 else NO_STATUS
            raise Closed(code, data[2:].decode("utf-8", "replace"))
        elif kind in (CONTINUED, TEXT, BINARY):
            self._parts += data
            if len(self._parts) > MESSAGE_BYTES:
                raise Garbled(f"a message of more than {MESSAGE_BYTES} bytes")
            if first & 0x80:
                whole = bytes(self._parts)
                self._parts.clear()
                return whole
        return None

    def _exactly(self, size: int) -> bytes:
        while self._connection.pending() < size:
            if not self._connection.receive():
                raise Broken("the connection was closed")
        return self._connection.take(size)

    def frame(self, kind: int, data: bytes) -> None:
        """Send a frame of a kind."""
        size = len(data)
        if size < 126:
            head = bytes((0x80 | kind, 0x80 | size))
        elif size < 1 << 16:
            head = bytes((0x80 | kind, 0x80 | 126)) + size.to_bytes(2, "big")
        else:
            head = bytes((0x80 | kind, 0x80 | 127)) + size.to_bytes(8, "big")
        mask = os.urandom(4)
        self._connection.write(head + mask + masked(data, mask))


def masked(data: bytes, mask: bytes) -> bytes:
    """Data as a client has to send it. As one number: byte by byte would take seconds."""
    size = len(data)
    whole = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(whole, "big")).to_bytes(size, "big")
