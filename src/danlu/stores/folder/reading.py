"""The content of one version of an object, chunk by chunk."""

from __future__ import annotations

import os
from collections.abc import Iterator

from danlu.ports.objects import ObjectInfo
from danlu.stores.folder.failures import damaged
from danlu.stores.folder.writing import CHUNK


class Reading(Iterator[bytes]):
    """Chunks from an open blob. Closed at its end, by `close()`, or when nobody holds it.

    It keeps its own place in the file, so that a fork in between disturbs nobody.
    """

    def __init__(self, info: ObjectInfo, descriptor: int, start: int, end: int) -> None:
        self._descriptor = descriptor
        self._info = info
        self._at = start
        self._end = end

    def __next__(self) -> bytes:
        if self._at >= self._end or self._descriptor < 0:
            self.close()
            raise StopIteration
        try:
            chunk = os.pread(self._descriptor, min(CHUNK, self._end - self._at), self._at)
        except OSError as problem:
            raise damaged(self._info.bucket, self._info.key, str(problem)) from problem
        if not chunk:
            raise damaged(self._info.bucket, self._info.key, f"it ends at byte {self._at}")
        self._at += len(chunk)
        return chunk

    def close(self) -> None:
        """Stop reading."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()
