"""Chunk table: which chunks and documents a version of a knowledge base has, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kbkit.stores.catalog import cards, corpus
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow

Score = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""Gives a number for each of some vectors."""


@dataclass(frozen=True, slots=True)
class ChunkTable:
    """The chunks of a knowledge base in order of ``seq``, without their words and vectors.

    Attributes:
        version: ``knowledge_bases.version`` that it shows.
        embedder: Fingerprint of what made the chunks' vectors.
        seqs: ``chunks.seq``, shape ``(n,)``, ascending.
        owners: Which of `document_ids` each chunk is part of, shape ``(n,)``.
        lengths: Number of terms of each chunk, shape ``(n,)``.
        document_ids: Of all documents.
        sizes: Number of chunks of the same.
        average_length: Mean of `lengths`.
        document_lengths: Number of terms of each document's chunks.
        cards_version: ``knowledge_bases.cards_version`` that it shows.
        card_embedder: Fingerprint of what embedded the cards; ``""`` where there are none.
        card_vectors: A unit vector for the card of each document, zeros for one that has none yet,
            shape ``(len(document_ids), dimensions)``.
        kept: What searches have made of it, for those that come.
    """

    version: int
    embedder: str
    seqs: NDArray[np.int64]
    owners: NDArray[np.int32]
    lengths: NDArray[np.int32]
    document_ids: Sequence[str]
    sizes: NDArray[np.int64]
    average_length: float
    document_lengths: NDArray[np.int64]
    cards_version: int
    card_embedder: str
    card_vectors: NDArray[np.float32]
    kept: dict[str, Any] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __len__(self) -> int:
        return len(self.seqs)

    def card_scores(self, score: Score) -> NDArray[np.float32]:
        """What a function of vectors says of the card of each document; 0 for one without."""
        found = score(self.card_vectors)
        found[self.sizes == 0] = 0.0
        return found

    def shows(self, row: KnowledgeBaseRow) -> bool:
        """Whether it is of a knowledge base as the catalog has it there."""
        return self.version == row.version and self.embedder == row.embedder


_Table = TypeVar("_Table", bound=ChunkTable)


def read(transaction: Transaction, row: KnowledgeBaseRow) -> ChunkTable:
    """The chunk table of what a transaction sees."""
    ordinals = {known: i for i, known in enumerate(corpus.titles(transaction, row.id))}
    rows = corpus.chunk_owners(transaction, row.id)
    owners = np.fromiter((ordinals[known] for _, known, _ in rows), np.int32, len(rows))
    lengths = np.fromiter((length for _, _, length in rows), np.int32, len(rows))
    return ChunkTable(
        version=row.version,
        embedder=row.embedder,
        seqs=np.fromiter((seq for seq, _, _ in rows), np.int64, len(rows)),
        owners=owners,
        lengths=lengths,
        document_ids=tuple(ordinals),
        sizes=np.bincount(owners, minlength=len(ordinals)),
        average_length=float(lengths.mean()) if len(lengths) else 0.0,
        document_lengths=np.bincount(owners, lengths, len(ordinals)).astype(np.int64),
        **card_columns(transaction, row, ordinals),
    )


def with_cards(transaction: Transaction, row: KnowledgeBaseRow, table: _Table) -> _Table:
    """A table with the vectors of cards that a transaction sees: they may come behind the chunks.

    That takes milliseconds.
    """
    if table.cards_version == row.cards_version:
        return table
    ordinals = {known: i for i, known in enumerate(table.document_ids)}
    return replace(table, **card_columns(transaction, row, ordinals))


def card_columns(
    transaction: Transaction,
    row: KnowledgeBaseRow,
    ordinals: Mapping[str, int],
    *,
    some: bool = False,
) -> dict[str, Any]:
    """What a table holds of the cards of its documents; zeros for those that have none.

    Args:
        transaction: One that reads.
        row: The knowledge base.
        ordinals: Place of each document.
        some: Whether these are but some of its documents.
    """
    found = cards.vectors_of(transaction, row, ordinals if some else None)
    vectors = np.zeros((len(ordinals), found.vectors.shape[1]), np.float32)
    there = [i for i, known in enumerate(found.document_ids) if known in ordinals]
    vectors[[ordinals[found.document_ids[i]] for i in there]] = found.vectors[there]
    return {
        "cards_version": row.cards_version,
        "card_embedder": found.embedder,
        "card_vectors": vectors,
    }
