"""How often one may try: a window of failures for each name, bounded in memory."""

from __future__ import annotations

from collections import OrderedDict, deque

from danlu.model.errors import Refused
from danlu.ports.world import Clock

MOST_NAMES = 10_000


class Limiter:
    """At most `tries` failures in `window_s` for each name (an account, an address)."""

    def __init__(self, clock: Clock, tries: int, window_s: float) -> None:
        self._clock = clock
        self._tries = tries
        self._window_s = window_s
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def check(self, name: str) -> None:
        """Raise Refused (429) where `name` has failed too often."""
        now = self._clock.monotonic()
        times = self._failures.get(name)
        if times is None:
            return
        while times and now - times[0] >= self._window_s:
            times.popleft()
        if not times:
            del self._failures[name]
        elif len(times) >= self._tries:
            wait_s = max(1, round(self._window_s - (now - times[0])))
            raise Refused("too-many-tries", http=429, wait_s=wait_s)

    def failed(self, name: str) -> None:
        """Note a failure. The oldest names are forgotten where there are too many."""
        times = self._failures.setdefault(name, deque(maxlen=self._tries))
        times.append(self._clock.monotonic())
        self._failures.move_to_end(name)
        while len(self._failures) > MOST_NAMES:
            self._failures.popitem(last=False)

    def succeeded(self, name: str) -> None:
        """Forget the failures of a name that has shown who it is."""
        self._failures.pop(name, None)
