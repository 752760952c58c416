"""Lexical indexes in SQLite: one FTS5 table over analyzer terms for each knowledge base.

A table a knowledge base keeps the statistics of one apart from those of the others. The tables
hold no content of their own; `chunks.terms` has it. All happens inside the caller's
transaction, so an index never differs from the chunks it indexes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import sqlalchemy as sa

from kbkit.stores.catalog.database import Postings

# The analyzer has done the work: every character that may stand in a term belongs to a token.
_TOKENIZER = "ascii tokenchars '_.-+#@$'"


def _table(kb_id: str) -> str:
    if not kb_id.isalnum():  # becomes part of an SQL name
        raise ValueError(kb_id)
    return f"lexical_{kb_id}"


class Fts5Index:
    """A `kbkit.stores.catalog.database.LexicalIndex`.

    Args:
        connection: In a transaction.
    """

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def create(self, kb_id: str) -> None:
        """Make the index of a new knowledge base."""
        table = _table(kb_id)
        tokenizer = _TOKENIZER.replace("'", "''")
        self._connection.exec_driver_sql(
            f"CREATE VIRTUAL TABLE {table} USING fts5(terms, content='', tokenize='{tokenizer}')"
        )

    def drop(self, kb_id: str) -> None:
        """Drop the index of a knowledge base."""
        table = _table(kb_id)
        # of an older kbkit
        self._connection.exec_driver_sql(f"DROP TABLE IF EXISTS {table}_terms")
        self._connection.exec_driver_sql(f"DROP TABLE IF EXISTS {table}")

    def add(self, kb_id: str, rows: Sequence[tuple[int, str]]) -> None:
        """Index chunks.

        Args:
            kb_id: The knowledge base.
            rows: ``chunks.seq`` and ``chunks.terms`` of each.
        """
        if rows:
            self._connection.exec_driver_sql(
                f"INSERT INTO {_table(kb_id)}(rowid, terms) VALUES (?, ?)",  # noqa: S608 - own name
                list(rows),
            )

    def remove(self, kb_id: str, rows: Sequence[tuple[int, str]]) -> None:
        """Take chunks out of the index; ``rows`` must be what was added."""
        if rows:
            table = _table(kb_id)
            self._connection.exec_driver_sql(
                f"INSERT INTO {table}({table}, rowid, terms) VALUES ('delete', ?, ?)",  # noqa: S608
                list(rows),
            )

    def postings(self, kb_id: str, terms: Iterable[str]) -> dict[str, Postings]:
        """The chunks that hold each term, and how often; terms that occur nowhere are left out."""
        table = _table(kb_id)
        # of this connection alone, so that catalogs of any age have it
        self._connection.exec_driver_sql(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table}_instances"
            f" USING fts5vocab('main', '{table}', 'instance')"
        )
        found: dict[str, Postings] = {}
        for term in set(terms):
            # one text rather than a row an occurrence, of which a common term has many
            joined = self._connection.exec_driver_sql(
                f"SELECT group_concat(doc, ' ') FROM temp.{table}_instances WHERE term = ?",  # noqa: S608 - own name
                (term,),
            ).scalar_one()
            if joined is not None:
                seqs = np.array(joined.split(" "), np.int64)
                found[term] = np.unique(seqs, return_counts=True)
        return found
