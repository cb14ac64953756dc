"""A directory of this machine as a shelf: read by names that are not trusted."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack

from danlu.model.errors import Missing

CHUNK = 1 << 20
_LOOK = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class FolderShelf:
    """Files below a directory. No link is followed, and nothing outside is opened."""

    def __init__(self, root: str) -> None:
        self._root = root

    def read(self, name: str) -> Iterator[bytes]:
        """The content of a plain file, in chunks; Missing where there is none."""
        descriptor = self._open(name)
        try:
            while chunk := os.read(descriptor, CHUNK):
                yield chunk
        finally:
            os.close(descriptor)

    def _open(self, name: str) -> int:
        parts = name.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise Missing("path-missing", field="name", value=name)
        try:
            with ExitStack() as opened:
                at = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                opened.callback(os.close, at)
                for part in parts[:-1]:
                    at = os.open(part, _LOOK | os.O_DIRECTORY, dir_fd=at)
                    opened.callback(os.close, at)
                found = os.open(parts[-1], _LOOK, dir_fd=at)
        except OSError as error:
            raise Missing("path-missing", field="name", value=name) from error
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise Missing("path-missing", field="name", value=name)
        return found
