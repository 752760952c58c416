"""A transaction in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, REGCLASS

from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.schema import chunks
from kbkit.stores.postgres.lexical import TextSearchIndex


class PostgresTransaction(Transaction):
    """A transaction in PostgreSQL.

    Args:
        connection: Of SQLAlchemy, in a transaction.
    """

    def __init__(self, connection: sa.Connection) -> None:
        super().__init__(connection, TextSearchIndex(connection))

    def reserve_seqs(self, count: int) -> int:
        """The first of so many ``chunks.seq``; the sequence stays ahead whatever is rolled back.

        The transaction holds the write lock, so nobody else takes these numbers.
        """
        sequence = _sequence(chunks.c.seq)
        first: int = self.execute(sa.select(sa.func.nextval(sequence))).scalar_one()
        if count > 1:
            self.execute(sa.select(sa.func.setval(sequence, first + count - 1)))
        return first

    def last_number(self, column: sa.Column[Any]) -> int:
        """The greatest number that rows of a table ever had in a numbered column; 0 for none."""
        greatest = sa.select(sa.func.max(column)).scalar_subquery()
        last = sa.func.pg_sequence_last_value(sa.cast(_sequence(column), REGCLASS))
        query = sa.select(sa.func.greatest(last, greatest, 0))
        return int(self.execute(query).scalar_one())

    def number_after(self, column: sa.Column[Any], last: int) -> None:
        """Have new rows of a table numbered from behind that one on, and behind all it has."""
        last = max(last, self.last_number(column))
        if last:
            self.execute(sa.select(sa.func.setval(_sequence(column), last)))

    def is_in(self, column: sa.Column[str], values: Collection[str]) -> sa.ColumnElement[bool]:
        """As one bound value, however many there are: the statement is compiled once."""
        return column == sa.any_(sa.literal(list(values), ARRAY(sa.Text)))


def _sequence(column: sa.Column[Any]) -> sa.ColumnElement[str]:
    return sa.func.pg_get_serial_sequence(column.table.name, column.name)
