"""The keys of one bucket: SQLite in WAL mode, `synchronous=FULL`, one row a key.

Reads take a connection of their own. Writes of the threads of a process are committed in
groups: whoever comes to lead commits everything that waits, so eight writers cost little more
disk waits than one. Processes take turns by SQLite's own lock.
"""

from __future__ import annotations

import copy
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from danlu.model.errors import EngineError, PlatformError, Unavailable
from danlu.stores import disk
from danlu.stores.folder.failures import of_disk

T = TypeVar("T")
Connection = sqlite3.Connection

VERSION = 2
BUSY_S = 30.0
GROUP = 256
"""Changes of one commit at most, so that the first of them does not wait for ever."""
MOST_IDLE = 8

_STEPS = {
    1: (
        # One row. A deleted bucket keeps its empty index: a file that other processes have open is
        # never taken away from under them.
        "CREATE TABLE bucket (deleted INTEGER NOT NULL)",
        "INSERT INTO bucket VALUES (1)",
        """
    CREATE TABLE objects (
        key BLOB PRIMARY KEY,
        blob TEXT NOT NULL,
        size INTEGER NOT NULL,
        etag BLOB NOT NULL,
        sha256 BLOB NOT NULL,
        modified_at INTEGER NOT NULL,
        metadata TEXT
    ) WITHOUT ROWID
    """,
        # Blobs whose row is gone; the file goes next, then the row here.
        "CREATE TABLE dead (blob TEXT PRIMARY KEY) WITHOUT ROWID",
    ),
    2: (
        "ALTER TABLE bucket ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE bucket ADD COLUMN tags TEXT",
        "UPDATE bucket SET created_at = (SELECT coalesce(min(modified_at), :now) FROM objects)",
        # How many parts an object was uploaded in; 0 = it was stored as one piece.
        "ALTER TABLE objects ADD COLUMN parts INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE objects ADD COLUMN headers TEXT",
        "ALTER TABLE objects ADD COLUMN tags TEXT",
        # `etag` is that of the object an upload has become; NULL while it is open.
        """
    CREATE TABLE uploads (
        id TEXT PRIMARY KEY,
        key BLOB NOT NULL,
        created_at INTEGER NOT NULL,
        used_at INTEGER NOT NULL,
        metadata TEXT,
        headers TEXT,
        etag TEXT
    ) WITHOUT ROWID
    """,
        "CREATE INDEX uploads_of_key ON uploads (key, id)",
        """
    CREATE TABLE parts (
        upload TEXT NOT NULL,
        number INTEGER NOT NULL,
        blob TEXT NOT NULL,
        size INTEGER NOT NULL,
        md5 BLOB NOT NULL,
        modified_at INTEGER NOT NULL,
        PRIMARY KEY (upload, number)
    ) WITHOUT ROWID
    """,
    ),
}
"""What brings an index from the version before to this one."""


