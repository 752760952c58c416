"""Fusion: one score out of several. Pure functions over the candidates of one query."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbkit.models import ScoreParts

Scores = NDArray[np.float64]

_NEIGHBOURS = 3
"""Other candidates of a document that speak for it."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each part counts.

    Attributes:
        dense: Share of the normalised cosine against BM25, 0 to 1.
        document: Weight of what else was found in the document, beside 1 for the chunk itself.
        title: Weight of the title's share of the query's terms, likewise.
    """

    dense: float
    document: float
    title: float


def normalised(scores: Scores) -> Scores:
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


def document_evidence(scores: Scores, documents: Sequence[Hashable]) -> Scores:
    """How well the rest of each chunk's document answers the query.

    The mean of the second to fourth best scores among the document's candidates, 0 for those
    that are missing: a page with several good passages is more likely to be about the question
    than a page with one. Interpolating passage with document scores goes back to Callan,
    "Passage-Level Evidence in Document Retrieval" (1994).

    Args:
        scores: Of the chunks, shape ``(n,)``.
        documents: Which document each chunk is part of.
    """
    by_document: dict[Hashable, list[float]] = defaultdict(list)
    for document, value in zip(documents, scores, strict=True):
        by_document[document].append(float(value))
    evidence = {
        document: sum(sorted(values, reverse=True)[1 : _NEIGHBOURS + 1]) / _NEIGHBOURS
        for document, values in by_document.items()
    }
    return np.array([evidence[document] for document in documents], dtype=np.float64)


def fuse(
    cosine: Scores,
    bm25: Scores,
    title: Scores,
    documents: Sequence[Hashable],
    weights: Weights,
) -> list[ScoreParts]:
    """Weigh the scores of candidates against each other.

    Args:
        cosine: Cosine of query and chunk, shape ``(n,)``.
        bm25: BM25 of the chunk, shape ``(n,)``.
        title: Share of the query's terms that the document's title has, shape ``(n,)``.
        documents: Which document each chunk is part of.
        weights: How much each counts.

    Returns:
        The parts of each candidate's score; they add up to the score, which is 0 to 1.
    """
    dense = weights.dense * normalised(cosine)
    lexical = (1 - weights.dense) * normalised(bm25)
    evidence = weights.document * document_evidence(dense + lexical, documents)
    matched = weights.title * title
    whole = 1 + weights.document + weights.title
    return [
        ScoreParts(
            cosine=float(cosine[i]),
            bm25=float(bm25[i]),
            dense=float(dense[i] / whole),
            lexical=float(lexical[i] / whole),
            document=float(evidence[i] / whole),
            title=float(matched[i] / whole),
        )
        for i in range(len(cosine))
    ]


def ranking(
    parts: Sequence[ScoreParts], documents: Sequence[Hashable], per_document: int
) -> list[int]:
    """Indexes of candidates, best score first; equal scores keep their order.

    A document's hits beyond the first ``per_document`` come after everybody else's. Candidates
    that have nothing in common with the query are left out.
    """
    order = sorted(
        (i for i, part in enumerate(parts) if part.dense + part.lexical > 0),
        key=lambda i: -parts[i].total,
    )
    first: list[int] = []
    rest: list[int] = []
    seen: dict[Hashable, int] = defaultdict(int)
    for i in order:
        seen[documents[i]] += 1
        (first if seen[documents[i]] <= per_document else rest).append(i)
    return first + rest
