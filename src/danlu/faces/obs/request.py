"""One request of an OBS or S3 client, as handlers see it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from danlu.faces.http import incoming
from danlu.faces.http.call import Receive, Scope
from danlu.faces.http.headers import Headers, text_of
from danlu.faces.obs.address import Address
from danlu.faces.obs.admission import Payload
from danlu.faces.obs.query import Query
from danlu.model.identity import Caller
from danlu.model.texts import Language
from danlu.wire.obs import AMZ, Dialect, Owner


class Request:
    """A request. `caller`, `dialect` and `payload` are set when it has been let in."""

    __slots__ = (
        "address",
        "caller",
        "dialect",
        "headers",
        "language",
        "payload",
        "query",
        "receive",
        "request_id",
        "scope",
        "touched",
        "unread",
    )

    def __init__(self, scope: Scope, receive: Receive, address: Address, query: Query) -> None:
        self.scope = scope
        self.receive = receive
        self.address = address
        self.query = query
        self.headers: Headers = scope["read_headers"]
        self.request_id: str = scope["request_id"]
        self.language: Language = "en"
        self.dialect: Dialect = AMZ
        self.payload = Payload()
        self.caller: Caller
        self.unread = incoming.has_body(scope)
        """Whether a part of the body has not been taken."""
        self.touched = False
        """Whether any of it was asked for: a client that waits for 100 has then been told."""

    @property
    def method(self) -> str:
        """GET, PUT …"""
        method: str = self.scope["method"]
        return method

    @property
    def bucket(self) -> str:
        """The bucket, empty where none is named."""
        return self.address.bucket

    @property
    def key(self) -> str:
        """The key, empty where none is named."""
        return self.address.key

    @property
    def length(self) -> int | None:
        """What Content-Length says; None where the body comes in chunks."""
        if not incoming.has_body(self.scope):
            return 0
        return incoming.declared_length(self.scope)

    @property
    def owner(self) -> Owner:
        """The caller as the owner of what they see."""
        return Owner(self.caller.user.domain_id, self.caller.user.name)

    def own(self, name: str) -> str:
        """A header with the dialect's prefix, empty where it was not sent."""
        return self.header(self.dialect.prefix + name)

    def header(self, name: str) -> str:
        """A header, empty where it was not sent; Denied where it was sent twice."""
        return text_of(self.headers.get(name) or "").strip()

    async def read(self, limit: int) -> bytes:
        """The whole body as it was sent."""
        self.touched = True
        found = await incoming.read(self.scope, self.receive, limit)
        self.unread = False
        return found

    async def pieces(self, limit: int) -> AsyncIterator[bytes]:
        """The body as it was sent, in pieces as they arrive."""
        self.touched = True
        async for piece in incoming.stream(self.scope, self.receive, limit):
            yield piece
        self.unread = False

    async def drain(self) -> None:
        """Take what still comes, within bounds, so that the client gets to read the answer."""
        with contextlib.suppress(incoming.Gone):
            await incoming.drain(self.receive)
