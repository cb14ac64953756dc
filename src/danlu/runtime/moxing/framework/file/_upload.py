"""Contents on their way into the storage: small ones in one piece, large ones in parts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Executor, Future, ThreadPoolExecutor, wait
from typing import Any

from moxing.framework.file._connection import Body
from moxing.framework.file._objects import Upload, put
from moxing.framework.file._place import Place

IN_MEMORY = 8 << 20
"""So much of what is written to an object stays in memory."""
LARGE = 64 << 20
PART = 16 << 20
MOST_PARTS = 9_000
PARTS_AT_ONCE = 8

Progress = Callable[[int], None]


def part_bytes(size: int) -> int:
    """How large the parts of a file are: the storage takes 10,000 of them."""
    return max(PART, -(-size // MOST_PARTS))


def ignore(_: int) -> None:
    """Progress that nobody wants to see."""


def in_parts(size: int, executor: Executor | None, work: Callable[[int, int, int], Any]) -> None:
    """Have `work(number, start, length)` done for every part of `size` bytes, several at once.

    The first error is raised when no part is being worked on any more.
    """
    own = None if executor else ThreadPoolExecutor(PARTS_AT_ONCE, "moxing-part")
    used = executor or own
    length = part_bytes(size)
    starts = range(0, size, length)
    pending: list[Future[Any]] = []
    try:
        for number, start in enumerate(starts, 1):
            assert used is not None  # noqa: S101 - one of the two
            pending.append(used.submit(work, number, start, min(length, size - start)))
        wait(pending, return_when=FIRST_EXCEPTION)
    finally:
        for future in pending:
            future.cancel()
        wait(pending)
        if own is not None:
            own.shutdown()
    for future in pending:
        if not future.cancelled():
            future.result()


def send(
    place: Place,
    fd: int,
    size: int,
    executor: Executor | None = None,
    progress: Progress = ignore,
) -> None:
    """Store the first `size` bytes of an open file. FileChanged where it has fewer."""
    if size < LARGE:
        put(place, Body(fd=fd, length=size))
        progress(size)
        return
    upload = Upload.begin(place)
    etags: dict[int, str] = {}

    def part(number: int, start: int, length: int) -> None:
        etags[number] = upload.part(number, Body(fd=fd, start=start, length=length))
        progress(length)

    try:
        in_parts(size, executor, part)
        upload.complete([etags[number] for number in sorted(etags)], size)
    except BaseException:
        upload.abort()
        raise


def store(
    place: Place,
    spool: tempfile.SpooledTemporaryFile[bytes],
    *,
    if_etag: str | None = None,
    if_absent: bool = False,
) -> None:
    """Store what was collected for an object."""
    spool.seek(0, 2)
    size = spool.tell()
    spool.seek(0)
    if size <= IN_MEMORY:
        put(place, Body(spool.read()), if_etag=if_etag, if_absent=if_absent)
        return
    spool.flush()
    if if_etag is None and not if_absent:
        send(place, spool.fileno(), size)
    else:
        body = Body(fd=spool.fileno(), length=size)
        put(place, body, if_etag=if_etag, if_absent=if_absent)
