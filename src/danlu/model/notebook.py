"""A notebook: a machine to work at, with a home that stays. Its states, as data.

Every start of a notebook is a job of its own, which is placed, launched, adopted and stopped as
others are. What happens to that job is what moves the notebook: a notebook is an intent, a home and
a lease over the jobs that carry it out.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from danlu.model.idle import Idle
from danlu.model.reason import Reason
from danlu.model.url import Url

HOUR_MS = 3_600_000
LEAST_LEASE_MS = HOUR_MS
MOST_LEASE_MS = 72 * HOUR_MS
"""What ModelArts takes as a duration."""

HOME = "/home/ma-user/work"
"""Where a notebook's home lies in its instance: the only place that outlives a stop."""


class State(StrEnum):
    """Where a notebook stands."""

    CREATING = "creating"
    """Its first start is under way."""
    STARTING = "starting"
    RUNNING = "running"
    """JupyterLab answers. Only this time is metered."""
    STOPPING = "stopping"
    STOPPED = "stopped"
    CREATE_FAILED = "create-failed"
    START_FAILED = "start-failed"
    ERROR = "error"
    """It ended though nobody stopped it."""
    DELETING = "deleting"
    DELETE_FAILED = "delete-failed"
    DELETED = "deleted"


class Event(StrEnum):
    """What can happen to a notebook."""

    START = "start"
    READY = "ready"
    AGAIN = "again"
    """Its job lost its machine, and another attempt of it begins."""
    STOP = "stop"
    ENDED = "ended"
    """Its job is over, as it was to be, or because its user shut JupyterLab down."""
    FAILED = "failed"
    """Its job is over, as nobody wanted."""
    DELETE = "delete"
    KEPT = "kept"
    """Its home cannot be removed."""
    REMOVED = "removed"


_IDLE = (State.STOPPED, State.CREATE_FAILED, State.START_FAILED, State.ERROR)
_WORKING = (State.CREATING, State.STARTING, State.RUNNING, State.STOPPING)

MOVES: MappingProxyType[tuple[State, Event], State] = MappingProxyType(
    {
        (State.CREATING, Event.READY): State.RUNNING,
        (State.CREATING, Event.STOP): State.STOPPING,
        (State.CREATING, Event.ENDED): State.CREATE_FAILED,
        (State.CREATING, Event.FAILED): State.CREATE_FAILED,
        (State.STARTING, Event.READY): State.RUNNING,
        (State.STARTING, Event.STOP): State.STOPPING,
        (State.STARTING, Event.ENDED): State.START_FAILED,
        (State.STARTING, Event.FAILED): State.START_FAILED,
        (State.RUNNING, Event.AGAIN): State.STARTING,
        (State.RUNNING, Event.STOP): State.STOPPING,
        (State.RUNNING, Event.ENDED): State.STOPPED,
        (State.RUNNING, Event.FAILED): State.ERROR,
        (State.STOPPING, Event.ENDED): State.STOPPED,
        (State.STOPPING, Event.FAILED): State.STOPPED,
        **{(state, Event.START): State.STARTING for state in _IDLE},
        **{(state, Event.DELETE): State.DELETING for state in (*_WORKING, *_IDLE)},
        (State.DELETING, Event.KEPT): State.DELETE_FAILED,
        (State.DELETING, Event.REMOVED): State.DELETED,
        (State.DELETE_FAILED, Event.DELETE): State.DELETING,
    }
)

FINAL: frozenset[State] = frozenset(State) - {state for state, _ in MOVES}
"""States that nothing leaves."""

LIVE: frozenset[State] = frozenset((*_WORKING, State.DELETING))
"""States in which something is still to be done about a notebook."""

STARTS: frozenset[State] = frozenset((State.CREATING, State.STARTING))
"""States in which its job is to run and JupyterLab does not answer yet."""

CHANGEABLE: frozenset[State] = frozenset(_IDLE)
"""States in which flavor and image may be changed: nothing of it runs."""


def after(state: State, event: Event) -> State | None:
    """The state that `event` leads to from `state`, or None where it does not apply."""
    return MOVES.get((state, event))


