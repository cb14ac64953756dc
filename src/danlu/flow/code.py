"""code: take an archive of a code directory from a client, and keep it by its content.

`code/<digest>/<name>/<path>` holds the files and `code/<digest>/.complete/<name>`, written last,
says that all of them are there. The archive comes from strangers: it is read as a stream, every
count is bounded before memory or disk is spent on it, and no path of it is ever one of ours.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import tempfile
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import IO, BinaryIO, cast

from danlu.model import tar
from danlu.model.code import (
    EXECUTABLE,
    MODE,
    CodeFile,
    CodeLimits,
    check_name,
    check_path,
    check_tree,
    digest,
    is_digest,
    printable,
    target,
)
from danlu.model.errors import Invalid, Missing, Refused, Unavailable
from danlu.model.tar import BadArchive, Header, Kind
from danlu.model.url import ObjectUrl
from danlu.ports.objects import ObjectStore

CHUNK = 256 << 10
SPOOL_MEMORY = 4 << 20
"""Content up to this many bytes waits in memory, more in an unnamed temporary file."""
WHOLE = 1 << 20
"""Files up to this many bytes are handed to the store as one piece."""
WRITERS = 8

MOST_ENTRIES = 100_000
"""Files, directories and links that are counted, so that a refusal can name the exact number."""
MOST_TIMES = 8
"""As many times the limit of bytes are counted for the same reason."""
MOST_RATIO = 200
RATIO_FROM = 4 << 20
MOST_HEADER = 64 << 10
"""Bytes of one extended header."""
MOST_TRAIL = 1 << 20
"""Bytes that may follow the end mark: programs fill up to a block of theirs."""


@dataclass(frozen=True, slots=True)
class CodeStored:
    """A code directory that is complete in the object store. `size` is in bytes."""

    url: ObjectUrl
    digest: str
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file of the archive and where its content waits."""

    file: CodeFile
    offset: int


def stored(objects: ObjectStore, bucket: str, digest: str, name: str) -> ObjectUrl | None:
    """Where the code directory `name` with this content lies, or None if it is not complete.

    What was stored and is no longer whole, because somebody deleted a part, does not count.
    """
    check_name(name)
    if not is_digest(digest):
        return None
    try:
        said = objects.head(bucket, _marker(digest, name)).metadata
    except Missing:
        return None
    url = ObjectUrl(bucket, f"code/{digest}/{name}/")
    files = size = 0
    for info in objects.walk(bucket, url.key):
        files += 1
        size += info.size
    whole = (str(files), str(size)) == (said.get("files"), said.get("bytes"))
    return url if whole else None


def store_archive(
    objects: ObjectStore,
    bucket: str,
    archive: BinaryIO,
    name: str,
    limits: CodeLimits | None = None,
) -> CodeStored:
    """Store the files of a tar stream (plain or gzipped) as the code directory `name`.

    Raises Invalid, naming the file, for anything but plain files, directories and links to files
    of the archive, and with exact figures above `limits`. Content that is complete already is
    not written again.
    """
    check_name(name)
    with tempfile.SpooledTemporaryFile(SPOOL_MEMORY) as spool:
        try:
            entries = _Unpacking(archive, spool, limits or CodeLimits()).run()
        except BadArchive as problem:
            raise Invalid("code-archive", detail=str(problem)) from None
        except OSError as problem:
            if problem.errno not in {errno.ENOSPC, errno.EDQUOT}:
                raise  # of the client's connection
            raise Refused(
                "spool-full",
                http=507,
                path=tempfile.gettempdir(),
                detail=problem.strerror,
                needed_bytes=(limits or CodeLimits()).size,
            ) from problem
        files = [entry.file for entry in entries]
        named = digest(files)
        size = sum(file.size for file in files)
        url = stored(objects, bucket, named, name)
        if url is None:
            url = ObjectUrl(bucket, f"code/{named}/{name}/")
            _put_all(objects, url, entries, spool)
            said = {"files": str(len(files)), "bytes": str(size)}
            marker = json.dumps({"digest": named, "name": name, **said}).encode()
            objects.put(bucket, _marker(named, name), marker, metadata=said)
    return CodeStored(url, named, len(files), size)


def _marker(digest: str, name: str) -> str:
    return f"code/{digest}/.complete/{name}"


