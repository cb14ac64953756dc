"""The way to a socket that a task's program has made: `lab.sock`, `ssh.sock`.

What lies in a task's directory is the user's. A name there may be a link to another socket of this
machine, such as the container runtime's, and the server may do more than the user: the socket is
therefore opened without following a link, looked at, and connected to by its descriptor, which
also lifts the 107 bytes that the path of a unix socket may have.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import time
from pathlib import Path

FULL_S = 0.01
"""How long to wait before a queue of connections that is full is tried again."""


def connect(path: str | Path, timeout_s: float) -> socket.socket:
    """A connection to the unix socket at `path`, not blocking.

    OSError where there is none, or none that answers within `timeout_s`.
    """
    ends = time.monotonic() + timeout_s
    while True:
        try:
            return connect_once(path)
        except BlockingIOError:
            if time.monotonic() > ends:
                raise TimeoutError(f"{path}: its queue of connections is full") from None
            time.sleep(FULL_S)


def connect_once(path: str | Path) -> socket.socket:
    """The same without a wait: BlockingIOError where the socket's queue is full."""
    held = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    with contextlib.ExitStack() as opened:
        opened.callback(os.close, held)
        if not stat.S_ISSOCK(os.fstat(held).st_mode):
            raise FileNotFoundError(f"{path} is not a socket")
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        opened.callback(made.close)
        made.setblocking(False)
        made.connect(f"/proc/self/fd/{held}")
        os.close(held)
        opened.pop_all()
    return made
