"""What a transfer notes down so that it can go on after it was killed.

One file a transfer, locked as long as the transfer lives: the kernel drops the lock with the
process, however that ends.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any


class Journal:
    """A file that is kept for one transfer. `said` is what an earlier run noted."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.said: dict[str, Any] = {}
        self._descriptor = taken(path, 0o600)
        if self._descriptor is None:
            return
        try:
            read = json.loads(os.pread(self._descriptor, 1 << 20, 0))
        except ValueError:
            read = None
        if isinstance(read, dict):
            self.said = read

    @property
    def ours(self) -> bool:
        """Whether nobody else has it: another transfer to the same place may be under way."""
        return self._descriptor is not None

    def note(self, said: Mapping[str, Any]) -> None:
        """Note something in place of what was noted."""
        self.said = dict(said)
        if self._descriptor is not None:
            data = json.dumps(self.said).encode()
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, data, 0)

    def done(self) -> None:
        """Nothing is left to go on with."""
        if self._descriptor is not None:
            os.unlink(self.path)
        self.close()

    def close(self) -> None:
        """Let it be; what it says stays."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def of_upload(url: str, bucket: str, key: str, path: str) -> Journal:
    """The journal of a file's upload, in the user's state directory."""
    home = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(home):
        home = os.path.join(os.path.expanduser("~"), ".local", "state")
    directory = os.path.join(home, "danlu", "uploads")
    os.makedirs(directory, mode=0o700, exist_ok=True)
    named = f"{url}\0{bucket}\0{key}\0{path}".encode("utf-8", "surrogateescape")
    return Journal(os.path.join(directory, f"{hashlib.sha256(named).hexdigest()[:32]}.json"))


def taken(path: str, mode: int) -> int | None:
    """A descriptor of a file, with its lock; None where somebody else has it."""
    import fcntl

    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return None
        try:
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)  # whoever had it has just removed it
