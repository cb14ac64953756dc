"""`mox.file.File`: objects as Python's own kinds of files.

What is written to an object lies in memory, and from 8 MiB on in a temporary file, until it is
closed: then it is stored, whole, under its name. What a `with` block wrote before it ended with
an error is not stored, so that nothing half-written can be taken for the whole.
"""

from __future__ import annotations

import atexit
import hashlib
import io
import itertools
import os
import random
import tempfile
import time
import weakref
from collections.abc import Iterator
from types import TracebackType
from typing import IO, Any, Literal, cast

from moxing.framework.file import _objects
from moxing.framework.file._connection import CHUNK, StorageRefused
from moxing.framework.file._place import AnyPath, Place, where
from moxing.framework.file._upload import IN_MEMORY, store
from moxing.framework.file._words import say, tell

MODES = ("r", "rb", "w", "wb", "a", "ab")
READ_AHEAD = 1 << 20
AGAIN_S = 0.05
Kind = Literal["w", "a"]

_open = {"local": open}
"""Python's own: `shift` replaces the built-in one."""
_unclosed: weakref.WeakSet[IO[Any]] = weakref.WeakSet()


def File(  # noqa: N802 - the name that scripts know
    url: AnyPath,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
) -> IO[Any]:
    """Open an object or local file; modes r, rb, w, wb, a and ab. Text is UTF-8 unless it is said.

    FileNotFoundError, IsADirectoryError, PermissionError and other OSErrors as `open` has them.
    """
    plain = mode.replace("t", "")
    if plain not in MODES:
        raise ValueError(say("bad-mode", mode=mode, modes=", ".join(MODES)))
    binary = "b" in plain
    if not binary:
        encoding = encoding or "utf-8"
    found = where(url)
    if isinstance(found, str):
        if os.path.isdir(found):
            raise IsADirectoryError(say("open-directory", url=found))
        return _open["local"](found, plain, buffering, encoding, errors, newline)
    if plain.startswith("r"):
        stream = io.BufferedReader(Reader(found), READ_AHEAD)
        if binary:
            return stream
        return io.TextIOWrapper(stream, encoding, errors, newline)
    writer = Writer(found, cast("Kind", plain[0]))
    made: IO[Any] = (
        cast("IO[Any]", writer) if binary else _TextWriter(writer, encoding, errors, newline)
    )
    _unclosed.add(made)
    return made


@atexit.register
def _close_all() -> None:
    """A script that does not close its files ends like one that does."""
    for stream in list(_unclosed):
        stream.close()


class Reader(io.RawIOBase):
    """One version of an object, read where the reader is."""

    def __init__(self, place: Place) -> None:
        found = _objects.head(place) if place.key else None
        if found is None:
            if _objects.is_directory(place):
                raise IsADirectoryError(say("open-directory", url=place))
            raise FileNotFoundError(say("missing", url=place))
        self._info = found
        self._at = 0
        self._chunks: Iterator[bytes] = iter(())
        self._rest = b""
        self._pid = 0
        self.name = str(place)
        self.mode = "rb"

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._info.size}[whence]
        target = start + offset
        if target < 0:
            raise ValueError(f"negative seek position {target}")
        if target != self._at:
            self._at = target
            self._pid = 0
        return target

    def readinto(self, buffer: Any) -> int:
        wanted = len(buffer)
        if not wanted or self._at >= self._info.size:
            return 0
        if self._pid != os.getpid():
            # After a seek, or in a process of its own: two must not read from one connection.
            self._pid = os.getpid()
            self._rest = b""
            self._chunks = _objects.Reading(self._info, self._at).chunks()
        data = self._rest or next(self._chunks)
        buffer[: min(wanted, len(data))] = data[:wanted]
        self._rest = data[wanted:]
        count = min(wanted, len(data))
        self._at += count
        return count

    def close(self) -> None:
        self._chunks = iter(())
        super().close()


class Writer(io.BufferedIOBase):
    """What will be an object when it is closed."""

    def __init__(self, place: Place, kind: Kind) -> None:
        super().__init__()
        if not place.key or place.key.endswith("/"):
            raise IsADirectoryError(say("open-directory", url=place))
        self._place = place
        self._kind = kind
        self._discarded = False
        found = _objects.head(place) if kind == "a" else None
        self._before = 0 if found is None else found.size
        self._spool = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - until closed
        self.name = str(place)
        self.mode = f"{kind}b"

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._kind == "w"

    def write(self, data: Any) -> int:
        self._check()
        with memoryview(data) as view:
            self._spool.write(view.cast("B"))
            return view.nbytes

    def tell(self) -> int:
        self._check()
        return self._before + self._spool.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._check()
        if self._kind == "a":
            raise io.UnsupportedOperation("seek in a file that is opened for appending")
        self._spool.seek(offset, whence)
        return self._spool.tell()

    def truncate(self, size: int | None = None) -> int:
        self._check()
        size = self._spool.tell() if size is None else size
        self._spool.truncate(size)
        return size

    def discard(self) -> None:
        """Close it without storing anything."""
        self._discarded = True
        self.close()

    def close(self) -> None:
        if self.closed:
            return
        _unclosed.discard(cast("IO[Any]", self))
        try:
            if not self._discarded:
                self._store()
        finally:
            self._spool.close()
            super().close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and self._kind == "w" and not self.closed:
            tell("not-stored", url=self._place)
            self.discard()
        self.close()

    def _check(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")

    def _store(self) -> None:
        if self._kind == "w":
            store(self._place, self._spool)
            return
        while not self._appended():
            # Somebody else has appended meanwhile: behind that, then.
            time.sleep(random.uniform(0, AGAIN_S))  # noqa: S311 - a pause is no secret

    def _appended(self) -> bool:
        """Put what is there with what was written behind it; False if somebody was faster."""
        before = _objects.head(self._place)
        digest = hashlib.md5(usedforsecurity=False)
        self._spool.seek(0)
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as whole:
            kept = () if before is None else _objects.Reading(before).chunks()
            try:
                for data in itertools.chain(kept, iter(lambda: self._spool.read(CHUNK), b"")):
                    digest.update(data)
                    whole.write(data)
                etag = None if before is None else before.etag
                store(self._place, whole, if_etag=etag, if_absent=before is None)
            except StorageRefused as refused:
                if refused.status not in (_objects.CHANGED, 404, 409):
                    raise
                # It may be our own, put by a try whose answer was lost: that must not come twice.
                found = _objects.head(self._place)
                return found is not None and found.etag == digest.hexdigest()
        return True


class _TextWriter(io.TextIOWrapper):
    """Text on its way into an object."""

    def __init__(self, writer: Writer, *options: Any) -> None:
        super().__init__(writer, *options)
        self._writer = writer

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.closed:
            self.flush()
        self._writer.__exit__(kind, error, trace)
        self.close()
