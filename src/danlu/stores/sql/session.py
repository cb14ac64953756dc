"""One writing transaction, as the writes see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy import ClauseElement, Table

from danlu.stores.sql import schema
from danlu.stores.sql.database import Connection, Database, Row, powers
from danlu.stores.sql.rows import (
    NEW_ATTEMPT,
    NEW_EVENT,
    NEW_JOB,
    NEW_NOTEBOOK,
    NEW_NOTEBOOK_EVENT,
    NEW_TASK,
)

Item = TypeVar("Item")
Result = TypeVar("Result")

IF_NEW = " ON CONFLICT DO NOTHING"
_WHOLE_TASK = ", ".join(f"{name} = excluded.{name}" for name in NEW_TASK[3:])

INSERTS: dict[Table, tuple[Sequence[str], str]] = {
    schema.jobs: (NEW_JOB, ""),
    schema.specs: (("sequence", "spec"), ""),
    schema.attempts: (NEW_ATTEMPT, ""),
    schema.events: (NEW_EVENT, ""),
    schema.tasks: (
        NEW_TASK,
        f' ON CONFLICT (job_id, number, "index") DO UPDATE SET {_WHOLE_TASK}',
    ),
    schema.notebooks: (NEW_NOTEBOOK, IF_NEW),
    schema.notebook_events: (NEW_NOTEBOOK_EVENT, ""),
    schema.settings: (
        ("key", "value"),
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    ),
    **{
        table: (tuple(table.c.keys()), IF_NEW)
        for table in (
            schema.workspaces,
            schema.users,
            schema.access_keys,
            schema.ssh_keys,
            schema.tokens,
            schema.signatures,
        )
    },
}
"""The columns that an INSERT names, in the table's order, and what follows its rows."""


class Session:
    """Runs statements on the writer's connection, inside its transaction."""

    __slots__ = ("_connection", "_database", "_statements")

    def __init__(self, database: Database, connection: Connection) -> None:
        self._database = database
        self._connection = connection
        self._statements = database.statements

    def execute(self, clause: ClauseElement, **values: Any) -> int:
        """Run a statement; how many rows it changed."""
        statement = self._statements[clause]
        return self._connection.execute(statement.sql, statement.fill(values)).rowcount

    def rows(self, clause: ClauseElement, **values: Any) -> list[tuple[Any, ...]]:
        """Run a query."""
        statement = self._statements[clause]
        return self._connection.execute(statement.sql, statement.fill(values)).fetchall()

    def insert(self, table: Table, rows: Sequence[Row]) -> int:
        """Add rows, few statements for many; how many were added or replaced.

        Not `executemany`: the driver lets go of the interpreter's lock and takes it again for
        every row, so beside a busy event loop each row would wait for its turn.
        """
        columns, suffix = INSERTS[table]
        changed = at = 0
        for count in powers(len(rows)):
            part = rows[at : at + count]
            at += count
            sql = self._statements.insert(table, columns, count, suffix)
            values = [value for row in part for value in row]
            changed += self._connection.execute(sql, values).rowcount
        return changed

    def insert_jobs(self, rows: Sequence[Row]) -> list[int]:
        """Add jobs; their sequence numbers, in order."""
        numbers: list[int] = []
        at = 0
        for count in powers(len(rows)):
            sql = self._statements.insert(schema.jobs, NEW_JOB, count, "")
            numbers += self._database.numbered(self._connection, sql, rows[at : at + count])
            at += count
        return numbers


def each(
    one: Callable[[Session, Item], Result],
) -> Callable[[Session, Sequence[Item]], list[Result]]:
    """Writes of a kind that gains nothing from being done together."""

    def apply(session: Session, items: Sequence[Item]) -> list[Result]:
        return [one(session, item) for item in items]

    return apply
