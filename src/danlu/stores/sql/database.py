"""What the two databases have in common, and where they differ.

Statements are written once with SQLAlchemy Core, compiled once a database, and then run on the
driver itself: a read is served on the event loop, where the microseconds of a query builder
would be most of its time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from sqlalchemy import ClauseElement, Dialect, Table, insert
from sqlalchemy import Connection as CoreConnection

from danlu.model.errors import Invalid, PlatformError
from danlu.stores.sql.room import Room

Row = Sequence[Any]

MOST_ROWS = 64
"""Rows of the longest INSERT. A power of two: the shorter ones are the powers below it."""

CONFLICT = "record-conflict"


class Cursor(Protocol):
    """What both drivers' cursors can do."""

    rowcount: int

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The remaining rows."""


class Connection(Protocol):
    """What both drivers' connections can do. Nothing commits unless it is told to."""

    def execute(self, sql: str, values: Sequence[Any] = ..., /) -> Cursor:
        """Run one statement."""

    def close(self) -> None:
        """Let go of the database."""


class Statement:
    """SQL with the order in which its values go."""

    __slots__ = ("_constants", "_names", "sql")

    def __init__(self, clause: ClauseElement, dialect: Dialect) -> None:
        compiled = clause.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
        self.sql = str(compiled)
        self._names: tuple[str, ...] = tuple(getattr(compiled, "positiontup", None) or ())
        self._constants: Mapping[str, Any] = getattr(compiled, "params", None) or {}

    def fill(self, values: Mapping[str, Any]) -> list[Any]:
        """The values in order; those that the clause itself holds need not be given."""
        constants = self._constants
        return [values[name] if name in values else constants[name] for name in self._names]


class Statements:
    """Clauses compiled for one kind of database, each when it is first used."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._made: dict[ClauseElement, Statement] = {}
        self._inserts: dict[tuple[ClauseElement, int], str] = {}

    def __getitem__(self, clause: ClauseElement) -> Statement:
        made = self._made.get(clause)
        if made is None:
            # Two threads may both compile it; the later one wins, to no harm.
            made = self._made[clause] = Statement(clause, self.dialect)
        return made

    def insert(self, table: Table, columns: Sequence[str], rows: int, suffix: str = "") -> str:
        """An INSERT of `rows` rows in one statement, the values row by row."""
        made = self._inserts.get((table, rows))
        if made is None:
            row = dict.fromkeys(columns)
            clause = insert(table).inline().values([row] * rows)
            made = str(clause.compile(dialect=self.dialect)) + suffix
            self._inserts[(table, rows)] = made
        return made


class Database(Protocol):
    """SQLite or PostgreSQL."""

    @property
    def name(self) -> str:
        """For people: the file, or the address without its password."""

    @property
    def statements(self) -> Statements:
        """Clauses compiled for this kind of database."""

    @property
    def room(self) -> Room | None:
        """The room on its disk; None where that is another server's affair."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What the driver raises."""

    def connect(self, *, writing: bool) -> Connection:
        """A new connection that any one thread at a time may use."""

    def claimed(self) -> AbstractContextManager[None]:
        """From here on this is the database of one server alone, which `own` goes on with; Refused
        while there is another.
        """

    def own(self) -> Connection:
        """The connection of the one that writes."""

    def usable(self, connection: Connection) -> bool:
        """Whether the connection may be used again after an error."""

    def suits(self) -> None:
        """Raise Refused where the database lies in a place that would damage it."""

    def check(self) -> None:
        """Raise Refused if what is stored is damaged. Called before anything is read."""

    def begin(self, connection: Connection) -> None:
        """Begin a transaction that no other writer runs beside."""

    def finish(self, connection: Connection) -> None:
        """Commit: when this returns, the transaction is on disk."""

    def undo(self, connection: Connection) -> None:
        """Roll back what was begun, if anything."""

    def numbered(self, connection: Connection, sql: str, rows: Sequence[Row]) -> list[int]:
        """Run an INSERT into `jobs`; the sequence numbers given, in the order of `rows`."""

    def revision(self, connection: Connection) -> str | None:
        """The schema's revision; None where there is no table of ours. Refused for a stranger's."""

    def engine(self) -> AbstractContextManager[CoreConnection]:
        """A Core connection inside the transaction that `begin` begins."""

    def alone(self) -> AbstractContextManager[None]:
        """While the block runs, no other process makes or changes the schema."""

    def changing(self, revision: str) -> AbstractContextManager[CoreConnection]:
        """A Core connection on which the schema, now at `revision`, is changed: for good when the
        block ends well, not at all otherwise.
        """

    def kept(self) -> str:
        """What a change of the schema kept of the time before it; empty if nothing."""

    def translate(self, error: Exception) -> Exception:
        """The driver's error as one of ours; itself where it tells of a mistake in this code."""


def blames_one(problem: Exception) -> bool:
    """Whether a failure is one write's own fault, so that its neighbours may still go through."""
    if not isinstance(problem, PlatformError):
        return True
    return isinstance(problem, Invalid) or problem.key == CONFLICT


def powers(count: int) -> list[int]:
    """`count` as a sum of few powers of two up to MOST_ROWS, so that few INSERTs are compiled."""
    parts = [MOST_ROWS] * (count // MOST_ROWS)
    rest = count % MOST_ROWS
    return parts + [1 << bit for bit in range(rest.bit_length() - 1, -1, -1) if rest >> bit & 1]
