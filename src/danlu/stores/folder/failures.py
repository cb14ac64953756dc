"""What goes wrong on a disk, in the platform's words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from danlu.model.errors import EngineError, PlatformError, Unavailable
from danlu.stores import disk


@contextmanager
def of_disk(directory: Path) -> Iterator[None]:
    """Turn an OSError of the block into Refused (507, the disk is full) or Unavailable."""
    try:
        yield
    except OSError as problem:
        raise from_os(problem, directory) from problem


def from_os(problem: OSError, directory: Path) -> PlatformError:
    """The error for a caller that stands for `problem`, met below `directory`."""
    detail = problem.strerror or type(problem).__name__
    if problem.errno in disk.FULL:
        return disk.full(directory, detail)
    return Unavailable("store-failed", path=str(directory), detail=detail)


def damaged(bucket: str, key: str, detail: str) -> EngineError:
    """Trying again does not help: the content is not what the index says."""
    return EngineError("object-damaged", bucket=bucket, key=key, detail=detail)
