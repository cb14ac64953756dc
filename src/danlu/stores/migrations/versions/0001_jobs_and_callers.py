"""Jobs, attempts, tasks and events; workspaces, users, keys and tokens; signatures; settings.

A step is never changed after a release: what it makes is written out here, not taken from the
model of the day.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
STATES = (
    "'queued', 'placed', 'launching', 'running', 'stopping', 'collecting',"
    " 'succeeded', 'failed', 'cancelled', 'lost'"
)
LIVE = "'queued', 'placed', 'launching', 'running', 'stopping', 'collecting'"
FINAL = "'succeeded', 'failed', 'cancelled', 'lost'"


def words(name: str, default: str | None = None) -> sa.Column[str]:
    return sa.Column(name, WORDS, nullable=False, server_default=default)


def number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=nullable)


def flag(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.SmallInteger(), nullable=False, server_default="0")


def upgrade() -> None:
    jobs()
    attempts()
    tasks_and_events()
    callers()
    triggers()


def jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("sequence", NUMBER, sa.Identity(), nullable=False),
        words("id"),
        words("workspace"),
        words("name"),
        words("description"),
        words("flavor"),
        words("user"),
        number("node_count"),
        number("priority"),
        number("created_at"),
        words("state"),
        words("intent"),
        words("stopped_by", ""),
        words("client_token", ""),
        flag("deleted"),
        flag("forgotten"),
        sa.PrimaryKeyConstraint("sequence", name=op.f("jobs_key")),
        sa.CheckConstraint(f"state IN ({STATES})", name=op.f("jobs_state")),
        sa.CheckConstraint("intent IN ('run', 'stop')", name=op.f("jobs_intent")),
        sa.UniqueConstraint("id", name=op.f("jobs_id_once")),
        sqlite_autoincrement=True,
    )
    op.create_index("jobs_by_age", "jobs", ["workspace", "deleted", "created_at", "sequence"])
    op.create_index("jobs_by_name", "jobs", ["workspace", "deleted", "name", "sequence"])
    op.create_index(
        "jobs_by_state", "jobs", ["workspace", "deleted", "state", "created_at", "sequence"]
    )
    partial(
        "jobs_by_token", "jobs", ["workspace", "client_token"], "client_token <> ''", unique=True
    )
    partial("jobs_unswept", "jobs", ["sequence"], "deleted = 1 AND forgotten = 0")
    op.create_table(
        "specs",
        sa.Column("sequence", NUMBER, autoincrement=False, nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name=op.f("specs_key")),
        sa.ForeignKeyConstraint(["sequence"], ["jobs.sequence"], name=op.f("specs_sequence_known")),
    )


def attempts() -> None:
    op.create_table(
        "attempts",
        words("job_id"),
        number("number"),
        words("token"),
        words("state"),
        number("created_at"),
        number("placed_at", nullable=True),
        number("launched_at", nullable=True),
        number("started_at", nullable=True),
        number("exited_at", nullable=True),
        number("ended_at", nullable=True),
        sa.Column("reason", sa.Text()),
        sa.Column("placement", sa.Text()),
        flag("unreachable"),
        sa.UniqueConstraint("job_id", "number", name=op.f("attempts_job_id_number_once")),
        sa.CheckConstraint(f"state IN ({STATES})", name=op.f("attempts_state")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("attempts_job_id_known")),
    )
    partial("attempts_live", "attempts", ["job_id"], f"state IN ({LIVE})")


def tasks_and_events() -> None:
    op.create_table(
        "tasks",
        words("job_id"),
        number("number"),
        number("index"),
        words("node"),
        words("host"),
        number("started_at", nullable=True),
        number("ended_at", nullable=True),
        number("exit_code", nullable=True),
        words("signal"),
        flag("out_of_memory"),
        number("notes_seen"),
        sa.PrimaryKeyConstraint("job_id", "number", "index", name=op.f("tasks_key")),
        sa.ForeignKeyConstraint(
            ["job_id", "number"],
            ["attempts.job_id", "attempts.number"],
            name=op.f("tasks_job_id_number_known"),
        ),
    )
    op.create_table(
        "events",
        sa.Column("sequence", NUMBER, sa.Identity(), nullable=False),
        words("job_id"),
        number("at"),
        words("level"),
        words("key"),
        words("task"),
        sa.Column("params", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name=op.f("events_key")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("events_job_id_known")),
        sqlite_autoincrement=True,
    )
    op.create_index("events_by_job", "events", ["job_id", "sequence"])


def callers() -> None:
    op.create_table(
        "workspaces",
        words("id"),
        words("region"),
        sa.PrimaryKeyConstraint("id", name=op.f("workspaces_key")),
    )
    op.create_table(
        "users",
        words("id"),
        words("name"),
        words("workspace"),
        words("domain_id"),
        words("password_hash", ""),
        sa.PrimaryKeyConstraint("id", name=op.f("users_key")),
        sa.UniqueConstraint("name", name=op.f("users_name_once")),
        sa.ForeignKeyConstraint(
            ["workspace"], ["workspaces.id"], name=op.f("users_workspace_known")
        ),
    )
    op.create_table(
        "access_keys",
        words("access_key"),
        words("user_id"),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("access_key", name=op.f("access_keys_key")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("access_keys_user_id_known")),
    )
    op.create_index("access_keys_by_user_id", "access_keys", ["user_id"])
    op.create_table(
        "tokens",
        words("digest"),
        words("user_id"),
        number("expires_at"),
        sa.PrimaryKeyConstraint("digest", name=op.f("tokens_key")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("tokens_user_id_known")),
    )
    op.create_index("tokens_by_expires_at", "tokens", ["expires_at"])
    op.create_table(
        "signatures",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        number("expires_at"),
        sa.PrimaryKeyConstraint("digest", name=op.f("signatures_key")),
        sqlite_with_rowid=False,
    )
    op.create_index("signatures_by_expires_at", "signatures", ["expires_at"])
    op.create_table(
        "settings",
        words("key"),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("settings_key")),
    )


def triggers() -> None:
    if op.get_context().dialect.name == "sqlite":
        follow = "BEGIN UPDATE jobs SET state = NEW.state WHERE id = NEW.job_id; END"
        op.execute(
            f"CREATE TRIGGER attempts_final BEFORE UPDATE ON attempts WHEN OLD.state IN ({FINAL})"
            "\nBEGIN SELECT RAISE(ABORT, 'a final attempt never changes'); END"
        )
        op.execute(f"CREATE TRIGGER attempts_moved AFTER UPDATE OF state ON attempts\n{follow}")
        op.execute(
            f"CREATE TRIGGER attempts_again AFTER INSERT ON attempts WHEN NEW.number > 1\n{follow}"
        )
        return
    for name, body in (
        ("attempts_final", "RAISE EXCEPTION 'a final attempt never changes'"),
        (
            "attempts_moved",
            "UPDATE jobs SET state = NEW.state WHERE id = NEW.job_id; RETURN NULL",
        ),
    ):
        op.execute(
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS\n$$ BEGIN {body}; END $$"
        )
    op.execute(
        "CREATE TRIGGER attempts_final BEFORE UPDATE ON attempts\n"
        f"FOR EACH ROW WHEN (OLD.state IN ({FINAL})) EXECUTE FUNCTION attempts_final()"
    )
    op.execute(
        "CREATE TRIGGER attempts_moved AFTER UPDATE OF state ON attempts\n"
        "FOR EACH ROW EXECUTE FUNCTION attempts_moved()"
    )
    op.execute(
        "CREATE TRIGGER attempts_again AFTER INSERT ON attempts\n"
        "FOR EACH ROW WHEN (NEW.number > 1) EXECUTE FUNCTION attempts_moved()"
    )


def partial(name: str, table: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    only = sa.text(where)
    op.create_index(name, table, columns, unique=unique, sqlite_where=only, postgresql_where=only)
