"""Registration: a route without a declared action and access does not register.

Handlers are `async (server, call) -> Reply | Streamed | Talk`. The route around them does what all
have in common, and does it without the framework's dependency machinery: it reads the body within
bounds, lets the caller in, renders errors, and sends. `paths.py` finds the route; FastAPI keeps
the books for OpenAPI, and serves whatever is not declared here.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from danlu.faces.http import incoming
from danlu.faces.http.call import Call, Receive, Scope, Send, path_params
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.paths import Paths
from danlu.faces.http.reply import (
    JSON,
    Answer,
    Streamed,
    error_reply,
    internal_reply,
    language_of,
)
from danlu.faces.http.talk import SOCKET, Talk, talk
from danlu.model import limits
from danlu.model.errors import PlatformError, Refused
from danlu.wire.modelarts_errors import ERROR_SCHEMA
from danlu.wire.shape import STRING, Schema

if TYPE_CHECKING:
    from danlu.faces.http.server import Server

log = logging.getLogger(__name__)

Handler = Callable[["Server", Call], Awaitable[Answer | Talk]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter or header, for OpenAPI."""

    name: str
    schema: Schema = field(default_factory=lambda: dict(STRING))
    about: str = ""
    place: str = "query"


@dataclass(frozen=True, slots=True)
class Describe:
    """What OpenAPI says of a route. `replies` maps a status to its schema (None = no body)."""

    summary: str
    replies: Mapping[int, Schema | None]
    body: Schema | None = None
    parameters: Sequence[Parameter] = ()
    errors: Sequence[int] = (400, 404)
    media: str = "application/json"
    body_media: str = "application/json"
    reply_headers: Sequence[str] = ()
    tag: str = "training jobs"


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """How a route takes its body."""

    most_bytes: int = limits.BODY_BYTES
    streamed: bool = False
    """The handler reads the body itself, and has to hold it against the signed hash."""
    socket: bool = False
    """The request is for a WebSocket, and has no body."""


class DeclaredRoute(APIRoute):
    """A route with its rule. Its ASGI application is ours; the rest is FastAPI's."""

    def __init__(
        self,
        server: Server,
        path: str,
        handler: Handler,
        rule: Rule,
        *,
        method: str,
        body: BodyLimits,
        about: Describe,
    ) -> None:
        async def endpoint() -> None:
            """Stands for the handler in FastAPI's books; never called."""

        endpoint.__name__ = handler.__name__
        super().__init__(
            path,
            endpoint,
            methods=[method],
            summary=about.summary,
            description=f"Action `{rule.action}`, access: {rule.access}.",
            tags=[about.tag],
            operation_id=f"{handler.__name__}_{method.lower()}",
            status_code=next(iter(about.replies)),
            openapi_extra=_openapi(path, rule, about),
        )
        self.rule = rule
        self.method = method
        self.handler = handler
        self.server = server
        self.body_limits = body
        self.app = self.serve

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        call = Call(scope, receive, path_params(scope["path_params"]), scope["request_id"])
        try:
            answer = await self._answer(call)
        except incoming.Gone:
            return
        if isinstance(answer, Talk):
            await talk(answer, scope, receive, send)
        else:
            await _send(answer, call, send)

    async def _answer(self, call: Call) -> Answer | Talk:
        try:
            body_hash = await self._read_body(call)
            self.server.gate.admit(call, self.rule, body_hash)
            _as_declared(call, socket=self.body_limits.socket)
            call.language = _language(call)
            return await self.handler(self.server, call)
        except PlatformError as problem:
            return error_reply(problem, call.request_id, _language(call))
        except incoming.Gone:
            raise
        except Exception:
            log.exception("request %s: %s failed", call.request_id, self.rule.action)
            return internal_reply(call.request_id, _language(call))

    async def _read_body(self, call: Call) -> str | None:
        if call.scope["type"] == SOCKET:
            return ""
        if self.body_limits.streamed:
            return None if incoming.has_body(call.scope) else ""
        call.body = await incoming.read(call.scope, call.receive, self.body_limits.most_bytes)
        return hashlib.sha256(call.body).hexdigest() if call.body else ""


