"""Pages of jobs and of events: queries whose shape the caller chooses.

A shape (which columns, which operators, how many values) is compiled once; values are always
bound, never part of the text. Texts compare by their bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Dialect,
    Select,
    and_,
    bindparam,
    exists,
    false,
    func,
    or_,
    select,
    true,
)

from danlu.model.errors import Invalid, Missing
from danlu.model.event import JobEvent
from danlu.ports.records import EventQuery, Filter, JobQuery, Page
from danlu.stores.sql import rows, schema
from danlu.stores.sql.bounds import LARGEST, storable, whole, words
from danlu.stores.sql.database import Database, Statement
from danlu.stores.sql.reads import Reads, unindexed, whole_job
from danlu.stores.sql.wishes import is_job

MOST_VALUES = 200
"""Filters and their values, all together."""

SHAPES = 256
"""Compiled queries that are kept."""

_jobs, _attempts = schema.jobs.c, schema.attempts.c

KEYS: dict[str, tuple[ColumnElement[Any], type]] = {
    "name": (_jobs.name, str),
    "description": (_jobs.description, str),
    "state": (_jobs.state, str),
    "flavor": (_jobs.flavor, str),
    "user": (_jobs.user, str),
    "id": (_jobs.id, str),
    "created_at": (_jobs.created_at, int),
    "node_count": (_jobs.node_count, int),
    "priority": (_jobs.priority, int),
}
OPERATORS = ("in", "not", "like", "between")

# How long the program ran, or has run by now; 0 where it has not started.
_RAN = func.coalesce(
    func.coalesce(_attempts.exited_at, _attempts.ended_at, bindparam("now")) - _attempts.started_at,
    0,
)
ORDERS: dict[str, ColumnElement[Any]] = {
    "created_at": _jobs.created_at,
    "name": _jobs.name,
    "flavor": _jobs.flavor,
    "priority": _jobs.priority,
    "duration": _RAN,
}
FEW = ("id", "name")
"""Keys whose values name few jobs, so that the filter and not the order should find them."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a query looks like without its values: (key, operator, number of values) each."""

    filters: tuple[tuple[str, str, int], ...]
    sort_by: str
    descending: bool


class Listing:
    """Answers `jobs` and `events`."""

    def __init__(self, database: Database, reads: Reads) -> None:
        self._dialect = database.statements.dialect
        self._reads = reads

    def jobs(self, workspace: str, query: JobQuery, now: int) -> Page:
        """A page, and how many jobs there are in all."""
        shape, values = _shape(query)
        values["workspace"] = words(workspace, "workspace")
        total = self._reads.run(counting(self._dialect, shape.filters), values)[0][0]
        values["now"] = now
        values["start"] = whole(query.offset, "offset", 0)
        values["most"] = whole(query.limit, "limit", 0)
        if query.limit == 0 or query.offset >= total:
            return Page((), total)
        found = self._reads.run(paging(self._dialect, shape), values)
        return Page(rows.views(found), total)

    def events(self, workspace: str, job_id: str, query: EventQuery) -> list[JobEvent]:
        """Events in the order in which they were recorded; Missing for an unknown job."""
        names = {"of_job": job_id, "of_workspace": workspace}
        if not storable(job_id) or not storable(workspace):
            raise Missing("job-missing", job=job_id)
        levels = [level for level in query.levels if storable(level)]
        values: dict[str, Any] = {
            **names,
            **{f"level_{i}": level for i, level in enumerate(levels)},
            "since": None if query.since is None else whole(query.since, "since"),
            "until": None if query.until is None else whole(query.until, "until"),
            "after": whole(query.after_sequence, "after"),
            "most": LARGEST if query.limit is None else whole(query.limit, "limit", 0),
        }
        wanted = len(levels) if query.levels else None
        statement = telling(
            self._dialect, wanted, (query.since is not None, query.until is not None)
        )
        found = self._reads.run(statement, values)
        if not found and not self._reads.rows(_THERE, **names):
            raise Missing("job-missing", job=job_id)
        return [rows.event(row) for row in found]


_THERE = select(_jobs.sequence).where(is_job())

Conditions = tuple[tuple[str, str, int], ...]


@functools.lru_cache(SHAPES)
def counting(dialect: Dialect, filters: Conditions) -> Statement:
    """How many jobs there are."""
    return Statement(_choose(select(func.count()), filters, "", dialect), dialect)


@functools.lru_cache(SHAPES)
def paging(dialect: Dialect, shape: Shape) -> Statement:
    """The page's numbers first, from an index where there is one; then only its jobs."""
    order = ORDERS[shape.sort_by]
    few = any(key in FEW and operator == "in" for key, operator, _ in shape.filters)
    by = unindexed(order) if few and shape.sort_by == "created_at" else order
    page = _choose(select(_jobs.sequence.label("number")), shape.filters, shape.sort_by, dialect)
    page = page.order_by(*_sorted(by, descending=shape.descending))
    chosen = page.limit(bindparam("most")).offset(bindparam("start")).subquery("page")
    clause = (
        whole_job()
        .where(_jobs.sequence.in_(select(chosen.c.number)))
        .order_by(*_sorted(order, descending=shape.descending), schema.tasks.c.index)
    )
    return Statement(clause, dialect)


