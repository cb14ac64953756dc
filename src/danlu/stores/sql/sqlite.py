"""Records in one SQLite file: WAL, every commit on disk before it is answered."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection as CoreConnection
from sqlalchemy import create_engine, event
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.pool import NullPool

from danlu.model.errors import Invalid, PlatformError, Refused, Unavailable
from danlu.stores import disk
from danlu.stores.damage import damage
from danlu.stores.mounts import mount_of
from danlu.stores.sql import replacing
from danlu.stores.sql.database import CONFLICT, Connection, Row, Statements
from danlu.stores.sql.room import Room
from danlu.stores.sql.witness import Witness

BUSY_S = 10.0
"""How long a writer waits for another process' transaction."""
WAL_BYTES = 64 << 20
"""The write-ahead log is cut back to this after a checkpoint."""

CHECKPOINT_PAGES = 4000
"""16 MiB. A group of submissions writes about 200 pages, mostly the same ones of the same indexes:
with SQLite's usual 1,000 every fifth commit would carry them over into the database."""

# For the connection's life; journal_mode is kept in the file, and set where the file is made.
WRITER = (
    "foreign_keys = ON",
    "synchronous = FULL",
    f"journal_size_limit = {WAL_BYTES}",
    f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
)
READER = ("query_only = ON",)
EITHER = ("cache_size = -8000", "temp_store = MEMORY")


