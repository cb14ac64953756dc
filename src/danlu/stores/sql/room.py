"""Room for the database on its disk, and the part of it that is kept for a bad day.

When the disk is full, nobody can be told why a job ended unless that can be written down. So a
reserve is held, and given back bit by bit for what ends or stops jobs, while new work is refused.
Bit by bit, because whoever filled the disk may still be at it and takes what is free.
"""

from __future__ import annotations

import logging
from pathlib import Path

from danlu.model.errors import PlatformError, Refused
from danlu.stores import disk
from danlu.stores.reserve import Reserve

log = logging.getLogger(__name__)

SUFFIX = ".reserve"
PART_OF_DISK = 16
"""A small disk spares this part of itself."""
BITS = 16
"""In so many steps the reserve is given back."""


class Room:
    """The room of one database file. Only one thread at a time uses it."""

    def __init__(self, path: Path, reserve_bytes: int) -> None:
        self._path = path
        self._wanted = reserve_bytes
        self._reserve = Reserve(path.with_name(path.name + SUFFIX), 0)

    def restore(self) -> PlatformError | None:
        """Take the reserve, or as much of it as was given back. Where the disk has not the room
        for it and a little more: the error that says how much has to be freed.
        """
        try:
            free = disk.free_bytes(self._path.parent)
            self._reserve.size = min(
                self._wanted, disk.size_bytes(self._path.parent) // PART_OF_DISK
            )
        except OSError as error:
            log.warning("how full the disk of %s is cannot be told: %s", self._path, error)
            return None
        enough = free + self._reserve.held() >= self._needed()
        if enough and self._reserve.fill():
            return None
        return self.shortage("No space left on device")

    def spend(self) -> bool:
        """Give a bit of the reserve back; False if there is nothing left of it."""
        return self._reserve.spend(max(disk.SPARE_BYTES, self._reserve.size // BITS))

    def shortage(self, detail: str) -> Refused:
        """The error for a write that found no room."""
        return disk.full(self._path, detail, self._needed())

    def _needed(self) -> int:
        return self._reserve.size + max(disk.SPARE_BYTES, self._reserve.size // 4)
