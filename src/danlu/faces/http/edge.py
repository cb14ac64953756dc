"""What happens to every request before it is routed, and to every reply: the outermost layer."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from danlu.faces.http.call import Receive, Scope, Send
from danlu.faces.http.reply import Reply, error_reply, internal_reply, language_of
from danlu.model.errors import PlatformError
from danlu.model.texts import Language

if TYPE_CHECKING:
    from danlu.faces.http.gate import Gate

log = logging.getLogger(__name__)

SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Edge:
    """ASGI middleware: request id, Host, raw path, headers of every reply, and the last catch."""

    def __init__(self, app: Application, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = uuid.uuid4().hex
        scope["request_id"] = request_id
        extra = [*SECURITY_HEADERS, (b"x-request-id", request_id.encode())]
        started = False

        async def decorated(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        try:
            self._gate.check_host(scope)
            # Routed as it was sent: an escaped slash is part of a name, never a level.
            scope["path"] = scope["raw_path"].decode("latin-1")
            await self._app(scope, receive, decorated)
        except PlatformError as problem:
            await send_reply(error_reply(problem, request_id, language(scope)), decorated)
        except Exception:
            log.exception("request %s failed", request_id)
            if started:
                raise
            await send_reply(internal_reply(request_id, language(scope)), decorated)


def language(scope: Scope) -> Language:
    """The language that the request asks for."""
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    return language_of(headers.get(b"x-language", ""), headers.get(b"accept-language", ""))


async def send_reply(reply: Reply, send: Send) -> None:
    """Send a whole reply."""
    length = (b"content-length", str(len(reply.body)).encode())
    headers = [(b"content-type", reply.media), length, *reply.headers]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
