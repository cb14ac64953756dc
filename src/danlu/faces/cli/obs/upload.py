"""Files to objects: small ones in one request, large ones in parts that survive a kill."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable

from danlu.faces.cli.failure import FAULT, REFUSED, Failure
from danlu.faces.cli.http import Send, Sized
from danlu.faces.cli.obs.limiter import Limiter
from danlu.faces.cli.obs.moving import Tally
from danlu.faces.cli.obs.objects import Objects, Reply
from danlu.faces.cli.obs.parts import Parted
from danlu.faces.cli.obs.place import Remote

WHOLE_BYTES = 1 << 20
"""Up to here a file is read into memory."""
PART_BYTES = 32 << 20
MULTIPART_FROM = 2 * PART_BYTES
LARGE_AT_ONCE = 2
CHUNK = 512 << 10
TRIES = 3
"""So often a stretch is sent that arrives as something else."""
MODE = "x-amz-meta-mode"

_buffers = threading.local()


def buffer() -> memoryview:
    """This thread's own, used again and again: fresh memory costs more than copying."""
    found: memoryview | None = getattr(_buffers, "view", None)
    if found is None:
        found = _buffers.view = memoryview(bytearray(CHUNK))
    return found


class Uploader:
    """Stores files under keys. Safe to use from several threads."""

    def __init__(self, objects: Objects, tally: Tally, limiter: Limiter) -> None:
        self.objects = objects
        self.tally = tally
        self._limiter = limiter
        self._large = threading.Semaphore(LARGE_AT_ONCE)

    def put(self, path: str, to: Remote) -> None:
        """Store one file. It is there as a whole, or as it was before."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            found = os.fstat(descriptor)
            if found.st_size >= MULTIPART_FROM:
                with self._large:
                    _FilePieces(self, descriptor, found).to(path, to).run()
            else:
                self._whole(descriptor, found, to)
        finally:
            os.close(descriptor)
        self.tally.file(found.st_size)

    def headers(self, found: os.stat_result) -> dict[str, str]:
        """What is said of a file beside its content."""
        return {MODE: "755"} if found.st_mode & 0o111 else {}

    def send(
        self,
        descriptor: int,
        start: int,
        length: int,
        request: Callable[[Callable[[], bytes | Sized]], Reply],
    ) -> str:
        """Send a stretch of a file, and compare the answer's ETag with its MD5: that one."""
        sent = hashlib.md5(usedforsecurity=False)
        moved = 0

        def body() -> Sized:
            nonlocal sent, moved
            self.tally.moved(-moved)
            sent, moved = hashlib.md5(usedforsecurity=False), 0
            return Sized(length, write)

        def write(send: Send) -> None:
            nonlocal moved
            view, at, end = buffer(), start, start + length
            while at < end:
                count = os.preadv(descriptor, [view[: min(CHUNK, end - at)]], at)
                if not count:
                    raise Failure(REFUSED, "obs-changed")
                self._limiter.take(count)
                sent.update(view[:count])
                send(view[:count])
                at += count
                moved += count
                self.tally.moved(count)

        for left in reversed(range(TRIES)):
            reply = request(body)
            try:
                _compare(reply, sent.hexdigest())
                break
            except Failure:
                if not left:
                    raise
        return sent.hexdigest()

    def _whole(self, descriptor: int, found: os.stat_result, to: Remote) -> None:
        headers = self.headers(found)

        def request(body: bytes | Callable[[], bytes | Sized]) -> Reply:
            return self.objects.call("PUT", to.bucket, to.key, headers=headers, body=body)

        if found.st_size > WHOLE_BYTES:
            self.send(descriptor, 0, found.st_size, request)
        else:
            data = os.pread(descriptor, found.st_size + 1, 0)
            if len(data) != found.st_size:
                raise Failure(REFUSED, "obs-changed")
            self._limiter.take(len(data))
            _compare(request(data), hashlib.md5(data, usedforsecurity=False).hexdigest())
            self.tally.moved(len(data))
        unchanged(descriptor, found)


def unchanged(descriptor: int, found: os.stat_result) -> None:
    """Failure if a file is not as it was: half of each version would be stored."""
    now = os.fstat(descriptor)
    if (now.st_size, now.st_mtime_ns) != (found.st_size, found.st_mtime_ns):
        raise Failure(REFUSED, "obs-changed")


def _compare(reply: Reply, md5: str) -> None:
    """Failure if the store has something else than was sent. Only a plain ETag tells."""
    etag = reply.etag.lower()
    plain = len(etag) == 32 and not etag.strip("0123456789abcdef")
    if plain and etag != md5 and "x-amz-server-side-encryption" not in reply.headers:
        raise Failure(FAULT, "obs-damaged", what=f"PUT ({etag}, {md5})")


class _FilePieces:
    """One large file."""

    def __init__(self, uploader: Uploader, descriptor: int, found: os.stat_result) -> None:
        self._uploader = uploader
        self._descriptor = descriptor
        self._found = found

    def to(self, path: str, to: Remote) -> Parted:
        """It on its way."""
        found, objects, tally = self._found, self._uploader.objects, self._uploader.tally
        state: list[int | str] = [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns]
        return Parted(objects, tally, to, self, path, state, found.st_size, PART_BYTES)

    def headers(self) -> dict[str, str]:
        return self._uploader.headers(self._found)

    def good(self, start: int, length: int, etag: str) -> bool:
        return self._digest(start, length) == etag

    def check(self) -> None:
        unchanged(self._descriptor, self._found)

    def send(self, parted: Parted, upload: str, number: int) -> str:
        query = [("partNumber", str(number)), ("uploadId", upload)]
        start, length = parted.stretch(number)
        return self._uploader.send(
            self._descriptor, start, length, lambda body: parted.call("PUT", query, body=body)
        )

    def _digest(self, start: int, length: int) -> str:
        digest, view, at = hashlib.md5(usedforsecurity=False), buffer(), start
        while at < start + length:
            count = os.preadv(self._descriptor, [view[: min(CHUNK, start + length - at)]], at)
            if not count:
                return ""
            digest.update(view[:count])
            at += count
        return digest.hexdigest()
