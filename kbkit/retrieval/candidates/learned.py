"""Retrieve by learned questions: chunks rated well for similar queries."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kbkit.models import Mode
from kbkit.retrieval.candidates.base import EncodedQuery, Mask, Rows
from kbkit.retrieval.candidates.documents import DocumentScores
from kbkit.stores.snapshots.chunk_table import ChunkTable

_MAX = 30
"""Chunks that become candidates, so that many ratings of one question crowd out nothing."""


def learned_scores(query: EncodedQuery, documents: DocumentScores) -> dict[int, float]:
    questions = query.questions
    if questions is None:
        return {}
    same = documents.embedder == questions.embedder
    return questions.scores(
        () if query.mode is Mode.DENSE else query.terms,
        query.card_vector if same else None,
        max(0.0, documents.usual) if same else 0.0,
        query.left_out,
    )


def learned_rows(learned: Mapping[int, float], chunks: ChunkTable, mask: Mask | None) -> Rows:
    best = sorted(learned, key=lambda seq: (-learned[seq], seq))[:_MAX]
    seqs = np.array(best, np.int64)
    rows = np.searchsorted(chunks.seqs, seqs)
    known = rows < len(chunks)
    known[known] = chunks.seqs[rows[known]] == seqs[known]
    rows = rows[known]
    return np.asarray(rows if mask is None else rows[mask[rows]], np.int64)
