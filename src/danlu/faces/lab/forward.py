"""One HTTP request to Lab and its answer, both streamed: neither is ever held as a whole."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

import h11

from danlu.faces.http.call import Receive, Scope, Send
from danlu.faces.lab import passing, upstream
from danlu.faces.lab.instance import Connect
from danlu.faces.lab.upstream import LabAway

log = logging.getLogger(__name__)

READ = 64 << 10
HEAD = 256 << 10
"""How large the head of an answer may be."""


async def forward(scope: Scope, receive: Receive, send: Send, connect: Connect, token: str) -> None:
    """Serve one request from Lab; LabAway where Lab gives no answer to it."""
    reader, writer = await upstream.streams(connect)
    exchange = _Exchange(reader, writer)
    body = None
    try:
        exchange.begin(scope, token)
        body = asyncio.create_task(exchange.send_body(receive))
        await exchange.answer(send)
    finally:
        writer.transport.abort()
        if body is not None:
            body.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await body


class _Exchange:
    """A connection to Lab for one request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD)
        self._gone = False

    def begin(self, scope: Scope, token: str) -> None:
        """Send the head."""
        headers = passing.request(scope["headers"], token)
        headers.append((b"connection", b"close"))
        headers.extend(_framing(scope["headers"]))
        self._send(h11.Request(method=scope["method"], target=target(scope), headers=headers))

    async def send_body(self, receive: Receive) -> None:
        """Pass the body on as it comes; then watch whether the browser goes away."""
        ended = False
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                # Whatever Lab still has to say, nobody is there to read it.
                self._gone = True
                self._writer.transport.abort()
                return
            if ended:
                continue
            try:
                if message.get("body"):
                    self._send(h11.Data(data=message["body"]))
                    await self._writer.drain()
                if not message.get("more_body"):
                    ended = True
                    self._send(h11.EndOfMessage())
            except (OSError, h11.LocalProtocolError):
                # Lab has answered without reading all of it, and closed. Its answer counts.
                ended = True

    async def answer(self, send: Send) -> None:
        """Pass Lab's answer on. LabAway where none has begun; an answer that breaks off breaks
        off for the browser too.
        """
        try:
            response = await self._response()
        except (OSError, h11.ProtocolError) as error:
            if self._gone:
                return
            raise LabAway(str(error) or "it closed the connection") from error
        headers = passing.answer(response.headers.raw_items())
        status = response.status_code
        await send({"type": "http.response.start", "status": status, "headers": headers})
        try:
            while isinstance(event := await self._event(), h11.Data):
                chunk = bytes(event.data)
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except (OSError, h11.ProtocolError) as error:
            if not self._gone:
                log.warning("a notebook's answer broke off: %s", error)
            return
        await send({"type": "http.response.body", "body": b""})

    async def _response(self) -> h11.Response:
        """The head of the answer, past every "continue" and "early hints"."""
        while True:
            event = await self._event()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise h11.RemoteProtocolError("it closed the connection")

    async def _event(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(READ))
        return event

    def _send(self, event: Any) -> None:
        data = self._http.send(event)
        if data:
            self._writer.write(data)


def target(scope: Scope) -> bytes:
    """What stands behind the method: path and query as they were sent."""
    query: bytes = scope["query_string"]
    path: bytes = scope["raw_path"]
    return path + b"?" + query if query else path


def _framing(headers: passing.Raw) -> passing.Raw:
    """How long the body is that follows, as the browser said it."""
    for name, _ in headers:
        if name == b"transfer-encoding":
            return [(b"transfer-encoding", b"chunked")]
    return [(name, value) for name, value in headers if name == b"content-length"]
