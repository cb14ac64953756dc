"""The content of an object over the network: taken up again where it breaks off, and checked."""

from __future__ import annotations

import hashlib
import http.client
from collections.abc import Callable, Iterator
from typing import TypeVar

from danlu.model.errors import EngineError, Unavailable
from danlu.ports.objects import ObjectInfo
from danlu.stores.s3.about import META, PART_SIZE, etag_of
from danlu.stores.s3.answers import Answer
from danlu.stores.s3.client import Client, Held, Request

CHUNK = 1 << 20
T = TypeVar("T", bytes, int)


class Reading(Iterator[bytes]):
    """Chunks of an object from `start` to `end`.

    Where the connection breaks, or the server falls silent, the rest is asked for under the
    condition that the object is still the same one. Content that was read whole has to have the
    digest that the server told: EngineError at its end otherwise, so what came before counts for
    nothing.
    """

    def __init__(
        self, client: Client, info: ObjectInfo, remote: str, first: Opened, end: int
    ) -> None:
        self._client = client
        self.info = info
        self._remote = remote
        self._response, self._held = first.response, first.held
        self._at = first.start
        self._end = end
        self._tried = 0
        whole = first.start == 0 and end == info.size
        self._check = Check(info, first.answer) if whole else None

    def __next__(self) -> bytes:
        size = min(CHUNK, self._end - self._at)
        chunk = self._some(lambda: self._response.read(size))
        if not chunk:
            raise StopIteration
        self._took(chunk)
        return chunk

    def readinto(self, view: memoryview) -> int:
        """The next bytes into memory that is used again; how many, 0 at the end."""
        room = view[: self._end - self._at]
        count = self._some(lambda: self._response.readinto(room))
        if count:
            self._took(room[:count])
        return count or 0

    def _some(self, read: Callable[[], T]) -> T | None:
        """What `read` gives, which asks the answer that is there; None at the end."""
        while self._at < self._end:
            problem: Exception = http.client.IncompleteRead(b"", self._end - self._at)
            try:
                if found := read():
                    return found
            except (OSError, http.client.HTTPException) as error:
                problem = error
            self._again(problem)
        self.close()
        if self._check is not None:
            check, self._check = self._check, None
            check.finish()
        return None

    def _took(self, chunk: bytes | memoryview) -> None:
        self._tried = 0
        self._at += len(chunk)
        if self._check is not None:
            self._check.update(chunk)
        if self._at >= self._end:
            if self._response.isclosed():
                self._held.done(self._response)
            else:
                self.close()

    def _again(self, problem: Exception) -> None:
        """Ask for the rest."""
        self._held.close()
        self._tried += 1
        self._client.pause(self._tried, problem, f"{problem!r} at byte {self._at}")
        headers = {
            "range": f"bytes={self._at}-{self._end - 1}",
            "if-match": f'"{self.info.etag}"',
        }
        request = Request("GET", self._remote, self.info.key, headers=headers)
        self._response, answer, self._held = self._client.open(request)
        found = etag_of(answer.headers.get("etag", ""))
        if answer.status != 206 or found != self.info.etag:
            self._held.close()
            raise Unavailable(
                "object-changed", bucket=self.info.bucket, key=self.info.key, at=self._at
            ) from problem

    def close(self) -> None:
        """Stop reading."""
        self._held.close()

    def __del__(self) -> None:
        self.close()


class Opened:
    """An answer whose body begins at byte `start` of the object."""

    def __init__(
        self, response: http.client.HTTPResponse, answer: Answer, held: Held, start: int
    ) -> None:
        self.response = response
        self.answer = answer
        self.held = held
        self.start = start


class Check:
    """Compares content with what the server says of it: MD5, MD5 of parts, or SHA-256."""

    def __init__(self, info: ObjectInfo, answer: Answer) -> None:
        self._info = info
        self._sha256 = hashlib.sha256() if info.sha256 else None
        size = answer.headers.get(META + PART_SIZE, "")
        self._part_size = int(size) if "-" in info.etag and size.isdigit() else 0
        self._parts: list[bytes] = []
        self._md5 = _md5()
        self._in_part = 0
        self._by_md5 = "-" not in info.etag or self._part_size > 0

    @property
    def can_tell(self) -> bool:
        """Whether the server says anything of the content that could be compared."""
        return self._sha256 is not None or self._by_md5

    def update(self, chunk: bytes | memoryview) -> None:
        """Take the next bytes."""
        if self._sha256 is not None:
            self._sha256.update(chunk)
        elif self._by_md5:
            self._update_md5(memoryview(chunk))

    def _update_md5(self, left: memoryview) -> None:
        while left:
            room = self._part_size - self._in_part if self._part_size else len(left)
            part, left = left[:room], left[room:]
            self._md5.update(part)
            self._in_part += len(part)
            if self._in_part == self._part_size:
                self._parts.append(self._md5.digest())
                self._md5, self._in_part = _md5(), 0

    def finish(self) -> None:
        """Raise EngineError where the content is not what the server said it is."""
        if self._sha256 is not None:
            found, wanted = self._sha256.hexdigest(), self._info.sha256
        elif self._by_md5:
            found, wanted = self._found_md5(), self._info.etag
        else:
            return
        if found != wanted and len(wanted.partition("-")[0]) in (32, 64):
            raise EngineError(
                "object-damaged",
                bucket=self._info.bucket,
                key=self._info.key,
                detail=f"its digest is {found}, not {wanted}",
            )

    def _found_md5(self) -> str:
        if not self._part_size:
            return self._md5.hexdigest()
        parts = [*self._parts, self._md5.digest()] if self._in_part else self._parts
        digest = hashlib.md5(b"".join(parts), usedforsecurity=False)
        return f"{digest.hexdigest()}-{len(parts)}"


def _md5() -> hashlib._Hash:
    return hashlib.md5(usedforsecurity=False)
