"""Vectors of texts: none is embedded twice, and what was done is kept when a batch fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kbkit.embedding.base import Embedder, batch_size
from kbkit.stores.catalog import packing, pending_vectors
from kbkit.stores.catalog.database import Database


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vectors of the texts of a document.

    Attributes:
        packed: As the catalog keeps them, by ``embed_hash``.
        new: How many were made now.
        waiting: Whether some are kept apart, to be removed once chunks hold them.
    """

    packed: Mapping[str, bytes]
    new: int
    waiting: bool


def vectors_of(
    database: Database,
    kb_id: str,
    embedder: Embedder,
    texts: Mapping[str, str],
    *,
    keep: bool = True,
) -> Vectors:
    """Embed what was not embedded before.

    Args:
        database: The catalog.
        kb_id: The knowledge base.
        embedder: The one whose vectors its chunks have.
        texts: What the embedder reads, by ``embed_hash``.
        keep: Whether batches are kept, should a later one fail.

    Raises:
        EmbedderError: The embedder failed.
    """
    with database.read() as transaction:
        packed = pending_vectors.known(transaction, kb_id, texts)
        missing = [key for key in texts if key not in packed]
        waited = pending_vectors.waiting(transaction, kb_id, embedder.fingerprint, missing)
    packed |= waited
    missing = [key for key in missing if key not in waited]
    size = batch_size(embedder)
    for start in range(0, len(missing), size):
        keys = missing[start : start + size]
        made = embed(embedder, {key: texts[key] for key in keys})
        packed |= made
        if keep and start + size < len(missing):  # a later batch may fail
            with database.write() as transaction:
                pending_vectors.add(transaction, kb_id, embedder.fingerprint, made)
    return Vectors(packed, len(missing), bool(waited) or (keep and len(missing) > size))


def embed(embedder: Embedder, texts: Mapping[str, str]) -> dict[str, bytes]:
    """Packed vectors of texts, by the same keys.

    Raises:
        EmbedderError: The embedder failed.
    """
    matrix = embedder.embed_passages(list(texts.values()))
    return dict(zip(texts, packing.pack(matrix), strict=True))
