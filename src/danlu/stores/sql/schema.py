"""The tables, and all that the database itself guards. `stores/migrations` says the same.

Columns are integers, texts and bytes only, so that rows go to and from the driver as they are.
JSON columns are ASCII text written by `danlu.model.codec`: any string survives in them. Texts
compare by their bytes on both databases.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ColumnElement,
    Dialect,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    literal_column,
)
from sqlalchemy.schema import CreateIndex, CreateTable

from danlu.model import notebook as notebook_model
from danlu.model.attempt import FINAL, LIVE, State
from danlu.model.job import Intent, Kind

REVISIONS = ("0001", "0002", "0003", "0004", "0005")
"""Every revision of `stores/migrations`, the first one first."""

metadata = MetaData(
    naming_convention={
        "ix": "%(table_name)s_by_%(column_0_N_name)s",
        "pk": "%(table_name)s_key",
        "uq": "%(table_name)s_%(column_0_N_name)s_once",
        "fk": "%(table_name)s_%(column_0_N_name)s_known",
        "ck": "%(table_name)s_%(constraint_name)s",
    }
)

Words = Text().with_variant(Text(collation="C"), "postgresql")
# SQLite numbers rows by itself only where the type is INTEGER.
Number = BigInteger().with_variant(Integer(), "sqlite")


def is_in(column: str, values: Iterable[str]) -> str:
    """`column IN (…)` over words of our own enums: the very text that partial indexes match."""
    listed = ", ".join(f"'{value}'" for value in values)
    return f"{column} IN ({listed})"


def fragment(condition: str) -> ColumnElement[bool]:
    """A condition without values, spelt as it is in the index that serves it."""
    # Without a type: one that says Boolean is rendered as `… = 1`, and no index serves that.
    return literal_column(condition)


def _flag(name: str) -> Column[int]:
    return Column(name, SmallInteger, nullable=False, server_default="0")


IS_LIVE = is_in("state", [state for state in State if state in LIVE])
IS_FINAL = is_in("state", [state for state in State if state in FINAL])

# `state` is a copy of the latest attempt's, kept by triggers, for the lists that ask for it.
jobs = Table(
    "jobs",
    metadata,
    Column("sequence", Number, Identity(), primary_key=True),
    Column("id", Words, nullable=False, unique=True),
    Column("workspace", Words, nullable=False),
    Column("name", Words, nullable=False),
    Column("description", Words, nullable=False),
    Column("flavor", Words, nullable=False),
    Column("user", Words, nullable=False),
    Column("node_count", BigInteger, nullable=False),
    Column("priority", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("state", Words, nullable=False),
    Column("intent", Words, nullable=False),
    Column("stopped_by", Words, nullable=False, server_default=""),
    Column("client_token", Words, nullable=False, server_default=""),
    _flag("deleted"),
    _flag("forgotten"),
    Column("kind", Words, nullable=False, server_default=Kind.JOB.value),
    CheckConstraint(is_in("state", State), name="state"),
    CheckConstraint(is_in("intent", Intent), name="intent"),
    sqlite_autoincrement=True,
)
NOT_DELETED = fragment("deleted = 0")
LISTED = fragment(f"deleted = 0 AND kind = '{Kind.JOB}'")
"""The starts of notebooks are no jobs of the lists."""
HAS_TOKEN = fragment("client_token <> ''")
UNSWEPT = fragment("deleted = 1 AND forgotten = 0")
# These two stand in the indexes, not in their conditions, so that counting needs no table.
_LISTED = (jobs.c.workspace, jobs.c.deleted, jobs.c.kind)
Index("jobs_by_age", *_LISTED, jobs.c.created_at, jobs.c.sequence)
Index("jobs_by_name", *_LISTED, jobs.c.name, jobs.c.sequence)
Index(
    "jobs_by_state",
    *_LISTED,
    jobs.c.state,
    jobs.c.created_at,
    jobs.c.sequence,
)
Index(
    "jobs_by_token",
    jobs.c.workspace,
    jobs.c.client_token,
    unique=True,
    sqlite_where=HAS_TOKEN,
    postgresql_where=HAS_TOKEN,
)
Index("jobs_unswept", jobs.c.sequence, sqlite_where=UNSWEPT, postgresql_where=UNSWEPT)

# Apart from `jobs`, so that looking through many jobs does not read all that they asked for.
specs = Table(
    "specs",
    metadata,
    Column("sequence", Number, ForeignKey("jobs.sequence"), primary_key=True, autoincrement=False),
    Column("spec", Text, nullable=False),
)

attempts = Table(
    "attempts",
    metadata,
    Column("job_id", Words, ForeignKey("jobs.id"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("token", Words, nullable=False),
    Column("state", Words, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("placed_at", BigInteger),
    Column("launched_at", BigInteger),
    Column("started_at", BigInteger),
    Column("exited_at", BigInteger),
    Column("ended_at", BigInteger),
    Column("reason", Text),
    Column("placement", Text),
    _flag("unreachable"),
    Column("due_at", BigInteger),
    UniqueConstraint("job_id", "number"),
    CheckConstraint(is_in("state", State), name="state"),
)
Index(
    "attempts_live",
    attempts.c.created_at,
    attempts.c.job_id,
    sqlite_where=fragment(IS_LIVE),
    postgresql_where=fragment(IS_LIVE),
)

LIVE_ATTEMPT = fragment(f"attempts.{IS_LIVE}")

tasks = Table(
    "tasks",
    metadata,
    Column("job_id", Words, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("index", BigInteger, nullable=False),
    Column("node", Words, nullable=False),
    Column("host", Words, nullable=False),
    Column("started_at", BigInteger),
    Column("ended_at", BigInteger),
    Column("exit_code", BigInteger),
    Column("signal", Words, nullable=False),
    _flag("out_of_memory"),
    Column("notes_seen", BigInteger, nullable=False),
    Column("hung_at", BigInteger),
    PrimaryKeyConstraint("job_id", "number", "index"),
    ForeignKeyConstraint(["job_id", "number"], ["attempts.job_id", "attempts.number"]),
)

events = Table(
    "events",
    metadata,
    Column("sequence", Number, Identity(), primary_key=True),
    Column("job_id", Words, ForeignKey("jobs.id"), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("level", Words, nullable=False),
    Column("key", Words, nullable=False),
    Column("task", Words, nullable=False),
    Column("params", Text, nullable=False),
    Index("events_by_job", "job_id", "sequence"),
    sqlite_autoincrement=True,
)

IS_LIVE_NOTEBOOK = is_in(
    "state", [state for state in notebook_model.State if state in notebook_model.LIVE]
)
NOTEBOOK_STAYS = f"state <> '{notebook_model.State.DELETED}'"

notebooks = Table(
    "notebooks",
    metadata,
    Column("sequence", Number, Identity(), primary_key=True),
    Column("id", Words, nullable=False, unique=True),
    Column("workspace", Words, nullable=False),
    Column("name", Words, nullable=False),
    Column("state", Words, nullable=False),
    Column("version", BigInteger, nullable=False),
    # What nobody searches for, as JSON.
    Column("facts", Text, nullable=False),
    CheckConstraint(is_in("state", notebook_model.State), name="state"),
    sqlite_autoincrement=True,
)
Index(
    "notebooks_by_name",
    notebooks.c.workspace,
    notebooks.c.name,
    unique=True,
    sqlite_where=fragment(NOTEBOOK_STAYS),
    postgresql_where=fragment(NOTEBOOK_STAYS),
)
Index(
    "notebooks_live",
    notebooks.c.sequence,
    sqlite_where=fragment(IS_LIVE_NOTEBOOK),
    postgresql_where=fragment(IS_LIVE_NOTEBOOK),
)

notebook_events = Table(
    "notebook_events",
    metadata,
    Column("sequence", Number, Identity(), primary_key=True),
    Column("notebook_id", Words, ForeignKey("notebooks.id"), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("level", Words, nullable=False),
    Column("key", Words, nullable=False),
    Column("params", Text, nullable=False),
    Index("notebook_events_by_notebook", "notebook_id", "sequence"),
    sqlite_autoincrement=True,
)

workspaces = Table(
    "workspaces",
    metadata,
    Column("id", Words, primary_key=True),
    Column("region", Words, nullable=False),
)

users = Table(
    "users",
    metadata,
    Column("id", Words, primary_key=True),
    Column("name", Words, nullable=False, unique=True),
    Column("workspace", Words, ForeignKey("workspaces.id"), nullable=False),
    Column("domain_id", Words, nullable=False),
    Column("password_hash", Words, nullable=False, server_default=""),
)

access_keys = Table(
    "access_keys",
    metadata,
    Column("access_key", Words, primary_key=True),
    Column("user_id", Words, ForeignKey("users.id"), nullable=False, index=True),
    Column("secret", LargeBinary, nullable=False),
)

# A key says who somebody is, so it belongs to one user.
ssh_keys = Table(
    "ssh_keys",
    metadata,
    Column("fingerprint", Words, primary_key=True),
    Column("user_id", Words, ForeignKey("users.id"), nullable=False),
    Column("name", Words, nullable=False),
    Column("public", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("user_id", "name"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("digest", Words, primary_key=True),
    Column("user_id", Words, ForeignKey("users.id"), nullable=False),
    Column("expires_at", BigInteger, nullable=False, index=True),
)

signatures = Table(
    "signatures",
    metadata,
    # By time first: digests are random, and each would be written into a page of its own.
    Column("expires_at", BigInteger, primary_key=True, autoincrement=False),
    Column("digest", LargeBinary, primary_key=True),
    sqlite_with_rowid=False,
)

settings = Table(
    "settings",
    metadata,
    Column("key", Words, primary_key=True),
    Column("value", Text, nullable=False),
)

revision = Table(
    "danlu_revision",
    metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="danlu_revision_pkc"),
)
"""Alembic's own table, under a name that no other program in the same database uses."""

