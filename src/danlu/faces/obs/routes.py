"""Registration: what a request wants is its method, its level, and the sub-resource in its query.

A parameter that the operation does not declare is refused as not implemented: it may name a
sub-resource, and answering as if it were not there would be a wrong success.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from danlu.faces.http.reply import Answer
from danlu.faces.obs.request import Request
from danlu.model.errors import Invalid, Refused

if TYPE_CHECKING:
    from danlu.faces.obs.door import Door

Handler = Callable[["Door", Request], Awaitable[Answer]]
Level = Literal["service", "bucket", "object"]

SIGNING = frozenset({"AWSAccessKeyId", "AccessKeyId", "Expires", "Signature", "x-id"})
"""Parameters that say who asks, and the name that newer SDKs give their call."""
SIGNING_PREFIXES = ("X-Amz-", "x-amz-security-token", "x-obs-security-token")

VERSION = "versionId"


@dataclass(frozen=True, slots=True)
class Operation:
    """What a route declares. `action` is the name that OBS' policies have for it."""

    handler: Handler
    action: str
    takes: frozenset[str]


class Operations:
    """The operations of the gateway, declared beside their handlers."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Level, str], Operation] = {}
        self._selectors: set[str] = set()

    def __call__(
        self, method: str, level: Level, selector: str = "", *, action: str, takes: str = ""
    ) -> Callable[[Handler], Handler]:
        """Declare the function below for requests with the sub-resource `selector` (or none).

        `takes` are names of further parameters, with spaces between. ValueError where an action
        is missing or the place is taken.
        """
        place = (method, level, selector)
        if not action or place in self._found:
            raise ValueError(f"{place} declares no action, or is there already")
        self._selectors.update(filter(None, [selector]))

        def declare(handler: Handler) -> Handler:
            names = frozenset(takes.split())
            self._found[place] = Operation(handler, action, names)
            return handler

        return declare

    def __iter__(self) -> Iterator[tuple[tuple[str, Level, str], Operation]]:
        """Every operation, by level, sub-resource and method."""
        return iter(sorted(self._found.items(), key=lambda item: (item[0][1:], item[0][0])))

    def find(self, request: Request) -> Operation:
        """The operation that a request wants; Refused (501, 405) where there is none."""
        level: Level = "object" if request.key else "bucket" if request.bucket else "service"
        names = [name for name in request.query if not _signs(name)]
        chosen = [name for name in names if name in self._selectors]
        if len(chosen) > 1:
            raise Invalid("obs-query", detail=f"'{chosen[0]}' and '{chosen[1]}' exclude each other")
        selector = chosen[0] if chosen else ""
        found = self._found.get((request.method, level, selector))
        extra = found.takes if found else frozenset[str]()
        for name in names:
            if name != selector and name not in extra and (found or name not in self._all()):
                raise Refused("obs-not-implemented", http=501, what=f"?{name}")
        if found is None:
            raise self._refusal(request.method, level, selector)
        return found

    def _refusal(self, method: str, level: Level, selector: str) -> Refused:
        others = {known for known, at, which in self._found if (at, which) == (level, selector)}
        writes = bool(selector) or (method, level) == ("POST", "bucket")
        if not others or (writes and method in ("PUT", "POST", "DELETE")):
            what = f"{method} ?{selector}" if selector else method
            return Refused("obs-not-implemented", http=501, what=f"{what} ({level})")
        return Refused("obs-method", http=405, method=method, allowed=", ".join(sorted(others)))

    def _all(self) -> set[str]:
        return set().union(*(one.takes for one in self._found.values()))


def _signs(name: str) -> bool:
    return name in SIGNING or name.startswith(SIGNING_PREFIXES)


operations = Operations()