class Sqlite:
    """A database file, made with mode 0600 where it does not exist."""

    errors: tuple[type[Exception], ...] = (sqlite3.Error, OverflowError)
    statements = Statements(SQLiteDialect_pysqlite())

    def __init__(self, path: Path, reserve_bytes: int = 0) -> None:
        self.path = path
        self.room = Room(path, reserve_bytes)
        self._witness = Witness(path)
        self.name = str(path)

    def connect(self, *, writing: bool) -> Connection:
        """Open the file; one thread at a time may use the connection."""
        try:
            if not self.path.exists():
                self._make()
            connection = self._open()
        except (sqlite3.Error, OSError) as error:
            raise self.translate(error) from error
        try:
            for pragma in (*(WRITER if writing else READER), *EITHER):
                connection.execute(f"PRAGMA {pragma}")
            if writing:
                _use_wal(connection)
        except sqlite3.Error as error:
            connection.close()
            raise self.translate(error) from error
        return cast("Connection", connection)

    def claimed(self) -> AbstractContextManager[None]:
        """Nothing to do: the lock of the data directory keeps other servers away."""
        return contextlib.nullcontext()

    def own(self) -> Connection:
        """One like any other."""
        return self.connect(writing=True)

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.path,
            timeout=BUSY_S,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )

    def _make(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))

    def usable(self, connection: Connection) -> bool:  # noqa: ARG002  # a file does not hang up
        """Unless its disk cannot be written to: SQLite then opens the file for reading only, and
        would not notice that it may write again.
        """
        return not disk.is_read_only(self.path.parent)

    def suits(self) -> None:
        """Not over a network, where locks and shared memory do not hold."""
        mount = mount_of(self.path)
        if mount is not None and mount.is_network:
            raise Refused("database-network", path=self.name, kind=mount.kind, mount=mount.point)

    def check(self) -> None:
        """Look through every page of the file, unless it is new, and how far it has come."""
        connection = self.connect(writing=False)
        try:
            self._witness.check(cast("sqlite3.Connection", connection))
            found = damage(connection)
        except sqlite3.Error as error:
            raise self.translate(error) from error
        finally:
            connection.close()
        if found:
            raise Refused("database-damaged", path=self.name, detail=found)

    def begin(self, connection: Connection) -> None:
        """Take the write lock at once: a lock that is only upgraded later fails at once."""
        connection.execute("BEGIN IMMEDIATE")

    def finish(self, connection: Connection) -> None:
        """Commit and fsync."""
        connection.execute("COMMIT")
        self._witness.note(cast("sqlite3.Connection", connection))

    def undo(self, connection: Connection) -> None:
        """Roll back; some errors have done so already."""
        cast("sqlite3.Connection", connection).rollback()

    def numbered(self, connection: Connection, sql: str, rows: Sequence[Row]) -> list[int]:
        """Rows of one INSERT get numbers without a gap, as nobody else writes meanwhile."""
        cursor = connection.execute(sql, [value for row in rows for value in row])
        last = cast("sqlite3.Cursor", cursor).lastrowid or 0
        return list(range(last - len(rows) + 1, last + 1))

    def revision(self, connection: Connection) -> str | None:
        """Read from the file; one that holds tables of somebody else is refused."""
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master").fetchall()}
        if not names:
            return None
        if "danlu_revision" not in names:
            raise Refused("database-foreign", path=self.name)
        return str(connection.execute("SELECT version_num FROM danlu_revision").fetchall()[0][0])

    @contextlib.contextmanager
    def engine(self) -> Iterator[CoreConnection]:
        """The driver would commit before each CREATE; with its transactions off it does not."""
        connection = self.connect(writing=True)
        engine = create_engine("sqlite://", creator=lambda: connection, poolclass=NullPool)
        event.listen(engine, "begin", lambda core: core.exec_driver_sql("BEGIN IMMEDIATE"))
        with engine.connect() as core, core.begin():
            yield core

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Wait for other processes that make or change the schema."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            held = replacing.alone(self.path)
            with held:
                yield
        except OSError as error:
            raise self.translate(error) from error

    @contextlib.contextmanager
    def changing(self, revision: str) -> Iterator[CoreConnection]:
        """On a copy beside the file, which then takes its place; the old one is kept."""
        connection = cast("sqlite3.Connection", self.connect(writing=True))
        with (
            contextlib.closing(connection),
            replacing.copied(self.path, connection, revision) as copy,
            type(self)(copy).engine() as core,
        ):
            yield core

    def kept(self) -> str:
        """The file from before the last change of the schema, if it is still there."""
        return max(
            map(str, self.path.parent.glob(f"{self.path.name}{replacing.BEFORE}*")), default=""
        )

    def translate(self, error: Exception) -> Exception:
        """SQLite's result codes, by what a person can do about them."""
        if isinstance(error, OverflowError):
            return _too_large()
        if isinstance(error, OSError):
            return Unavailable("database-unreachable", path=self.name, detail=error.strerror)
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        match code & 0xFF:
            case sqlite3.SQLITE_FULL:
                return self.room.shortage(str(error))
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return Unavailable("busy", detail=str(error))
            case sqlite3.SQLITE_READONLY:
                return Unavailable("database-read-only", path=self.name)
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                return Refused("database-damaged", path=self.name, detail=str(error))
            case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
                return Unavailable("database-unreachable", path=self.name, detail=str(error))
            case sqlite3.SQLITE_IOERR:
                return self._io_error(code, error)
            case sqlite3.SQLITE_TOOBIG:
                return _too_large()
            case sqlite3.SQLITE_CONSTRAINT:
                return Refused(CONFLICT, detail=str(error))
        return error

    def _io_error(self, code: int, error: Exception) -> PlatformError:
        if code in (sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC):
            return Unavailable("database-failed", path=self.name, detail=str(error))
        if disk.is_read_only(self.path.parent):
            return Unavailable("database-read-only", path=self.name)
        if disk.is_full(self.path.parent):
            return self.room.shortage(str(error))
        return Unavailable("database-unreachable", path=self.name, detail=str(error))


def _too_large() -> PlatformError:
    return Invalid("record-too-large")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL. SQLite does not wait here for another opener that does the same."""
    give_up = time.monotonic() + BUSY_S
    while True:
        try:
            mode: Any = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.01)
            continue
        if mode[0] != "wal":
            raise sqlite3.OperationalError(f"the file system gives no WAL (mode {mode[0]})")
        return
