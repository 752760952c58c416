"""Chunks that share rare subjects. Functions of the caller's transaction."""

from __future__ import annotations

from math import log

import sqlalchemy as sa

from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_schema import annotation_subjects
from kbkit.stores.catalog.schema import chunks

_COMMON = 0.02
"""Share of a knowledge base's chunks from which on a subject ties nothing together."""
_FEW = 20
"""Chunks that a subject may have in any case."""


def related(
    transaction: Transaction, kb_id: str, chunk_id: str, limit: int
) -> list[tuple[str, float]]:
    """The chunks of a knowledge base that share the rarest subjects with one of them.

    The score is the sum of ``ln(N / n)`` over the subjects that both speak of, N being the number
    of chunks, n that of those that speak of the subject; chunks of one document share their
    subjects anyway and count half.

    Args:
        transaction: Reads.
        kb_id: The knowledge base.
        chunk_id: The chunk.
        limit: Most chunks.

    Returns:
        Ids of chunks with their scores, the best first.
    """
    table = annotation_subjects.c
    here = transaction.execute(
        sa.select(chunks.c.seq, chunks.c.document_id).where(
            chunks.c.kb_id == kb_id, chunks.c.id == chunk_id
        )
    ).first()
    if here is None:
        return []
    count = sa.select(sa.func.count()).where(chunks.c.kb_id == kb_id)
    total = int(transaction.execute(count).scalar_one())
    own = sa.select(table.subject_id).where(table.chunk_seq == here.seq)
    query = (
        sa.select(table.subject_id, chunks.c.id, chunks.c.document_id)
        .join(chunks, chunks.c.seq == table.chunk_seq)
        .where(table.subject_id.in_(own), chunks.c.kb_id == kb_id)
        .distinct()
    )
    speaking: dict[str, list[tuple[str, str]]] = {}
    for subject_id, known, document_id in transaction.execute(query):
        speaking.setdefault(subject_id, []).append((known, document_id))
    scores: dict[str, float] = {}
    for found in speaking.values():
        if len(found) <= max(_FEW, _COMMON * total):
            for known, document_id in found:
                share = 0.5 if document_id == here.document_id else 1.0
                scores[known] = scores.get(known, 0.0) + share * log(total / len(found))
    scores.pop(chunk_id, None)
    ranked = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    return [(known, score) for known, score in ranked if score > 0][:limit]
