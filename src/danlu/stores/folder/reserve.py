"""Space kept back, so that deleting works on a full disk: the index has to grow a little first."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

BYTES = 256 << 10
BATCH = 16
"""Keys whose deletion fits into the reserve, wherever in the index they are."""


class Reserve:
    """A file in the bucket's directory that is worth nothing but its size."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "reserve"

    def fill(self) -> None:
        """Take the space, where there is enough."""
        with suppress(OSError):
            descriptor = os.open(
                self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
            try:
                if os.fstat(descriptor).st_size < BYTES:
                    os.posix_fallocate(descriptor, 0, BYTES)
            finally:
                os.close(descriptor)

    def release(self) -> None:
        """Give the space to whoever asks first."""
        with suppress(OSError):
            os.truncate(self._path, 0)
