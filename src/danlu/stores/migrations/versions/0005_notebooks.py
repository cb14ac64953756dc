"""Notebooks, whose starts are jobs that no list of jobs shows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
STATES = (
    "state IN ('creating', 'starting', 'running', 'stopping', 'stopped', 'create-failed',"
    " 'start-failed', 'error', 'deleting', 'delete-failed', 'deleted')"
)
LIVE = "state IN ('creating', 'starting', 'running', 'stopping', 'deleting')"
STAYS = "state <> 'deleted'"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("kind", WORDS, nullable=False, server_default="job"))
    for name, columns in (
        ("jobs_by_age", ("created_at", "sequence")),
        ("jobs_by_name", ("name", "sequence")),
        ("jobs_by_state", ("state", "created_at", "sequence")),
    ):
        op.drop_index(name, "jobs")
        op.create_index(name, "jobs", ["workspace", "deleted", "kind", *columns])
    _notebooks()
    op.create_table(
        "notebook_events",
        sa.Column("sequence", NUMBER, sa.Identity(), nullable=False),
        sa.Column("notebook_id", WORDS, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("level", WORDS, nullable=False),
        sa.Column("key", WORDS, nullable=False),
        sa.Column("params", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["notebook_id"], ["notebooks.id"], name=op.f("notebook_events_notebook_id_known")
        ),
        sa.PrimaryKeyConstraint("sequence", name=op.f("notebook_events_key")),
        sqlite_autoincrement=True,
    )
    op.create_index("notebook_events_by_notebook", "notebook_events", ["notebook_id", "sequence"])


def _notebooks() -> None:
    op.create_table(
        "notebooks",
        sa.Column("sequence", NUMBER, sa.Identity(), nullable=False),
        sa.Column("id", WORDS, nullable=False),
        sa.Column("workspace", WORDS, nullable=False),
        sa.Column("name", WORDS, nullable=False),
        sa.Column("state", WORDS, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.CheckConstraint(STATES, name=op.f("notebooks_state")),
        sa.PrimaryKeyConstraint("sequence", name=op.f("notebooks_key")),
        sa.UniqueConstraint("id", name=op.f("notebooks_id_once")),
        sqlite_autoincrement=True,
    )
    for name, columns, condition, unique in (
        ("notebooks_by_name", ["workspace", "name"], STAYS, True),
        ("notebooks_live", ["sequence"], LIVE, False),
    ):
        op.create_index(
            name,
            "notebooks",
            columns,
            unique=unique,
            sqlite_where=sa.text(condition),
            postgresql_where=sa.text(condition),
        )
