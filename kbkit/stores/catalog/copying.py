"""Copy a catalog into another one, table by table.

Rows are copied in key order. A resumed copy first compares the rows that it already has. Until it
is complete, a mark in place of the revision keeps every kbkit from opening it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy import Column, Table

from kbkit.stores.catalog import knowledge_bases, outbox
from kbkit.stores.catalog.database import Transaction, json_of
from kbkit.stores.catalog.migrating import UNFINISHED, VERSION
from kbkit.stores.catalog.schema import HEAD, Json, chunks, metadata
from kbkit.stores.catalog.schema import knowledge_bases as bases

Row = tuple[Any, ...]
"""Values of a row; JSON as text."""

_INDEX_TABLES = ("outbox", "dropped_collections")
"""Pending work of the source's vector index; the copy has an index of its own."""
_LARGE = {
    "query_encoders": 1,
    "summary_encoders": 1,
    "gazetteers": 1,
    "replayed_answers": 20,
    "documents": 50,
    "deleted_documents": 50,
    "expansions": 200,
    "graph_edits": 200,
}
"""Rows per fetch of tables whose rows may be long."""
_FETCHED = 1_000
_BATCH_BYTES = 4_000_000
_BATCH_ROWS = 5_000


def tables() -> list[Table]:
    return [table for table in metadata.sorted_tables if table.name not in _INDEX_TABLES]


def numbered() -> list[Column[Any]]:
    """Columns whose numbers are never reused."""
    return [
        column
        for table in metadata.sorted_tables
        for column in table.primary_key
        if table.dialect_options["sqlite"]["autoincrement"]
    ]


def rows(transaction: Transaction, table: Table) -> Iterator[Row]:
    """Iterate over rows in key order."""
    shown = [sa.cast(c, sa.Text) if isinstance(c.type, Json) else c for c in table.c]
    query = sa.select(*shown).order_by(*table.primary_key)
    at_once = _LARGE.get(table.name, _FETCHED)
    result = transaction.execute(query.execution_options(yield_per=at_once))
    return map(tuple, result)


def batches(rows_read: Iterator[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    size = 0
    for row in rows_read:
        batch.append(row)
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if size > _BATCH_BYTES or len(batch) == _BATCH_ROWS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def insert(transaction: Transaction, table: Table, batch: Sequence[Row]) -> None:
    """Insert rows and their index entries.

    Self-references are set later, by `set_self_references`.
    """
    later = _self_references(table)
    inserted = [(i, column) for i, column in enumerate(table.c) if column not in later]
    values = {column.name: _bound(column) for _, column in inserted}
    transaction.execute(
        table.insert().values(values),
        [{f"new_{column.name}": row[i] for i, column in inserted} for row in batch],
    )
    at = {column.name: i for i, column in enumerate(table.c)}
    if table is bases:
        for row in batch:
            transaction.lexical.create(row[at["id"]])
    if table is chunks:
        of_base: dict[str, list[tuple[int, str]]] = {}
        for row in batch:
            of_base.setdefault(row[at["kb_id"]], []).append((row[at["seq"]], row[at["terms"]]))
        for kb_id, terms in of_base.items():
            transaction.lexical.add(kb_id, terms)


def set_self_references(transaction: Transaction, table: Table, batch: Sequence[Row]) -> None:
    at = {column.name: i for i, column in enumerate(table.c)}
    for column in _self_references(table):
        present = [row for row in batch if row[at[column.name]] is not None]
        named = [*table.primary_key, column]
        statement = (
            table.update()
            .where(*(key == sa.bindparam(f"new_{key.name}") for key in table.primary_key))
            .values({column.name: sa.bindparam(f"new_{column.name}")})
        )
        if present:
            parameters = [
                {f"new_{one.name}": row[at[one.name]] for one in named} for row in present
            ]
            transaction.execute(statement, parameters)


def refers_to_itself(table: Table) -> bool:
    return bool(_self_references(table))


def _self_references(table: Table) -> list[Column[Any]]:
    return [c for c in table.c if any(key.column.table is table for key in c.foreign_keys)]


def _bound(column: Column[Any]) -> sa.ColumnElement[Any]:
    name = f"new_{column.name}"
    if isinstance(column.type, Json):
        return json_of(sa.bindparam(name, type_=sa.Text))
    return sa.bindparam(name, type_=column.type)


class Digest:
    """Running digest of the rows of a table, in order."""

    def __init__(self) -> None:
        self.rows = 0
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, row: Row) -> None:
        self.rows += 1
        self._hash.update(repr(comparable(row)).encode())

    def text(self) -> str:
        return self._hash.hexdigest()


def comparable(row: Row) -> Row:
    """Replace NUL by a space, as PostgreSQL does."""
    return tuple(
        value.replace("\0", " ") if isinstance(value, str) and "\0" in value else value
        for value in row
    )


def beginning(table: Table, row: Row) -> Row:
    later = _self_references(table)
    if not later:
        return comparable(row)
    inserted = (v for column, v in zip(table.c, row, strict=True) if column not in later)
    return comparable(tuple(inserted))


def is_empty(transaction: Transaction) -> bool:
    return not any(
        transaction.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).first()
        for table in tables()
    )


def mark(transaction: Transaction, source: str) -> None:
    transaction.execute(VERSION.update().values(version_num=mark_of(source)))


def mark_of(source: str) -> str:
    digest = hashlib.blake2b(source.encode(), digest_size=6).hexdigest()
    return f"{UNFINISHED} {HEAD} {digest}"


def stored_mark(transaction: Transaction) -> str:
    """Return the mark of an unfinished copy; ``""`` for other catalogs."""
    version: str = transaction.execute(sa.select(VERSION.c.version_num)).scalar_one()
    return version if version.startswith(UNFINISHED) else ""


def empty(transaction: Transaction) -> None:
    for kb_id in transaction.execute(sa.select(bases.c.id)).scalars().all():
        transaction.lexical.drop(kb_id)
    for table in reversed(metadata.sorted_tables):
        transaction.execute(table.delete())


def finish(transaction: Transaction) -> None:
    """Mark a complete catalog as ready to be opened; its vector index starts empty."""
    for kb_id in knowledge_bases.ids(transaction):
        outbox.begin(transaction, knowledge_bases.get_by_id(transaction, kb_id))
    in_trash = sa.select(bases.c.id, bases.c.name).where(bases.c.deleted_at.is_not(None))
    for row in transaction.execute(in_trash).all():
        collection = f"{row.name}.{uuid4().hex[:8]}"
        knowledge_bases.change(transaction, row.id, collection=collection, applied_seq=0)
    transaction.execute(VERSION.update().values(version_num=HEAD))
