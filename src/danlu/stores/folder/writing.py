"""Bytes on their way to disk, and their digests."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Protocol

from danlu.model.errors import Unavailable
from danlu.stores.folder.failures import of_disk

CHUNK = 256 << 10
"""Bytes read or written at a time."""
LARGE = 4 << 20
"""From here on MD5, the slowest part, is computed beside the rest, in a thread."""
LARGE_CHUNK = 1 << 20


class Source(Protocol):
    """What gives bytes until it gives none."""

    def read(self, size: int = ..., /) -> bytes:
        """Up to `size` bytes; nothing at the end."""


class Writing:
    """Writes one stream to a descriptor. Its MD5 may be left out: it is the slowest part."""

    def __init__(self, descriptor: int, directory: Path, *, md5: bool = True) -> None:
        self._descriptor = descriptor
        self._directory = directory
        self._wants_md5 = md5
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._sha256 = hashlib.sha256()
        self._size = 0

    def run(self, source: bytes | Source) -> tuple[int, bytes, bytes]:
        """Write everything, durably. Size, MD5 and SHA-256."""
        if isinstance(source, bytes | bytearray | memoryview):
            self._take(source)
        else:
            while self._size < LARGE:
                chunk = source.read(CHUNK)
                if not chunk:
                    break
                self._take(chunk)
            else:
                self._rest(source)
        with of_disk(self._directory):
            os.fsync(self._descriptor)
        return self._size, self._md5.digest(), self._sha256.digest()

    def _take(self, data: bytes) -> None:
        if self._wants_md5:
            self._md5.update(data)
        self._sha256.update(data)
        self._write(data)

    def _rest(self, source: Source) -> None:
        from concurrent.futures import ThreadPoolExecutor

        if not self._wants_md5:
            while chunk := source.read(LARGE_CHUNK):
                self._take(chunk)
            return
        with ThreadPoolExecutor(1) as beside:
            while chunk := source.read(LARGE_CHUNK):
                try:
                    digest = beside.submit(self._md5.update, chunk)
                except RuntimeError as problem:  # the system has no thread left
                    raise Unavailable("busy", detail=str(problem)) from problem
                self._sha256.update(chunk)
                self._write(chunk)
                digest.result()

    def _write(self, data: bytes) -> None:
        self._size += len(data)
        left = memoryview(data)
        with of_disk(self._directory):
            while left:
                left = left[os.write(self._descriptor, left) :]