def _put_all(objects: ObjectStore, url: ObjectUrl, entries: list[_Entry], spool: IO[bytes]) -> None:
    lock = threading.Lock()

    def put(entry: _Entry) -> None:
        place = url.child(entry.file.path)
        part = _Part(spool, lock, entry.offset, entry.file.size)
        content = part.read() if entry.file.size <= WHOLE else cast("BinaryIO", part)
        metadata = {MODE: EXECUTABLE} if entry.file.executable else {}
        objects.put(place.bucket, place.key, content, metadata=metadata)

    pool = ThreadPoolExecutor(WRITERS)
    try:
        waiting = [pool.submit(put, entry) for entry in entries]
    except RuntimeError as problem:  # the system has no thread left
        pool.shutdown(cancel_futures=True)
        raise Unavailable("busy", detail=str(problem)) from problem
    try:
        for done in waiting:
            done.result()
    finally:
        pool.shutdown(cancel_futures=True)


class _Part(io.RawIOBase):
    """A stretch of the spooled content, read in turns with others."""

    def __init__(self, spool: IO[bytes], lock: threading.Lock, offset: int, size: int) -> None:
        self._spool = spool
        self._lock = lock
        self._at = offset
        self._end = offset + size

    def read(self, size: int = -1, /) -> bytes:
        left = self._end - self._at
        with self._lock:
            self._spool.seek(self._at)
            data = self._spool.read(left if size < 0 else min(size, left))
        self._at += len(data)
        return data


class _Unpacking:
    """The files of an archive, their content in `spool`. Nothing else is made anywhere."""

    def __init__(self, archive: BinaryIO, spool: IO[bytes], limits: CodeLimits) -> None:
        self._stream = _Stream(archive)
        self._spool = spool
        self._limits = limits
        self._entries: dict[str, _Entry] = {}
        self._links: dict[str, str] = {}
        self._files = 0
        self._size = 0

    def run(self) -> list[_Entry]:
        """Read everything. Raises Invalid, BadArchive, and OSError of archive or spool."""
        for count, header in enumerate(_headers(self._stream), 1):
            if count > MOST_ENTRIES:
                self._limits.check(f"more than {MOST_ENTRIES}", self._size)
            self._take(header)
        self._stream.finish()
        self._limits.check(self._files, self._size)
        for path in self._links:
            self._add(path, self._entries[self._linked(path)])
        self._limits.check(self._files, self._size)
        if not self._entries:
            raise BadArchive("it holds no file")
        check_tree(self._entries)
        return [self._entries[path] for path in sorted(self._entries, key=str.encode)]

    def _take(self, header: Header) -> None:
        path = _relative(header.path)
        if path or header.kind is not Kind.DIRECTORY:  # `./` is the code directory itself
            check_path(path)
        if header.kind is Kind.OTHER:
            raise Invalid("code-special", path=path, kind=header.other)
        if header.size and header.kind is not Kind.FILE:
            raise BadArchive("a directory or link in it has content")
        if header.kind is Kind.DIRECTORY:
            return
        if path in self._entries or path in self._links:
            raise Invalid("code-path-twice", path=path)
        if header.kind is Kind.FILE:
            self._count(header.size)
            self._entries[path] = self._content(path, header)
        elif header.kind is Kind.LINK:
            self._count(0)
            self._links[path] = header.link.decode("utf-8", "surrogateescape")
        elif header.kind is Kind.SAME:
            link = _relative(header.link)
            first = self._entries.get(link)
            if first is None:
                raise Invalid("code-link", path=path, target=printable(link))
            self._count(first.file.size)
            self._entries[path] = replace(first, file=first.file.at(path))

    def _count(self, size: int) -> None:
        self._files += 1
        self._size += size
        if self._size > self._limits.size * MOST_TIMES:
            self._limits.check(0, f"more than {self._limits.size * MOST_TIMES}")

    def _content(self, path: str, header: Header) -> _Entry:
        """Spool a file; above the limits it is only counted."""
        offset = self._spool.tell()
        digest = hashlib.sha256()
        kept = self._files <= self._limits.files and self._size <= self._limits.size
        for chunk in self._stream.content(header.size):
            if kept:
                digest.update(chunk)
                self._spool.write(chunk)
        return _Entry(
            CodeFile(path, header.size, digest.hexdigest(), executable=header.executable), offset
        )

    def _linked(self, path: str) -> str:
        """The file that a symbolic link leads to, over other links where need be."""
        at: str | None = path
        for _ in range(len(self._links) + 1):
            link = self._links.get(at or "")
            if link is None:
                break
            at = target(at or "", link)
        if at is None or at not in self._entries:
            raise Invalid("code-link", path=path, target=printable(self._links[path]))
        return at

    def _add(self, path: str, entry: _Entry) -> None:
        self._size += entry.file.size
        self._entries[path] = replace(entry, file=entry.file.at(path))


def _relative(raw: bytes) -> str:
    """A path as written in an archive, without the `./` and the `//` that programs put in.

    An absolute path and `..` stay as they are: `check_path` refuses them.
    """
    path = raw.decode("utf-8", "surrogateescape")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return "/".join(["", *parts] if path.startswith("/") else parts)


