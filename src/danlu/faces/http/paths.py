"""Which route a path belongs to: looked up part by part, whatever the number of routes.

A fixed part is preferred to a parameter. Paths are matched as they were sent: an escaped slash
belongs to its part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

R = TypeVar("R")

PARAMETER = ""


class _Node(Generic[R]):
    def __init__(self) -> None:
        self.below: dict[str, _Node[R]] = {}
        self.routes: dict[str, tuple[R, tuple[str, ...]]] = {}


class Paths(Generic[R]):
    """Routes by path and method."""

    def __init__(self) -> None:
        self._root: _Node[R] = _Node()

    def add(self, method: str, path: str, route: R) -> None:
        """Add `/fixed/{parameter}/…`; ValueError where the path has that method already."""
        node = self._root
        names: list[str] = []
        for part in path.split("/")[1:]:
            if part.startswith("{"):
                names.append(part[1:-1])
                part = PARAMETER  # noqa: PLW2901 -- the key of any part
            node = node.below.setdefault(part, _Node())
        if method in node.routes:
            raise ValueError(f"{method} {path} is registered twice")
        node.routes[method] = (route, tuple(names))

    def find(self, method: str, path: str) -> tuple[R, dict[str, str]] | None:
        """The route of a path as it was sent, and its parameters; None if there is none."""
        found = _walk(self._root, path.split("/"), 1, ())
        if found is None or method not in found[0].routes:
            return None
        route, names = found[0].routes[method]
        return route, dict(zip(names, found[1], strict=True))

    def methods(self, path: str) -> list[str]:
        """What a path takes; empty where there is no such path."""
        found = _walk(self._root, path.split("/"), 1, ())
        return sorted(found[0].routes) if found else []


def _walk(
    node: _Node[R], parts: Sequence[str], at: int, values: tuple[str, ...]
) -> tuple[_Node[R], tuple[str, ...]] | None:
    if at == len(parts):
        return (node, values) if node.routes else None
    part = parts[at]
    if not part:
        return None
    below = node.below.get(part)
    if below is not None:
        found = _walk(below, parts, at + 1, values)
        if found is not None:
            return found
    below = node.below.get(PARAMETER)
    return _walk(below, parts, at + 1, (*values, part)) if below is not None else None
