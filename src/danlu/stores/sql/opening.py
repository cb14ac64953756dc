"""Opens the records; the one name of this package that wiring needs."""

from __future__ import annotations

from pathlib import Path

from danlu.model.errors import PlatformError
from danlu.ports.records import Records
from danlu.ports.world import Clock
from danlu.stores.sql.database import Database
from danlu.stores.sql.migrate import migrate
from danlu.stores.sql.records import SqlRecords, carry_on
from danlu.stores.sql.secrets import KeyFile
from danlu.stores.sql.writer import OnFatal

POSTGRES = ("postgresql://", "postgres://")


def open_records(
    url_or_path: str | Path,
    key_file: Path,
    clock: Clock,
    on_fatal: OnFatal = carry_on,
    reserve_bytes: int = 0,
    *,
    anywhere: bool = False,
    sole: bool = False,
) -> Records:
    """Open the records in a SQLite file or in PostgreSQL (`postgresql://user@host/name`).

    The database is checked, and made or brought up to date. `key_file` holds the key of the
    secrets; it is made when it is first needed. `on_fatal` is told, on a thread of the records,
    when the disk did not keep what was written: it has to end the process. `reserve_bytes` of a
    SQLite file's disk are kept back for the ends of jobs (of a small disk, a part). `sole`: as the
    one server of a PostgreSQL schema (a SQLite file's server holds its data directory). Refused
    while there is another one, for a database on a network file system (unless `anywhere`), and
    for one that is damaged, lacks what it had, or is of a newer program or somebody else's;
    Unavailable where it cannot be reached.
    """
    database = open_database(url_or_path, reserve_bytes, sole=sole)
    try:
        if not anywhere:
            database.suits()
        # Before the schema is looked at: a newer program may not change it under a server.
        with database.claimed():
            migrate(database)
            return SqlRecords(database, KeyFile(key_file), clock, on_fatal)
    except PlatformError:
        raise
    except database.errors as error:
        raise database.translate(error) from error


def open_database(
    url_or_path: str | Path, reserve_bytes: int = 0, *, sole: bool = False
) -> Database:
    """The database that a URL or path names; nothing is opened yet."""
    if isinstance(url_or_path, str) and url_or_path.startswith(POSTGRES):
        from danlu.stores.sql.postgres import Postgres

        return Postgres(url_or_path, sole=sole)
    from danlu.stores.sql.sqlite import Sqlite

    return Sqlite(Path(str(url_or_path).removeprefix("sqlite:///")), reserve_bytes)
