"""Objects into files: a large one in several ranges at once, each checked as it comes."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from danlu.model.errors import EngineError, Unavailable
from danlu.ports.objects import ObjectInfo
from danlu.stores.s3 import about
from danlu.stores.s3.answers import Answer
from danlu.stores.s3.reading import Check, Reading
from danlu.stores.s3.uploads import PART, S3Uploads

LARGE = 4 * PART
RANGES_AT_ONCE = 4
LARGE_AT_ONCE = 2
CHUNK = 256 << 10

_buffers = threading.local()


@dataclass(frozen=True, slots=True)
class _File:
    """Where content goes, and what is asked between two pieces of it."""

    descriptor: int
    check: Callable[[], None]

    def fill(self, reading: Reading, at: int, digest: hashlib._Hash | None = None) -> int:
        """Write what is read from byte `at` on; where it ends."""
        view = _buffer()
        while count := reading.readinto(view):
            self.check()
            if digest is not None:
                digest.update(view[:count])
            left = view[:count]
            while left:
                written = os.pwrite(self.descriptor, left, at)
                left, at = left[written:], at + written
        return at


class S3Fetching(S3Uploads):
    """`Fetching` from an S3 server."""

    _large = threading.Semaphore(LARGE_AT_ONCE)  # of this process, whatever it reads from

    def fetch(self, info: ObjectInfo, file: int, check: Callable[[], None]) -> ObjectInfo:
        bucket, key = info.bucket, info.key
        target = _File(file, check)
        if info.size < LARGE:
            reading = self._reading(bucket, key, None)
            target.fill(reading, 0)
            found = reading.info
        else:
            with self._large:
                answer = self._head(bucket, key)
                found = about.info_of(bucket, key, answer)
                if found.etag == info.etag:
                    self._in_ranges(found, answer, target)
        if (found.etag, found.size) != (info.etag, info.size):
            raise Unavailable("object-changed", bucket=bucket, key=key, at=0)
        return found

    def _in_ranges(self, info: ObjectInfo, answer: Answer, target: _File) -> None:
        """Bring a large object. Where it was put in parts of a known size their digests are
        made as they come; otherwise the file is read once more.
        """
        said = answer.headers.get(about.META + about.PART_SIZE, "")
        by_part = "-" in info.etag and said.isdigit() and LARGE > int(said) > 0
        size = int(said) if by_part else PART
        over = threading.Event()

        def bring(start: int) -> bytes:
            if over.is_set():
                return b""
            digest = hashlib.md5(usedforsecurity=False)
            end = min(start + size, info.size)
            reading = self._reading(info.bucket, info.key, (info, start, end))
            try:
                target.fill(reading, start, digest if by_part else None)
            except BaseException:
                over.set()  # the others need not begin
                raise
            finally:
                reading.close()
            return digest.digest()

        os.ftruncate(target.descriptor, info.size)
        with ThreadPoolExecutor(RANGES_AT_ONCE, thread_name_prefix="range") as pool:
            digests = list(pool.map(bring, range(0, info.size, size)))
        if by_part:
            whole = hashlib.md5(b"".join(digests), usedforsecurity=False)
            found = f"{whole.hexdigest()}-{len(digests)}"
            if found != info.etag:
                detail = f"its digest is {found}, not {info.etag}"
                raise EngineError("object-damaged", bucket=info.bucket, key=info.key, detail=detail)
        else:
            _prove(info, answer, target)


def _prove(info: ObjectInfo, answer: Answer, target: _File) -> None:
    """Compare a whole file with what the server says of it, as far as that can be told."""
    whole = Check(info, answer)
    if whole.can_tell:
        view, at = _buffer(), 0
        while count := os.preadv(target.descriptor, [view], at):
            target.check()
            whole.update(view[:count])
            at += count
        whole.finish()


def _buffer() -> memoryview:
    """This thread's own, used again and again: fresh memory costs more than copying."""
    found: memoryview | None = getattr(_buffers, "view", None)
    if found is None:
        found = _buffers.view = memoryview(bytearray(CHUNK))
    return found
