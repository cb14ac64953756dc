"""How much goes to and fro between people and their instances: what tells use from an open window.

An editor that stays open sends a few hundred bytes a minute to see whether the other side is still
there; a person who types and reads moves thousands. What flows encrypted shows its size only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from danlu.model.idle import Signal
from danlu.ports.engine import Engine, Ref
from danlu.ports.world import Clock

WINDOW_MS = 60_000
BUSY_BYTES = 4096
"""So many bytes within a minute, both ways together, are use."""

OPEN_MS = 30 * 60_000
"""So long a connection counts after its last use, if it is merely open."""


@dataclass(slots=True)
class Traffic:
    """One instance's. Instants are UTC milliseconds."""

    open: int = 0
    """Connections at the moment."""
    used_at: int | None = None
    """When something was last done, coming in included."""
    moved_bytes: int = 0
    _since: int = 0
    _within: int = 0

    def came(self, now: int) -> None:
        """Somebody has come in."""
        self.open += 1
        self.used_at = now

    def left(self) -> None:
        """Somebody has gone."""
        self.open -= 1

    def moved(self, size: int, now: int) -> None:
        """`size` bytes went one way or the other."""
        self.moved_bytes += size
        if now - self._since >= WINDOW_MS:
            self._since, self._within = now, 0
        self._within += size
        if self._within >= BUSY_BYTES:
            self.used_at = now

    def active_at(self, now: int) -> int | None:
        """Until when there was activity: a connection that is merely open counts for `OPEN_MS`
        beyond its last use. None = nobody has ever come in.
        """
        if self.used_at is None or not self.open:
            return self.used_at
        return min(now, self.used_at + OPEN_MS)


class Traffics:
    """Every instance's, by the id of its job. Written on the event loop, read anywhere."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_job: dict[str, Traffic] = {}

    def of(self, job_id: str) -> Traffic:
        """What goes to the instance of a job and comes from it."""
        return self._by_job.setdefault(job_id, Traffic())

    def read(self, engine: Engine, ref: Ref) -> Sequence[Signal]:
        """What SSH says of a notebook's use: nothing where nobody has come in since this server
        began.
        """
        del engine
        found = self._by_job.get(ref.job_id)
        active_at = None if found is None else found.active_at(self._clock.now())
        if found is None or active_at is None:
            return []
        return [Signal("ssh", active_at, f"{found.open} open")]

    def keep(self, job_ids: frozenset[str]) -> None:
        """Forget everything but these jobs' and what is open."""
        for gone in self._by_job.keys() - job_ids:
            if not self._by_job[gone].open:
                self._by_job.pop(gone, None)
