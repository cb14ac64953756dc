"""A program for test_records_schema.py: kill a migration at its first step, at its second …

    python -m tests.contract.killed_migration {create|upgrade} WHERE OLD_SCRIPTS NEW_SCRIPTS

A step is a statement, or a call that links, replaces, removes or syncs a file. One child a step:
it is ended by SIGKILL when that step begins. What it leaves must be the schema from before or the
one from after, and the next opener must get through. Prints the number of steps. A process of its
own, because children may only be forked where no other thread runs.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from danlu.stores.sql import sqlite
from danlu.stores.sql.migrate import migrate
from danlu.stores.sql.opening import open_database
from danlu.stores.sql.schema import REVISIONS
from tests.contract.schemas import NEXT, described, emptied

BEFORE, AFTER = REVISIONS, (*REVISIONS, NEXT)


def main() -> None:
    what, where, old, new = sys.argv[1:]
    revisions, scripts = (BEFORE, Path(old)) if what == "create" else (AFTER, Path(new))
    prepare(what, where, old)
    before = described(where)
    migrate(open_database(where), revisions, scripts)
    after = described(where)
    assert before != after

    statement = 0
    while True:
        statement += 1
        prepare(what, where, old)
        ended = in_child(partial(killed_at, statement, where, revisions, scripts))
        assert described(where) in (before, after), f"something between, at {statement}"
        assert in_child(lambda: migrate(open_database(where), revisions, scripts)) == 0
        assert described(where) == after, f"another schema after {statement}"
        if ended == 0:
            break
        assert ended == signal.SIGKILL, f"statement {statement} ended with {ended}"
    sys.stdout.write(f"{statement - 1}\n")


def prepare(what: str, where: str, old: str) -> None:
    emptied(where)
    if what == "upgrade":
        migrate(open_database(where), BEFORE, Path(old))


def in_child(action: Any) -> int:
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException as error:
            sys.stderr.write(f"{error!r}\n")
            os._exit(99)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def killed_at(statement: int, where: str, revisions: tuple[str, ...], scripts: Path) -> None:
    left = statement

    def count(*_: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    class Counted(sqlite.Sqlite):
        def _open(self) -> sqlite3.Connection:
            connection = super()._open()
            connection.set_trace_callback(count)
            return connection

    execute = psycopg.Cursor.execute

    def counted(self: Any, *arguments: Any, **named: Any) -> Any:
        count()
        return execute(self, *arguments, **named)

    psycopg.Cursor.execute = counted  # type: ignore[method-assign]  # every statement passes here
    # The copy's way to its place is made of these.
    for name in ("link", "replace", "unlink", "fsync"):
        setattr(os, name, before(getattr(os, name), count))
    database = open_database(where)
    if isinstance(database, sqlite.Sqlite):
        database = Counted(database.path)
    migrate(database, revisions, scripts)


def before(function: Any, count: Any) -> Any:
    def counted(*arguments: Any, **named: Any) -> Any:
        count()
        return function(*arguments, **named)

    return counted


if __name__ == "__main__":
    main()
