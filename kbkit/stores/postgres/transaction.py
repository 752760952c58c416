"""A transaction in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from kbkit.stores.catalog.database import Transaction
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
        sequence = sa.func.pg_get_serial_sequence("chunks", "seq")
        first: int = self.execute(sa.select(sa.func.nextval(sequence))).scalar_one()
        if count > 1:
            self.execute(sa.select(sa.func.setval(sequence, first + count - 1)))
        return first

    def is_in(self, column: sa.Column[str], values: Collection[str]) -> sa.ColumnElement[bool]:
        """As one bound value, however many there are: the statement is compiled once."""
        return column == sa.any_(sa.literal(list(values), ARRAY(sa.Text)))
