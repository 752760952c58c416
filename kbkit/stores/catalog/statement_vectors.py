"""Chunk vectors made from annotations. Functions of the caller's transaction.

The vector of a chunk without a row is made from its text.
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
    version_of: dict[int, int] = {row.chunk_seq: row.version for row in transaction.execute(query)}
    transaction.execute(rows.delete().where(own))
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
    return transaction.count(rows, rows.c.kb_id == kb_id, rows.c.version > version)


def changed_since(transaction: Transaction, kb_id: str, version: int) -> dict[int, bytes]:
    """Return packed vectors that changed after a version, by ``chunks.seq``."""
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
    done = sa.exists().where(rows.c.chunk_seq == columns.chunk_seq, rows.c.text == text)
    return sa.select(columns.chunk_seq).where(columns.kb_id == kb_id, columns.position == 0, ~done)
