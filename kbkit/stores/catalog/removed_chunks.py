"""A numbered log of removed chunks. The oldest entries are dropped in time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.schema import removed_chunks as rows

_KEPT = 100_000
"""Minimum entries kept of a knowledge base."""


@dataclass(frozen=True, slots=True)
class Removed:
    """Chunks removed since a moment, by ``chunks.seq``."""

    seqs: frozenset[int]
    last: int


def add(transaction: Transaction, kb_id: str, seqs: Collection[int]) -> None:
    transaction.insert(rows, [{"kb_id": kb_id, "chunk_seq": seq} for seq in seqs])


def since(transaction: Transaction, kb_id: str, last: int) -> Removed | None:
    """Return removals since an entry; ``None`` if the entry is forgotten."""
    query = sa.select(rows.c.id, rows.c.chunk_seq).where(rows.c.kb_id == kb_id, rows.c.id > last)
    removed = transaction.execute(query.order_by(rows.c.id)).all()
    if any(row.chunk_seq is None for row in removed):
        return None
    return Removed(frozenset(row.chunk_seq for row in removed), removed[-1].id if removed else last)


def last(transaction: Transaction, kb_id: str) -> int:
    """Return the number of the last entry; 0 if there is none."""
    query = sa.select(sa.func.coalesce(sa.func.max(rows.c.id), 0)).where(rows.c.kb_id == kb_id)
    return int(transaction.execute(query).scalar_one())


def is_known(transaction: Transaction, kb_id: str, last: int) -> bool:
    if not last:
        return True
    query = sa.select(rows.c.id).where(rows.c.kb_id == kb_id, rows.c.id == last)
    return transaction.execute(query).first() is not None


def is_long(transaction: Transaction, kb_id: str) -> bool:
    """Whether the oldest entries should be deleted."""
    return transaction.count(rows, rows.c.kb_id == kb_id) > 2 * _KEPT


def forget_oldest(transaction: Transaction, kb_id: str) -> None:
    """Forget all but the last entries; a writing transaction."""
    query = sa.select(rows.c.id).where(rows.c.kb_id == kb_id).order_by(rows.c.id.desc())
    first = transaction.execute(query.offset(_KEPT).limit(1)).scalar_one_or_none()
    if first is not None:
        transaction.execute(rows.delete().where(rows.c.kb_id == kb_id, rows.c.id < first))
        transaction.execute(rows.update().where(rows.c.id == first).values(chunk_seq=None))
