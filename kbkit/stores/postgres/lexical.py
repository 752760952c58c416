"""Lexical indexes in PostgreSQL: a table of `tsvector` with a GIN index for each knowledge base.

kbkit's analyzer has made the terms; no text-search configuration touches them. A vector says which
terms a chunk has, and a term that it has more than once is counted beside it, so that frequencies
are as exact as those of any other database.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import sqlalchemy as sa

from kbkit.stores.catalog.database import Postings

_LONGEST = 2_000
"""Bytes of a term that is kept as it is; PostgreSQL takes 2,046."""
_POSTINGS = np.dtype([("seq", ">i8"), ("times", ">i4")])


def _table(kb_id: str) -> str:
    if not kb_id.isalnum():  # becomes part of an SQL name
        raise ValueError(kb_id)
    return f"lexical_{kb_id}"


def _lexeme(term: str) -> str:
    data = term.encode()
    # no term of the analyzer begins with a space
    return term if len(data) <= _LONGEST else f" {hashlib.blake2b(data).hexdigest()}"


def _query(lexeme: str) -> str:
    """As text that PostgreSQL reads as a query for this lexeme alone."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


class TextSearchIndex:
    """A `kbkit.stores.catalog.database.LexicalIndex`.

    Args:
        connection: In a transaction.
    """

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def create(self, kb_id: str) -> None:
        """Make the index of a new knowledge base."""
        table = _table(kb_id)
        columns = "seq bigint PRIMARY KEY, terms tsvector NOT NULL, repeated json"
        self._connection.exec_driver_sql(f"CREATE TABLE {table} ({columns})")
        self._connection.exec_driver_sql(f"CREATE INDEX {table}_terms ON {table} USING gin (terms)")

    def drop(self, kb_id: str) -> None:
        """Drop the index of a knowledge base."""
        self._connection.exec_driver_sql(f"DROP TABLE IF EXISTS {_table(kb_id)}")

    def add(self, kb_id: str, rows: Sequence[tuple[int, str]]) -> None:
        """Index chunks: ``chunks.seq`` and ``chunks.terms`` of each."""
        if rows:
            self._connection.exec_driver_sql(
                f"INSERT INTO {_table(kb_id)} VALUES"  # noqa: S608 - own name
                " (%s, array_to_tsvector(%s::text[]), %s::json)",
                [(seq, *_counted(terms)) for seq, terms in rows],
            )

    def remove(self, kb_id: str, rows: Sequence[tuple[int, str]]) -> None:
        """Take chunks out of the index; ``rows`` must be what was added."""
        if rows:
            self._connection.exec_driver_sql(
                f"DELETE FROM {_table(kb_id)} WHERE seq = ANY(%s)",  # noqa: S608 - own name
                ([seq for seq, _ in rows],),
            )

    def postings(self, kb_id: str, terms: Iterable[str]) -> dict[str, Postings]:
        """The chunks that hold each term, and how often; terms that occur nowhere are left out."""
        wanted = {_lexeme(term): term for term in terms if term and "\0" not in term}
        if not wanted:
            return {}
        # packed by the server: one row a term rather than one an occurrence
        query = (
            "SELECT wanted.lexeme, (SELECT"  # noqa: S608 - own name
            " string_agg(int8send(seq) || int4send(coalesce((repeated->>lexeme)::int, 1)), ''"
            f" ORDER BY seq) FROM {_table(kb_id)} WHERE terms @@ query::tsquery)"
            " FROM unnest(%s::text[], %s::text[]) AS wanted(lexeme, query)"
        )
        values = list(wanted), [_query(lexeme) for lexeme in wanted]
        rows = self._connection.exec_driver_sql(query, values)
        found: dict[str, Postings] = {}
        for lexeme, packed in rows:
            if packed is not None:
                each = np.frombuffer(packed, _POSTINGS)
                found[wanted[lexeme]] = each["seq"].astype(np.int64), each["times"].astype(np.int64)
        return found


def _counted(terms: str) -> tuple[list[str], str | None]:
    """The lexemes of a chunk, and as JSON how often those occur that do so more than once."""
    times = Counter(map(_lexeme, terms.split()))
    repeated = {lexeme: count for lexeme, count in times.items() if count > 1}
    return list(times), json.dumps(repeated) if repeated else None
