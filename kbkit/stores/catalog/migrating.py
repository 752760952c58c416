"""Makes the catalog's tables, or brings those of an older kbkit up to date."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from kbkit.errors import WorkspaceVersionError
from kbkit.stores.catalog.schema import HEAD


def is_current(connection: sa.Connection, place: object) -> bool:
    """Whether the tables are those that this kbkit knows.

    Args:
        connection: In a transaction.
        place: Where the workspace is, for the message.

    Raises:
        WorkspaceVersionError: A newer kbkit made them.
    """
    if not sa.inspect(connection).has_table("alembic_version"):
        return False
    query = sa.text("SELECT version_num FROM alembic_version")
    revision = connection.execute(query).scalar_one_or_none()
    if revision is not None and revision > HEAD:
        raise WorkspaceVersionError(
            f"{place}: made by a newer kbkit (catalog revision {revision}, this "
            f"kbkit knows {HEAD}); upgrade kbkit, or open another folder"
        )
    return revision == HEAD


def migrate(connection: sa.Connection) -> None:
    """Bring the tables up to date, in the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
