"""Brings a database to the schema that this program knows, in one transaction, under a lock.

A new database is made from `schema.metadata` and stamped; an older one is changed by Alembic,
which is imported only then. Whatever dies in between, the database is as it was before.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection as CoreConnection
from sqlalchemy.exc import DBAPIError

from danlu.model.errors import Refused
from danlu.stores.sql import schema
from danlu.stores.sql.database import Database

SCRIPTS = Path(__file__).resolve().parent.parent / "migrations"


def migrate(
    database: Database, revisions: Sequence[str] = schema.REVISIONS, scripts: Path = SCRIPTS
) -> None:
    """Make or upgrade the schema. Refused for one that a newer program made.

    `revisions` are all that this program knows, the first one first; `scripts` is where Alembic
    finds them.
    """
    connection = database.connect(writing=True)
    try:
        found = database.revision(connection)
        if found is None:
            found = _create(database)
        if found == revisions[-1]:
            return
        if found not in revisions:
            raise Refused("database-newer", found=found, known=revisions[-1])
    except database.errors as error:
        raise database.translate(error) from error
    finally:
        connection.close()
    try:
        with database.engine() as core:
            upgrade(core, scripts)
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
