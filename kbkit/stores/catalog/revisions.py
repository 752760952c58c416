"""Revisions of the catalog's tables: create them, and upgrade those of an older kbkit."""

import json
import re
from functools import cache

import sqlalchemy as sa

from kbkit.errors import WorkspaceError, WorkspaceVersionError
from kbkit.stores.catalog import schema
from kbkit.stores.catalog.database import RESTORE

VERSION = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
UNFINISHED = "unfinished"
"""Revision prefix of an incomplete copy; greater than any revision, so older versions refuse it."""
_REVISION = re.compile(rf"\d{{4,}}|{UNFINISHED}")


def is_current(connection: sa.Connection, place: object, *, to_fill: bool = False) -> bool:
    """Whether the tables match this version of kbkit."""
    try:
        revision = revision_of(connection)
        unknown = revision is None and sa.inspect(connection).has_table(schema.knowledge_bases.name)
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
    if revision > schema.HEAD:
        raise WorkspaceVersionError(
            f"{place}: made by a newer kbkit (catalog revision {revision}, this "
            f"kbkit knows {schema.HEAD}); upgrade kbkit, or open another folder"
        )
    if revision not in (schema.OLDEST, schema.HEAD):
        raise WorkspaceVersionError(
            f"{place}: made by a pre-release of kbkit (catalog revision {revision}, this kbkit "
            f"reads {schema.OLDEST} and {schema.HEAD}); build its recipes again, or bundle its "
            "knowledge bases with that version and restore them here"
        )
    if to_fill and revision < schema.HEAD:
        raise WorkspaceError(
            f"{place}: a workspace of an older kbkit exists there and was not changed; name an "
            "empty place to migrate to"
        )
    return bool(revision == schema.HEAD) and not _old_tables(connection)


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
    revision = revision_of(connection)
    if revision is None:
        create(connection)
    elif revision == schema.OLDEST:
        upgrade(connection)
    for name in _old_tables(connection):
        connection.exec_driver_sql(f"DROP TABLE {name}")


_OLD_TABLE = re.compile(r"lexical_[0-9a-z]+(_terms)?|replayed_answers")
"""Tables of older versions; SQLite itself drops the shadow tables of full-text indexes."""


def _old_tables(connection: sa.Connection) -> list[str]:
    names = sa.inspect(connection).get_table_names()
    return sorted(filter(_OLD_TABLE.fullmatch, names), reverse=True)


def create(connection: sa.Connection) -> None:
    VERSION.drop(connection, checkfirst=True)
    VERSION.create(connection)
    for statement in _statements(connection.dialect.name, *schema.metadata.sorted_tables):
        connection.exec_driver_sql(statement)
    connection.execute(VERSION.insert().values(version_num=schema.HEAD))


@cache
def _statements(dialect: str, *tables: sa.Table) -> list[str]:
    statements: list[str] = []

    def note(statement: sa.ExecutableDDLElement, *_: object) -> None:
        text = str(statement.compile(dialect=database.dialect))
        if dialect == "postgresql":  # texts sort by code points there, too
            text = re.sub(r" (?:VARCHAR(?:\(\d+\))?|TEXT)\b", ' TEXT COLLATE "C"', text)
        statements.append(text)

    database = sa.create_mock_engine(f"{dialect}://", note)
    schema.metadata.create_all(database, tables, checkfirst=False)
    return statements


_RENAMED = (
    "cards RENAME TO summaries",
    "card_vectors RENAME TO summary_vectors",
    "card_encoders RENAME TO summary_encoders",
    "knowledge_bases RENAME COLUMN card_embedder TO summary_embedder",
    "knowledge_bases RENAME COLUMN card_model TO summary_model",
    "knowledge_bases RENAME COLUMN cards_version TO summaries_version",
    "expansions RENAME COLUMN card TO summary",
    "summaries ADD COLUMN version {int64} DEFAULT '0' NOT NULL",
    "summary_vectors ADD COLUMN version {int64} DEFAULT '0' NOT NULL",
)
_BY_TYPE = "documents_by_type"


def upgrade(connection: sa.Connection) -> None:
    """Bring a catalog of `OLDEST` to `HEAD`; summaries were called cards."""
    int64 = schema.Int64.compile(connection.dialect)
    for name in ("cards_by_kb", _BY_TYPE):
        connection.exec_driver_sql(f"DROP INDEX {name}")
    for change in _RENAMED:
        connection.exec_driver_sql(f"ALTER TABLE {change.format(int64=int64)}")
    for statement in _statements(connection.dialect.name, schema.removed_chunks, schema.name_uses):
        connection.exec_driver_sql(statement)
    by_type = (index for index in schema.documents.indexes if index.name == _BY_TYPE)
    for index in (*schema.summaries.indexes, *schema.summary_vectors.indexes, *by_type):
        index.create(connection)
    for kb_id, config in connection.execute(
        sa.select(schema.knowledge_bases.c.id, schema.knowledge_bases.c.config)
    ).all():
        text = json.dumps(config)
        for name in ("embedding", "weight"):
            text = text.replace(f'"card_{name}":', f'"summary_{name}":')
        of_kb = schema.knowledge_bases.c.id == kb_id
        connection.execute(
            schema.knowledge_bases.update().where(of_kb).values(config=json.loads(text))
        )
    connection.execute(VERSION.update().values(version_num=schema.HEAD))
