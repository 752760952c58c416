"""A minimal database and a minimal store of vectors, as examples of other backends.

Transactions use nothing special to SQLite: each works on a copy of the catalog's bytes, which a
commit replaces.
"""

import itertools
import sqlite3
import threading
from collections import Counter, defaultdict
from contextlib import contextmanager

import numpy as np
import sqlalchemy as sa

from kbkit.errors import WorkspaceError
from kbkit.stores.catalog import reading
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.workspace_schema import metadata

TOY = sa.MetaData()
POSTINGS = sa.Table(
    "toy_postings",
    TOY,
    sa.Column("kb_id", sa.String, primary_key=True),
    sa.Column("term", sa.String, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("times", sa.Integer),
)
LAST = sa.Table("toy_last", TOY, sa.Column("seq", sa.Integer))


class ToyIndex:
    """Postings in an ordinary table."""

    def __init__(self, connection):
        self._connection = connection

    def create(self, kb_id):
        self.drop(kb_id)

    def drop(self, kb_id):
        self._connection.execute(POSTINGS.delete().where(POSTINGS.c.kb_id == kb_id))

    def add(self, kb_id, rows):
        values = [
            {"kb_id": kb_id, "term": term, "seq": seq, "times": times}
            for seq, terms in rows
            for term, times in Counter(terms.split()).items()
        ]
        if values:
            self._connection.execute(POSTINGS.insert(), values)

    def remove(self, kb_id, rows):
        for seq, _ in rows:
            query = POSTINGS.delete().where(POSTINGS.c.kb_id == kb_id, POSTINGS.c.seq == seq)
            self._connection.execute(query)

    def postings(self, kb_id, terms):
        query = sa.select(POSTINGS.c.term, POSTINGS.c.seq, POSTINGS.c.times)
        query = query.where(POSTINGS.c.kb_id == kb_id, POSTINGS.c.term.in_(set(terms)))
        postings = defaultdict(lambda: ([], []))
        for term, seq, times in self._connection.execute(query.order_by(POSTINGS.c.seq)):
            postings[term][0].append(seq)
            postings[term][1].append(times)
        return {term: (np.array(seqs), np.array(times)) for term, (seqs, times) in postings.items()}


class ToyTransaction(Transaction):
    def __init__(self, connection):
        super().__init__(connection, ToyIndex(connection))

    def last_number(self, column):
        numbers = [self._connection.execute(sa.select(sa.func.max(column))).scalar_one() or 0]
        if column.table.name == "chunks":
            numbers.append(self._connection.execute(sa.select(LAST.c.seq)).scalar_one())
        return max(numbers)

    def number_after(self, column, last):
        if column.table.name == "chunks":
            self._connection.execute(LAST.update().values(seq=max(last, self.last_number(column))))

    def is_in(self, column, values):
        parts = itertools.batched(values, 1000) if hasattr(itertools, "batched") else [values]
        return sa.or_(sa.false(), *(column.in_(part) for part in parts))


class ToyDatabase:
    """A catalog in memory."""

    def __init__(self):
        self._state, self._version, self._lock = None, 0, threading.RLock()
        with self.write() as transaction:
            metadata.create_all(transaction._connection)
            TOY.create_all(transaction._connection)
            transaction.execute(LAST.insert().values(seq=0))

    @contextmanager
    def read(self):
        with self._copy() as (connection, _):
            yield ToyTransaction(connection)

    @contextmanager
    def write(self):
        with self._lock, self._copy() as (connection, raw):
            yield ToyTransaction(connection)
            connection.commit()
            self._state = raw.serialize()
            self._version += 1

    @contextmanager
    def _copy(self):
        raw = sqlite3.connect(":memory:", check_same_thread=False)
        if self._state:
            raw.deserialize(self._state)
        raw.execute("PRAGMA foreign_keys=ON")
        raw.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 100_000)
        engine = sa.create_engine("sqlite://", creator=lambda: raw, poolclass=sa.pool.StaticPool)
        try:
            with engine.connect() as connection:
                yield connection, raw
        finally:
            engine.dispose()
            raw.close()

    def faults(self, *, repair=False):
        return []

    def changes(self):
        return self._version

    def chunks(self, seqs):
        with self.read() as transaction:
            return reading.get_chunks(transaction, seqs)

    def compact(self):
        return 0

    def close(self):
        pass


class ToyStore:
    """Vectors in dictionaries, without an index."""

    suffix = ""

    def __init__(self):
        self.collections = {}

    def settle(self):
        """Writes are complete at once."""

    def reopen(self):
        pass

    def close(self):
        pass

    def create(self, name, dimensions):
        self.collections[name] = (dimensions, {})

    def drop(self, name):
        self.collections.pop(name, None)

    def count(self, name):
        return len(self._vectors(name))

    def items(self, name):
        _, vectors = self.collections[name]
        if vectors:
            yield list(vectors), np.array(list(vectors.values()), np.float32)

    def upsert(self, name, ids, vectors, payloads=None):
        stored = self._vectors(name, *vectors)
        stored.update(zip(ids, vectors, strict=True))

    def delete(self, name, ids):
        for each in ids:
            self._vectors(name).pop(each, None)

    def nearest(self, name, query, k):
        stored = self._vectors(name, query)
        return sorted(stored, key=lambda each: -float(stored[each] @ query))[:k]

    def _vectors(self, name, *fitting):
        if name not in self.collections:
            raise WorkspaceError(f"{name}: no such collection")
        dimensions, stored = self.collections[name]
        if any(np.shape(vector) != (dimensions,) for vector in fitting):
            raise WorkspaceError(f"{name}: takes vectors of {dimensions} dimensions")
        return stored
