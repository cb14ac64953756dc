"""The gateway's ASGI application: request id, Host, who asks, what for, and errors in XML."""

from __future__ import annotations

import contextlib
import itertools
import logging
import secrets
from collections.abc import MutableMapping
from typing import Any

from danlu.faces.http import incoming
from danlu.faces.http.call import Receive, Scope, Send
from danlu.faces.http.gate import host_name
from danlu.faces.http.headers import Headers
from danlu.faces.http.reply import Answer, Reply, Streamed, language_of
from danlu.faces.obs import bucket, configuration, get, listing, multipart, put, tagging  # noqa: F401 - each declares operations
from danlu.faces.obs.address import Address, address
from danlu.faces.obs.admission import Sent
from danlu.faces.obs.door import Door
from danlu.faces.obs.query import Query
from danlu.faces.obs.request import Request
from danlu.faces.obs.routes import operations
from danlu.model.errors import PlatformError
from danlu.wire import obs_errors
from danlu.wire.obs import AMZ, OBS, Dialect

log = logging.getLogger(__name__)

OPERATIONS = operations
"""What the files above have declared, each when it was imported."""

API_VERSION = b"3.0"
XML = b"application/xml"
DRAINED_BYTES = 1 << 20
"""A refused body of up to this size is taken, so that its connection can be used again."""

SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    # What is stored may be a page; shown from here it can do nothing.
    (b"content-security-policy", b"default-src 'none'; sandbox"),
    (b"server", b"Danlu"),
]


class Gateway:
    """ASGI: one request of an OBS or S3 client after the other."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self._prefix = secrets.token_hex(8)
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        scope["request_id"] = request_id = f"{self._prefix}{next(self._numbers):016x}"
        scope["read_headers"] = headers = Headers(scope["headers"])
        request = Request(scope, receive, Address("", "", "/", ""), Query(b""))
        request.language = language_of(headers.any("x-language"), headers.any("accept-language"))
        try:
            answer = await self._answer(request)
        except PlatformError as problem:
            answer = self._refusal(request, problem)
        except incoming.Gone:
            return
        except Exception:
            log.exception("request %s: %s failed", request_id, request.method)
            answer = self._refusal(request, PlatformError("internal", request_id=request_id))
        try:
            await _send(request, answer, _decorated(request, send))
        except PlatformError as problem:
            # Begun already: only cutting it off tells the client that something is missing.
            log.warning("request %s was cut off: %s", request_id, problem)

    async def _answer(self, request: Request) -> Answer:
        scope, door = request.scope, self.door
        name = host_name(request.headers.single("host"))
        request.address = address(name, scope["raw_path"], door.names)
        door.server.gate.check_name(request.address.host, scope)
        request.query = Query(scope["query_string"])
        if request.method == "HEAD" and "apiversion" in request.query and not request.key:
            # Asked without a signature, before a client knows how to sign; says nothing of buckets.
            return Reply(b"", 200, XML, [(b"x-obs-api", API_VERSION)])
        admitted = door.admission.admit(
            Sent(
                request.method,
                scope["raw_path"],
                request.address.resource,
                request.query,
                request.headers,
            )
        )
        request.caller = admitted.caller
        request.dialect = admitted.dialect
        request.payload = admitted.payload
        operation = OPERATIONS.find(request)
        if request.bucket and operation.action != bucket.CREATE:
            await door.run(door.buckets.check, request.caller.workspace.id, request.bucket)
        return await operation.handler(door, request)

    def _refusal(self, request: Request, problem: PlatformError) -> Reply:
        resource = request.scope["raw_path"].decode("latin-1")[:2048]
        body = obs_errors.error(problem, resource, request.request_id, request.language)
        reply = Reply(body, obs_errors.status(problem), XML)
        code = obs_errors.code(problem)
        if request.method == "HEAD" or reply.status == 304:
            reply.body = b""
            reply.headers.append((b"x-danlu-error", code.encode()))
        if problem.http == 405:
            reply.headers.append((b"allow", str(problem.params.get("allowed", "")).encode()))
        if problem.http == 416:
            size = problem.params.get("size", "*")
            reply.headers.append((b"content-range", f"bytes */{size}".encode()))
        if problem.retry:
            reply.headers.append((b"retry-after", b"1"))
        return reply


def _decorated(request: Request, send: Send) -> Send:
    dialect: Dialect = request.dialect
    request_id = request.request_id.encode()
    extra = [
        *SECURITY_HEADERS,
        (f"{dialect.prefix}request-id".encode(), request_id),
        (f"{dialect.prefix}id-2".encode(), b"danlu"),
    ]
    if dialect is AMZ:
        # Huawei's clients show this one, however they have signed.
        extra.append((f"{OBS.prefix}request-id".encode(), request_id))

    async def decorated(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *extra]
        await send(message)

    return decorated


async def _send(request: Request, answer: Answer, send: Send) -> None:
    head = list(answer.headers)
    if isinstance(answer, Streamed):
        head.append((b"content-type", answer.media))
        await send({"type": "http.response.start", "status": answer.status, "headers": head})
        async with contextlib.aclosing(answer.chunks) as chunks:
            async for chunk in chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        return
    if answer.body:
        head.append((b"content-type", answer.media))
    if answer.status not in (204, 304) and not any(name == b"content-length" for name, _ in head):
        head.append((b"content-length", str(len(answer.body)).encode()))
    behind = False
    if request.unread and answer.status >= 400:
        waits = request.headers.any("expect") and not request.touched
        if not waits and (request.length or MOST) <= DRAINED_BYTES:
            await request.drain()
        else:
            # The rest of the body would be read as the next request.
            head.append((b"connection", b"close"))
            behind = not waits
    await send({"type": "http.response.start", "status": answer.status, "headers": head})
    if behind:
        await send({"type": "http.response.body", "body": answer.body, "more_body": True})
        await request.drain()
        await send({"type": "http.response.body", "body": b""})
        return
    await send({"type": "http.response.body", "body": answer.body})


MOST = 1 << 62
