"""Transactions and fast rows of SQLite.

Frequent rows bypass SQLAlchemy, whose type conversions take most of the time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa

from kbkit.stores.catalog.database import Condition, Postings, Transaction, in_parts, lexical_table
from kbkit.stores.catalog.schema import checked_shape, chunks

# The analyzer already made the terms, so all characters in terms are token characters.
_TOKENIZER = "ascii tokenchars '_.-+#@$!%&*/:<=>?^|~'"


class Fts5Index:
    """A `kbkit.stores.catalog.database.LexicalIndex`."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def create(self, kb_id: str) -> None:
        table = lexical_table(kb_id)
        tokenizer = _TOKENIZER.replace("'", "''")
        self._connection.exec_driver_sql(
            f"CREATE VIRTUAL TABLE {table} USING fts5(terms, content='', tokenize='{tokenizer}')"
        )

    def drop(self, kb_id: str) -> None:
        table = lexical_table(kb_id)
        # a table of older versions
        self._connection.exec_driver_sql(f"DROP TABLE IF EXISTS {table}_terms")
        self._connection.exec_driver_sql(f"DROP TABLE IF EXISTS {table}")

    def add(self, kb_id: str, rows: Sequence[tuple[int, str]]) -> None:
        if rows:
            self._connection.exec_driver_sql(
                f"INSERT INTO {lexical_table(kb_id)}(rowid, terms) VALUES (?, ?)",  # noqa: S608 - own name
                list(rows),
            )

    def remove(self, kb_id: str, rows: Sequence[tuple[int, str]]) -> None:
        if rows:
            table = lexical_table(kb_id)
            self._connection.exec_driver_sql(
                f"INSERT INTO {table}({table}, rowid, terms) VALUES ('delete', ?, ?)",  # noqa: S608
                list(rows),
            )

    def postings(self, kb_id: str, terms: Iterable[str]) -> dict[str, Postings]:
        table = lexical_table(kb_id)
        # a temporary table needs no migration
        self._connection.exec_driver_sql(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table}_instances"
            f" USING fts5vocab('main', '{table}', 'instance')"
        )
        postings: dict[str, Postings] = {}
        for term in set(terms):
            # one text is faster than one row per occurrence
            joined = self._connection.exec_driver_sql(
                f"SELECT group_concat(doc, ' ') FROM temp.{table}_instances WHERE term = ?",  # noqa: S608 - own name
                (term,),
            ).scalar_one()
            if joined is not None:
                seqs = np.array(joined.split(" "), np.int64)
                postings[term] = np.unique(seqs, return_counts=True)
        return postings


Fetch = Callable[[str, tuple[Any, ...]], Iterable[tuple[Any, ...]]]


class SqliteTransaction(Transaction):
    """A transaction in SQLite."""

    def __init__(self, connection: sa.Connection) -> None:
        super().__init__(connection, Fts5Index(connection))

    def reserve_seqs(self, count: int) -> int:
        # SQLite stores the greatest number ever used; the write lock excludes other callers
        return self.last_number(chunks.c.seq) + 1

    def last_number(self, column: sa.Column[Any]) -> int:
        query = "SELECT seq FROM sqlite_sequence WHERE name = ?"
        result = self._connection.exec_driver_sql(query, (column.table.name,))
        return result.scalar_one_or_none() or 0

    def number_after(self, column: sa.Column[Any], last: int) -> None:
        name, current = column.table.name, self.last_number(column)
        self._connection.exec_driver_sql("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
        self._connection.exec_driver_sql(
            "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, max(last, current))
        )

    def is_in(self, column: sa.ColumnElement[Any], values: Collection[Any]) -> Condition:
        # one bound parameter, so that the statement is compiled once
        each = sa.func.json_each(json.dumps(list(values))).table_valued("value")
        return column.in_(sa.select(each.c.value))

    def chunk_rows(self, seqs: Sequence[int]) -> Iterable[Sequence[Any]]:
        return chunk_rows(self._connection.exec_driver_sql, seqs)

    def document_rows(self, kb_id: str) -> Iterable[Sequence[Any]]:
        for row in self._connection.exec_driver_sql(_DOCUMENTS, (kb_id,)):
            yield (row[0], *_document(row[1:]))


def chunk_rows(fetch: Fetch, seqs: Sequence[int]) -> Iterator[Sequence[Any]]:
    for part in in_parts(seqs):
        for row in fetch(_CHUNKS.format(",".join("?" * len(part))), tuple(part)):
            if tuple(map(type, row[:9])) != _CHUNK_TYPES or type(row[9]) not in _PAGE_TYPES:
                raise ValueError("a chunk of other types")
            path = checked_shape(json.loads(row[7]), list)
            yield row[:7] + (path, *row[8:10]) + _document(row[10:])  # noqa: RUF005 - faster


# checked, because SQLite stores any type in any column
_CHUNK_TYPES = (int, str, str, int, int, int, str, str, str)
_PAGE_TYPES = (int, type(None))

# the covering index has all columns, so SQLite does not read the text of documents
_CHUNKS = (
    "SELECT c.seq, c.id, c.document_id, c.position, c.start, c.end, c.text, c.heading_path,"
    " c.anchor, c.page, d.uri, d.title, d.document_type, d.tags, d.metadata, d.state,"
    " d.fetched_at, d.content_hash, d.description"
    " FROM chunks c JOIN documents d INDEXED BY documents_shown"
    " ON d.kb_id = c.kb_id AND d.id = c.document_id WHERE c.seq IN ({})"
)
_DOCUMENTS = (
    "SELECT id, uri, title, document_type, tags, metadata, state, fetched_at, content_hash,"
    " description FROM documents INDEXED BY documents_shown WHERE kb_id = ? ORDER BY uri"
)


def _document(row: Sequence[Any]) -> tuple[Any, ...]:
    if set(map(type, row)) != {str}:
        raise ValueError("a document of other types")
    uri, title, document_type, tags, metadata, state, fetched_at, content_hash, description = row
    return (
        uri,
        title,
        document_type,
        () if tags == "[]" else checked_shape(json.loads(tags), list),
        {} if metadata == "{}" else checked_shape(json.loads(metadata), dict),
        state,
        datetime.fromisoformat(fetched_at).replace(tzinfo=UTC),
        content_hash,
        description,
    )
