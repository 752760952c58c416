"""Lexical indexes in SQLite: one FTS5 table over analyzer terms for each knowledge base.

A table a knowledge base keeps the statistics of one apart from those of the others. The tables
hold no content of their own; `chunks.terms` has it. All happens inside the caller's
transaction, so an index never differs from the chunks it indexes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa

# The analyzer has done the work: every character that may stand in a term belongs to a token.
_TOKENIZER = "ascii tokenchars '_.-+#@$'"
_MOST_POSTINGS = 5_000
"""Postings that candidate selection reads before it leaves out the commonest terms."""


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
        self._connection.exec_driver_sql(
            f"CREATE VIRTUAL TABLE {table}_terms USING fts5vocab('{table}', 'row')"
        )

    def drop(self, kb_id: str) -> None:
        """Drop the index of a knowledge base."""
        table = _table(kb_id)
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

    def document_frequencies(self, kb_id: str, terms: Iterable[str]) -> dict[str, int]:
        """Number of chunks that hold each term; terms that occur nowhere are left out."""
        wanted = sorted(set(terms))
        frequencies: dict[str, int] = {}
        for term in wanted:
            row = self._connection.exec_driver_sql(
                f"SELECT doc FROM {_table(kb_id)}_terms WHERE term = ?",  # noqa: S608 - own name
                (term,),
            ).first()
            if row is not None:
                frequencies[term] = row[0]
        return frequencies

    def candidates(self, kb_id: str, frequencies: Mapping[str, int], limit: int) -> list[int]:
        """Chunks that hold any of the terms, best first by FTS5's own BM25.

        The rarest terms select; common ones are left out once enough postings would be read. That
        loses nothing that matters, since the caller scores all terms of every candidate exactly.

        Args:
            kb_id: The knowledge base.
            frequencies: Query terms with their document frequencies.
            limit: Most candidates.

        Returns:
            ``chunks.seq`` of each.
        """
        chosen: list[str] = []
        postings = 0
        for term in sorted(frequencies, key=lambda term: (frequencies[term], term)):
            if chosen and postings + frequencies[term] > _MOST_POSTINGS:
                break
            chosen.append(term)
            postings += frequencies[term]
        if not chosen:
            return []
        match = " OR ".join('"' + term.replace('"', '""') + '"' for term in chosen)
        table = _table(kb_id)
        rows = self._connection.exec_driver_sql(
            f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rank LIMIT ?",  # noqa: S608
            (match, limit),
        )
        return [row[0] for row in rows]
