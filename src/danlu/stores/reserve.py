"""Space kept back, so that what must be written can be when the disk is full."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


class Reserve:
    """A file that is worth nothing but its size. Only one thread at a time uses it."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self.size = size
        """Bytes to hold."""

    def fill(self) -> bool:
        """Take the space; False where there is not enough of it."""
        if not self.size:
            with suppress(OSError):
                self._path.unlink()
            return True
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self._path, flags, 0o600)
        except OSError:
            return False
        try:
            held = os.fstat(descriptor).st_size
            if held < self.size:
                os.posix_fallocate(descriptor, 0, self.size)
            elif held > self.size:
                os.ftruncate(descriptor, self.size)
        except OSError:
            # A part of it may have been taken: what a full disk has left is not for us to hold.
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
            return False
        finally:
            os.close(descriptor)
        return True

    def held(self) -> int:
        """Bytes held at the moment."""
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    def spend(self, size: int) -> bool:
        """Give up to `size` bytes back to the disk; False if nothing is held any more."""
        held = self.held()
        if not held:
            return False
        try:
            os.truncate(self._path, max(0, held - size))
        except OSError:
            return False
        return True

    def release(self) -> None:
        """Give the space to whoever asks first."""
        with suppress(OSError):
            os.truncate(self._path, 0)
