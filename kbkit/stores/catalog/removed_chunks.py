"""A numbered log of removed chunks, from which old entries are deleted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.schema import removed_chunks as rows

_MIN_ENTRIES = 100_000
"""Newest entries that a knowledge base keeps."""


@dataclass(frozen=True, slots=True)
class Removed:
    """``chunks.seq`` of removed chunks, and the number of the last entry."""

    seqs: frozenset[int]
    last: int


def add(transaction: Transaction, kb_id: str, seqs: Collection[int]) -> None:
    transaction.insert(rows, [{"kb_id": kb_id, "chunk_seq": seq} for seq in seqs])


def since(transaction: Transaction, kb_id: str, last: int) -> Removed | None:
    """Return removals after an entry; ``None`` if some of them were deleted from the log."""
    query = sa.select(rows.c.id, rows.c.chunk_seq).where(rows.c.kb_id == kb_id, rows.c.id > last)
    removed = transaction.execute(query.order_by(rows.c.id)).all()
    if any(row.chunk_seq is None for row in removed):
        return None
    return Removed(frozenset(row.chunk_seq for row in removed), removed[-1].id if removed else last)


def last(transaction: Transaction, kb_id: str) -> int:
    """Return the number of the last entry; 0 for none."""
    query = sa.select(sa.func.coalesce(sa.func.max(rows.c.id), 0)).where(rows.c.kb_id == kb_id)
    return int(transaction.execute(query).scalar_one())


def is_known(transaction: Transaction, kb_id: str, last: int) -> bool:
    if not last:
        return True
    query = sa.select(rows.c.id).where(rows.c.kb_id == kb_id, rows.c.id == last)
    return transaction.execute(query).first() is not None


def is_long(transaction: Transaction, kb_id: str) -> bool:
    """Whether the oldest entries should be deleted."""
    return transaction.count(rows, rows.c.kb_id == kb_id) > 2 * _MIN_ENTRIES


def forget_oldest(transaction: Transaction, kb_id: str) -> None:
    query = sa.select(rows.c.id).where(rows.c.kb_id == kb_id).order_by(rows.c.id.desc())
    first = transaction.execute(query.offset(_MIN_ENTRIES).limit(1)).scalar_one_or_none()
    if first is not None:
        transaction.execute(rows.delete().where(rows.c.kb_id == kb_id, rows.c.id < first))
        transaction.execute(rows.update().where(rows.c.id == first).values(chunk_seq=None))
