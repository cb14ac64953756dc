"""Brings a database to the schema that this program knows: all of the way, or not at all.

A new database is made from `schema.metadata` and stamped, in one transaction; an older one is
changed by Alembic, which is imported only then: a SQLite file on a copy, PostgreSQL in one
transaction under a lock. Whatever dies in between, the database is as it was before.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection as CoreConnection
from sqlalchemy.exc import DBAPIError

import danlu
from danlu.model.errors import Refused
from danlu.stores.sql import schema
from danlu.stores.sql.database import Database

SCRIPTS = Path(__file__).resolve().parent.parent / "migrations"


def migrate(
    database: Database, revisions: Sequence[str] = schema.REVISIONS, scripts: Path = SCRIPTS
) -> None:
    """Check the database, and make or upgrade its schema. Refused for one that is damaged, or that
    a newer program made.

    `revisions` are all that this program knows, the first one first; `scripts` is where Alembic
    finds them.
    """
    with database.alone():
        database.check()
        found = _found(database)
        if found == revisions[-1]:
            return
        if found not in revisions:
            raise _newer(database, found, revisions[-1])
        _change(database, found, scripts)


def _found(database: Database) -> str:
    """The schema's revision; it is made where there is none."""
    connection = database.connect(writing=True)
    try:
        return database.revision(connection) or _create(database)
    except database.errors as error:
        raise database.translate(error) from error
    finally:
        connection.close()


def _newer(database: Database, found: str, known: str) -> Refused:
    """Both versions, and the way back."""
    kept = database.kept()
    return Refused(
        "database-newer-kept" if kept else "database-newer",
        path=database.name,
        newer=_written_by(database),
        found=found,
        version=danlu.__version__,
        known=known,
        kept=kept,
    )


def _written_by(database: Database) -> str:
    """The program's version that last opened it, as far as this one can tell."""
    connection = database.connect(writing=False)
    try:
        query = "SELECT value FROM settings WHERE key = 'version'"
        rows = connection.execute(query).fetchall()
    except database.errors:
        return "?"
    finally:
        connection.close()
    return str(rows[0][0]) if rows else "?"


def _change(database: Database, found: str, scripts: Path) -> None:
    try:
        with database.changing(found) as core:
            upgrade(core, scripts)
    except database.errors as error:
        raise database.translate(error) from error
    except DBAPIError as error:
        cause = error.orig
        raise (database.translate(cause) if isinstance(cause, Exception) else error) from error


def upgrade(core: CoreConnection, scripts: Path = SCRIPTS, to: str = "head") -> None:
    """Run the steps that `core`'s database lacks, inside the transaction that it is in."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.attributes["connection"] = core
    command.upgrade(config, to)


def _create(database: Database) -> str:
    """Make everything, unless another process has done so while we waited for the lock."""
    connection = database.connect(writing=True)
    try:
        database.begin(connection)
        found = database.revision(connection)
        if found is None:
            for statement in schema.creation(database.statements.dialect):
                connection.execute(statement)
            found = schema.REVISIONS[-1]
        database.finish(connection)
    finally:
        connection.close()
    return found
