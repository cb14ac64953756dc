"""WebSockets: the handshake is ours to check, what follows is handed through byte for byte.

So everything that the two ends agree on stays between them: subprotocols, compression, pings,
close codes, messages of any size. Nothing is cut for being idle; Lab pings every 30 seconds, and
TCP notices a machine that is gone. Each side is read only as fast as the other takes it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import h11

from danlu.faces.lab import passing, upstream
from danlu.faces.lab.instance import Connect
from danlu.faces.lab.upstream import LabAway

log = logging.getLogger(__name__)

ANSWER_S = 60.0
REFUSAL_BYTES = 64 << 10
"""How much of a refusal is passed on."""
HANDSHAKE = (b"connection", b"upgrade")


@dataclass(frozen=True, slots=True)
class Handshake:
    """A request to open a WebSocket, as it came."""

    method: bytes
    target: bytes
    headers: passing.Raw
    tls: bool
    address: tuple[str, ...]
    """Where it came in."""

    @property
    def path(self) -> str:
        """The path, without the query."""
        return self.target.partition(b"?")[0].decode("latin-1")


@dataclass(slots=True)
class Refusal:
    """An answer instead of a WebSocket."""

    status: int
    body: bytes
    headers: passing.Raw = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Way:
    """Where an admitted WebSocket leads."""

    connect: Connect
    token: str


Admit = Callable[[Handshake], Awaitable[Way | Refusal]]


class Tunnel(asyncio.Protocol):
    """The browser's side. uvicorn hands a connection over when it asks to be upgraded."""

    def __init__(self, admit: Admit, connections: set[Any]) -> None:
        self._admit = admit
        self._connections = connections
        self._transport: asyncio.Transport
        self._behind: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._early = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection over."""
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)
        cycle = getattr(self._transport.get_protocol(), "cycle", None)
        if cycle is not None and not cycle.response_complete:
            # An answer to an earlier request is still being written to this connection.
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """First the head of the request, which uvicorn writes out again; then the browser's bytes,
        which only an impatient one sends before it has its answer.
        """
        if self._task is None:
            self._transport.pause_reading()
            self._task = asyncio.get_running_loop().create_task(self._open(data))
        elif self._behind is not None:
            self._behind.write(data)
        else:
            self._early += data

    def eof_received(self) -> bool:
        """A browser that says no more hears no more."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The browser is gone."""
        del exc
        self._connections.discard(self)
        if self._task is not None:
            self._task.cancel()
        if self._behind is not None:
            self._behind.close()

    def pause_writing(self) -> None:
        """The browser takes nothing for now."""
        if self._behind is not None:
            self._behind.pause_reading()

    def resume_writing(self) -> None:
        """The browser goes on."""
        if self._behind is not None and not self._behind.is_closing():
            self._behind.resume_reading()

    def shutdown(self) -> None:
        """The server stops. Lab's page notices, and comes back."""
        self._transport.close()

    async def _open(self, head: bytes) -> None:
        try:
            handshake = _read(head, self._transport)
            way = await self._admit(handshake)
            if isinstance(way, Refusal):
                self._refuse(way)
            else:
                await self._join(handshake, way)
        except Exception:
            log.exception("a WebSocket of a notebook failed")
            self._transport.abort()

    async def _join(self, handshake: Handshake, way: Way) -> None:
        """Ask Lab, and hand its answer to the browser."""
        try:
            async with asyncio.timeout(ANSWER_S):
                back, answered = await _ask(handshake, way, self)
        except (LabAway, TimeoutError, OSError, h11.ProtocolError) as error:
            log.info("a notebook gives no WebSocket: %s", error)
            self._refuse(Refusal(502, b"The notebook does not answer.\n"))
            return
        if isinstance(answered, Refusal):
            back.transport.close()
            self._refuse(answered)
            return
        self._behind = back.transport
        self._transport.write(answered)
        if self._early:
            self._behind.write(bytes(self._early))
            self._early.clear()
        back.begin()
        self._transport.resume_reading()

    def _refuse(self, refusal: Refusal) -> None:
        headers = [
            *refusal.headers,
            (b"content-length", str(len(refusal.body)).encode()),
            (b"connection", b"close"),
        ]
        self._transport.write(_head(refusal.status, b"", headers) + refusal.body)
        self._transport.close()

    # What Lab's side calls.

    def write(self, data: bytes) -> None:
        """Bytes from Lab."""
        self._transport.write(data)

    def hold(self) -> None:
        """Lab takes nothing for now."""
        self._transport.pause_reading()

    def go_on(self) -> None:
        """Lab goes on."""
        if self._behind is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def end(self) -> None:
        """Lab has closed."""
        self._transport.close()


