"""Records in PostgreSQL, by psycopg 3 (the extra `danlu[postgres]`)."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, cast

from sqlalchemy import Connection as CoreConnection
from sqlalchemy import create_engine, event
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.pool import NullPool

from danlu.model.errors import Invalid, Refused, Unavailable
from danlu.stores.sql.database import CONFLICT, Connection, Row, Statements

if TYPE_CHECKING:
    import psycopg

LOCK = 0x64616E6C75
"""Our advisory lock ("danlu"): one writing transaction at a time, as on SQLite. So numbers are
committed in their order, a client token is looked up and taken without a race, and no two
transactions wait for each other."""

SERVER = 0x64616E6D
"""Our other advisory lock: the one server of a schema holds it on the connection that writes."""

HOLD = f"SELECT pg_advisory_lock({SERVER}, hashtext(current_schema()))"

HOLDER = """SELECT coalesce(host(client_addr), 'local'), application_name, backend_start::text
FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND classid = %s
AND objid = hashtext(current_schema())::bit(32)::bigint"""

BEGIN = f"BEGIN; SELECT pg_advisory_xact_lock({LOCK})"

BUSY_S = 10.0
"""How long a writer waits for another one, and a reader for an answer."""

HOLD_S = 3.0
"""How long a server waits for the one before it to let go."""

PASSING = ("08", "53", "55", "57")
"""Classes of SQLSTATE that pass by themselves: connection, resources, locks, restarts."""


class Postgres:
    """A database of a PostgreSQL server, named by a URL that libpq understands."""

    room = None
    statements = Statements(PGDialect_psycopg(paramstyle="format"))  # type: ignore[no-untyped-call]  # SQLAlchemy left it untyped

    def __init__(self, url: str, *, sole: bool = False) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise Refused(
                "extra-missing", name="postgresql", install="pip install 'danlu[postgres]'"
            ) from error
        self._psycopg = psycopg
        self._url = url
        self._sole = sole
        self._claimed: Connection | None = None
        self.errors: tuple[type[Exception], ...] = (psycopg.Error, OverflowError)
        self.name = _shown(url)

    def connect(self, *, writing: bool) -> Connection:
        """A new session. It commits nothing that `finish` does not commit."""
        try:
            connection = self._psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=10,
                application_name=f"danlu {socket.gethostname()}:{os.getpid()}",
                keepalives_idle=10,
                tcp_user_timeout=10_000,
                client_encoding="utf8",
            )
            connection.execute(f"SET lock_timeout = {round(BUSY_S * 1000)}")
            if writing:
                connection.execute("SET idle_in_transaction_session_timeout = '60s'")
            else:
                connection.execute("SET default_transaction_read_only = on")
                connection.execute(f"SET statement_timeout = {round(BUSY_S * 1000)}")
        except self._psycopg.Error as error:
            raise self.translate(error) from error
        return cast("Connection", connection)

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """By a lock that the writing session holds; nothing to do for those who only look."""
        self._claimed = self._hold() if self._sole else None
        try:
            yield
        finally:
            if self._claimed is not None:
                self._claimed.close()

    def own(self) -> Connection:
        """A session that writes; a server's holds the lock again if it was broken off."""
        claimed, self._claimed = self._claimed, None
        return claimed or self._hold()

    def _hold(self) -> Connection:
        """Whoever had the lock may still be letting go of it: it is waited for."""
        connection = self.connect(writing=True)
        try:
            if self._sole:
                connection.execute(f"SET lock_timeout = {round(HOLD_S * 1000)}")
                connection.execute(HOLD)
                connection.execute(f"SET lock_timeout = {round(BUSY_S * 1000)}")
        except self._psycopg.errors.LockNotAvailable as error:
            found = connection.execute(HOLDER, (SERVER,)).fetchall()
            connection.close()
            holder = ", ".join(str(value) for value in found[0]) if found else "?"
            raise Refused("database-other-server", path=self.name, holder=holder) from error
        except self._psycopg.Error as error:
            connection.close()
            raise self.translate(error) from error
        return connection

    def usable(self, connection: Connection) -> bool:
        """Whether the server still holds the other end."""
        return not cast("psycopg.Connection", connection).closed

    def suits(self) -> None:
        """Wherever its server keeps it."""

    def check(self) -> None:
        """The server checks its own pages; what it cannot know is what texts we will bring."""
        connection = self.connect(writing=False)
        try:
            encoding = str(connection.execute("SHOW server_encoding").fetchall()[0][0])
        finally:
            connection.close()
        if encoding != "UTF8":
            raise Refused("database-encoding", path=self.name, found=encoding)

    def begin(self, connection: Connection) -> None:
        """Wait for other writers, if there are any, and begin."""
        connection.execute(BEGIN)

    def finish(self, connection: Connection) -> None:
        """Commit."""
        connection.execute("COMMIT")

    def undo(self, connection: Connection) -> None:
        """Roll back; on a broken connection the server has done so."""
        with contextlib.suppress(self._psycopg.Error):
            cast("psycopg.Connection", connection).rollback()

    def numbered(self, connection: Connection, sql: str, rows: Sequence[Row]) -> list[int]:
        """Rows come back with their ids, as their order is not promised."""
        values = [value for row in rows for value in row]
        cursor = connection.execute(f"{sql} RETURNING id, sequence", values)
        given: dict[str, int] = dict(cursor.fetchall())
        return [given[row[0]] for row in rows]

    def revision(self, connection: Connection) -> str | None:
        """Read from the first schema of the search path that holds our tables."""
        found = connection.execute("SELECT to_regclass('danlu_revision') IS NOT NULL").fetchall()
        if not found[0][0]:
            return None
        return str(connection.execute("SELECT version_num FROM danlu_revision").fetchall()[0][0])

    @contextlib.contextmanager
    def engine(self) -> Iterator[CoreConnection]:
        """PostgreSQL rolls back what it created like anything else."""
        connection = self.connect(writing=True)
        engine = create_engine(
            "postgresql+psycopg://", creator=lambda: connection, poolclass=NullPool
        )
        event.listen(engine, "begin", lambda core: core.exec_driver_sql(BEGIN))
        with engine.connect() as core, core.begin():
            yield core

    def alone(self) -> AbstractContextManager[None]:
        """Nothing to do: who changes the schema holds the lock of `BEGIN`."""
        return contextlib.nullcontext()

    def changing(self, revision: str) -> AbstractContextManager[CoreConnection]:  # noqa: ARG002  # as it is
        """In one transaction, which the server rolls back whatever happens."""
        return self.engine()

    def kept(self) -> str:
        """Nothing."""
        return ""

    def translate(self, error: Exception) -> Exception:
        """SQLSTATEs, by what a person can do about them."""
        if isinstance(error, OverflowError):
            return Invalid("record-too-large")
        state = str(getattr(error, "sqlstate", None) or "")
        detail = (str(error).splitlines() or [type(error).__name__])[0]
        if state == "53100":
            return Refused("database-full", http=507, path=self.name, detail=detail)
        if state == "25006":
            return Unavailable("database-read-only", path=self.name)
        if state.startswith("58"):
            return Unavailable("database-unreachable", path=self.name, detail=detail)
        if state[:2] in PASSING:
            return Unavailable("busy", detail=detail)
        if state in ("22003", "54000"):
            return Invalid("record-too-large")
        if not state and isinstance(error, self._psycopg.OperationalError):
            return Unavailable("database-unreachable", path=self.name, detail=detail)
        if state.startswith("23") or state == "P0001":
            return Refused(CONFLICT, detail=detail)
        return error


def _shown(url: str) -> str:
    """The address without what is secret in it."""
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.errors import ProgrammingError

    try:
        parts = conninfo_to_dict(url)
    except ProgrammingError as error:
        raise Invalid(
            "setting-value",
            key="database",
            source="the settings",
            value="postgresql://…",
            expected="a URL such as postgresql://user@host:5432/danlu",
        ) from error
    host, port = parts.get("host", "localhost"), parts.get("port", 5432)
    return f"postgresql://{host}:{port}/{parts.get('dbname', '')}"
