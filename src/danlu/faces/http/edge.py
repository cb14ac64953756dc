"""What happens to every request before it is routed, and to every reply: the outermost layer."""

from __future__ import annotations

import itertools
import logging
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from danlu.faces.http.call import Receive, Scope, Send
from danlu.faces.http.headers import Headers
from danlu.faces.http.reply import Reply, error_reply, internal_reply, language_of
from danlu.faces.http.talk import SOCKET, denying
from danlu.model.errors import Missing, PlatformError, Refused
from danlu.model.texts import Language

if TYPE_CHECKING:
    from danlu.faces.http.gate import Gate
    from danlu.faces.http.paths import Paths
    from danlu.faces.http.route import DeclaredRoute

log = logging.getLogger(__name__)

SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]

STARTS = ("http.response.start", "websocket.accept")

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Edge:
    """ASGI: request id, Host, the way to our routes, headers of every reply, and the last catch.

    What is not one of our routes goes on to the framework, whose "not found" becomes ours.
    """

    def __init__(self, app: Application, gate: Gate, paths: Paths[DeclaredRoute]) -> None:
        self._app = app
        self._gate = gate
        self._paths = paths
        self._prefix = secrets.token_hex(8)
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == SOCKET:
            scope["method"] = "GET"
            send = denying(send)
        elif scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Unique over restarts without asking the kernel for randomness each time.
        request_id = f"{self._prefix}{next(self._numbers):016x}"
        scope["request_id"] = request_id
        scope["read_headers"] = headers = Headers(scope["headers"])
        extra = [*SECURITY_HEADERS, (b"x-request-id", request_id.encode())]
        started = False

        async def decorated(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            if message["type"] in STARTS:
                started = True
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        try:
            self._gate.check_host(headers, scope)
            await self._route(scope, receive, decorated)
        except PlatformError as problem:
            await send_reply(error_reply(problem, request_id, language(headers)), decorated)
        except Exception:
            log.exception("request %s failed", request_id)
            if started:
                raise
            await send_reply(internal_reply(request_id, language(headers)), decorated)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        # As it was sent: an escaped slash is part of a name, never a level.
        path = scope["path"] = scope["raw_path"].decode("latin-1")
        found = self._paths.find(scope["method"], path)
        if found is not None:
            scope["path_params"] = found[1]
            await found[0].serve(scope, receive, send)
            return
        methods = self._paths.methods(path)
        if methods:
            refused = Refused("method-not-allowed", http=405, path=path, method=scope["method"])
            reply = error_reply(refused, scope["request_id"], language(scope["read_headers"]))
            reply.headers.append((b"allow", ", ".join(methods).encode()))
            await send_reply(reply, send)
            return
        if scope["type"] == SOCKET:
            await send_reply(missing(scope), send)
            return
        await self._app(scope, receive, send)


def missing(scope: Scope) -> Reply:
    """The reply for a path that there is not."""
    problem = Missing("no-such-path", path=scope["path"], method=scope["method"])
    return error_reply(problem, scope["request_id"], language(scope["read_headers"]))


def language(headers: Headers) -> Language:
    """The language that a request asks for."""
    return language_of(headers.any("x-language"), headers.any("accept-language"))


async def send_reply(reply: Reply, send: Send) -> None:
    """Send a whole reply."""
    length = (b"content-length", str(len(reply.body)).encode())
    headers = [(b"content-type", reply.media), length, *reply.headers]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
