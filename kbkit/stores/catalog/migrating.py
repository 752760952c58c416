"""Create or upgrade the catalog's tables."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import sqlalchemy as sa

from kbkit.errors import WorkspaceError, WorkspaceVersionError
from kbkit.stores.catalog.database import RESTORE
from kbkit.stores.catalog.schema import HEAD, OLDEST, knowledge_bases, metadata

UNFINISHED = "unfinished"
"""Revision prefix of an incomplete copy; greater than any revision, so older versions refuse it."""
_REVISION = re.compile(rf"\d{{4,}}|{UNFINISHED}")


def is_current(connection: sa.Connection, place: object, *, to_fill: bool = False) -> bool:
    """Whether the tables match this version of kbkit."""
    try:
        revision = revision_of(connection)
        unknown = revision is None and sa.inspect(connection).has_table(knowledge_bases.name)
    except ValueError:
        revision, unknown = None, True
    if unknown:
        raise WorkspaceError(
            f"{place}: the catalog is damaged: its version is missing (table "
            f"{VERSION.name}); {RESTORE}, or build the recipe again"
        )
    if revision is None:
        return False
    if revision.startswith(UNFINISHED):
        if to_fill:
            return True
        raise WorkspaceError(
            f"{place}: a migration into this workspace is not complete; run the same `kbkit "
            "migrate` again to continue it"
        )
    if revision > HEAD:
        raise WorkspaceVersionError(
            f"{place}: made by a newer kbkit (catalog revision {revision}, this "
            f"kbkit knows {HEAD}); upgrade kbkit, or open another folder"
        )
    if revision < OLDEST:
        raise WorkspaceVersionError(
            f"{place}: made by a pre-release of kbkit (catalog revision {revision}, this kbkit "
            f"reads {OLDEST} and newer); build its recipes again, or bundle its knowledge bases "
            "with that version and restore them here"
        )
    if to_fill and revision < HEAD:
        raise WorkspaceError(
            f"{place}: a workspace of an older kbkit exists there and was not changed; name an "
            "empty place to migrate to"
        )
    return bool(revision == HEAD)


def revision_of(connection: sa.Connection) -> str | None:
    """Return the revision of the tables; ``None`` without tables."""
    if not sa.inspect(connection).has_table(VERSION.name):
        return None
    try:
        revisions = connection.execute(sa.select(VERSION.c.version_num)).scalars().all()
    except sa.exc.OperationalError as error:
        if "decode" in str(error.orig).lower():  # SQLite's message for invalid UTF-8
            raise ValueError("no text") from error
        raise
    if not revisions:
        return None
    revision = revisions[0]
    if len(revisions) > 1 or not isinstance(revision, str) or not _REVISION.match(revision):
        raise ValueError("no revision")
    return revision


def migrate(connection: sa.Connection) -> None:
    if revision_of(connection) is None:
        create(connection)
    else:
        upgrade(connection)


def create(connection: sa.Connection) -> None:
    VERSION.drop(connection, checkfirst=True)
    for statement in _statements(connection.dialect.name):
        connection.exec_driver_sql(statement)
    connection.execute(VERSION.insert().values(version_num=HEAD))


@cache
def _statements(dialect: str) -> list[str]:

    statements: list[str] = []

    def note(statement: sa.ExecutableDDLElement, *_: object) -> None:
        statements.append(str(statement.compile(dialect=database.dialect)))

    database = sa.create_mock_engine(f"{dialect}://", note)
    metadata.create_all(database, checkfirst=False)
    VERSION.create(database, checkfirst=False)
    return statements


def upgrade(connection: sa.Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


VERSION = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
