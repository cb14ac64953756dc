"""Reading, on the caller's own thread.

Each thread keeps one connection open. There is no pool and no hand-over: on SQLite a job is
read in less time than a switch to another thread takes.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ClauseElement,
    ColumnElement,
    Select,
    and_,
    bindparam,
    func,
    literal_column,
    select,
    union,
)

from danlu.model.attempt import Attempt
from danlu.model.errors import Missing, Unavailable
from danlu.model.job import JobView, Output, Task
from danlu.stores.sql import rows, schema
from danlu.stores.sql.bounds import storable, whole
from danlu.stores.sql.database import Connection, Database, Statement
from danlu.stores.sql.wishes import is_job


class Reader:
    """One thread's connection. The lock is only ever waited for when the records close."""

    __slots__ = ("__weakref__", "connection", "lock")

    def __init__(self, connection: Connection) -> None:
        self.connection: Connection | None = connection
        self.lock = threading.Lock()

    def close(self) -> None:
        """Wait for a read that is under way, then let go."""
        with self.lock:
            if self.connection is not None:
                self.connection.close()
                self.connection = None

    def __del__(self) -> None:
        # A thread that ends drops its reader.
        self.close()


class Reads:
    """Runs queries. May be used from any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._local = threading.local()
        self._readers: weakref.WeakSet[Reader] = weakref.WeakSet()
        self._changed = threading.Condition()
        self._opening = 0
        self._closed = False

    def rows(self, clause: ClauseElement, **values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query that was written once."""
        return self.run(self._database.statements[clause], values)

    def run(self, statement: Statement, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        """The rows of a query, all of them: an open cursor would hold an old snapshot."""
        filled = statement.fill(values)
        reader: Reader = getattr(self._local, "reader", None) or self._open()
        with reader.lock:
            connection = reader.connection
            if connection is None:
                raise Unavailable("records-closed")
            try:
                return connection.execute(statement.sql, filled).fetchall()
            except self._database.errors as error:
                problem = self._database.translate(error)
                if self._database.usable(connection):
                    raise problem from error
        return self._again(reader, statement, filled)

    def close(self) -> None:
        """Close every thread's connection; later reads raise Unavailable."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._opening == 0)
            readers = list(self._readers)
        for reader in readers:
            reader.close()

    def _open(self) -> Reader:
        with self._changed:
            if self._closed:
                raise Unavailable("records-closed")
            self._opening += 1
        try:
            reader = Reader(self._database.connect(writing=False))
            self._local.reader = reader
            with self._changed:
                self._readers.add(reader)
        finally:
            with self._changed:
                self._opening -= 1
                self._changed.notify_all()
        return reader

    def _again(self, gone: Reader, statement: Statement, filled: Sequence[Any]) -> list[Any]:
        """The server hung up on an idle connection, most likely: try once with a new one."""
        gone.close()
        del self._local.reader
        reader = self._open()
        with reader.lock:
            connection = reader.connection
            if connection is None:
                raise Unavailable("records-closed")
            try:
                return connection.execute(statement.sql, filled).fetchall()
            except self._database.errors as error:
                raise self._database.translate(error) from error


def unindexed(column: ColumnElement[int]) -> ColumnElement[int]:
    """The column as SQLite finds no index for it: few rows are sorted after they are found."""
    return column + literal_column("0")


def whole_job() -> Select[Any]:
    """Jobs with their latest attempt and its tasks: a row a task, or one for a job without."""
    jobs, attempts, tasks = schema.jobs, schema.attempts, schema.tasks
    earlier = schema.attempts.alias("any_attempt")
    latest = (
        select(func.max(earlier.c.number))
        .where(earlier.c.job_id == jobs.c.id)
        .correlate(jobs)
        .scalar_subquery()
    )
    of_job = and_(attempts.c.job_id == jobs.c.id, attempts.c.number == latest)
    of_attempt = and_(tasks.c.job_id == attempts.c.job_id, tasks.c.number == attempts.c.number)
    return select(*rows.JOB, *rows.ATTEMPT, *rows.TASK).select_from(
        rows.JOBS.join(attempts, of_job).outerjoin(tasks, of_attempt)
    )


JOB = whole_job().where(is_job()).order_by(schema.tasks.c.index)

# Not sorted here: SQLite would walk through all jobs in order instead of the few live attempts.
LIVE = whole_job().where(
    schema.jobs.c.id.in_(select(schema.attempts.c.job_id).where(schema.LIVE_ATTEMPT)),
    schema.LIVE_ATTEMPT,
)

ATTEMPTS = (
    select(*rows.ATTEMPT, *rows.TASK)
    .select_from(
        schema.jobs.join(schema.attempts, schema.attempts.c.job_id == schema.jobs.c.id).outerjoin(
            schema.tasks,
            and_(
                schema.tasks.c.job_id == schema.attempts.c.job_id,
                schema.tasks.c.number == schema.attempts.c.number,
            ),
        )
    )
    .where(is_job())
    .order_by(schema.attempts.c.number, schema.tasks.c.index)
)

_IN_WORKSPACE = and_(schema.jobs.c.workspace == bindparam("workspace"), schema.LISTED)
# The first half does not ask for the workspace, or SQLite would walk through all of its jobs.
_NUMBERS = union(
    select(schema.jobs.c.sequence).where(
        schema.jobs.c.id >= bindparam("prefix"), schema.jobs.c.id < bindparam("beyond")
    ),
    select(schema.jobs.c.sequence).where(schema.jobs.c.name == bindparam("prefix"), _IN_WORKSPACE),
)
_FOUND = _NUMBERS.subquery("found")
IDS = (
    select(schema.jobs.c.id)
    .select_from(_FOUND.join(schema.jobs, schema.jobs.c.sequence == _FOUND.c.sequence))
    .where(_IN_WORKSPACE)
    .order_by(unindexed(schema.jobs.c.created_at).desc(), schema.jobs.c.sequence.desc())
    .limit(bindparam("most"))
)

UNSWEPT = (
    select(
        schema.attempts.c.job_id,
        schema.attempts.c.number,
        schema.attempts.c.token,
        schema.jobs.c.node_count,
    )
    .join(schema.jobs, schema.attempts.c.job_id == schema.jobs.c.id)
    .where(schema.UNSWEPT)
    .order_by(schema.jobs.c.sequence, schema.attempts.c.number)
)

UNSWEPT_SPEC = (
    select(schema.specs.c.spec)
    .select_from(rows.JOBS)
    .where(schema.jobs.c.id == bindparam("of_job"), schema.UNSWEPT)
)


def swept_outputs(reads: Reads, job_id: str) -> Sequence[Output]:
    """The outputs of a deleted job that is not forgotten."""
    found = [rows.read_spec(spec) for (spec,) in reads.rows(UNSWEPT_SPEC, of_job=job_id)]
    return [output for spec in found for output in spec.outputs]


def one(reads: Reads, workspace: str, job_id: str) -> JobView:
    """A job, or Missing."""
    if storable(job_id) and storable(workspace):
        found = rows.views(reads.rows(JOB, of_job=job_id, of_workspace=workspace))
        if found:
            return found[0]
    raise Missing("job-missing", job=job_id)


def ids(reads: Reads, workspace: str, prefix: str, limit: int) -> list[str]:
    """Ids that begin with `prefix`, and those of jobs called so, latest first."""
    if not storable(prefix) or not storable(workspace):
        return []
    found = reads.rows(
        IDS,
        workspace=workspace,
        prefix=prefix,
        beyond=f"{prefix}\U0010ffff",
        most=whole(limit, "limit", 0),
    )
    return [row[0] for row in found]


def live(reads: Reads) -> list[JobView]:
    """Every job with a live attempt, in order of submission."""
    found = reads.rows(LIVE)
    found.sort(key=rows.in_order)
    return rows.views(found)


def attempts(reads: Reads, workspace: str, job_id: str) -> list[tuple[Attempt, list[Task]]]:
    """Every attempt of a job, or Missing."""
    if storable(job_id) and storable(workspace):
        found = reads.rows(ATTEMPTS, of_job=job_id, of_workspace=workspace)
        if found:
            return rows.attempts(job_id, found)
    raise Missing("job-missing", job=job_id)
