"""Reading a body: bounded in bytes and in time, refused early, and with an answer that arrives."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from danlu.faces.http.call import Receive, Scope
from danlu.model.errors import Unavailable
from danlu.wire.body import too_large

READ_S = 30.0
DRAIN_BYTES = 256 << 20
DRAIN_S = 5.0


class Gone(Exception):
    """The client went away before its request was complete."""


def declared_length(scope: Scope) -> int | None:
    """What Content-Length says, or None where the body comes in chunks (or there is none)."""
    value = scope["read_headers"].any("content-length")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else None


def has_body(scope: Scope) -> bool:
    """Whether the headers announce a body."""
    headers = scope["read_headers"]
    return headers.any("content-length") not in ("", "0") or bool(headers.any("transfer-encoding"))


async def read(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body, at most `limit` bytes of it; Invalid (413) for more."""
    if not has_body(scope):
        return b""
    too_large(declared_length(scope) or 0, limit)
    message = await receive()
    if not message.get("more_body") and message["type"] == "http.request":
        body: bytes = message.get("body", b"")
        too_large(len(body), limit)
        return body
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(READ_S):
            while True:
                if message["type"] == "http.disconnect":
                    raise Gone
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                too_large(size, limit)
                if not message.get("more_body"):
                    return b"".join(parts)
                message = await receive()
    except TimeoutError:
        detail = f"the request body did not arrive within {READ_S:.0f} s"
        raise Unavailable("busy", http=408, detail=detail) from None


async def stream(scope: Scope, receive: Receive, limit: int) -> AsyncIterator[bytes]:
    """The body in pieces as they arrive, at most `limit` bytes in all."""
    too_large(declared_length(scope) or 0, limit)
    size = 0
    more = has_body(scope)
    while more:
        try:
            async with asyncio.timeout(READ_S):
                message = await receive()
        except TimeoutError:
            detail = f"nothing of the request body arrived for {READ_S:.0f} s"
            raise Unavailable("busy", http=408, detail=detail) from None
        if message["type"] == "http.disconnect":
            raise Gone
        piece: bytes = message.get("body", b"")
        size += len(piece)
        too_large(size, limit)
        more = message.get("more_body", False)
        if piece:
            yield piece


async def drain(receive: Receive) -> None:
    """Take what a refused client still sends, so that it gets to read why; within bounds."""
    size = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            while size < DRAIN_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return