class Index:
    """The index of one bucket, as one process uses it. Never carried across a fork."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[Connection] = []
        self._queue: deque[_Change[Any]] = deque()
        self._turn = threading.Lock()

    def make(self) -> None:
        """Make the tables of a new index. Nobody else knows of the file yet."""
        with self._translated(), self._connection() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            _upgrade(connection, 0)
        self.close()

    def read(self, run: Callable[[Connection], T]) -> T:
        """What `run` finds; each statement of it sees one moment of the index."""
        with self._translated(), self._connection() as connection:
            return run(connection)

    def write(self, change: Callable[[Connection], T], directory: Path | None = None) -> T:
        """Run `change` in a transaction, durable when this returns; `directory` is synced before.

        A PlatformError raised by `change` (which then must not have written yet) concerns this
        change alone and reaches only its caller. Refused and Missing mean that nothing was
        stored; after any other error that is not certain.
        """
        waiting = _Change(change, directory)
        self._queue.append(waiting)
        try:
            with self._turn:
                while not waiting.done:
                    self._commit_queue()
        except BaseException:
            with suppress(ValueError):
                self._queue.remove(waiting)
            raise
        return waiting.outcome()

    def close(self) -> None:
        """Close what is idle; the index opens again when used."""
        while self._idle:
            self._idle.pop().close()

    def _commit_queue(self) -> None:
        """Commit what waits. A change leaves the queue only when it is done, so that an
        interrupt at any line loses none.
        """
        group = [waiting for waiting in list(self._queue)[:GROUP] if not waiting.done]
        try:
            self._commit(group)
        except PlatformError as problem:
            for waiting in group:
                waiting.fail(problem)
        except BaseException as problem:
            for waiting in group:
                waiting.fail(Unavailable("busy", detail=f"interrupted: {problem!r}"))
            raise
        finally:
            while self._queue and self._queue[0].done:
                self._queue.popleft()

    def _commit(self, group: list[_Change[Any]]) -> None:
        with of_disk(self._path.parent):
            for directory in {waiting.directory for waiting in group}:
                if directory is not None:
                    disk.sync(directory)
        with self._translated(), self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                for waiting in group:
                    waiting.run(connection)
                connection.execute("COMMIT")
            except BaseException:
                _roll_back(connection)
                raise
            for waiting in group:
                waiting.done = True

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._open()
        reusable = False
        try:
            yield connection
            reusable = True
        except PlatformError:
            reusable = True
            raise
        finally:
            if reusable and len(self._idle) < MOST_IDLE:
                self._idle.append(connection)
            else:
                connection.close()

    def _open(self) -> Connection:
        connection = sqlite3.connect(
            self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA synchronous = FULL")
            _check_version(connection, self._path)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as problem:
            raise self._explained(problem) from problem

    def _explained(self, problem: sqlite3.Error) -> PlatformError:
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            return Unavailable("busy", detail=f"the object index is locked for over {BUSY_S:.0f} s")
        if code == sqlite3.SQLITE_FULL or disk.is_full(self._path.parent):
            return disk.full(self._path.parent, str(problem))
        if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            return EngineError("database-damaged", path=str(self._path), detail=str(problem))
        return Unavailable("store-failed", path=str(self._path.parent), detail=str(problem))


class _Change(Generic[T]):
    """One waiting change and what came of it."""

    __slots__ = ("_change", "_error", "_value", "directory", "done")

    def __init__(self, change: Callable[[Connection], T], directory: Path | None) -> None:
        self._change = change
        self._value: list[T] = []
        self._error: PlatformError | None = None
        self.directory = directory
        self.done = False

    def run(self, connection: Connection) -> None:
        try:
            self._value = [self._change(connection)]
        except PlatformError as problem:
            self._error = problem

    def fail(self, problem: PlatformError) -> None:
        """The group was not committed; what this change itself was refused for stays."""
        if self._error is None:
            self._error = copy.copy(problem)  # each thread raises an exception of its own
            self._error.__cause__ = problem
        self.done = True

    def outcome(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value[0]


def alive(connection: Connection) -> bool:
    """Whether the bucket exists: a deleted one keeps its index."""
    (deleted,) = connection.execute("SELECT deleted FROM bucket").fetchone()
    return not deleted


def _check_version(connection: Connection, path: Path) -> None:
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > VERSION:
        raise EngineError("objects-newer", path=path, found=found, known=VERSION)
    if 0 < found < VERSION:  # 0 is a file that `Index.make` is about to fill
        _upgrade(connection, found)


def _upgrade(connection: Connection, found: int) -> None:
    """Bring an index to `VERSION` in one transaction, unless somebody else just did."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute("PRAGMA user_version").fetchone() == (found,):
            now = {"now": time.time_ns() // 1_000_000}
            for version in range(found + 1, VERSION + 1):
                for statement in _STEPS[version]:
                    connection.execute(statement, now if ":now" in statement else {})
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def _roll_back(connection: Connection) -> None:
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("ROLLBACK")