TRIGGERS = {
    "sqlite": (
        f"""CREATE TRIGGER attempts_final BEFORE UPDATE ON attempts WHEN OLD.{IS_FINAL}
BEGIN SELECT RAISE(ABORT, 'a final attempt never changes'); END""",
        """CREATE TRIGGER attempts_moved AFTER UPDATE OF state ON attempts
BEGIN UPDATE jobs SET state = NEW.state WHERE id = NEW.job_id; END""",
        """CREATE TRIGGER attempts_again AFTER INSERT ON attempts WHEN NEW.number > 1
BEGIN UPDATE jobs SET state = NEW.state WHERE id = NEW.job_id; END""",
    ),
    "postgresql": (
        """CREATE FUNCTION attempts_final() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'a final attempt never changes'; END $$""",
        f"""CREATE TRIGGER attempts_final BEFORE UPDATE ON attempts
FOR EACH ROW WHEN (OLD.{IS_FINAL}) EXECUTE FUNCTION attempts_final()""",
        """CREATE FUNCTION attempts_moved() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN UPDATE jobs SET state = NEW.state WHERE id = NEW.job_id; RETURN NULL; END $$""",
        """CREATE TRIGGER attempts_moved AFTER UPDATE OF state ON attempts
FOR EACH ROW EXECUTE FUNCTION attempts_moved()""",
        """CREATE TRIGGER attempts_again AFTER INSERT ON attempts
FOR EACH ROW WHEN (NEW.number > 1) EXECUTE FUNCTION attempts_moved()""",
    ),
}
"""A final attempt stays as it is; a job's copy of the state follows its latest attempt."""


@functools.cache
def creation(dialect: Dialect) -> tuple[str, ...]:
    """The statements that make a whole new database of the newest revision."""
    made = []
    for table in metadata.sorted_tables:
        made.append(str(CreateTable(table).compile(dialect=dialect)))
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        made.extend(str(CreateIndex(index).compile(dialect=dialect)) for index in indexes)
    stamp = f"INSERT INTO danlu_revision (version_num) VALUES ('{REVISIONS[-1]}')"  # noqa: S608  # our own constant
    return (*made, *TRIGGERS[dialect.name], stamp)
