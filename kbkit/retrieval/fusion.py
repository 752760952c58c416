"""Fusion: one score out of cosine and BM25, by convex combination. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kbkit.models import ScoreParts


def normalised(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale scores of one query's candidates to 0 to 1.

    Negative scores count as 0 and the best one becomes 1, so that what a score of 0 means
    (nothing in common) does not move with the worst candidate. This is the theoretical-minimum,
    observed-maximum normalisation of Bruch, Gai and Ingber, "An Analysis of Fusion Functions for
    Hybrid Retrieval" (2023).

    Args:
        scores: Shape ``(n,)``.
    """
    kept = np.maximum(scores, 0.0)
    top = kept.max(initial=0.0)
    return kept / top if top > 0 else kept


def convex(
    cosine: NDArray[np.float64], bm25: NDArray[np.float64], dense_weight: float
) -> list[ScoreParts]:
    """Weigh two kinds of scores against each other.

    Args:
        cosine: Shape ``(n,)``.
        bm25: Shape ``(n,)``.
        dense_weight: Share of the normalised cosine, 0 to 1; the rest is normalised BM25.

    Returns:
        The parts of each candidate's score; the score is ``dense + lexical``, 0 to 1.
    """
    dense = dense_weight * normalised(cosine)
    lexical = (1 - dense_weight) * normalised(bm25)
    return [
        ScoreParts(float(c), float(b), float(d), float(x))
        for c, b, d, x in zip(cosine, bm25, dense, lexical, strict=True)
    ]


def ranking(parts: Sequence[ScoreParts]) -> list[int]:
    """Indexes of candidates, best score first; equal scores keep their order."""
    return sorted(range(len(parts)), key=lambda i: -(parts[i].dense + parts[i].lexical))
