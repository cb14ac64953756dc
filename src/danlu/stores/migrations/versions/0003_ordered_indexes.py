"""What every submission writes lies in the order of time: random keys cost a page each."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

LIVE = "state IN ('queued', 'placed', 'launching', 'running', 'stopping', 'collecting')"


def upgrade() -> None:
    op.drop_index("attempts_live", "attempts")
    live = sa.text(LIVE)
    op.create_index(
        "attempts_live",
        "attempts",
        ["created_at", "job_id"],
        sqlite_where=live,
        postgresql_where=live,
    )
    op.execute("CREATE TABLE signatures_before AS SELECT expires_at, digest FROM signatures")
    op.drop_table("signatures")
    op.create_table(
        "signatures",
        sa.Column("expires_at", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("expires_at", "digest", name=op.f("signatures_key")),
        sqlite_with_rowid=False,
    )
    op.execute(
        "INSERT INTO signatures (expires_at, digest)"
        " SELECT expires_at, digest FROM signatures_before"
    )
    op.drop_table("signatures_before")
