"""The schema of a database as text, and databases without any."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from danlu.stores.sql.migrate import SCRIPTS
from danlu.stores.sql.opening import open_database
from danlu.stores.sql.schema import REVISIONS
from danlu.stores.sql.sqlite import Sqlite

POSTGRES_SCHEMA = """
SELECT 'column', table_name, column_name, concat_ws(' ', data_type, collation_name,
       is_nullable, column_default, is_identity, identity_generation, character_maximum_length)
  FROM information_schema.columns WHERE table_schema = current_schema()
UNION ALL
SELECT 'index', tablename, indexname, replace(indexdef, current_schema() || '.', '')
  FROM pg_indexes WHERE schemaname = current_schema()
UNION ALL
SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid)
  FROM pg_constraint WHERE connamespace = current_schema()::regnamespace
UNION ALL
SELECT 'trigger', tgrelid::regclass::text, tgname,
       replace(pg_get_triggerdef(pg_trigger.oid), current_schema() || '.', '')
  FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
  WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace
UNION ALL
SELECT 'function', '', proname, prosrc
  FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
"""
SQLITE_SCHEMA = "SELECT type, tbl_name, name, coalesce(sql, '') FROM sqlite_master"


def described(where: str | Path) -> list[tuple[str, ...]]:
    """Everything that makes up the schema, sorted, and the revision."""
    database = open_database(where)
    query = SQLITE_SCHEMA if isinstance(database, Sqlite) else POSTGRES_SCHEMA
    with contextlib.closing(database.connect(writing=True)) as connection:
        rows = [
            tuple(" ".join(str(part).split()) for part in row) for row in all_of(connection, query)
        ]
        revision = database.revision(connection)
    return sorted([*rows, ("revision", str(revision))])


def all_of(connection: object, query: str) -> list[tuple[object, ...]]:
    """The rows of a query."""
    return connection.execute(query).fetchall()  # type: ignore[attr-defined,no-any-return]  # either driver's


def emptied(where: str | Path) -> None:
    """Remove the file, or everything in the schema."""
    database = open_database(where)
    if isinstance(database, Sqlite):
        for left in database.path.parent.glob(f"{database.path.name}*"):
            left.unlink()
        return
    with contextlib.closing(database.connect(writing=True)) as connection:
        schema = str(connection.execute("SHOW search_path").fetchall()[0][0])
        assert schema.startswith("test_")
        connection.execute(f"DROP SCHEMA {schema} CASCADE")
        connection.execute(f"CREATE SCHEMA {schema}")


NEXT = f"{int(REVISIONS[-1]) + 1:04}"
"""The revision of the step that the next version will bring."""

STEP = """
import sqlalchemy as sa
from alembic import op

revision = "NEXT"
down_revision = "LAST"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("colour", sa.Text(), nullable=False, server_default="red"))
    op.create_table("shelves", sa.Column("id", sa.Text(), nullable=False, primary_key=True))
    op.create_index("shelves_by_id", "shelves", ["id"])
    op.execute("UPDATE jobs SET colour = 'blue'")
    op.execute("INSERT INTO shelves (id) SELECT id FROM jobs")
    op.drop_index("jobs_by_name", "jobs")
    op.create_index("jobs_by_name", "jobs", ["workspace", "name"])
"""


def next_version(folder: Path) -> Path:
    """The migrations of this program with one more step, as the next version will have them."""
    shutil.copytree(SCRIPTS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / f"{NEXT}_colours.py").write_text(
        STEP.replace("NEXT", NEXT).replace("LAST", REVISIONS[-1])
    )
    return folder