class Routes:
    """The routes of one file, declared beside their handlers:
    `@routes("GET", "/v2/…", rule=…, about=…)`.
    """

    def __init__(self) -> None:
        self.declared: list[tuple[str, str, Handler, Rule, Describe, BodyLimits]] = []

    def __call__(
        self,
        method: str,
        path: str,
        *,
        rule: Rule,
        about: Describe,
        body: BodyLimits | None = None,
    ) -> Callable[[Handler], Handler]:
        """Declare the function below as a handler.

        Raises ValueError where the rule names no action, or where access does not fit the path.
        """
        if not rule.action or not isinstance(rule.access, Access):
            raise ValueError(f"{method} {path} declares no action and access")
        if (rule.access is Access.PROJECT) != ("{project_id}" in path):
            raise ValueError(f"{method} {path}: access {rule.access} does not fit the path")

        def declare(handler: Handler) -> Handler:
            self.declared.append((method, path, handler, rule, about, body or BodyLimits()))
            return handler

        return declare

    def register(self, app: FastAPI) -> None:
        """Put the routes into `app`; ValueError where one is there already."""
        server: Server = app.state.server
        paths: Paths[DeclaredRoute] = app.state.paths
        for method, path, handler, rule, about, body in self.declared:
            declared = DeclaredRoute(
                server, path, handler, rule, method=method, body=body, about=about
            )
            # Starlette adds HEAD to GET; we answer what we declare.
            declared.methods = {method}
            paths.add(method, path, declared)
            app.router.routes.append(declared)


def _as_declared(call: Call, *, socket: bool) -> None:
    """Refused where a WebSocket is asked for that the route is not, or the other way round."""
    if (call.scope["type"] == SOCKET) != socket:
        key, status = ("websocket-only", 426) if socket else ("websocket-none", 400)
        raise Refused(key, http=status, path=call.scope["path"])


def _language(call: Call) -> Any:
    return language_of(call.header("x-language"), call.header("accept-language"))


async def _send(answer: Answer, call: Call, send: Send) -> None:
    head = [(b"content-type", answer.media), *answer.headers]
    start = {"type": "http.response.start", "status": answer.status, "headers": head}
    if isinstance(answer, Streamed):
        await send(start)
        await _send_chunks(answer, send)
        return
    if not answer.body and answer.media is JSON:
        del head[0]  # nothing is no JSON
    head.append((b"content-length", str(len(answer.body)).encode()))
    await send(start)
    if answer.status in (408, 413):
        # The client may still be sending; a connection closed under it would lose the answer.
        await send({"type": "http.response.body", "body": answer.body, "more_body": True})
        await incoming.drain(call.receive)
        await send({"type": "http.response.body", "body": b""})
        return
    await send({"type": "http.response.body", "body": answer.body})


async def _send_chunks(answer: Streamed, send: Send) -> None:
    async with contextlib.aclosing(answer.chunks) as chunks:
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _openapi(path: str, rule: Rule, about: Describe) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": dict(STRING)}
        for name in _names(path)
    ]
    parameters.extend(
        {
            "name": item.name,
            "in": item.place,
            "required": False,
            "schema": item.schema,
            "description": item.about,
        }
        for item in about.parameters
    )
    extra: dict[str, Any] = {"responses": _responses(rule, about)}
    if parameters:
        extra["parameters"] = parameters
    if about.body is not None:
        content = {about.body_media: {"schema": about.body}}
        extra["requestBody"] = {"required": True, "content": content}
    if rule.access in (Access.CALLER, Access.PROJECT):
        extra["security"] = [{"signature": []}, {"token": []}]
    else:
        extra["security"] = []
    return extra


def _responses(rule: Rule, about: Describe) -> dict[str, Any]:
    replies: dict[str, Any] = {}
    for status, schema in about.replies.items():
        replies[str(status)] = {"description": "Done."}
        if schema is not None:
            replies[str(status)]["content"] = {about.media: {"schema": schema}}
        if about.reply_headers:
            headers = {name: {"schema": dict(STRING)} for name in about.reply_headers}
            replies[str(status)]["headers"] = headers
    denied = () if rule.access is Access.PUBLIC else (401, 403)
    body = (408, 413) if about.body is not None else ()
    for status in sorted({*about.errors, *denied, *body, 503}):
        replies[str(status)] = {
            "description": "Refused; error_msg says what was wrong and what to do.",
            "content": {"application/json": {"schema": ERROR_SCHEMA}},
        }
    return replies


def _names(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]
