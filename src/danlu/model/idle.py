"""Whether anybody needs a notebook. Pure: what was seen comes in as signals, the clock as numbers.

One timestamp cannot say it: a silent cell that computes for hours moves none, and looking at
JupyterLab moves some. So a notebook is idle when *every* signal has been quiet for the whole time.
Each alone keeps it up, and what cannot be read is not idle: it is unknown, and said so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from danlu.model.reason import Reason, ReasonCode

OFF = "off"
"""What people write for never."""

WARN_MINUTES = (10, 2)
"""So long before its end a notebook's user is warned."""


@dataclass(frozen=True, slots=True)
class Idle:
    """What a user wants of the idle stop: nothing said (the server's default counts), `off`, or
    after `after_s` seconds without activity. These are three things.
    """

    after_s: int | None = None
    off: bool = False

    @property
    def unset(self) -> bool:
        """Whether nothing was said."""
        return self.after_s is None and not self.off

    def effective_s(self, default_s: int, most_s: int, *, leased: bool) -> int | None:
        """After how many seconds it is stopped; None = never. `default_s` and `most_s` are the
        server's (0 = none); who has a lease and says nothing else is left to the lease.
        """
        if self.off:
            wanted = None
        elif self.after_s is not None:
            wanted = self.after_s
        else:
            wanted = None if leased or not default_s else default_s
        if not most_s:
            return wanted
        return most_s if wanted is None else min(wanted, most_s)


@dataclass(frozen=True, slots=True)
class Signal:
    """One kind of activity: when it was last seen (UTC ms; None = it cannot be told), and what it
    was. One that `goes_on` counts until `now`, however silent it is.
    """

    name: str
    active_at: int | None
    detail: str = ""
    goes_on: bool = False

    def last(self, now: int) -> int | None:
        """The latest instant of activity."""
        return now if self.goes_on else self.active_at


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the signals say together."""

    signals: tuple[Signal, ...]
    idle_since: int | None
    """Since when nothing happens; None where that cannot be told."""
    stops_at: int | None
    """When it would be stopped if nothing happens until then; None = not for idleness."""
    unknown: tuple[str, ...] = ()
    """Signals that cannot be told: they keep the notebook up."""

    def due(self, now: int) -> bool:
        """Whether it is to be stopped."""
        return self.stops_at is not None and now >= self.stops_at


@dataclass(frozen=True, slots=True)
class Outlook:
    """Why a notebook is up, and until when. `because` says what ends it then."""

    verdict: Verdict
    after_s: int | None
    """After how many seconds of idleness it is stopped; None = never."""
    ends_at: int | None = None
    because: Reason | None = None
    held: bool = False

    @property
    def extensible(self) -> bool:
        """Whether a renewal puts its end off: the server's own limit stays."""
        return self.because is None or self.because.code is not ReasonCode.RUN_LIMIT

    def left_min(self, now: int) -> int:
        """So many minutes are left until its end, one that has begun counted; 0 = it has no end."""
        return 0 if self.ends_at is None else max(1, -(-(self.ends_at - now) // 60_000))


def judge(signals: Sequence[Signal], since: int, after_s: int | None, now: int) -> Verdict:
    """Weigh the signals of a notebook whose clocks began at `since` (its start: what was before
    does not count), and which is to be stopped after `after_s` seconds of idleness (None = never).
    """
    unknown = tuple(one.name for one in signals if one.last(now) is None)
    if unknown:
        return Verdict(tuple(signals), None, None, unknown)
    # A clock that was set back gives instants in the future: they are no more than now.
    seen = [min(last, now) for one in signals if (last := one.last(now)) is not None]
    idle_since = max([since, *seen])
    stops_at = None if after_s is None else idle_since + after_s * 1000
    return Verdict(tuple(signals), idle_since, stops_at)


def warning(ends_at: int | None, warned_minutes: int, now: int) -> int:
    """How many minutes before its end is to be warned now; 0 = not now. `warned_minutes` is the
    last warning of this end (0 = none). One that comes late is not repeated for those before it.
    """
    if ends_at is None or now >= ends_at:
        return 0
    due = [minutes for minutes in WARN_MINUTES if ends_at - now <= minutes * 60_000]
    nearest = min(due, default=0)
    return nearest if nearest and (not warned_minutes or nearest < warned_minutes) else 0
