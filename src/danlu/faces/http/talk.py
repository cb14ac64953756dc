"""WebSockets: a route's answer that is a conversation, and everything before it as on any route.

Until a caller is let in and the handler has answered, a request for a WebSocket is one like others:
what refuses it is an ordinary reply with a status and a sentence, not a closed connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from danlu.faces.http.call import Receive, Scope, Send

SOCKET = "websocket"
NORMAL, GOING_AWAY, TOO_BIG = 1000, 1001, 1009
"""Why a WebSocket is closed (RFC 6455, section 7.4.1)."""
REASON_BYTES = 123


class Hung(Exception):
    """The other side has closed the WebSocket."""


class Socket:
    """A WebSocket that has been accepted. Messages are bytes; a text counts as its UTF-8."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send

    async def receive(self) -> bytes:
        """The next message; Hung when there will be none."""
        message = await self._receive()
        if message["type"] != "websocket.receive":
            raise Hung
        data: bytes | None = message.get("bytes")
        return data if data is not None else str(message.get("text") or "").encode()

    async def send(self, data: bytes) -> None:
        """Send a message, as soon as the other side takes it; Hung if it does no more."""
        try:
            await self._send({"type": "websocket.send", "bytes": data})
        except OSError as error:  # what uvicorn raises for a client that has gone is one
            raise Hung from error

    async def close(self, code: int, reason: str = "") -> None:
        """Say why it ends."""
        told = reason.encode()[:REASON_BYTES].decode("utf-8", "ignore")
        try:
            await self._send({"type": "websocket.close", "code": code, "reason": told})
        except OSError:
            return


@dataclass(slots=True)
class Talk:
    """The answer of a route that goes on as a WebSocket. `protocols` are the subprotocols that the
    route speaks; of those that the client offers the first one is taken. `unheard` is called
    instead of `hold` where the client has gone meanwhile.
    """

    hold: Callable[[Socket], Awaitable[None]]
    unheard: Callable[[], Awaitable[None]]
    protocols: tuple[str, ...] = ()


async def talk(answer: Talk, scope: Scope, receive: Receive, send: Send) -> None:
    """Accept, and hold the conversation."""
    message = await receive()
    if message["type"] != "websocket.connect":
        await answer.unheard()
        return
    offered = scope.get("subprotocols") or ()
    spoken = next((one for one in answer.protocols if one in offered), None)
    try:
        await send({"type": "websocket.accept", "subprotocol": spoken})
    except OSError:
        await answer.unheard()
        return
    await answer.hold(Socket(receive, send))


def denying(send: Send) -> Send:
    """Sends a reply to a request for a WebSocket, in ASGI's words for that."""

    async def deny(message: MutableMapping[str, Any]) -> None:
        if message["type"].startswith("http."):
            message["type"] = f"websocket.{message['type']}"
        await send(message)

    return deny
