"""Chunk vectors made of annotations. Functions of the caller's transaction.

Functions of the caller's transaction. A chunk without a row has a vector of its text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from kbkit.stores.catalog import knowledge_schema
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_schema import statement_vectors as rows
from kbkit.stores.catalog.schema import chunks, vectors

_statements = knowledge_schema.annotations
CHUNK = "chunk"
"""Name of the chunk's text in a recipe."""

EMBED_HASH = sa.func.coalesce(
    sa.select(rows.c.embed_hash)
    .where(rows.c.chunk_seq == chunks.c.seq)
    .correlate(chunks)
    .scalar_subquery(),
    chunks.c.embed_hash,
)
"""Hash of a chunk vector's input, for queries."""


class Source(NamedTuple):
    """Text of a chunk's vector, and the choice; ``""`` if annotations changed since."""

    id: str
    text: str
    embed_hash: str
    statements: tuple[str, ...]


def count_lacking(transaction: Transaction, kb_id: str, text: str) -> int:
    """Count vectors made of another text than the recipe wants."""
    return transaction.count(_lacking(kb_id, text).subquery())


def lacking(transaction: Transaction, kb_id: str, text: str, limit: int) -> list[int]:
    """``seq`` of some chunks whose vectors are of something else than a recipe wants."""
    return list(transaction.execute(_lacking(kb_id, text).limit(limit)).scalars())


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
    held: dict[int, int] = {row.chunk_seq: row.version for row in transaction.execute(query)}
    transaction.execute(rows.delete().where(own))
    values: list[dict[str, Any]] = [
        {
            "chunk_seq": seq,
            "kb_id": kb_id,
            "text": text,
            "embed_hash": key,
            "version": version if key in packed else held.get(seq, 0),
        }
        for seq, key in made.items()
    ]
    transaction.insert(rows, values)
    changed = [{"of_seq": s, "of_vector": packed[k]} for s, k in made.items() if k in packed]
    if changed:
        transaction.execute(
            vectors.update()
            .where(vectors.c.chunk_seq == sa.bindparam("of_seq"))
            .values(vector=sa.bindparam("of_vector")),
            changed,
        )


def outdate(transaction: Transaction, seqs: Collection[int]) -> None:
    own = transaction.is_in(rows.c.chunk_seq, seqs)
    transaction.execute(rows.update().where(own).values(text=""))


def count_changed(transaction: Transaction, kb_id: str, version: int) -> int:
    """Count vectors that changed since a version."""
    return transaction.count(rows, rows.c.kb_id == kb_id, rows.c.version > version)


def changed_since(transaction: Transaction, kb_id: str, version: int) -> dict[int, bytes]:
    """Packed vectors, by ``chunks.seq``, that are others than in a version before."""
    query = (
        sa.select(vectors.c.chunk_seq, vectors.c.vector)
        .join(rows, rows.c.chunk_seq == vectors.c.chunk_seq)
        .where(rows.c.kb_id == kb_id, rows.c.version > version)
    )
    return {row.chunk_seq: row.vector for row in transaction.execute(query)}


def _lacking(kb_id: str, text: str) -> sa.Select[tuple[int]]:
    if text == CHUNK:
        return sa.select(rows.c.chunk_seq).where(rows.c.kb_id == kb_id, rows.c.text != text)
    columns = _statements.c
    held = sa.exists().where(rows.c.chunk_seq == columns.chunk_seq, rows.c.text == text)
    return sa.select(columns.chunk_seq).where(columns.kb_id == kb_id, columns.position == 0, ~held)
