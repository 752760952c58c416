"""Write chunks with terms, vectors and outbox entries. Functions of the caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from kbkit.models import Chunk
from kbkit.stores.catalog import outbox, removed_chunks
from kbkit.stores.catalog.database import CHUNK_COLUMNS, Transaction
from kbkit.stores.catalog.schema import chunks, vectors


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk to store; `terms` are joined by spaces."""

    chunk: Chunk
    terms: str
    length: int
    embed_hash: str


@dataclass(frozen=True, slots=True)
class ChunkDifference:
    """Difference between a document's new and stored chunks; `kept` maps ids to ``seq``."""

    added: list[NewChunk]
    kept: dict[str, int | None]
    removed: int


def staying(transaction: Transaction, new_chunks: Sequence[NewChunk]) -> set[str]:
    by_id = {new.chunk.id: (new.terms, new.embed_hash) for new in new_chunks}
    query = sa.select(chunks.c.id, chunks.c.terms, chunks.c.embed_hash)
    rows = transaction.execute(query.where(transaction.is_in(chunks.c.id, by_id)))
    return {row.id for row in rows if by_id[row.id] == (row.terms, row.embed_hash)}


def difference(
    transaction: Transaction, kb_id: str, document_id: str, new_chunks: Sequence[NewChunk]
) -> ChunkDifference:
    """Remove chunks that the document no longer has; move and map those that stay."""
    old = {
        row.id: row
        for row in transaction.execute(
            sa.select(
                *(chunks.c[name] for name in ("seq", "id", "terms", "embed_hash", *_PLACE))
            ).where(chunks.c.document_id == document_id)
        )
    }
    added: list[NewChunk] = []
    moved: list[dict[str, Any]] = []
    kept: dict[str, int | None] = {}
    for new in new_chunks:
        row = old.get(new.chunk.id)
        if row is None or (row.terms, row.embed_hash) != (new.terms, new.embed_hash):
            added.append(new)
            continue
        del old[new.chunk.id]
        place = {name: getattr(new.chunk, name) for name in _PLACE}
        if any(getattr(row, name) != value for name, value in place.items()):
            moved.append({"chunk_seq": row.seq, **{f"new_{k}": v for k, v in place.items()}})
        kept[row.id] = row.seq
    remove(transaction, kb_id, list(old.values()))
    if moved:
        transaction.execute(
            chunks.update()
            .where(chunks.c.seq == sa.bindparam("chunk_seq"))
            .values({name: sa.bindparam(f"new_{name}") for name in _PLACE}),
            moved,
        )
    return ChunkDifference(added, kept, len(old))


_PLACE = ("position", "start", "end", "anchor", "page")
"""Columns that may change without changing the chunk's id or vector."""


def add(
    transaction: Transaction, kb_id: str, added: Sequence[NewChunk], packed: Mapping[str, bytes]
) -> None:
    if not added:
        return
    numbered = list(enumerate(added, transaction.reserve_seqs(len(added))))
    rows = []
    for seq, new in numbered:
        rows.append(
            {
                **{column.name: getattr(new.chunk, column.name) for column in CHUNK_COLUMNS},
                "seq": seq,
                "kb_id": kb_id,
                "terms": new.terms,
                "length": new.length,
                "embed_hash": new.embed_hash,
            }
        )
    transaction.execute(chunks.insert(), rows)
    transaction.execute(
        vectors.insert(),
        [{"chunk_seq": seq, "vector": packed[new.embed_hash]} for seq, new in numbered],
    )
    transaction.lexical.add(kb_id, [(seq, new.terms) for seq, new in numbered])
    outbox.add(transaction, kb_id, {new.chunk.id: seq for seq, new in numbered})


def remove(transaction: Transaction, kb_id: str, rows: Sequence[Any]) -> None:
    """Remove chunks; each row has ``seq``, ``id`` and ``terms``."""
    if not rows:
        return
    transaction.lexical.remove(kb_id, [(row.seq, row.terms) for row in rows])
    seqs = [row.seq for row in rows]
    transaction.execute(chunks.delete().where(transaction.is_in(chunks.c.seq, seqs)))
    outbox.add(transaction, kb_id, {row.id: None for row in rows})
    removed_chunks.add(transaction, kb_id, seqs)
