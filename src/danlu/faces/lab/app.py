"""One port, many origins: requests for a notebook's host go to its Lab, all others to the API."""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
from typing import Any
from urllib.parse import parse_qs

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from danlu.faces.http.call import Receive, Scope, Send
from danlu.faces.http.edge import Application, language, send_reply
from danlu.faces.http.gate import Gate, host_name
from danlu.faces.http.headers import Headers
from danlu.faces.http.reply import Reply, error_reply, internal_reply, json_reply
from danlu.faces.lab import guard, pages
from danlu.faces.lab.either import Either
from danlu.faces.lab.forward import forward
from danlu.faces.lab.instance import Instance
from danlu.faces.lab.labs import ENTER, Away, Labs
from danlu.faces.lab.lease import EXTEND, LEASE
from danlu.faces.lab.tunnel import Handshake, Refusal, Tunnel, Way
from danlu.faces.lab.upstream import LabAway
from danlu.model.errors import Denied, Missing, PlatformError, Refused
from danlu.model.texts import Language

log = logging.getLogger(__name__)

READING = ("GET", "HEAD", "OPTIONS")
"""What a page asks that nobody looks at. Kernels and terminals tell of their own use."""

LAB = "/lab"
DEFAULT_LANGUAGE = b"/lab/api/translations/default"
CHINESE = b"/lab/api/translations/zh_CN"
PREFETCH = ("sec-purpose", "purpose")


class ByHost:
    """ASGI: the notebooks' origins in front of the API."""

    def __init__(self, app: Application, labs: Labs, gate: Gate) -> None:
        self.app = app
        self._labs = labs
        self._gate = gate
        self._prefix = secrets.token_hex(8)
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        notebook = None
        if scope["type"] == "http":
            notebook = self._labs.notebook(_single(scope["headers"], b"host"))
        if notebook is None:
            await self.app(scope, receive, send)
            return
        headers = Headers(scope["headers"])
        started = False

        async def noted(message: Any) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            answer = await self._serve(scope, receive, noted, notebook, headers)
        except Exception:
            log.exception("a request to notebook %s failed", notebook)
            if started:
                raise
            answer = internal_reply(self._request_id(), language(headers))
        if answer is not None:
            await send_reply(answer, send)

    async def _serve(
        self, scope: Scope, receive: Receive, send: Send, notebook: str, headers: Headers
    ) -> Reply | None:
        """The answer, unless Lab has given it."""
        one: Instance | None = None
        try:
            guard.check(scope["method"], scope["headers"])
            cookie = _joined(scope["headers"])
            path = scope["raw_path"].decode("latin-1")
            if path == ENTER:
                return self._enter(scope, notebook, headers, cookie)
            found = self._labs.admit(notebook, cookie)
            if path in (LEASE, EXTEND):
                return await self._lease(path, scope["method"], notebook, headers, cookie)
            if scope["method"] not in READING:
                self._labs.used(notebook)
            try:
                asked = _in_language(scope, language(headers))
                await forward(asked, receive, send, found.connect, found.token.reveal())
            except LabAway as away:
                log.info("notebook %s: %s", notebook, away)
                raise Away(found) from away
        except Away as away:
            one = away.one
            problem = pages.problem_of(one, language(headers))
        except PlatformError as refused:
            problem = refused
        else:
            return None
        return pages.reply(problem, headers, language(headers), self._request_id(), one)

    def _enter(self, scope: Scope, notebook: str, headers: Headers, cookie: str) -> Reply:
        """Take a ticket, give a cookie, and lead on to Lab."""
        forward_to = [(b"location", LAB.encode()), *pages.SECURITY]
        if scope["method"] != "GET" or any("prefetch" in headers.any(one) for one in PREFETCH):
            raise Denied("lab-no-session", notebook=notebook)
        query = parse_qs(scope["query_string"].decode("latin-1"))
        session = self._labs.tickets.redeem(query.get("ticket", [""])[0], notebook)
        if session is None:
            if self._labs.cookies.session(cookie, notebook) is None:
                raise Denied("lab-ticket", notebook=notebook)
            # Who has been let in and comes by the same link again is where he wanted to be.
            return Reply(b"", 303, pages.HTML, forward_to)
        given = (b"set-cookie", self._labs.cookies.header(session).encode())
        return Reply(b"", 303, pages.HTML, [given, *forward_to])

    async def _lease(
        self, path: str, method: str, notebook: str, headers: Headers, cookie: str
    ) -> Reply:
        """When the notebook is stopped; or, where that is asked for, later than that."""
        session = self._labs.cookies.session(cookie, notebook)
        if session is None:
            raise Denied("lab-no-session", notebook=notebook)
        if method != ("GET" if path == LEASE else "POST"):
            raise Refused("method-not-allowed", http=405, path=path, method=method)
        if path == LEASE:
            told = self._labs.leases.told(session, language(headers))
        else:
            told = await self._labs.leases.extend(session, language(headers))
        made = json_reply(told)
        made.headers.extend(pages.SECURITY)
        return made

    def _request_id(self) -> str:
        return f"{self._prefix}{next(self._numbers):016x}"

    def tunnel(self, *, config: Any, server_state: Any, app_state: Any, **_: Any) -> Either:
        """What uvicorn hands a connection to that is to become a WebSocket."""

        def choose(host: str) -> asyncio.Protocol:
            if self._labs.notebook(host) is not None:
                return Tunnel(self.admit, server_state.connections)
            return WebSocketsSansIOProtocol(config, server_state, app_state)

        return Either(choose)

    async def admit(self, handshake: Handshake) -> Way | Refusal:
        """Let a WebSocket in, or say why not."""
        headers = Headers(handshake.headers)
        host = headers.single("host")
        words = language(headers)
        notebook = self._labs.notebook(host)
        try:
            if notebook is None:
                scope = {"server": handshake.address}
                self._gate.check_name(host_name(host), scope, host)
                raise Missing("no-such-path", path=handshake.path, method="WebSocket")
            if handshake.method != b"GET":
                raise Refused(
                    "method-not-allowed",
                    http=405,
                    path=handshake.path,
                    method=handshake.method.decode("latin-1"),
                )
            guard.check("WebSocket", handshake.headers)
            one = self._labs.admit(notebook, _joined(handshake.headers))
        except Away as away:
            return _refusal(pages.problem_of(away.one, words), self._request_id(), words)
        except PlatformError as problem:
            return _refusal(problem, self._request_id(), words)
        return Way(one.connect, one.token.reveal())


def _refusal(problem: PlatformError, request_id: str, words: Any) -> Refusal:
    made = error_reply(problem, request_id, words)
    kept = [item for item in made.headers if item[0] != b"connection"]
    return Refusal(made.status, made.body, [(b"content-type", made.media), *kept])


def _in_language(scope: Scope, wanted: Language) -> Scope:
    """The same request; in the browser's language where Lab's page asks for the default one, as it
    does until its user has chosen. Lab knows no language but that of its own machine.
    """
    if wanted == "zh" and scope["raw_path"] == DEFAULT_LANGUAGE:
        return {**scope, "raw_path": CHINESE}
    return scope


def _single(headers: list[tuple[bytes, bytes]], wanted: bytes) -> str:
    """The value of a header that is sent once; empty otherwise."""
    found = [value for name, value in headers if name == wanted]
    return found[0].decode("latin-1") if len(found) == 1 else ""


def _joined(headers: list[tuple[bytes, bytes]]) -> str:
    """Every Cookie header; HTTP/2 proxies send one for each cookie."""
    return "; ".join(value.decode("latin-1") for name, value in headers if name == b"cookie")
