"""Why the database takes no new work at the moment, and whether that has passed."""

from __future__ import annotations

import logging
import threading

from danlu.model.errors import PlatformError
from danlu.stores.sql.room import Room

log = logging.getLogger(__name__)

READ_ONLY = "database-read-only"


class Trouble:
    """Remembers a full disk or a read-only one. May be asked from any thread.

    Where the disk is ours to look at, room that has come back is seen there. In every other case
    only a write that goes through shows that the trouble has passed.
    """

    def __init__(self, room: Room | None) -> None:
        self._room = room
        self._lock = threading.Lock()
        self._problem: PlatformError | None = None
        short = None if room is None else room.restore()
        if short is not None:
            self.met(short)

    def met(self, problem: Exception) -> bool:
        """Whether a write failed because of such a trouble; remembers it if so."""
        if not isinstance(problem, PlatformError):
            return False
        if problem.http != 507 and problem.key != READ_ONLY:
            return False
        with self._lock:
            if self._problem is None:
                log.error("new work is refused until this has passed: %s", problem)
            self._problem = problem
        return True

    def passed(self) -> None:
        """A write went through."""
        with self._lock:
            if self._problem is not None and not self._is_ours(self._problem):
                self._set(None)

    def look(self) -> PlatformError | None:
        """The trouble, or None where there is none or it has passed."""
        problem = self._problem
        return self.full() if problem is not None and self._is_ours(problem) else problem

    def full(self) -> PlatformError | None:
        """The same, for a full disk alone that we can look at."""
        problem = self._problem
        if problem is None or self._room is None or not self._is_ours(problem):
            return None
        with self._lock:
            # Met anew in between, it is as new as it can be.
            if self._problem is problem:
                self._set(self._room.restore())
            return self._problem

    def only_a_write_shows(self) -> bool:
        """Whether there is trouble and nothing but a write tells when it has passed."""
        problem = self._problem
        return problem is not None and not self._is_ours(problem)

    def spend(self) -> bool:
        """Give a bit of the reserve to those writes that end jobs; False if there is none left."""
        problem = self._problem
        if problem is None or self._room is None or not self._is_ours(problem):
            return False
        with self._lock:
            return self._room.spend()

    def _is_ours(self, problem: PlatformError) -> bool:
        return self._room is not None and problem.http == 507

    def _set(self, problem: PlatformError | None) -> None:
        self._problem = problem
        if problem is None:
            log.warning("new work is taken again")
