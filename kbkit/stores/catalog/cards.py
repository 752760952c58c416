"""Cards: what each document is, with a vector. Functions of the caller's transaction.

A card goes when its document is stored anew, and is made again behind the ingest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from kbkit.models import Document, DocumentState
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.packing import pack, unpack
from kbkit.stores.catalog.reading import DOCUMENT_COLUMNS, document_of
from kbkit.stores.catalog.schema import cards, documents


@dataclass(frozen=True, slots=True)
class CardVectors:
    """The vectors of a knowledge base's cards.

    Attributes:
        embedder: Fingerprint of what made them; ``""`` where there are none.
        document_ids: Whose they are.
        vectors: Unit vectors, shape ``(len(document_ids), dimensions)``.
    """

    embedder: str
    document_ids: Sequence[str]
    vectors: NDArray[np.float32]


def lacking(transaction: Transaction, kb_id: str, embedder: str, limit: int) -> list[Document]:
    """Some documents, not gone, that have no card which that embedder has embedded."""
    there = sa.select(cards.c.document_id).where(
        cards.c.document_id == documents.c.id, cards.c.embedder == embedder
    )
    rows = transaction.execute(
        sa.select(*DOCUMENT_COLUMNS)
        .where(
            documents.c.kb_id == kb_id,
            documents.c.state != DocumentState.GONE.value,
            ~there.exists(),
        )
        .limit(limit)
    )
    return [document_of(row) for row in rows]


def count_lacking(transaction: Transaction, kb_id: str, embedder: str) -> int:
    """How many documents `lacking` would give without a limit."""
    held = sa.select(sa.func.count()).where(cards.c.kb_id == kb_id, cards.c.embedder == embedder)
    alive = sa.select(sa.func.count()).where(
        documents.c.kb_id == kb_id, documents.c.state != DocumentState.GONE.value
    )
    return int(transaction.execute(alive).scalar_one() - transaction.execute(held).scalar_one())


def put(
    transaction: Transaction,
    kb_id: str,
    embedder: str,
    made: Mapping[str, tuple[str, str]],
    vectors: NDArray[np.float32],
) -> int:
    """Keep cards, in place of those before.

    Args:
        transaction: A writing transaction.
        kb_id: The knowledge base.
        embedder: Fingerprint of what embedded them.
        made: By document: its ``content_hash`` when it was read, and the card's text.
        vectors: One a card, shape ``(len(made), dimensions)``.

    Returns:
        How many were kept: not those of documents that changed or went meanwhile.
    """
    query = sa.select(documents.c.id, documents.c.content_hash).where(
        transaction.is_in(documents.c.id, list(made)),
        documents.c.state != DocumentState.GONE.value,
    )
    hashes = {row.id: row.content_hash for row in transaction.execute(query)}
    rows = [
        {"document_id": known, "kb_id": kb_id, "text": text, "embedder": embedder, "vector": vector}
        for (known, (read, text)), vector in zip(made.items(), pack(vectors), strict=True)
        if hashes.get(known) == read
    ]
    remove(transaction, [str(row["document_id"]) for row in rows])
    if rows:
        transaction.execute(cards.insert(), rows)
    return len(rows)


def remove(transaction: Transaction, document_ids: Collection[str]) -> None:
    """Forget the cards of some documents."""
    if document_ids:
        transaction.execute(
            cards.delete().where(transaction.is_in(cards.c.document_id, document_ids))
        )


def texts(transaction: Transaction, kb_id: str) -> dict[str, str]:
    """The cards of a knowledge base, by document."""
    rows = transaction.execute(
        sa.select(cards.c.document_id, cards.c.text).where(cards.c.kb_id == kb_id)
    )
    return {row.document_id: row.text for row in rows}


def vectors_of(transaction: Transaction, kb_id: str) -> CardVectors:
    """The vectors of those cards that the same embedder made as most of them."""
    counted = sa.func.count()
    most = transaction.execute(
        sa.select(cards.c.embedder)
        .where(cards.c.kb_id == kb_id)
        .group_by(cards.c.embedder)
        .order_by(counted.desc(), cards.c.embedder)
        .limit(1)
    ).scalar_one_or_none()
    if most is None:
        return CardVectors("", (), np.zeros((0, 0), np.float32))
    rows = transaction.execute(
        sa.select(cards.c.document_id, cards.c.vector).where(
            cards.c.kb_id == kb_id, cards.c.embedder == most
        )
    ).all()
    dimensions = len(rows[0].vector) // 2
    vectors = unpack([row.vector for row in rows], dimensions)
    return CardVectors(most, [row.document_id for row in rows], vectors)
