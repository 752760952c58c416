"""Chunk vectors made from annotations, and vectors without chunks yet.

The vector of a chunk without a row in ``statement_vectors`` is made from its text. Pending vectors
are kept so that interrupted embedding is not repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.schema import chunks, embedded, vectors
from kbkit.stores.catalog.workspace_schema import annotations as _statements
from kbkit.stores.catalog.workspace_schema import statement_vectors as rows

CHUNK = "chunk"
"""Name of the chunk's own text in a recipe."""

EMBED_HASH = sa.func.coalesce(
    sa.select(rows.c.embed_hash)
    .where(rows.c.chunk_seq == chunks.c.seq)
    .correlate(chunks)
    .scalar_subquery(),
    chunks.c.embed_hash,
)
"""SQL expression: hash of the text from which a chunk's vector was made."""


class Source(NamedTuple):
    """Input of a chunk's vector: `text` is its name, ``""`` if annotations changed since."""

    id: str
    text: str
    embed_hash: str
    statements: tuple[str, ...]


def count_lacking(transaction: Transaction, kb_id: str, text: str) -> int:
    """Count chunks whose vectors are not made from ``text``."""
    return transaction.count(_lacking(kb_id, text).subquery())


def lacking(transaction: Transaction, kb_id: str, text: str, limit: int) -> list[int]:
    return transaction.scalars(_lacking(kb_id, text).limit(limit))


def sources(transaction: Transaction, seqs: Sequence[int]) -> dict[int, Source]:
    source_of: dict[int, Source] = {}
    texts: dict[int, list[str]] = {}
    columns = _statements.c
    for row in transaction.execute(
        sa.select(columns.chunk_seq, columns.normalized_text)
        .where(transaction.is_in(columns.chunk_seq, seqs))
        .order_by(columns.chunk_seq, columns.position)
    ):
        texts.setdefault(row.chunk_seq, []).append(row.normalized_text)
    query = (
        sa.select(chunks.c.seq, chunks.c.id, rows.c.text, EMBED_HASH.label("made_of"))
        .outerjoin(rows, rows.c.chunk_seq == chunks.c.seq)
        .where(transaction.is_in(chunks.c.seq, seqs))
    )
    for row in transaction.execute(query):
        text = CHUNK if row.text is None else row.text
        source_of[row.seq] = Source(row.id, text, row.made_of, tuple(texts.get(row.seq, ())))
    return source_of


def put(
    transaction: Transaction,
    kb_id: str,
    made: Mapping[int, str],
    packed: Mapping[str, bytes],
    *,
    text: str,
    version: int,
) -> None:
    own = transaction.is_in(rows.c.chunk_seq, made)
    query = sa.select(rows.c.chunk_seq, rows.c.version).where(own)
    version_of: dict[int, int] = transaction.mapping(query)
    transaction.delete(rows, own)
    values: list[dict[str, Any]] = [
        {
            "chunk_seq": seq,
            "kb_id": kb_id,
            "text": text,
            "embed_hash": key,
            "version": version if key in packed else version_of.get(seq, 0),
        }
        for seq, key in made.items()
    ]
    transaction.insert(rows, values)
    changed = [{"chunk_seq": s, "vector": packed[k]} for s, k in made.items() if k in packed]
    transaction.update_each(vectors, ["chunk_seq"], changed)


def outdate(transaction: Transaction, seqs: Collection[int]) -> None:
    transaction.update(rows, transaction.is_in(rows.c.chunk_seq, seqs), text="")


def count_changed(transaction: Transaction, kb_id: str, version: int) -> int:
    return transaction.count(rows, rows.c.kb_id == kb_id, rows.c.version > version)


def changed_since(transaction: Transaction, kb_id: str, version: int) -> dict[int, bytes]:
    """Return packed vectors that changed after a version, by ``chunks.seq``."""
    query = (
        sa.select(vectors.c.chunk_seq, vectors.c.vector)
        .join(rows, rows.c.chunk_seq == vectors.c.chunk_seq)
        .where(rows.c.kb_id == kb_id, rows.c.version > version)
    )
    return transaction.mapping(query)


def _lacking(kb_id: str, text: str) -> sa.Select[tuple[int]]:
    if text == CHUNK:
        return sa.select(rows.c.chunk_seq).where(rows.c.kb_id == kb_id, rows.c.text != text)
    columns = _statements.c
    done = sa.exists().where(rows.c.chunk_seq == columns.chunk_seq, rows.c.text == text)
    return sa.select(columns.chunk_seq).where(columns.kb_id == kb_id, columns.position == 0, ~done)


