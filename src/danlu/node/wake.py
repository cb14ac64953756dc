"""One byte to the server's socket: look again. Lost ones are harmless, it also looks by itself.

A socket's path may be 107 bytes long, a data directory's much more. Both ends therefore go
through a descriptor of the directory, which has a short name in /proc.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def send(path: str) -> None:
    """Tell whoever listens at `path`; nothing if nobody does."""
    if not path:
        return
    with (
        suppress(OSError),
        _address(path) as address,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
    ):
        sender.setblocking(False)
        sender.sendto(b"\n", address)


def listen(path: str) -> socket.socket:
    """The socket that receives what is sent to `path`; an earlier one there is replaced."""
    Path(path).unlink(missing_ok=True)
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with _address(path) as address:
        receiver.bind(address)
    return receiver


@contextmanager
def _address(path: str) -> Iterator[str]:
    directory, _, name = path.rpartition("/")
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)
