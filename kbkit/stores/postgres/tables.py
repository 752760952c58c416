"""Makes the catalog's tables on a server, or brings them up to date."""

from __future__ import annotations

import sqlalchemy as sa

from kbkit.errors import WorkspaceError
from kbkit.stores.catalog.migrating import is_current, migrate

OLDEST = 15
"""The first PostgreSQL that is tested."""


def prepare(connection: sa.Connection, place: str, lock: int, *, to_fill: bool = False) -> None:
    """Make the tables, or migrate them, where they are not those of this kbkit.

    Args:
        connection: In no transaction.
        place: What the database is called in messages.
        lock: Number of the advisory lock of those who write.
        to_fill: Whether another catalog is to be copied into it; see `is_current`.

    Raises:
        WorkspaceVersionError: A newer kbkit made them.
        WorkspaceError: There are tables of something else.
    """
    with connection.begin():
        names = _check(connection, place)
        if is_current(connection, place, to_fill=to_fill) and names.issuperset(_OWN):
            return
    with connection.begin():
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": lock})
        if not is_current(connection, place, to_fill=to_fill):  # by now
            migrate(connection)
        _add_own(connection)
        _adapt(connection)


def count(connection: sa.Connection) -> int:
    """Number of transactions that wrote something."""
    number: int = connection.execute(_COUNT).scalar_one()
    return number


def bump(connection: sa.Connection) -> None:
    """Count the caller's transaction, if it wrote anything."""
    connection.execute(_BUMP)


_COUNT = sa.text("SELECT number FROM commits")
_BUMP = sa.text(
    "UPDATE commits SET number = number + 1 WHERE pg_current_xact_id_if_assigned() IS NOT NULL"
)


def _check(connection: sa.Connection, place: str) -> set[str]:
    names = set(sa.inspect(connection).get_table_names())
    if names and not {"alembic_version", "knowledge_bases", "commits"} <= names:
        raise WorkspaceError(
            f"{place}: this schema has tables of something else; give kbkit a database of its own, "
            "or a schema (?options=-csearch_path%3DNAME)"
        )
    return names


def _add_own(connection: sa.Connection) -> None:
    """Make the tables that only a server has, where they are missing."""
    names = sa.inspect(connection).get_table_names()
    for name, statements in _OWN.items():
        for statement in statements if name not in names else ():
            connection.exec_driver_sql(statement)


_OWN = {
    # see `count`
    "commits": (
        "CREATE TABLE commits (number bigint NOT NULL) WITH (fillfactor = 10)",
        "INSERT INTO commits VALUES (0)",
    ),
    # see `kbkit.stores.postgres.home`
    "home": ("CREATE TABLE home (mark text NOT NULL, place text NOT NULL)",),
    # pictures are compressed already; see `kbkit.stores.postgres.images`
    "images": (
        'CREATE TABLE images (name text COLLATE "C" PRIMARY KEY, data bytea NOT NULL,'
        " added_at timestamptz NOT NULL)",
        "ALTER TABLE images ALTER data SET STORAGE EXTERNAL",
    ),
}


def _adapt(connection: sa.Connection) -> None:
    """Have texts compare by code points and numbers have 64 bits, as they do in SQLite."""
    columns: dict[str, list[str]] = {}
    quote = connection.dialect.identifier_preparer.quote_identifier
    for table, column, kind in connection.execute(_OTHERS):
        wanted = "bigint" if kind == "integer" else 'text COLLATE "C"'
        columns.setdefault(quote(table), []).append(f"ALTER {quote(column)} TYPE {wanted}")
    for table, changes in columns.items():
        connection.exec_driver_sql(f"ALTER TABLE {table} {', '.join(changes)}")
    for name in connection.execute(_SEQUENCES).scalars().all():
        connection.exec_driver_sql(f"ALTER SEQUENCE {quote(name)} AS bigint")


_OTHERS = sa.text(
    "SELECT table_name, column_name, data_type FROM information_schema.columns"
    " JOIN information_schema.tables USING (table_schema, table_name)"
    " WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'"
    " AND (data_type = 'integer' OR data_type IN ('text', 'character varying')"
    " AND collation_name IS DISTINCT FROM 'C') ORDER BY table_name, ordinal_position"
)
_SEQUENCES = sa.text(
    "SELECT sequence_name FROM information_schema.sequences"
    " WHERE sequence_schema = current_schema() AND data_type = 'integer'"
)