def stored(transaction: Transaction, kb_id: str, hashes: Collection[str]) -> dict[str, bytes]:
    return transaction.mapping(
        sa.select(chunks.c.embed_hash, vectors.c.vector)
        .join(vectors, vectors.c.chunk_seq == chunks.c.seq)
        .where(
            chunks.c.kb_id == kb_id,
            transaction.is_in(chunks.c.embed_hash, hashes),
            chunks.c.embed_hash == EMBED_HASH,
        )
    )


def pending(
    transaction: Transaction, kb_id: str, embedder: str, hashes: Collection[str]
) -> dict[str, bytes]:
    return transaction.mapping(
        sa.select(embedded.c.embed_hash, embedded.c.vector).where(
            *_pending_of(kb_id, embedder), transaction.is_in(embedded.c.embed_hash, hashes)
        )
    )


def add_pending(
    transaction: Transaction, kb_id: str, embedder: str, packed: Mapping[str, bytes]
) -> None:
    existing = pending(transaction, kb_id, embedder, packed)  # perhaps from another process
    rows = [
        {"kb_id": kb_id, "embedder": embedder, "embed_hash": key, "vector": vector}
        for key, vector in packed.items()
        if key not in existing
    ]
    transaction.insert(embedded, rows)


def remove_pending(
    transaction: Transaction, kb_id: str, embedder: str, hashes: Collection[str]
) -> None:
    transaction.delete(
        embedded, *_pending_of(kb_id, embedder), transaction.is_in(embedded.c.embed_hash, hashes)
    )


def without_pending(
    transaction: Transaction, kb_id: str, embedder: str, *, after: int, limit: int
) -> list[Any]:
    """Return chunks without a pending vector, by ``seq``."""
    query = sa.select(chunks.c.seq, EMBED_HASH.label("embed_hash")).where(
        chunks.c.seq > after, *_without(kb_id, embedder)
    )
    return list(transaction.execute(query.order_by(chunks.c.seq).limit(limit)))


def count_without_pending(transaction: Transaction, kb_id: str, embedder: str) -> int:
    return transaction.count(chunks, *_without(kb_id, embedder))


def _without(kb_id: str, embedder: str) -> tuple[sa.ColumnElement[bool], ...]:
    pending = sa.exists().where(*_pending_of(kb_id, embedder), embedded.c.embed_hash == EMBED_HASH)
    return chunks.c.kb_id == kb_id, ~pending


def take_over(transaction: Transaction, kb_id: str, embedder: str, keep: str = "") -> None:
    """Replace all chunk vectors with the pending ones; those of the embedder ``keep`` stay pending.

    The caller makes sure that no chunk lacks one, sets the embedder and starts a new collection.
    """
    vector = (
        sa.select(embedded.c.vector)
        .select_from(embedded, chunks)
        .where(
            *_pending_of(kb_id, embedder),
            embedded.c.embed_hash == EMBED_HASH,
            chunks.c.seq == vectors.c.chunk_seq,
        )
        .scalar_subquery()
    )
    own = sa.select(chunks.c.seq).where(chunks.c.kb_id == kb_id)
    if keep:
        _keep(transaction, kb_id, keep)
    transaction.update(vectors, vectors.c.chunk_seq.in_(own), vector=vector)
    transaction.delete(embedded, embedded.c.kb_id == kb_id, embedded.c.embedder != keep)


def _keep(transaction: Transaction, kb_id: str, embedder: str) -> None:
    known = sa.select(embedded.c.embed_hash).where(*_pending_of(kb_id, embedder))
    own = chunks.c.kb_id == kb_id
    first = sa.select(sa.func.min(chunks.c.seq)).where(own).group_by(EMBED_HASH)
    query = (
        sa.select(sa.literal(kb_id), sa.literal(embedder), EMBED_HASH, vectors.c.vector)
        .join(vectors, vectors.c.chunk_seq == chunks.c.seq)
        .where(chunks.c.seq.in_(first), EMBED_HASH.not_in(known))
    )
    names = ["kb_id", "embedder", "embed_hash", "vector"]
    transaction.execute(embedded.insert().from_select(names, query))


def _pending_of(kb_id: str, embedder: str) -> tuple[sa.ColumnElement[bool], ...]:
    return embedded.c.kb_id == kb_id, embedded.c.embedder == embedder
