"""Entry point of Alembic, on the connection of a database."""

from __future__ import annotations

from alembic import context

from kbkit.stores.catalog.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
context.run_migrations()
