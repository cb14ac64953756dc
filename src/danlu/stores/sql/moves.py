"""What happens to attempts.

A state is changed in `move` and nowhere else, by an UPDATE that names the attempt's token and
the states that the event may leave; both come from the model's table. No row changed is an
answer: it no longer applies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Text,
    Update,
    and_,
    bindparam,
    func,
    literal_column,
    select,
    update,
)

from danlu.model.attempt import FINAL, AttemptKey, Event, State, sources
from danlu.model.event import JobEvent
from danlu.model.job import Intent, Task
from danlu.ports.records import Move
from danlu.stores.sql import rows, schema
from danlu.stores.sql.bounds import whole, words
from danlu.stores.sql.session import Session

STAMPS = {
    State.PLACED: "placed_at",
    State.LAUNCHING: "launched_at",
    State.RUNNING: "started_at",
    State.COLLECTING: "exited_at",
    **dict.fromkeys(FINAL, "ended_at"),
}
"""The instant that belongs to the state reached."""


class NewMove(NamedTuple):
    """A move as rows, made on the caller's thread."""

    key: AttemptKey
    event: Event
    at: int
    reason: str | None
    placement: str | None
    events: list[tuple[Any, ...]]
    tasks: list[tuple[Any, ...]]
    again: NewAgain | None


class NewAgain(NamedTuple):
    """The attempt that follows, as rows."""

    attempt: tuple[Any, ...]
    events: list[tuple[Any, ...]]


def new_move(move: Move) -> NewMove:
    """Raise Invalid for what no column can hold."""
    return NewMove(
        attempt_key(move.key),
        move.event,
        whole(move.at, "at"),
        rows.facts(move.reason),
        rows.facts(move.placement),
        rows.new_events(move.key.job_id, move.events),
        rows.new_tasks(move.key, move.tasks),
        _new_again(move),
    )


def _new_again(move: Move) -> NewAgain | None:
    if move.again is None:
        return None
    attempt = move.again.attempt
    if attempt.key.job_id != move.key.job_id or attempt.key.number != move.key.number + 1:
        raise ValueError("an attempt is followed by the next one of its job")
    return NewAgain(rows.new_attempt(attempt), rows.new_events(move.key.job_id, move.again.events))


def attempt_key(key: AttemptKey) -> AttemptKey:
    """`key` itself, or Invalid where no column can hold it."""
    words(key.job_id, "job_id")
    words(key.token, "token")
    whole(key.number, "attempt")
    return key


def _is_attempt() -> ColumnElement[bool]:
    attempts = schema.attempts.c
    return and_(
        attempts.job_id == bindparam("of_job"),
        attempts.number == bindparam("of_number"),
        attempts.token == bindparam("of_token"),
    )


def names(key: AttemptKey) -> dict[str, Any]:
    """The values that the guard of a statement compares with."""
    return {"of_job": key.job_id, "of_number": key.number, "of_token": key.token}


def _updates(event: Event) -> list[tuple[State, Update]]:
    """One UPDATE for each state that `event` can reach."""
    attempts = schema.attempts.c
    reached: dict[State, list[State]] = {}
    for source, to in sources(event).items():
        reached.setdefault(to, []).append(source)
    made = []
    for to, froms in reached.items():
        values: dict[str, Any] = {
            "state": literal_column(f"'{to}'"),
            "reason": func.coalesce(bindparam("because", type_=Text), attempts.reason),
            "placement": func.coalesce(bindparam("places", type_=Text), attempts.placement),
        }
        if to in STAMPS:
            values[STAMPS[to]] = bindparam("at")
        if to in FINAL:
            values["unreachable"] = literal_column("0")
        if event is Event.UNPLACE:
            values.update(placement=None, placed_at=None)
        guard = schema.fragment(schema.is_in("state", froms))
        made.append((to, update(schema.attempts).values(values).where(_is_attempt(), guard)))
    return made


_UPDATES = {event: _updates(event) for event in Event}


def move(session: Session, items: Sequence[NewMove]) -> list[State | None]:
    """Apply events in order, each only where it still applies."""
    results: list[State | None] = []
    events: list[tuple[Any, ...]] = []
    tasks: list[tuple[Any, ...]] = []
    for item in items:
        state = _move(session, item)
        if state is not None:
            events += item.events
            tasks += item.tasks
        if state in FINAL and item.again is not None and _begin_again(session, item.again):
            state = State.QUEUED
            events += item.again.events
        results.append(state)
    session.insert(schema.events, events)
    _replace(session, tasks)
    return results


_WANTED = select(schema.jobs.c.sequence).where(
    schema.jobs.c.id == bindparam("of_job"),
    schema.jobs.c.intent == literal_column(f"'{Intent.RUN}'"),
    schema.NOT_DELETED,
)


def _begin_again(session: Session, again: NewAgain) -> bool:
    """Add the next attempt, unless the user no longer wants the job to run."""
    if not session.rows(_WANTED, of_job=again.attempt[0]):
        return False
    session.insert(schema.attempts, [again.attempt])
    return True


def _move(session: Session, item: NewMove) -> State | None:
    for state, statement in _UPDATES[item.event]:
        changed = session.execute(
            statement, **names(item.key), at=item.at, because=item.reason, places=item.placement
        )
        if changed:
            return state
    return None


def _replace(session: Session, tasks: Iterable[tuple[Any, ...]]) -> None:
    """Write whole tasks; of two rows for one task in the same group the later one counts."""
    session.insert(schema.tasks, list({row[:3]: row for row in tasks}.values()))


class NewNote(NamedTuple):
    """Events and task facts of an attempt, as rows."""

    key: AttemptKey
    events: list[tuple[Any, ...]]
    tasks: list[tuple[Any, ...]]


def new_note(key: AttemptKey, events: Sequence[JobEvent], tasks: Sequence[Task]) -> NewNote:
    """Raise Invalid for what no column can hold."""
    return NewNote(
        attempt_key(key), rows.new_events(key.job_id, events), rows.new_tasks(key, tasks)
    )


KNOWN = select(schema.attempts.c.number).where(_is_attempt())
_LIVE = KNOWN.where(schema.LIVE_ATTEMPT)


def note(session: Session, item: NewNote) -> bool:
    """Add what is told of a live attempt by whoever knows its token."""
    if not session.rows(_LIVE, **names(item.key)):
        return False
    session.insert(schema.events, item.events)
    _replace(session, item.tasks)
    return True


_FLAG = (
    update(schema.attempts)
    .values(unreachable=bindparam("flag"))
    .where(_is_attempt(), schema.LIVE_ATTEMPT)
)


def flag(session: Session, item: tuple[AttemptKey, bool]) -> bool:
    """Set or clear the unreachable flag of a live attempt."""
    key, unreachable = item
    return session.execute(_FLAG, **names(key), flag=int(unreachable)) > 0
