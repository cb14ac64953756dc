"""Notebooks and their history. A change names the version that it is made to: of two at once one
applies, and the other is told.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Select, bindparam, select, update

from danlu.model.codec import from_json
from danlu.model.errors import Missing
from danlu.model.event import JobEvent
from danlu.model.notebook import MOVES, Notebook, State
from danlu.ports.records import EventQuery, NotebookChange
from danlu.stores.sql import rows, schema
from danlu.stores.sql.bounds import LARGEST, storable, whole, words
from danlu.stores.sql.reads import Reads
from danlu.stores.sql.session import Session, each
from danlu.stores.sql.writer import Writer

_notebooks, _events = schema.notebooks.c, schema.notebook_events.c
_STAYS = schema.fragment(schema.NOTEBOOK_STAYS)
_COLUMNS = (_notebooks.sequence, _notebooks.state, _notebooks.version, _notebooks.facts)

_ONE = select(*_COLUMNS).where(
    _notebooks.id == bindparam("of_id"),
    _notebooks.workspace == bindparam("of_workspace"),
    _STAYS,
)
_ALL = (
    select(*_COLUMNS)
    .where(_notebooks.workspace == bindparam("of_workspace"), _STAYS)
    .order_by(_notebooks.sequence.desc())
)
_LIVE = (
    select(*_COLUMNS).where(schema.fragment(schema.IS_LIVE_NOTEBOOK)).order_by(_notebooks.sequence)
)
_CHANGE = (
    update(schema.notebooks)
    .values(
        name=bindparam("new_name"),
        state=bindparam("new_state"),
        version=bindparam("new_version"),
        facts=bindparam("new_facts"),
    )
    .where(
        _notebooks.id == bindparam("of_id"),
        _notebooks.workspace == bindparam("of_workspace"),
        _notebooks.version == bindparam("of_version"),
        _notebooks.state == bindparam("of_state"),
        _STAYS,
    )
)


def _telling() -> Select[Any]:
    return (
        select(_events.sequence, _events.at, _events.level, _events.key, _events.params)
        .where(_events.notebook_id == bindparam("of_id"), _events.sequence > bindparam("after"))
        .order_by(_events.sequence)
        .limit(bindparam("most"))
    )


_HISTORY = _telling()


class New(NamedTuple):
    """A notebook as rows, made on the caller's thread."""

    row: tuple[Any, ...]
    events: list[tuple[Any, ...]]


class Change(NamedTuple):
    """A change as values."""

    after: Notebook
    values: dict[str, Any]
    events: list[tuple[Any, ...]]


def _add(session: Session, item: New) -> bool:
    added = session.insert(schema.notebooks, [item.row]) > 0
    if added:
        session.insert(schema.notebook_events, item.events)
    return added


def _change(session: Session, item: Change) -> Notebook | None:
    if not session.execute(_CHANGE, **item.values):
        return None
    session.insert(schema.notebook_events, item.events)
    return item.after


_ADD = each(_add)
_APPLY = each(_change)


class Notebooks:
    """Answers what concerns notebooks, and queues their changes."""

    def __init__(self, reads: Reads, writer: Writer) -> None:
        self._reads = reads
        self._writer = writer

    def add(self, notebook: Notebook, events: Sequence[JobEvent]) -> Future[bool]:
        """Store a new one."""
        row = (
            words(notebook.id, "id"),
            words(notebook.workspace, "workspace"),
            words(notebook.spec.name, "name"),
            notebook.state.value,
            notebook.version,
            _facts(notebook),
        )
        return self._writer.put(_ADD, New(row, _rows(notebook.id, events)))

    def one(self, workspace: str, notebook_id: str) -> Notebook:
        """One of them, or Missing."""
        if storable(workspace) and storable(notebook_id):
            found = self._reads.rows(_ONE, of_id=notebook_id, of_workspace=workspace)
            if found:
                return _read(found[0])
        raise Missing("notebook-missing", notebook=notebook_id)

    def all(self, workspace: str) -> list[Notebook]:
        """Those of a workspace, the latest first."""
        if not storable(workspace):
            return []
        return [_read(row) for row in self._reads.rows(_ALL, of_workspace=workspace)]

    def live(self) -> list[Notebook]:
        """Those that something is to be done about."""
        return [_read(row) for row in self._reads.rows(_LIVE)]

    def change(self, change: NotebookChange) -> Future[Notebook | None]:
        """Replace one that nobody has changed since it was read."""
        before = change.before
        after = replace(change.after, version=before.version + 1, sequence=before.sequence)
        if after.state is not before.state and not _leads(before.state, after.state):
            raise ValueError(f"no event leads from {before.state} to {after.state}")
        values = {
            "of_id": words(before.id, "id"),
            "of_workspace": words(before.workspace, "workspace"),
            "of_version": before.version,
            "of_state": before.state.value,
            "new_name": words(after.spec.name, "name"),
            "new_state": after.state.value,
            "new_version": after.version,
            "new_facts": _facts(after),
        }
        item = Change(after, values, _rows(before.id, change.events))
        return self._writer.put(_APPLY, item, needed=True)

    def events(self, workspace: str, notebook_id: str, query: EventQuery) -> list[JobEvent]:
        """What happened to one, in order."""
        self.one(workspace, notebook_id)
        most = LARGEST if query.limit is None else whole(query.limit, "limit", 0)
        after = whole(query.after_sequence, "after")
        found = self._reads.rows(_HISTORY, of_id=notebook_id, after=after, most=most)
        events = [rows.event((*row[:4], "", row[4])) for row in found]
        return [event for event in events if _wanted(event, query)]


def _wanted(event: JobEvent, query: EventQuery) -> bool:
    since, until = query.since, query.until
    return (
        (not query.levels or event.level in query.levels)
        and (since is None or event.at >= since)
        and (until is None or event.at <= until)
    )


def _leads(before: State, after: State) -> bool:
    return any(source is before and to is after for (source, _), to in MOVES.items())


def _facts(notebook: Notebook) -> str:
    return rows.dump(notebook)


def _read(row: Sequence[Any]) -> Notebook:
    sequence, state, version, facts = row
    found = from_json(Notebook, json.loads(facts))
    return replace(found, sequence=sequence, state=State(state), version=version)


def _rows(notebook_id: str, events: Sequence[JobEvent]) -> list[tuple[Any, ...]]:
    """Rows of events: like a job's, but that no task is told of."""
    made = rows.new_events(notebook_id, events)
    return [(*row[:4], row[5]) for row in made]
