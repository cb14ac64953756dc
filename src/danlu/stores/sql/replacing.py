"""A SQLite file whose schema is changed on a copy beside it, which then takes its place.

Whatever goes wrong, and whatever dies, the file under the database's name is the old one, whole,
or the new one, whole. The old one stays beside it, for the way back.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from danlu.model.errors import Refused, Unavailable
from danlu.stores import disk
from danlu.stores.damage import damage

log = logging.getLogger(__name__)

COPY = ".migrating"
BEFORE = ".before-"
SIDE_FILES = ("-wal", "-shm", "-journal")
COPIES = 2
"""How often a migration may have to write the whole content: a table is changed by copying it."""
SPARE_BYTES = 4 << 20
WAIT_S = 10.0
"""How long others may still have the database open."""
PAUSE_S = 0.02


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """While the block runs no other process changes the schema of the database at `path`. The
    directory is locked and no file of its own, which would be left over.
    """
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def copied(path: Path, connection: sqlite3.Connection, revision: str) -> Iterator[Path]:
    """A copy of the database that takes its place when the block ends well.

    `connection` is one to the database at `path`; nobody else gets in until it is closed. The old
    file is kept under the name of its `revision`. Refused where the disk has no room for the copy
    or the copy does not hold what the database held; Unavailable while somebody else has it open.
    """
    copy = path.with_name(path.name + COPY)
    _remove(copy)
    _check_room(path)
    _one_file(connection, path)
    rows = _counted(connection)
    try:
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as target:
            copy.chmod(0o600)
            connection.backup(target)
        yield copy
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as target:
            _one_file(target, copy)
            _verify(target, path, rows)
        _take_place(copy, path, path.with_name(f"{path.name}{BEFORE}{revision}"))
    finally:
        _remove(copy)


def _one_file(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the write-ahead log into the file and let nobody else in: a log that is left lying
    would be taken for that of the file that comes next.
    """
    give_up = time.monotonic() + WAIT_S
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
            if mode[0] == "delete":
                # An exclusive lock is kept from here on.
                connection.execute("BEGIN EXCLUSIVE")
                connection.execute("COMMIT")
                return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
        if time.monotonic() > give_up:
            raise Unavailable("database-in-use", path=str(path))
        time.sleep(PAUSE_S)


def _check_room(path: Path) -> None:
    needed = path.stat().st_size * COPIES + SPARE_BYTES
    try:
        free = disk.free_bytes(path.parent)
    except OSError:
        return
    if free < needed:
        raise Refused(
            "migration-room", http=507, path=str(path), free_bytes=free, needed_bytes=needed
        )


def _counted(connection: sqlite3.Connection) -> dict[str, int]:
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    counts: dict[str, int] = {}
    for (name,) in names:
        quoted = name.replace('"', '""')
        query = f'SELECT count(*) FROM "{quoted}"'  # noqa: S608 - our own names, and quoted
        counts[name] = connection.execute(query).fetchone()[0]
    return counts


def _verify(connection: sqlite3.Connection, path: Path, before: dict[str, int]) -> None:
    """Refused unless the changed copy is whole and no table that it still has lost a row."""
    wrong = [found] if (found := damage(connection)) else []
    lost = connection.execute("PRAGMA foreign_key_check").fetchmany(1)
    wrong += [f"{row[0]}: a row points nowhere" for row in lost]
    after = _counted(connection)
    wrong += [
        f"{name}: {count} rows became {after[name]}"
        for name, count in before.items()
        if name in after and after[name] != count
    ]
    if wrong:
        raise Refused("migration-failed", path=str(path), detail="; ".join(wrong))


def _take_place(copy: Path, path: Path, kept: Path) -> None:
    disk.sync(copy)
    for older in path.parent.glob(f"{path.name}{BEFORE}*"):
        older.unlink()
    try:
        kept.hardlink_to(path)
    except OSError as error:
        log.warning("the database from before the migration is not kept: %s", error)
    copy.replace(path)
    disk.sync(path.parent)


def _remove(path: Path) -> None:
    for suffix in ("", *SIDE_FILES):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
