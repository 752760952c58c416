"""Vectors without chunks yet, so that interrupted embedding is not repeated.

Keys are the embedder's fingerprint and a chunk's ``embed_hash``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from kbkit.stores.catalog import knowledge_bases
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.schema import chunks, embedded, vectors
from kbkit.stores.catalog.statement_vectors import EMBED_HASH


def known(transaction: Transaction, kb_id: str, hashes: Collection[str]) -> dict[str, bytes]:
    rows = transaction.execute(
        sa.select(chunks.c.embed_hash, vectors.c.vector)
        .join(vectors, vectors.c.chunk_seq == chunks.c.seq)
        .where(
            chunks.c.kb_id == kb_id,
            transaction.is_in(chunks.c.embed_hash, hashes),
            chunks.c.embed_hash == EMBED_HASH,
        )
    )
    return {row.embed_hash: row.vector for row in rows}


def waiting(
    transaction: Transaction, kb_id: str, embedder: str, hashes: Collection[str]
) -> dict[str, bytes]:
    rows = transaction.execute(
        sa.select(embedded.c.embed_hash, embedded.c.vector).where(
            *_of(kb_id, embedder), transaction.is_in(embedded.c.embed_hash, hashes)
        )
    )
    return {row.embed_hash: row.vector for row in rows}


def add(transaction: Transaction, kb_id: str, embedder: str, packed: Mapping[str, bytes]) -> None:
    existing = waiting(transaction, kb_id, embedder, packed)  # perhaps from another process
    rows = [
        {"kb_id": kb_id, "embedder": embedder, "embed_hash": key, "vector": vector}
        for key, vector in packed.items()
        if key not in existing
    ]
    transaction.insert(embedded, rows)


def remove(transaction: Transaction, kb_id: str, embedder: str, hashes: Collection[str]) -> None:
    transaction.execute(
        embedded.delete().where(
            *_of(kb_id, embedder), transaction.is_in(embedded.c.embed_hash, hashes)
        )
    )


def without(
    transaction: Transaction, kb_id: str, embedder: str, *, after: int, limit: int
) -> list[Any]:
    """Return chunks without a pending vector, by ``seq``."""
    query = sa.select(chunks.c.seq, EMBED_HASH.label("embed_hash")).where(
        chunks.c.seq > after, *_lacking(kb_id, embedder)
    )
    return list(transaction.execute(query.order_by(chunks.c.seq).limit(limit)))


def count_without(transaction: Transaction, kb_id: str, embedder: str) -> int:
    return transaction.count(chunks, *_lacking(kb_id, embedder))


def _lacking(kb_id: str, embedder: str) -> tuple[sa.ColumnElement[bool], ...]:
    pending = sa.exists().where(*_of(kb_id, embedder), embedded.c.embed_hash == EMBED_HASH)
    return chunks.c.kb_id == kb_id, ~pending


def take_over(
    transaction: Transaction, row: KnowledgeBaseRow, embedder: str, dimensions: int
) -> None:
    """Replace all chunk vectors with the pending ones.

    The caller makes sure that no chunk lacks one, and starts a new collection.
    """
    vector = (
        sa.select(embedded.c.vector)
        .select_from(embedded, chunks)
        .where(
            *_of(row.id, embedder),
            embedded.c.embed_hash == EMBED_HASH,
            chunks.c.seq == vectors.c.chunk_seq,
        )
        .scalar_subquery()
    )
    own = sa.select(chunks.c.seq).where(chunks.c.kb_id == row.id)
    transaction.execute(vectors.update().where(vectors.c.chunk_seq.in_(own)).values(vector=vector))
    transaction.execute(embedded.delete().where(embedded.c.kb_id == row.id))
    knowledge_bases.set_embedder(transaction, row.id, embedder, dimensions)


def _of(kb_id: str, embedder: str) -> tuple[sa.ColumnElement[bool], ...]:
    return embedded.c.kb_id == kb_id, embedded.c.embedder == embedder