def diagram() -> str:
    """The table of MOVES: one Markdown row a state."""
    rows = ["| from | event → to |", "|---|---|"]
    for state in State:
        moves = [f"{event} → {to}" for (source, event), to in MOVES.items() if source is state]
        rows.append(f"| {state} | {' · '.join(moves) or 'final'} |")
    return "\n".join(rows)


class LeaseKind(StrEnum):
    """What a duration counts: ModelArts' types."""

    TIMING = "TIMING"
    """It ends so long after its beginning, whatever happens."""
    IDLE = "IDLE"
    """It ends after so long without activity."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Until when a notebook may run. `duration_ms` None = as long as it likes. It counts from
    `began_at` (UTC ms): the moment it was ready, or the renewal.
    """

    duration_ms: int | None = None
    began_at: int = 0

    @property
    def ends_at(self) -> int | None:
        """When it ends (UTC ms); None = not by itself."""
        return None if self.duration_ms is None else self.began_at + self.duration_ms


@dataclass(frozen=True, slots=True)
class Hold:
    """A user's word that it is needed: until an instant, and no longer than a process lives."""

    until: int
    pid: int = 0
    """In the instance; 0 = none."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Mounted:
    """Data that the instance finds at `path`."""

    url: Url
    path: str = ""


@dataclass(frozen=True, slots=True)
class NotebookSpec:
    """What a user asked for; may be changed while it is stopped."""

    name: str
    flavor: str = ""
    image: str = ""
    """An image's name or id, an environment, or an OCI reference; empty = the server's default."""
    description: str = ""
    category: str = "EFS"
    """What ModelArts calls the kind of storage of its home; here it is all one."""
    home_gib: int | None = None
    """What its home may hold; None = as much as there is."""
    data: tuple[Mounted, ...] = ()
    key_pairs: tuple[str, ...] = ()
    """Names under which SSH was asked for. Keys are those of the user's profile."""
    ssh: bool = False
    environments: Mapping[str, str] = field(default_factory=dict)
    idle: Idle = field(default_factory=Idle)
    allowed_ips: tuple[str, ...] = ()
    """Addresses and networks from which SSH is let in; empty = from any."""


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook as it stands on record. Instants are UTC milliseconds; None = not yet."""

    id: str
    workspace: str
    user: str
    spec: NotebookSpec
    state: State
    created_at: int
    updated_at: int
    job_id: str = ""
    """The job of the latest start."""
    lease: Lease = Lease()
    ready_at: int | None = None
    """Since when JupyterLab answers; None while it does not."""
    ran_ms: int = 0
    """How long it was *running* before `ready_at`."""
    reason: Reason | None = None
    """Why it is in this state: who or what stopped it, what failed."""
    hold: Hold | None = None
    warned_at: int = 0
    """The minutes before its end at which was warned last (10, 2); 0 = not yet."""
    touched_at: int = 0
    """When its user last said that it is needed: a start, a renewal, a hold. Idleness counts from
    there at the earliest.
    """
    stale_job_id: str = ""
    """The job of the start before, until it is deleted."""
    version: int = 1
    """Counts the changes; a change names the version that it is made to."""
    sequence: int = 0

    def metered_ms(self, now: int) -> int:
        """How long it has been *running* in all."""
        return self.ran_ms + (0 if self.ready_at is None else max(0, now - self.ready_at))


def moved(notebook: Notebook, event: Event, now: int, reason: Reason | None = None) -> Notebook:
    """The notebook after `event`, which applies: with what is counted while it runs, and with its
    clocks set back when it begins to.
    """
    to = MOVES[notebook.state, event]
    after = replace(notebook, state=to, updated_at=now, reason=reason)
    if to is State.RUNNING:
        lease = replace(notebook.lease, began_at=now)
        return replace(after, ready_at=now, touched_at=now, warned_at=0, lease=lease)
    return replace(after, ran_ms=notebook.metered_ms(now), ready_at=None, hold=None)


def lab_token(attempt_token: str) -> str:
    """JupyterLab's token in the instance of an attempt: it is stored nowhere, and a server that
    comes back knows it.
    """
    return hmac.new(attempt_token.encode(), b"danlu lab token", hashlib.sha256).hexdigest()
