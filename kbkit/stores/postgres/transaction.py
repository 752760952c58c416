"""A transaction in PostgreSQL."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, REGCLASS

from kbkit.errors import WorkspaceError
from kbkit.stores.catalog.database import Condition, Postings, Transaction, lexical_table
from kbkit.stores.catalog.migrating import is_current, migrate
from kbkit.stores.catalog.schema import chunks

_MAX_LENGTH = 2_000
"""Bytes above which a term is hashed; PostgreSQL allows 2,046."""
_POSTINGS = np.dtype([("seq", ">i8"), ("times", ">i4")])


def _lexeme(term: str) -> str:
    data = term.encode()
    # no term of the analyzer begins with a space
    return term if len(data) <= _MAX_LENGTH else f" {hashlib.blake2b(data).hexdigest()}"


def _query(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


class TextSearchIndex:
    """A `kbkit.stores.catalog.database.LexicalIndex`."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def create(self, kb_id: str) -> None:
        table = lexical_table(kb_id)
        columns = "seq bigint PRIMARY KEY, terms tsvector NOT NULL, repeated json"
        self._connection.exec_driver_sql(f"CREATE TABLE {table} ({columns})")
        self._connection.exec_driver_sql(f"CREATE INDEX {table}_terms ON {table} USING gin (terms)")

    def drop(self, kb_id: str) -> None:
        self._connection.exec_driver_sql(f"DROP TABLE IF EXISTS {lexical_table(kb_id)}")

    def add(self, kb_id: str, rows: Sequence[tuple[int, str]]) -> None:
        if rows:
            self._connection.exec_driver_sql(
                f"INSERT INTO {lexical_table(kb_id)} VALUES"  # noqa: S608 - own name
                " (%s, array_to_tsvector(%s::text[]), %s::json)",
                [(seq, *_counted(terms)) for seq, terms in rows],
            )

    def remove(self, kb_id: str, rows: Sequence[tuple[int, str]]) -> None:
        if rows:
            self._connection.exec_driver_sql(
                f"DELETE FROM {lexical_table(kb_id)} WHERE seq = ANY(%s)",  # noqa: S608 - own name
                ([seq for seq, _ in rows],),
            )

    def postings(self, kb_id: str, terms: Iterable[str]) -> dict[str, Postings]:
        wanted = {_lexeme(term): term for term in terms if term and "\0" not in term}
        if not wanted:
            return {}
        # the server packs the postings: one row per term, not per occurrence
        query = (
            "SELECT wanted.lexeme, (SELECT"  # noqa: S608 - own name
            " string_agg(int8send(seq) || int4send(coalesce((repeated->>lexeme)::int, 1)), ''"
            f" ORDER BY seq) FROM {lexical_table(kb_id)} WHERE terms @@ query::tsquery)"
            " FROM unnest(%s::text[], %s::text[]) AS wanted(lexeme, query)"
        )
        values = list(wanted), [_query(lexeme) for lexeme in wanted]
        rows = self._connection.exec_driver_sql(query, values)
        postings: dict[str, Postings] = {}
        for lexeme, packed in rows:
            if packed is not None:
                each = np.frombuffer(packed, _POSTINGS)
                postings[wanted[lexeme]] = (
                    each["seq"].astype(np.int64),
                    each["times"].astype(np.int64),
                )
        return postings


def _counted(terms: str) -> tuple[list[str], str | None]:
    times = Counter(map(_lexeme, terms.split()))
    repeated = {lexeme: count for lexeme, count in times.items() if count > 1}
    return list(times), json.dumps(repeated) if repeated else None


class PostgresTransaction(Transaction):
    """A transaction in PostgreSQL."""

    def __init__(self, connection: sa.Connection) -> None:
        super().__init__(connection, TextSearchIndex(connection))

    def reserve_seqs(self, count: int) -> int:
        # the write lock excludes other callers; after a rollback the numbers stay unused
        sequence = _sequence(chunks.c.seq)
        first: int = self.execute(sa.select(sa.func.nextval(sequence))).scalar_one()
        if count > 1:
            self.execute(sa.select(sa.func.setval(sequence, first + count - 1)))
        return first

    def last_number(self, column: sa.Column[Any]) -> int:
        greatest = sa.select(sa.func.max(column)).scalar_subquery()
        last = sa.func.pg_sequence_last_value(sa.cast(_sequence(column), REGCLASS))
        query = sa.select(sa.func.greatest(last, greatest, 0))
        return int(self.execute(query).scalar_one())

    def number_after(self, column: sa.Column[Any], last: int) -> None:
        last = max(last, self.last_number(column))
        if last:
            self.execute(sa.select(sa.func.setval(_sequence(column), last)))

    def is_in(self, column: sa.ColumnElement[Any], values: Collection[Any]) -> Condition:
        kind = sa.Text if isinstance(column.type, sa.String) else sa.BigInteger
        return column == sa.any_(sa.literal(list(values), ARRAY(kind)))


def _sequence(column: sa.Column[Any]) -> sa.ColumnElement[str]:
    return sa.func.pg_get_serial_sequence(column.table.name, column.name)


OLDEST = 15
"""Oldest tested version of PostgreSQL."""


def prepare(connection: sa.Connection, place: str, lock: int, *, to_fill: bool = False) -> None:
    with connection.begin():
        names = _check(connection, place)
        if is_current(connection, place, to_fill=to_fill) and names.issuperset(_SERVER_TABLES):
            return
    with connection.begin():
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": lock})
        if not is_current(connection, place, to_fill=to_fill):  # another process may have migrated
            migrate(connection)
        _create_server_tables(connection)
        _widen_columns(connection)


def count(connection: sa.Connection) -> int:
    number: int = connection.execute(_COUNT).scalar_one()
    return number


def bump(connection: sa.Connection) -> None:
    """Increase `count` if the caller's transaction wrote anything."""
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


def _create_server_tables(connection: sa.Connection) -> None:
    names = sa.inspect(connection).get_table_names()
    for name, statements in _SERVER_TABLES.items():
        for statement in statements if name not in names else ():
            connection.exec_driver_sql(statement)


_SERVER_TABLES = {
    # see `count`
    "commits": (
        "CREATE TABLE commits (number bigint NOT NULL) WITH (fillfactor = 10)",
        "INSERT INTO commits VALUES (0)",
    ),
    # see `kbkit.stores.postgres.database`
    "home": ("CREATE TABLE home (mark text NOT NULL, place text NOT NULL)",),
    # EXTERNAL: pictures are already compressed; see `kbkit.stores.postgres.images`
    "images": (
        'CREATE TABLE images (name text COLLATE "C" PRIMARY KEY, data bytea NOT NULL,'
        " added_at timestamptz NOT NULL)",
        "ALTER TABLE images ALTER data SET STORAGE EXTERNAL",
    ),
}


def _widen_columns(connection: sa.Connection) -> None:
    columns: dict[str, list[str]] = {}
    quote = connection.dialect.identifier_preparer.quote_identifier
    for table, column, kind in connection.execute(_NARROW_COLUMNS):
        wanted = "bigint" if kind == "integer" else 'text COLLATE "C"'
        columns.setdefault(quote(table), []).append(f"ALTER {quote(column)} TYPE {wanted}")
    for table, changes in columns.items():
        connection.exec_driver_sql(f"ALTER TABLE {table} {', '.join(changes)}")
    for name in connection.execute(_SEQUENCES).scalars().all():
        connection.exec_driver_sql(f"ALTER SEQUENCE {quote(name)} AS bigint")


_NARROW_COLUMNS = sa.text(
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
