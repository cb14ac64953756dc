"""Whether a task failed because a disk was full: a cause of its own, with another remedy."""

from __future__ import annotations

import os
from pathlib import Path

from danlu.model.errors import PlatformError
from danlu.node.log_files import stretches
from danlu.ports import task_directory as files
from danlu.stores import disk

TAIL_BYTES = 16 << 10
SAYINGS = tuple(os.strerror(number).encode() for number in sorted(disk.FULL))
"""What a program prints that does not handle the error."""


def is_cause(error: BaseException) -> bool:
    """Whether an error of ours says that a disk, or a quota on it, is full."""
    if isinstance(error, PlatformError):
        return error.http == 507
    return isinstance(error, OSError) and error.errno in disk.FULL


def explains(directory: str) -> str:
    """Why a program that failed may well have met a full disk: the task's own is full now, or the
    program's last words say so. Empty where neither is the case.
    """
    if disk.is_full(Path(directory)):
        return os.strerror(min(disk.FULL))
    return next((said.decode() for said in SAYINGS if said in _last_words(directory)), "")


def _last_words(directory: str) -> bytes:
    tail = stretches(directory)
    try:
        with Path(tail[-1].path if tail else f"{directory}/{files.LOG}").open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - TAIL_BYTES))
            return log.read(TAIL_BYTES)
    except OSError:
        return b""
