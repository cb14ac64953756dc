"""Runs the steps on the connection that `danlu.stores.sql.migrate` brings, in its transaction."""

from __future__ import annotations

from alembic import context

from danlu.stores.sql.schema import metadata, revision

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=revision.name,
    # Alembic takes SQLite for a database that commits at every CREATE; ours does not.
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
