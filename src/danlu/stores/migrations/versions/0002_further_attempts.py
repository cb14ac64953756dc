"""Attempts after the first wait for their time; tasks say since when they hang."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("attempts", sa.Column("due_at", sa.BigInteger()))
    op.add_column("tasks", sa.Column("hung_at", sa.BigInteger()))
