"""Reading a file that its program may still be writing to."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from danlu.node.stored import State, state_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class Unsteady(Exception):
    """A file changed while it was read; nothing of it was stored."""


class Put(NamedTuple):
    """A file that was stored: the state in which it was read, and its digest."""

    state: State
    sha256: str


class SteadyFile(io.RawIOBase):
    """A file that refuses to end if it changed while it was read, so that no half of it is ever
    published. What a program wrote through a memory map is put on disk first: only then does
    its next change show in the file's times.
    """

    def __init__(self, path: Path, *, last: bool) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        if not last:
            with contextlib.suppress(OSError):
                os.fsync(self._descriptor)
        self.state = state_of(os.fstat(self._descriptor))

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = os.readv(self._descriptor, [buffer])
        if count == 0:
            self.check()
        return count

    def check(self) -> None:
        """Raise Unsteady if the file is not as it was."""
        if state_of(os.fstat(self._descriptor)) != self.state:
            raise Unsteady

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()
