"""Danlu's own calls on code directories: asked for by their content, uploaded once."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import io
from collections.abc import AsyncIterator, Callable
from typing import BinaryIO, cast

from danlu.faces.http import incoming
from danlu.faces.http.call import Call
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.reply import Answer, json_reply
from danlu.faces.http.route import BodyLimits, Describe, Parameter, Routes
from danlu.faces.http.server import Server
from danlu.faces.http.signature import CONTENT, UNSIGNED
from danlu.flow import code
from danlu.model import limits
from danlu.model.errors import Denied, Invalid, Missing
from danlu.wire.danlu_schemas import CODE
from danlu.wire.shape import STRING

TAG = "code"
MOST_BYTES = 8 * limits.CODE_BYTES
"""More than may be stored, so that a refusal can name the exact size."""

NAME = Parameter("name", STRING, "the last part of the code directory's path")

routes = Routes()


@routes(
    "GET",
    "/danlu/v1/{project_id}/code/{digest}",
    rule=Rule("danlu:code:get", Access.PROJECT),
    about=Describe(
        "Where a code directory with this content lies",
        {200: CODE},
        parameters=(NAME,),
        tag=TAG,
    ),
)
async def find_code(server: Server, call: Call) -> Answer:
    """The path of a code directory that is there already."""
    call.only("name")
    platform, digest, name = server.platform, call.params["digest"], call.text("name")
    url = await server.on_worker(
        code.stored, platform.objects, platform.limits.bucket, digest, name
    )
    if url is None:
        raise Missing("code-missing", digest=digest)
    return json_reply({"code_dir": str(url)})


@routes(
    "POST",
    "/danlu/v1/{project_id}/code",
    rule=Rule("danlu:code:create", Access.PROJECT, writes=True, unsigned_body=True),
    body=BodyLimits(MOST_BYTES, streamed=True),
    about=Describe(
        "Upload a code directory as tar or tar.gz",
        {201: CODE},
        body={"type": "string", "format": "binary"},
        body_media="application/octet-stream",
        parameters=(Parameter("digest", STRING, "what the content must be"), NAME),
        errors=(400, 404, 409, 507),
        tag=TAG,
    ),
)
async def upload_code(server: Server, call: Call) -> Answer:
    """Take an archive as it arrives, and keep its files by their content."""
    call.only("digest", "name")
    platform, expected, name = server.platform, call.text("digest"), call.text("name")
    pieces = incoming.stream(call.scope, call.receive, MOST_BYTES)
    upload = _Upload(pieces, asyncio.get_running_loop())
    stored = await server.on_uploader(
        code.store_archive, platform.objects, platform.limits.bucket, cast("BinaryIO", upload), name
    )
    _check_signed(call, upload.hexdigest())
    if expected and not hmac.compare_digest(expected.encode(), stored.digest.encode()):
        raise Invalid(
            "field-value",
            field="digest",
            value=expected,
            expected=f"the digest of what was sent, which is {stored.digest}",
        )
    said = {"digest": stored.digest, "files": stored.files, "bytes": stored.size}
    return json_reply({"code_dir": str(stored.url), **said}, 201)


def _check_signed(call: Call, found: str) -> None:
    """Denied where another body was signed than was sent."""
    signed = call.header(CONTENT)
    if call.signed is not None and signed not in ("", UNSIGNED, found):
        raise Denied("signature-body")


class _Upload(io.RawIOBase):
    """The body as a file for a worker thread, piece by piece."""

    def __init__(self, pieces: AsyncIterator[bytes], loop: asyncio.AbstractEventLoop) -> None:
        self._pieces = pieces
        self._loop = loop
        self._buffer = bytearray()
        self._ended = False
        self._hash = hashlib.sha256()
        self.hexdigest: Callable[[], str] = self._hash.hexdigest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes; empty at the end."""
        while not self._ended and (size < 0 or len(self._buffer) < size):
            piece = asyncio.run_coroutine_threadsafe(self._next(), self._loop).result()
            self._ended = not piece
            self._hash.update(piece)
            self._buffer += piece
        taken = bytes(self._buffer if size < 0 else self._buffer[:size])
        del self._buffer[: len(taken)]
        return taken

    async def _next(self) -> bytes:
        return await anext(self._pieces, b"")
