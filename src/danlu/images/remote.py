"""Reads an index of wheels, and single files inside wheels, over HTTP without downloading a wheel.

A wheel is a zip archive: its directory stands at its end. `RangeFile` gives zipfile a file of which
only the blocks that are read are fetched.
"""

from __future__ import annotations

import io
import json
import re
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.parse import urljoin

from danlu.model.errors import Unavailable

JSON = "application/vnd.pypi.simple.v1+json"
TIMEOUT_S = 60.0
BLOCK = 1 << 16
MOST_BLOCK_RUN = 16
MOST_INDEX_BYTES = 64 << 20
MOST_WHEEL_BYTES = 96 << 20
"""Of one wheel; torch's are five to ten times as large."""
MOST_TEXT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Offered:
    """A file of an index."""

    filename: str
    url: str
    size: int
    uploaded: str
    """`2026-10-28`, or empty where the index does not say."""


def offered(index: str, project: str) -> tuple[Offered, ...]:
    """The wheels of a project that are not withdrawn. Unavailable if the index does not say so."""
    url = f"{index.rstrip('/')}/{project}/"
    with _opened(url, {"Accept": JSON}) as reply:
        if reply.headers.get_content_type() != JSON:
            found = reply.headers.get_content_type()
            raise Unavailable("index-unreadable", url=url, detail=f"{found}, not {JSON}")
        body = reply.read(MOST_INDEX_BYTES)
    try:
        return tuple(
            Offered(
                str(one["filename"]),
                urljoin(url, str(one["url"])),
                int(one.get("size") or 0),
                str(one.get("upload-time") or "")[:10],
            )
            for one in json.loads(body)["files"]
            if str(one["filename"]).endswith(".whl") and not one.get("yanked")
        )
    except (ValueError, KeyError, TypeError) as problem:
        detail = f"{type(problem).__name__} {problem}"
        raise Unavailable("index-unreadable", url=url, detail=detail) from problem


class RangeFile(io.RawIOBase):
    """A file behind a URL, fetched in runs of blocks as they are read. `fetched` counts bytes."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._blocks: dict[int, bytes] = {}
        self._at = 0
        self._run = 1
        self._after = -1
        self.fetched = 0
        self.size = self._length()

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def seekable(self) -> bool:
        """Reading may begin anywhere."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Choose where the next read begins."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with what follows, at most to the end of a block."""
        number, inside = divmod(self._at, BLOCK)
        if self._at >= self.size:
            return 0
        if number not in self._blocks:
            self._fetch(number)
        data = self._blocks[number][inside : inside + len(buffer)]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _fetch(self, number: int) -> None:
        """A block; who goes on where the last run ended is given longer and longer ones."""
        self._run = min(self._run * 2, MOST_BLOCK_RUN) if number == self._after else 1
        first, last = number * BLOCK, min((number + self._run) * BLOCK, self.size) - 1
        with _opened(self._url, {"Range": f"bytes={first}-{last}"}) as reply:
            self._has_ranges(reply)
            data = reply.read(last - first + 1)
        self.fetched += len(data)
        if len(data) != last - first + 1 or self.fetched > MOST_WHEEL_BYTES:
            detail = f"{self.fetched} bytes are more than was to be read, or the file was cut off"
            raise Unavailable("index-unreadable", url=self._url, detail=detail)
        self._blocks = {
            number + i: data[i * BLOCK : (i + 1) * BLOCK] for i in range(-(-len(data) // BLOCK))
        }
        self._after = number + self._run

    def _length(self) -> int:
        with _opened(self._url, {"Range": "bytes=0-0"}) as reply:
            self._has_ranges(reply)
            total = re.fullmatch(r"bytes 0-0/(\d+)", reply.headers.get("Content-Range", ""))
        if total is None:
            raise Unavailable("index-unreadable", url=self._url, detail="no Content-Range")
        return int(total[1])

    def _has_ranges(self, reply: HTTPResponse) -> None:
        """A server that sends the whole file instead is left at once."""
        if reply.status != 206:
            detail = f"status {reply.status} to a request for a range"
            raise Unavailable("index-unreadable", url=self._url, detail=detail)


class RemoteWheel:
    """The files inside a wheel behind a URL."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._file = RangeFile(url)
        try:
            self._zip = zipfile.ZipFile(io.BufferedReader(self._file, BLOCK))
        except zipfile.BadZipFile as problem:
            raise Unavailable("index-unreadable", url=url, detail=str(problem)) from problem

    @property
    def fetched(self) -> int:
        """How many bytes were asked for so far."""
        return self._file.fetched

    @property
    def size(self) -> int:
        """Bytes of the whole wheel."""
        return self._file.size

    def text(self, suffix: str) -> str:
        """The one small file whose name ends so."""
        with self._open(suffix) as file:
            return str(file.read(MOST_TEXT_BYTES), "utf-8", "replace")

    def find(self, suffix: str, pattern: re.Pattern[bytes]) -> bytes:
        """What `pattern` finds first in a large file, which is read no further; empty if nothing.

        A match is taken to be shorter than 4 KiB.
        """
        tail = b""
        with self._open(suffix) as file:
            while chunk := file.read(BLOCK):
                tail += chunk
                found = pattern.search(tail)
                if found is not None and found.end() < len(tail):
                    return found[0]
                tail = tail[-4096:]
        found = pattern.search(tail)
        return found[0] if found is not None else b""

    @contextmanager
    def _open(self, suffix: str) -> Iterator[Any]:
        names = [name for name in self._zip.namelist() if name.endswith(suffix)]
        if len(names) != 1:
            detail = f"{len(names)} files end in {suffix}"
            raise Unavailable("index-unreadable", url=self._url, detail=detail)
        try:
            with self._zip.open(names[0]) as file:
                yield file
        except (zipfile.BadZipFile, EOFError, RuntimeError) as problem:  # the last: encrypted
            raise Unavailable("index-unreadable", url=self._url, detail=str(problem)) from problem


@contextmanager
def _opened(url: str, headers: dict[str, str]) -> Iterator[HTTPResponse]:
    if not url.startswith(("https://", "http://")):
        raise Unavailable("index-unreadable", url=url, detail="neither http nor https")
    request = urllib.request.Request(url, headers={"User-Agent": "danlu", **headers})  # noqa: S310 - as checked
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:  # noqa: S310 - as checked
            yield reply
    except (OSError, HTTPException) as problem:
        if isinstance(problem, urllib.error.HTTPError):
            problem.close()  # it holds the reply
        raise Unavailable("index-unreadable", url=url, detail=str(problem)) from problem
