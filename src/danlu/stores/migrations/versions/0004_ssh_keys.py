"""Users have public keys, by which they come in over SSH."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "ssh_keys",
        sa.Column("fingerprint", WORDS, nullable=False),
        sa.Column("user_id", WORDS, nullable=False),
        sa.Column("name", WORDS, nullable=False),
        sa.Column("public", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", name=op.f("ssh_keys_key")),
        sa.UniqueConstraint("user_id", "name", name=op.f("ssh_keys_user_id_name_once")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("ssh_keys_user_id_known")),
    )
