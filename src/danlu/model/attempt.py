"""The state machine of an attempt, as data. Everything else about states is derived from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from danlu.model.reason import Reason


class State(StrEnum):
    """Where an attempt stands. "Unreachable" is a flag, never a state."""

    QUEUED = "queued"
    PLACED = "placed"
    LAUNCHING = "launching"
    RUNNING = "running"
    STOPPING = "stopping"
    COLLECTING = "collecting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"


class Event(StrEnum):
    """What can happen to an attempt."""

    PLACE = "place"
    UNPLACE = "unplace"
    LAUNCH = "launch"
    STARTED = "started"
    REFUSED = "refused"
    EXITED = "exited"
    STOP = "stop"
    VANISHED = "vanished"
    OK = "ok"
    BAD = "bad"
    STOPPED = "stopped"


MOVES: MappingProxyType[tuple[State, Event], State] = MappingProxyType(
    {
        (State.QUEUED, Event.PLACE): State.PLACED,
        (State.QUEUED, Event.STOP): State.CANCELLED,
        (State.PLACED, Event.LAUNCH): State.LAUNCHING,
        (State.PLACED, Event.UNPLACE): State.QUEUED,
        (State.PLACED, Event.STOP): State.CANCELLED,
        (State.LAUNCHING, Event.STARTED): State.RUNNING,
        (State.LAUNCHING, Event.REFUSED): State.FAILED,
        (State.LAUNCHING, Event.EXITED): State.COLLECTING,
        (State.LAUNCHING, Event.STOP): State.STOPPING,
        (State.LAUNCHING, Event.VANISHED): State.LOST,
        (State.RUNNING, Event.EXITED): State.COLLECTING,
        (State.RUNNING, Event.STOP): State.STOPPING,
        (State.RUNNING, Event.VANISHED): State.LOST,
        (State.STOPPING, Event.EXITED): State.COLLECTING,
        (State.STOPPING, Event.VANISHED): State.COLLECTING,
        (State.COLLECTING, Event.OK): State.SUCCEEDED,
        (State.COLLECTING, Event.BAD): State.FAILED,
        (State.COLLECTING, Event.STOPPED): State.CANCELLED,
        (State.COLLECTING, Event.VANISHED): State.LOST,
    }
)

FINAL: frozenset[State] = frozenset(State) - {state for state, _ in MOVES}
"""States that nothing leaves; a retry is a new attempt."""

LIVE: frozenset[State] = frozenset(State) - FINAL
"""States that something still has to be done about."""

HOLDING: frozenset[State] = LIVE - {State.QUEUED}
"""States in which an attempt holds its place: capacity is derived from these, never counted."""


def after(state: State, event: Event) -> State | None:
    """The state that `event` leads to from `state`, or None where it does not apply."""
    return MOVES.get((state, event))


def sources(event: Event) -> dict[State, State]:
    """Every state that `event` can leave, with where it leads."""
    return {state: to for (state, happened), to in MOVES.items() if happened is event}


def diagram() -> str:
    """The table of design.md §4, made from MOVES: one Markdown row a state."""
    rows = ["| from | event → to |", "|---|---|"]
    for state in State:
        moves = [f"{event} → {to}" for (source, event), to in MOVES.items() if source is state]
        rows.append(f"| {state} | {' · '.join(moves) or 'final; a retry is a new attempt'} |")
    return "\n".join(rows)


@dataclass(frozen=True, slots=True)
class AttemptKey:
    """One try of one job. Whoever does not know the token may not report on the attempt."""

    job_id: str
    number: int
    token: str
    """128 random bits, 32 hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a job. Instants are UTC milliseconds since 1970; None = not yet."""

    key: AttemptKey
    state: State
    created_at: int
    placed_at: int | None = None
    launched_at: int | None = None
    started_at: int | None = None
    exited_at: int | None = None
    ended_at: int | None = None
    reason: Reason | None = None
    placement: tuple[Placement, ...] = ()
    unreachable: bool = False
    due_at: int | None = None
    """Not to be placed before this instant: the wait of an attempt after a failed one."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one task of an attempt runs and what it holds there."""

    task: int
    node: str
    cpus: int
    memory_bytes: int
    gpus: tuple[str, ...] = ()
    """GPU UUIDs, in the order in which the task sees them."""
