"""Pending changes of the vector index, recorded in the transaction that makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow, change
from kbkit.stores.catalog.schema import (
    chunks,
    documents,
    dropped_collections,
    knowledge_bases,
    outbox,
    vectors,
)
from kbkit.stores.vector_store import VectorPayload, suffix_of


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A chunk to store, or to remove if `vector` (packed) is ``None``."""

    id: int
    chunk_id: str
    seq: int | None
    vector: bytes | None
    payload: VectorPayload | None


def add(transaction: Transaction, kb_id: str, chunks: Mapping[str, int | None]) -> None:
    rows = [
        {"kb_id": kb_id, "chunk_seq": s, "chunk_id": chunk_id} for chunk_id, s in chunks.items()
    ]
    transaction.insert(outbox, rows)


def is_empty(transaction: Transaction, kb_id: str) -> bool:
    return not holds(transaction, kb_id, 1)


def holds(transaction: Transaction, kb_id: str, count: int) -> bool:
    query = sa.select(outbox.c.id).where(outbox.c.kb_id == kb_id)
    return transaction.execute(query.limit(1).offset(count - 1)).first() is not None


def waiting(transaction: Transaction, kb_id: str) -> set[str]:
    query = sa.select(outbox.c.chunk_id).where(outbox.c.kb_id == kb_id)
    return set(transaction.execute(query).scalars())


def oldest(
    transaction: Transaction, kb_id: str, limit: int, *, payloads: bool
) -> list[OutboxEntry]:
    columns: list[sa.ColumnElement[Any]] = [
        outbox.c.id,
        outbox.c.chunk_id,
        outbox.c.chunk_seq,
        vectors.c.vector,
    ]
    tables = outbox.outerjoin(vectors, vectors.c.chunk_seq == outbox.c.chunk_seq)
    if payloads:
        columns += [
            chunks.c.text,
            chunks.c.document_id,
            documents.c.document_type,
            documents.c.uri,
            # plain JSON, because `Json` refuses NULL, which the outer join may give
            sa.type_coerce(documents.c.tags, sa.JSON).label("tags"),
        ]
        tables = tables.outerjoin(chunks, chunks.c.seq == outbox.c.chunk_seq).outerjoin(
            documents, documents.c.id == chunks.c.document_id
        )
    query = sa.select(*columns).select_from(tables).where(outbox.c.kb_id == kb_id)
    rows = transaction.execute(query.order_by(outbox.c.id).limit(limit))
    return [
        OutboxEntry(
            row.id,
            row.chunk_id,
            row.chunk_seq,
            row.vector,
            _payload(row) if payloads and row.vector is not None else None,
        )
        for row in rows
    ]


def _payload(row: Any) -> VectorPayload:
    return VectorPayload(
        row.text,
        {
            "document_id": row.document_id,
            "document_type": row.document_type,
            "uri": row.uri,
            "tags": list(row.tags),
        },
    )


def take(transaction: Transaction, row: KnowledgeBaseRow, entries: Sequence[OutboxEntry]) -> int:
    """Remove applied entries, which must be the oldest; return the new ``applied_seq``."""
    applied = max([row.applied_seq, *(entry.seq or 0 for entry in entries)])
    transaction.execute(
        outbox.delete().where(outbox.c.kb_id == row.id, outbox.c.id <= entries[-1].id)
    )
    change(transaction, row.id, applied_seq=applied)
    return applied


def applied_seqs(transaction: Transaction) -> dict[str, int]:
    query = sa.select(knowledge_bases.c.collection, knowledge_bases.c.applied_seq)
    return {row.collection: row.applied_seq for row in transaction.execute(query)}


def restart(transaction: Transaction, row: KnowledgeBaseRow, suffix: str | None = None) -> None:
    """Start an empty collection, queue all chunks for it, and mark the old one to be dropped.

    Other processes notice the new name.
    """
    if suffix is None:
        suffix = suffix_of(row.collection)
    transaction.execute(dropped_collections.insert().values(name=row.collection))
    begin(transaction, row, suffix)


def begin(transaction: Transaction, row: KnowledgeBaseRow, suffix: str = "") -> None:
    """Start a collection as `restart` does, without dropping the old one."""
    name = ".".join(filter(None, (row.name, uuid4().hex[:8], suffix)))
    change(transaction, row.id, collection=name, applied_seq=0)
    transaction.execute(outbox.delete().where(outbox.c.kb_id == row.id))
    transaction.execute(
        outbox.insert().from_select(
            ["kb_id", "chunk_seq", "chunk_id"],
            sa.select(chunks.c.kb_id, chunks.c.seq, chunks.c.id)
            .where(chunks.c.kb_id == row.id)
            .order_by(chunks.c.seq),
        )
    )


def dropped_names(transaction: Transaction) -> list[str]:
    return list(transaction.execute(sa.select(dropped_collections.c.name)).scalars())


def forget_dropped(transaction: Transaction, names: Sequence[str]) -> None:
    column = dropped_collections.c.name
    transaction.execute(dropped_collections.delete().where(column.in_(names)))
