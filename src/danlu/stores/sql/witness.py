"""A number beside the database that says how far it had come: it can only be behind.

SQLite opens a database whose log was deleted, or an old copy of the file, without a word; what
had been recorded since is then missing, and tasks that run look like nobody's. After each commit
the number of the last event is written here, without waiting for the disk: it outlives the
process, and a power cut leaves an earlier number, never a later one.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from danlu.model.errors import Refused

SUFFIX = ".last"
DIGITS = 20
LAST = "SELECT max(sequence) FROM events"
OWNER = "SELECT value FROM settings WHERE key = 'server-id'"
"""Made once for each server. The log of another database, copied here, brings another one."""


class Witness:
    """The number of one database file, and whose it is."""

    def __init__(self, path: Path) -> None:
        self._database = path
        self._path = path.with_name(path.name + SUFFIX)
        self._noted = ""
        self._owner = ""

    def note(self, connection: sqlite3.Connection) -> None:
        """Say how far the database has come. A failure is not worth a commit that is done."""
        with contextlib.suppress(OSError, sqlite3.Error):
            self._owner = self._owner or _owner(connection)
            text = f"{_last(connection):0{DIGITS}} {self._owner}\n"
            if text == self._noted:
                return
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self._path, flags, 0o600)
            try:
                os.pwrite(descriptor, text.encode(), 0)
            finally:
                os.close(descriptor)
            self._noted = text

    def check(self, connection: sqlite3.Connection) -> None:
        """Refused where the database has less than it once had, or is another one."""
        try:
            number, _, owner = self._path.read_text("ascii").strip().partition(" ")
        except (OSError, UnicodeDecodeError):
            return
        if len(number) != DIGITS or not number.isdigit():
            return  # torn by a power cut
        found = _owner(connection)
        if owner and found and owner != found:
            raise Refused("database-other", path=self._database, witness=self._path)
        last = _last(connection)
        if last < int(number):
            raise Refused(
                "database-behind",
                path=self._database,
                found=last,
                expected=int(number),
                witness=self._path,
            )


def _last(connection: sqlite3.Connection) -> int:
    try:
        return int(connection.execute(LAST).fetchone()[0] or 0)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
        return 0  # there is no such table: the file itself was lost


def _owner(connection: sqlite3.Connection) -> str:
    try:
        row = connection.execute(OWNER).fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
        return ""
    return str(row[0]) if row else ""
