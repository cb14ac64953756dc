"""A notebook's end, for the page of its Lab: when it is stopped, and how to put that off."""

from __future__ import annotations

from typing import Any, Protocol

from danlu.faces.http.durable import Durable
from danlu.faces.lab.session import Session
from danlu.flow import notebook as wishes
from danlu.flow.activity import Activity
from danlu.flow.notebook_idle import outlook
from danlu.flow.notebooks import Notebooks
from danlu.flow.notices import ending, extended
from danlu.flow.platform import Platform
from danlu.model.errors import Denied, Unavailable
from danlu.model.identity import Caller
from danlu.model.notebook import Notebook
from danlu.model.texts import Language, text

LEASE = "/.danlu/lease"
EXTEND = "/.danlu/extend"
"""Lab has nothing of these names."""
TRIES = 5


class Leases(Protocol):
    """What the proxy asks about a notebook's end."""

    def told(self, session: Session, language: Language) -> dict[str, Any]:
        """When it is stopped, and what is to be said of that."""

    async def extend(self, session: Session, language: Language) -> dict[str, Any]:
        """Count its lease and its idleness from now; what has come of it."""


class RecordedLeases:
    """Of notebooks as the records know them."""

    def __init__(
        self, platform: Platform, notebooks: Notebooks, activity: Activity, durable: Durable
    ) -> None:
        self._platform = platform
        self._notebooks = notebooks
        self._activity = activity
        self._durable = durable

    def told(self, session: Session, language: Language) -> dict[str, Any]:
        """When it is stopped, and what is to be said of that."""
        records = self._platform.records
        return self._shown(records.notebook(session.workspace, session.notebook), language)

    async def extend(self, session: Session, language: Language) -> dict[str, Any]:
        """Count its lease and its idleness from now; what has come of it."""
        records = self._platform.records
        user, workspace = records.user(session.user), records.workspace(session.workspace)
        if user is None or workspace is None:
            raise Denied("lab-no-session", notebook=session.notebook)
        caller = Caller(user, workspace)
        for _ in range(TRIES):
            before = records.notebook(session.workspace, session.notebook)
            to, events = wishes.extend(self._platform, caller, before)
            changed = await self._durable(self._notebooks.change(before, to, events))
            if changed is not None:
                seen = outlook(self._platform, self._activity, changed)
                done = extended(seen, self._platform.clock.now(), language)
                return {**self._shown(changed, language), "done": done}
        raise Unavailable("busy", detail="the notebook changes all the time")

    def _shown(self, one: Notebook, language: Language) -> dict[str, Any]:
        now = self._platform.clock.now()
        seen = outlook(self._platform, self._activity, one)
        warned = one.warned_at if seen.ends_at is not None else 0
        return {
            "ends_at": seen.ends_at,
            "warned": warned,
            "warning": ending(seen, now, language) if warned else "",
            "extensible": seen.extensible,
            "label": text("lab-extend", language),
            "command": text("lab-extend-command", language),
        }