@functools.lru_cache(SHAPES)
def telling(dialect: Dialect, levels: int | None, bounds: tuple[bool, bool]) -> Statement:
    """A job's events, of some levels, and bounded by instants on either side."""
    events = schema.events.c
    clause = (
        select(events.sequence, events.at, events.level, events.key, events.task, events.params)
        .join(schema.jobs, events.job_id == _jobs.id)
        .where(is_job(), events.sequence > bindparam("after"))
    )
    if levels is not None:
        binds: list[ColumnElement[str]] = [bindparam(f"level_{i}") for i in range(levels)]
        clause = clause.where(events.level.in_(binds) if binds else false())
    since, until = bounds
    if since:
        clause = clause.where(events.at >= bindparam("since"))
    if until:
        clause = clause.where(events.at <= bindparam("until"))
    return Statement(clause.order_by(events.sequence).limit(bindparam("most")), dialect)


def _choose(
    chosen: Select[Any], filters: Conditions, sort_by: str, dialect: Dialect
) -> Select[Any]:
    chosen = chosen.select_from(schema.jobs)
    if sort_by == "duration":
        chosen = chosen.join(schema.attempts, _is_latest())
    conditions = [_condition(index, one, dialect) for index, one in enumerate(filters)]
    return chosen.where(_jobs.workspace == bindparam("workspace"), schema.LISTED, *conditions)


def _condition(index: int, one: tuple[str, str, int], dialect: Dialect) -> ColumnElement[bool]:
    key, operator, count = one
    column = KEYS[key][0]
    binds: list[ColumnElement[Any]] = [
        bindparam(f"filter_{index}_{i}", type_=column.type) for i in range(count)
    ]
    match operator:
        case "in":
            return column.in_(binds) if binds else false()
        case "not":
            return column.not_in(binds) if binds else true()
        case "like":
            # LIKE would know wildcards, and take A for a on one database and not on the other.
            position = {"sqlite": func.instr, "postgresql": func.strpos}[dialect.name]
            return or_(false(), *(position(column, bind) > 0 for bind in binds))
        case _:
            return and_(column >= binds[0], column <= binds[1])


def _is_latest() -> ColumnElement[bool]:
    later = schema.attempts.alias("later")
    newer = exists().where(later.c.job_id == _attempts.job_id, later.c.number > _attempts.number)
    return and_(_attempts.job_id == _jobs.id, ~newer)


def _sorted(order: ColumnElement[Any], *, descending: bool) -> Sequence[ColumnElement[Any]]:
    """The number of submission decides between equals, in the same direction."""
    if descending:
        return [order.desc(), _jobs.sequence.desc()]
    return [order.asc(), _jobs.sequence.asc()]


def _shape(query: JobQuery) -> tuple[Shape, dict[str, Any]]:
    """The shape of a query and its values, or Invalid."""
    if query.sort_by not in ORDERS:
        raise _not_one_of("sort_by", query.sort_by, ORDERS)
    values: dict[str, Any] = {}
    shapes = []
    for index, one in enumerate(query.filters):
        taken = _values(one, f"filters[{index}]")
        values.update({f"filter_{index}_{i}": value for i, value in enumerate(taken)})
        shapes.append((one.key, str(one.operator), len(taken)))
    if len(values) + len(shapes) > MOST_VALUES:
        raise Invalid(
            "too-many",
            field="filters",
            count=len(values) + len(shapes),
            limit=MOST_VALUES,
            remedy="ask in several requests",
        )
    return Shape(tuple(shapes), query.sort_by, query.descending), values


def _values(one: Filter, field: str) -> list[str | int]:
    if one.key not in KEYS:
        raise _not_one_of(f"{field}.key", one.key, KEYS)
    if one.operator not in OPERATORS:
        raise _not_one_of(f"{field}.operator", one.operator, OPERATORS)
    kind = KEYS[one.key][1]
    if one.operator == "like" and kind is int:
        raise _not_one_of(f"{field}.operator", "like", ("in", "not", "between"))
    if one.operator == "between" and len(one.values) != 2:
        raise Invalid(
            "field-value",
            field=f"{field}.value",
            value=", ".join(str(value) for value in one.values),
            expected="two values, the least and the greatest",
        )
    return [_value(value, kind, f"{field}.value") for value in one.values]


def _value(value: str | int, kind: type, field: str) -> str | int:
    if not isinstance(value, kind):
        expected = "a whole number" if kind is int else "a text"
        raise Invalid("field-value", field=field, value=value, expected=expected)
    return words(value, field) if isinstance(value, str) else whole(value, field)


def _not_one_of(field: str, value: str, known: Sequence[str] | dict[str, Any]) -> Invalid:
    expected = f"one of {', '.join(known)}"
    return Invalid("field-value", field=field, value=value, expected=expected)