def _headers(stream: _Stream) -> Iterator[Header]:
    """Every entry, with what extended headers say about it. The caller consumes the content."""
    said: dict[bytes, bytes] = {}
    while (header := tar.decode(stream.exactly(tar.BLOCK))) is not None:
        if header.kind in _EXTENDED:
            if header.size > MOST_HEADER:
                raise BadArchive(f"a header of {header.size} bytes is too long")
            data = stream.exactly(header.size)
            stream.exactly(tar.padding(header.size))
            said |= _extended(header.kind, data)
            continue
        if any(name.startswith(b"GNU.sparse.") for name in said):
            header.kind, header.other = Kind.OTHER, "a sparse file"
        size = said.get(b"size", b"%d" % header.size)
        if not size.isdigit() or len(size) > 18:
            raise BadArchive("a pax header gives a size that is not a number")
        header.path = said.get(b"path", header.path)
        header.link = said.get(b"linkpath", header.link)
        header.size = int(size)
        yield header
        said = {}


_EXTENDED = frozenset({Kind.PAX, Kind.PAX_GLOBAL, Kind.LONG_NAME, Kind.LONG_LINK})


def _extended(kind: Kind, data: bytes) -> dict[bytes, bytes]:
    if kind is Kind.LONG_NAME:
        return {b"path": data.partition(b"\0")[0]}
    if kind is Kind.LONG_LINK:
        return {b"linkpath": data.partition(b"\0")[0]}
    found = tar.decode_pax(data)
    if kind is Kind.PAX_GLOBAL:
        if found.keys() & {b"path", b"linkpath", b"size"}:
            raise BadArchive("a header for all files names a path or a size")
        return {}
    return found


class _Stream:
    """Bytes of a tar stream, unpacked where it is gzipped. Memory is bounded by the chunk."""

    def __init__(self, archive: BinaryIO) -> None:
        self._archive = archive
        self._buffer = bytearray(archive.read(CHUNK))
        self._gzip: _Gunzip | None = None
        for magic, name in _COMPRESSED.items():
            if self._buffer.startswith(magic):
                raise BadArchive(f"it is compressed with {name}")
        if self._buffer.startswith(b"\x1f\x8b"):
            self._gzip = _Gunzip(archive, bytes(self._buffer))
            self._buffer.clear()

    def exactly(self, size: int) -> bytes:
        """The next `size` (few) bytes."""
        while len(self._buffer) < size:
            more = self._more()
            if not more:
                raise BadArchive("it is cut off")
            self._buffer += more
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def content(self, size: int) -> Iterator[bytes]:
        """The next `size` bytes in chunks, and the padding behind them, which is dropped."""
        left = size
        while left:
            data = self.exactly(min(left, CHUNK))
            left -= len(data)
            yield data
        self.exactly(tar.padding(size))

    def finish(self) -> None:
        """Read what follows the end mark: a little, and only zeros."""
        left = MOST_TRAIL
        data = bytes(self._buffer)
        while data:
            left -= len(data)
            if left < 0 or any(data):
                raise BadArchive("something follows its end")
            data = self._more()

    def _more(self) -> bytes:
        return self._gzip.read() if self._gzip else self._archive.read(CHUNK)


_COMPRESSED = {
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}


class _Gunzip:
    """Unpacks gzip, one or several members, at most a chunk at a time."""

    def __init__(self, archive: BinaryIO, begun: bytes) -> None:
        self._archive = archive
        self._input = begun
        self._taken = len(begun)
        self._given = 0
        self._member = zlib.decompressobj(31)

    def read(self) -> bytes:
        """Some bytes, or none at the end."""
        while True:
            if self._member.eof and not self._next_member():
                return b""
            if not self._input and not self._fill():
                raise BadArchive("it is cut off")
            try:
                data = self._member.decompress(self._input, CHUNK)
            except zlib.error as problem:
                raise BadArchive(f"its compression is damaged ({problem})") from None
            self._input = self._member.unused_data or self._member.unconsumed_tail
            self._given += len(data)
            if self._given > RATIO_FROM and self._given > MOST_RATIO * self._taken:
                raise BadArchive(f"it expands to more than {MOST_RATIO} times its size")
            if data:
                return data

    def _next_member(self) -> bool:
        self._input = self._input.lstrip(b"\0")  # some programs fill up their last block
        while not self._input and self._fill():
            self._input = self._input.lstrip(b"\0")
        self._member = zlib.decompressobj(31)
        return bool(self._input)

    def _fill(self) -> bool:
        self._input = self._archive.read(CHUNK)
        self._taken += len(self._input)
        return bool(self._input)
