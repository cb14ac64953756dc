"""The content of one version of an object, chunk by chunk."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from danlu.ports.objects import ObjectInfo
from danlu.stores.folder.failures import damaged, from_os
from danlu.stores.folder.writing import CHUNK, Source

AWAY = frozenset({errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.ENOTCONN, errno.EINTR})
"""Said of files of another machine that may answer again; the content is not damaged."""


class Reading(Iterator[bytes]):
    """Chunks from an open blob. Closed at its end, by `close()`, or when nobody holds it.

    It keeps its own place in the file, so that a fork in between disturbs nobody.
    """

    def __init__(self, info: ObjectInfo, descriptor: int, start: int, end: int) -> None:
        self._descriptor = descriptor
        self.info = info
        self._at = start
        self._end = end

    def __next__(self) -> bytes:
        if self._at >= self._end or self._descriptor < 0:
            if self._descriptor >= 0:
                self.check(self._descriptor)
            self.close()
            raise StopIteration
        try:
            chunk = os.pread(self._descriptor, min(CHUNK, self._end - self._at), self._at)
        except OSError as problem:
            if problem.errno in AWAY:
                raise from_os(problem, Path(self.info.bucket)) from problem
            raise damaged(self.info.bucket, self.info.key, str(problem)) from problem
        if not chunk:
            self.check(self._descriptor)
            raise damaged(self.info.bucket, self.info.key, f"it ends at byte {self._at}")
        self._at += len(chunk)
        return chunk

    def check(self, descriptor: int) -> None:
        """Raise where what was read is not what it was. Blobs never change."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop reading."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


class Chain:
    """Chunks, and what comes behind them, as one stream."""

    def __init__(self, chunks: Iterator[bytes], behind: bytes | Source = b"") -> None:
        self._chunks = chunks
        self._behind = io.BytesIO(behind) if isinstance(behind, bytes) else behind
        self._left = b""

    def read(self, size: int = -1, /) -> bytes:
        """Up to `size` bytes; nothing at the end."""
        if not self._left:
            self._left = next(self._chunks, b"")
        if not self._left:
            return self._behind.read(size)
        if size < 0:
            size = len(self._left)
        part, self._left = self._left[:size], self._left[size:]
        return part
