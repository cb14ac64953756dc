"""Directories that have an owner each, and whether another one lies above or below them. Pure."""

from __future__ import annotations

import bisect


class Prefixes:
    """Paths by owner. Asking costs by the depth of a path, not by how many there are."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}
        self._paths: list[str] = []

    def add(self, path: str, owner: str) -> None:
        """Give a directory to `owner`; the first one keeps it."""
        path = _directory(path)
        if path not in self._owners:
            self._owners[path] = owner
            bisect.insort(self._paths, path)

    def remove(self, path: str, owner: str) -> None:
        """Take a directory back from `owner`."""
        path = _directory(path)
        if self._owners.get(path) == owner:
            del self._owners[path]
            del self._paths[bisect.bisect_left(self._paths, path)]

    def owner(self, path: str) -> str | None:
        """Who has this directory, one above it, or one below it."""
        path = _directory(path)
        above = path
        while above:
            if above in self._owners:
                return self._owners[above]
            above = above[: above.rfind("/", 0, -1) + 1]
        at = bisect.bisect_left(self._paths, path)
        if at < len(self._paths) and self._paths[at].startswith(path):
            return self._owners[self._paths[at]]
        return None


def _directory(path: str) -> str:
    return path.rstrip("/") + "/"
