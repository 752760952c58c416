"""Chunks that share rare subjects. Functions of the caller's transaction."""

from __future__ import annotations

from collections import defaultdict
from math import log

import sqlalchemy as sa

from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_schema import annotation_subjects, subjects
from kbkit.stores.catalog.schema import chunks

_COMMON = 0.02
"""Share of a knowledge base's chunks from which on a subject ties nothing together."""
_FEW = 20
"""Chunks that a subject may have in any case."""


def related(
    transaction: Transaction, kb_id: str, chunk_id: str, limit: int
) -> list[tuple[int, float, tuple[str, ...]]]:
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
        ``chunks.seq``, the score, and what both speak of, the rarest first; the best chunk first.
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
        sa.select(table.subject_id, subjects.c.name, chunks.c.seq, chunks.c.document_id)
        .join(chunks, chunks.c.seq == table.chunk_seq)
        .join(subjects, subjects.c.id == table.subject_id)
        .where(table.subject_id.in_(own), chunks.c.kb_id == kb_id)
        .distinct()
    )
    speaking: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for subject_id, name, seq, document_id in transaction.execute(query):
        speaking.setdefault((subject_id, name), []).append((seq, document_id))
    scores: dict[int, float] = defaultdict(float)
    shared: dict[int, list[str]] = {}
    for (_, name), found in sorted(speaking.items(), key=lambda pair: (len(pair[1]), pair[0])):
        if len(found) > max(_FEW, _COMMON * total):
            break
        for seq, document_id in found:
            share = 0.5 if document_id == here.document_id else 1.0
            scores[seq] += share * log(total / len(found))
            shared.setdefault(seq, []).append(name)
    scores.pop(here.seq, None)
    ranked = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    return [(seq, score, tuple(dict.fromkeys(shared[seq]))) for seq, score in ranked if score > 0][
        :limit
    ]
