"""What the program of a notebook offers in its endpoints' directory: sockets, and small files.

The directory is the program's own. Whatever it puts there, a link to a socket of the machine's
above all, must lead the server nowhere else: no link is followed on the way from the task's
directory.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from danlu.model.errors import Missing, Unavailable
from danlu.node import linux, places
from danlu.node.directory import json_in
from danlu.ports import task_directory as files
from danlu.ports.engine import ENDPOINT_NAME


def connect(directory: Path | None, name: str) -> socket.socket:
    """A connection to the socket `name` of the task in `directory`."""
    try:
        found = None if directory is None else _opened(directory, name)
    except OSError:
        found = None
    if found is None:
        raise Missing("endpoint-missing", name=name)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        made.setblocking(False)
        # By the descriptor: the path may be longer than a socket's may be, or be changed meanwhile.
        made.connect(f"/proc/self/fd/{found}")
    except BlockingIOError as error:
        made.close()
        raise Unavailable("endpoint-busy", name=name) from error
    except OSError as error:
        made.close()
        raise Missing("endpoint-missing", name=name) from error
    finally:
        os.close(found)
    return made


def said(directory: Path, name: str) -> Mapping[str, object] | None:
    """The JSON object that the program published under `name`."""
    with suppress(OSError):
        found = _opened(directory, name, kind=stat.S_IFREG)
        try:
            readable = os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            os.close(found)
        try:
            return json_in(readable)
        finally:
            os.close(readable)
    return None


def ready(directory: str) -> bool:
    """Whether the program says that its endpoints answer."""
    return os.path.lexists(f"{directory}/{places.ENDPOINTS}/{files.READY}")


def _opened(directory: Path, name: str, kind: int = stat.S_IFSOCK) -> int:
    """A descriptor that stands for what lies there, of this kind of file; OSError otherwise."""
    if not ENDPOINT_NAME.fullmatch(name):
        raise FileNotFoundError(name)
    top = os.open(directory, os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        found = linux.open_plain(f"{places.ENDPOINTS}/{name}", top)
    finally:
        os.close(top)
    if stat.S_IFMT(os.fstat(found).st_mode) != kind:
        os.close(found)
        raise FileNotFoundError(name)
    return found
