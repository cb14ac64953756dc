"""Files of the data directory that faces publish: a client's way to the server, the door's key."""

from __future__ import annotations

import os
from pathlib import Path


def publish(path: Path, data: bytes) -> None:
    """Write a file for its owner only: whole and on disk, or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(draft, flags, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    draft.replace(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
