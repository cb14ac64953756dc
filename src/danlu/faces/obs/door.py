"""What the handlers work on, and how bytes pass between clients, threads and the store."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, ParamSpec, TypeVar, cast

from danlu.faces.http.gate import LOOPBACK_NAMES
from danlu.faces.http.server import Server, names_of
from danlu.faces.obs.admission import Admission
from danlu.faces.obs.body import Body, promise
from danlu.faces.obs.feed import Feed
from danlu.faces.obs.request import Request
from danlu.flow.buckets import Buckets
from danlu.model.errors import Refused
from danlu.ports.objects import Editing, Multipart, ObjectStore, Tagging

P = ParamSpec("P")
T = TypeVar("T")

WORKERS = 16
UPLOADERS = 64
AT_ONCE_BYTES = 256 << 10
"""A body of up to this size is read before a thread is taken for it."""
FRAMES_BYTES = 16 << 10
"""What aws-chunked adds to a body of that size."""
MOST_SENT_BYTES = 6 << 30
"""A body as it is sent: its content and its frames."""


class Door:
    """The gateway's state. Lives on the event loop; the store is asked in threads."""

    def __init__(self, server: Server) -> None:
        self.server = server
        running = server.running
        self.objects: ObjectStore = running.platform.objects
        self.region = running.workspace.region
        self.admission = Admission(server.gate, running.platform.clock)
        self.buckets: Buckets = running.buckets
        self.names = frozenset(
            name.lower() for name in (*LOOPBACK_NAMES, *names_of(running.settings))
        )
        self.workers = ThreadPoolExecutor(WORKERS, "obs-worker")
        """For what the store answers by itself."""
        self.uploaders = ThreadPoolExecutor(UPLOADERS, "obs-upload")
        """For bodies, which last as long as their clients send."""

    @property
    def multipart(self) -> Multipart:
        """The store's power of uploads in parts."""
        if not isinstance(self.objects, Multipart):
            raise Refused("obs-not-implemented", http=501, what="multipart uploads")
        return self.objects

    @property
    def editing(self) -> Editing:
        """The store's power to append and rename."""
        if not isinstance(self.objects, Editing):
            raise Refused("obs-not-implemented", http=501, what="append and rename")
        return self.objects

    @property
    def tagging(self) -> Tagging:
        """The store's power to keep tags."""
        if not isinstance(self.objects, Tagging):
            raise Refused("obs-not-implemented", http=501, what="tags")
        return self.objects

    async def run(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Ask the store beside the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.workers, lambda: work(*arguments, **named))

    async def read(self, request: Request, limit: int, *, about_object: bool = False) -> bytes:
        """A whole small body, checked against what its headers promise. `about_object`: the
        checksums in them are those of an object, not of the body.
        """
        promised = promise(request, about_object=about_object)
        body = Body(iter([await request.read(limit + FRAMES_BYTES)]), promised)
        return body.read()

    async def store(
        self, request: Request, keep: Callable[[BinaryIO | bytes], T]
    ) -> tuple[T, dict[str, str]]:
        """What `keep` makes of the body, in a thread, and the checksums that were checked.

        Large bodies are read by `keep` as they arrive; what is wrong with one is raised there.
        """
        promised = promise(request)
        length = request.length
        if length is not None and length <= AT_ONCE_BYTES:
            body = Body(iter([await request.read(AT_ONCE_BYTES)]), promised)
            return await self.run(keep, body.read()), body.found()
        feed = Feed()
        pump = asyncio.create_task(feed.pump(request.pieces(MOST_SENT_BYTES)))
        body = Body(feed.pieces(), promised)
        loop = asyncio.get_running_loop()
        try:
            kept = await loop.run_in_executor(self.uploaders, keep, cast("BinaryIO", body))
        finally:
            feed.abandon()
            pump.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await pump
        return kept, body.found()

    async def chunks(
        self, request: Request, content: Iterator[bytes]
    ) -> AsyncGenerator[bytes, None]:
        """Content for the client, read a chunk ahead of it, until it ends or the client is gone."""
        gone = asyncio.create_task(_hung_up(request))
        following = asyncio.ensure_future(self.run(next, content, b""))
        try:
            while chunk := await following:
                following = asyncio.ensure_future(self.run(next, content, b""))
                yield chunk
                if gone.done():
                    return
        finally:
            gone.cancel()
            if not following.done():
                await asyncio.wait((following,))
            following.cancelled() or following.exception()
            close = getattr(content, "close", None)
            if close is not None:
                close()

    def close(self) -> None:
        """Let the threads go."""
        self.workers.shutdown(wait=False, cancel_futures=True)
        self.uploaders.shutdown(wait=False, cancel_futures=True)


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