class Back(asyncio.Protocol):
    """Lab's side. Until `begin`, what comes is kept for whoever reads the answer."""

    def __init__(self, front: Tunnel) -> None:
        self._front = front
        self.transport: asyncio.Transport
        self._read = bytearray()
        self._came: asyncio.Event = asyncio.Event()
        self._joined = False
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Lab is there."""
        self.transport = cast("asyncio.Transport", transport)

    async def more(self) -> bytes:
        """What has come since the last time, at least one byte; nothing at the end."""
        while not self._read and not self._ended:
            self._came.clear()
            await self._came.wait()
        data = bytes(self._read)
        self._read.clear()
        return data

    def begin(self) -> None:
        """From now on everything goes to the browser."""
        self._joined = True
        if self._read:
            self._front.write(bytes(self._read))
            self._read.clear()
        if self._ended:
            self._front.end()

    def data_received(self, data: bytes) -> None:
        """Bytes from Lab."""
        if self._joined:
            self._front.write(data)
        else:
            self._read += data
            self._came.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Lab has closed, or is gone."""
        del exc
        self._ended = True
        self._came.set()
        if self._joined:
            self._front.end()

    def pause_writing(self) -> None:
        """Lab takes nothing for now."""
        self._front.hold()

    def resume_writing(self) -> None:
        """Lab goes on."""
        self._front.go_on()


async def _ask(handshake: Handshake, way: Way, front: Tunnel) -> tuple[Back, bytes | Refusal]:
    """Lab's side and its answer: the head and what came with it, or a refusal."""
    made = await upstream.connected(way.connect)
    loop = asyncio.get_running_loop()
    _, back = await loop.create_unix_connection(lambda: Back(front), sock=made)
    try:
        http = h11.Connection(h11.CLIENT)
        headers = passing.request(handshake.headers, way.token)
        headers.extend([(b"connection", b"Upgrade"), (b"upgrade", b"websocket")])
        request = h11.Request(method=b"GET", target=handshake.target, headers=headers)
        back.transport.write(http.send(request) or b"")
        back.transport.write(http.send(h11.EndOfMessage()) or b"")
        refused: Refusal | None = None
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(await back.more())
            elif isinstance(event, h11.InformationalResponse) and event.status_code == 101:
                own = [(n, v) for n, v in event.headers.raw_items() if n.lower() in HANDSHAKE]
                kept = [*own, *passing.answer(event.headers.raw_items())]
                return back, _head(101, b"Switching Protocols", kept) + http.trailing_data[0]
            elif isinstance(event, h11.Response):
                refused = Refusal(event.status_code, b"", passing.answer(event.headers.raw_items()))
                refused.headers = [one for one in refused.headers if one[0] != b"content-length"]
            elif isinstance(event, h11.Data) and refused is not None:
                refused.body += bytes(event.data)[: REFUSAL_BYTES - len(refused.body)]
            elif refused is not None:
                return back, refused
    except BaseException:
        back.transport.abort()
        raise


def _head(status: int, reason: bytes, headers: passing.Raw) -> bytes:
    lines = [b"HTTP/1.1 %d %s" % (status, reason)]
    lines.extend(b"%s: %s" % (name, value) for name, value in headers)
    return b"\r\n".join([*lines, b"", b""])


def _read(head: bytes, transport: asyncio.Transport) -> Handshake:
    """The request as uvicorn has parsed it and written it out again."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    headers = [(name, value) for name, _, value in (line.partition(b": ") for line in lines)]
    address = transport.get_extra_info("sockname") or ("",)
    tls = transport.get_extra_info("sslcontext") is not None
    method, target, _ = first.split(b" ")
    return Handshake(method, target, headers, tls, tuple(map(str, address)))
