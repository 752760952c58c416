"""Vectors that no chunk has yet: of a long document, or of an embedder that is to take over.

Functions of the caller's transaction. Keys are the embedder's fingerprint and a chunk's
``embed_hash``, so that what was embedded once is there whatever stopped the work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from kbkit.stores.catalog import knowledge_bases
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.schema import chunks, embedded, vectors
from kbkit.stores.catalog.schema import knowledge_bases as knowledge_base_table
from kbkit.stores.catalog.writing import listed


def known(connection: sa.Connection, kb_id: str, hashes: Collection[str]) -> dict[str, bytes]:
    """Packed vectors of chunks, by ``embed_hash``."""
    rows = connection.execute(
        sa.select(chunks.c.embed_hash, vectors.c.vector)
        .join(vectors, vectors.c.chunk_seq == chunks.c.seq)
        .where(chunks.c.kb_id == kb_id, chunks.c.embed_hash.in_(listed(hashes)))
    )
    return {row.embed_hash: row.vector for row in rows}


def waiting(
    connection: sa.Connection, kb_id: str, embedder: str, hashes: Collection[str]
) -> dict[str, bytes]:
    """Packed vectors that wait for their chunks, by ``embed_hash``."""
    rows = connection.execute(
        sa.select(embedded.c.embed_hash, embedded.c.vector).where(
            *_of(kb_id, embedder), embedded.c.embed_hash.in_(listed(hashes))
        )
    )
    return {row.embed_hash: row.vector for row in rows}


def add(connection: sa.Connection, kb_id: str, embedder: str, packed: Mapping[str, bytes]) -> None:
    """Keep vectors until their chunks have them."""
    statement = insert(embedded).on_conflict_do_nothing()  # another process may do the same work
    fixed = {"kb_id": kb_id, "embedder": embedder}
    connection.execute(
        statement,
        [{**fixed, "embed_hash": key, "vector": value} for key, value in packed.items()],
    )


def remove(connection: sa.Connection, kb_id: str, embedder: str, hashes: Collection[str]) -> None:
    """Forget vectors that chunks have by now."""
    connection.execute(
        embedded.delete().where(*_of(kb_id, embedder), embedded.c.embed_hash.in_(listed(hashes)))
    )


def without(
    connection: sa.Connection, kb_id: str, embedder: str, *, after: int, limit: int
) -> list[Any]:
    """Chunks that have no waiting vector of an embedder, in order of ``seq``.

    Args:
        connection: A reading transaction.
        kb_id: The knowledge base.
        embedder: Fingerprint.
        after: ``chunks.seq`` that the first is greater than.
        limit: Most chunks.

    Returns:
        Rows with ``seq`` and ``embed_hash``.
    """
    query = sa.select(chunks.c.seq, chunks.c.embed_hash).where(
        chunks.c.seq > after, *_lacking(kb_id, embedder)
    )
    return list(connection.execute(query.order_by(chunks.c.seq).limit(limit)))


def count_without(connection: sa.Connection, kb_id: str, embedder: str) -> int:
    """Number of chunks that have no waiting vector of an embedder."""
    query = sa.select(sa.func.count()).select_from(chunks).where(*_lacking(kb_id, embedder))
    return connection.execute(query).scalar_one()


def _lacking(kb_id: str, embedder: str) -> tuple[sa.ColumnElement[bool], ...]:
    there = sa.exists().where(*_of(kb_id, embedder), embedded.c.embed_hash == chunks.c.embed_hash)
    return chunks.c.kb_id == kb_id, ~there


def take_over(
    connection: sa.Connection, row: KnowledgeBaseRow, embedder: str, dimensions: int
) -> None:
    """Give all chunks of a knowledge base the vectors that wait for them.

    The caller sees to it that there is one for each, and begins a new collection.
    """
    vector = (
        sa.select(embedded.c.vector)
        .join(chunks, chunks.c.embed_hash == embedded.c.embed_hash)
        .where(*_of(row.id, embedder), chunks.c.seq == vectors.c.chunk_seq)
        .scalar_subquery()
    )
    own = sa.select(chunks.c.seq).where(chunks.c.kb_id == row.id)
    connection.execute(vectors.update().where(vectors.c.chunk_seq.in_(own)).values(vector=vector))
    connection.execute(
        knowledge_base_table.update()
        .where(knowledge_base_table.c.id == row.id)
        .values(embedder=embedder, dimensions=dimensions)
    )
    connection.execute(embedded.delete().where(embedded.c.kb_id == row.id))
    knowledge_bases.touch(connection, row.id)


def _of(kb_id: str, embedder: str) -> tuple[sa.ColumnElement[bool], ...]:
    return embedded.c.kb_id == kb_id, embedded.c.embedder == embedder
