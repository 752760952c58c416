"""Fuse the scores of candidates, BM25 among them.

rank-bm25 computes statistics from its documents, which here are the candidates of one query. So
document frequencies, corpus size and average length come from the catalog.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

from kbkit.models import RatingTotal, ScoreParts
from kbkit.recipes import PostprocessorSpec
from kbkit.stores.snapshots.snapshot import Postings

Scores = NDArray[np.float64]
Codes = NDArray[np.int64]

_NEIGHBOURS = 4
"""Other chunks of a document that count for `document_evidence`."""
_PSEUDO_DOCUMENTS = 3
"""Prior: number of long documents whose chunks are all as good as the best."""
_REPEAT_DISCOUNT = 0.9
"""Factor for each further hit of a document."""
_INDEX_DISCOUNT = 0.1
"""Factor for pages that are mostly links."""
NEAR_SUMMARY = 0.5
"""Cosine from which a summary counts in full."""
_BLOCK = 500
"""Vectors compared with the others at once, to limit memory."""
_DUPLICATE_DISCOUNT = 0.5


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the parts of a score, relative to 1 for the chunk; see `ScoreParts`.

    Each is equal for all candidates, or an array of shape ``(n,)``.

    Attributes:
        dense: Share of the normalised cosine; BM25 has the rest; 0 to 1.
        rating: Share of the score that the best ratings add and the worst subtract, 0 to 1.
        learned: Not part of the divisor, so that scores without learned questions are unchanged.
    """

    dense: float | Scores
    document: float | Scores
    title: float | Scores
    heading: float | Scores
    rating: float | Scores
    summary: float | Scores
    page: float | Scores
    graph: float | Scores = 0.0
    learned: float | Scores = 0.0

    @classmethod
    def of_each(cls, several: Sequence[Weights], counts: Sequence[int]) -> Weights:
        """Repeat each weight for its number of candidates."""
        return cls(
            *(
                np.repeat([getattr(weights, weight.name) for weights in several], counts)
                for weight in fields(cls)
            )
        )


@dataclass(frozen=True, slots=True)
class Features:
    """Features of a query's candidates; all arrays have shape ``(n,)``.

    Attributes:
        bm25: BM25 of the chunk, 0 or more.
        title: Share of the query's terms in the document's title, 0 to 1.
        heading: Share of the query's terms in the headings above the chunk, 0 to 1.
        rating: From -1 (bad) to 1 (good), 0 without ratings; see `rating_prior`.
        documents: Number of the document, from 0.
        sizes: Number of all chunks of the document.
        summary: Cosine of the query and the document's summary.
        page: BM25 of the whole document, 0 or more.
        graph: Graph proximity, 0 to 1.
        learned: Similarity to well rated questions of the chunk, 0 to 1.
        index: 1 if the document is mostly links, else 0.
        bm25_full: BM25 from which `bm25` counts in full; see `CorpusStatistics.full`.
        page_full: The same for `page`.
        summary_full: The same for `summary`.
    """

    cosine: Scores
    bm25: Scores
    title: Scores
    heading: Scores
    rating: Scores
    documents: Codes
    sizes: Codes
    summary: Scores
    page: Scores
    graph: Scores
    learned: Scores
    index: Scores
    bm25_full: Scores
    page_full: Scores
    summary_full: Scores

    @classmethod
    def join(cls, parts: Sequence[Mapping[str, Scores]], documents: Codes) -> Features:
        names = [part.name for part in fields(cls) if part.name != "documents"]
        columns = {name: np.concatenate([part[name] for part in parts]) for name in names}
        columns["sizes"] = columns["sizes"].astype(np.int64)
        return cls(**columns, documents=documents)


@dataclass(frozen=True, slots=True)
class Fused:
    """The scores of candidates, shape ``(n,)``; the parts by name add up to ``total``."""

    features: Features
    scores: Mapping[str, Scores]
    total: Scores

    @property
    def common(self) -> NDArray[np.bool_]:
        names = ("dense", "lexical", "summary", "page", "graph", "learned")
        return np.asarray(sum(self.scores[name] for name in names) > 0)

    def multiply(self, factors: Scores) -> Fused:
        """Multiply all parts of each candidate by its factor; the total is their exact sum."""
        scores = {name: values * factors for name, values in self.scores.items()}
        return Fused(self.features, scores, sum(scores.values(), np.zeros(len(factors))))

    def parts(self, i: int) -> ScoreParts:
        parts = {name: float(values[i]) for name, values in self.scores.items()}
        return ScoreParts(float(self.features.cosine[i]), float(self.features.bm25[i]), **parts)


def normalise(scores: Scores, full: Scores | float = 0.0) -> Scores:
    """Scale scores of one query's candidates: negative ones become 0 and the best one 1.

    If the best one is below ``full``, that becomes 1 instead. The worst candidate and their number
    do not matter. Source: theoretical-minimum normalisation, Bruch, Gai and Ingber, "An Analysis of
    Fusion Functions for Hybrid Retrieval" (2023).
    """
    clipped = np.maximum(scores, 0.0)
    top = max(clipped.max(initial=0.0), np.max(full, initial=0.0))
    return clipped / top if top > 0 else clipped


def document_evidence(scores: Scores, documents: Codes, sizes: Codes) -> Scores:
    """Score how well the rest of each chunk's document answers the query.

    This is the mean of the second to fifth best scores of the document's candidates; other chunks
    count 0. A short document lacks some of these; its best score replaces them, times the average
    ratio in long documents. Source: Callan, "Passage-Level Evidence in Document Retrieval" (1994).
    """
    rank = _ranks_within(scores, documents)
    best = np.bincount(documents, scores * (rank == 0))
    next_best = np.bincount(documents, scores * ((rank > 0) & (rank <= _NEIGHBOURS))) / _NEIGHBOURS
    long = documents[(rank == 0) & (sizes > _NEIGHBOURS) & (scores > 0)]
    ratio = ((next_best[long] / best[long]).sum() + _PSEUDO_DOCUMENTS) / (
        len(long) + _PSEUDO_DOCUMENTS
    )
    missing_share = np.maximum(_NEIGHBOURS - (sizes - 1), 0) / _NEIGHBOURS
    return np.asarray(next_best[documents] + missing_share * ratio * best[documents])


def rating_prior(totals: Sequence[RatingTotal]) -> Scores:
    """Return the Bayesian average of ratings, from -1 to 1; the prior is two neutral raters."""
    average = np.array([total.average for total in totals], np.float64)
    raters = np.array([total.raters for total in totals], np.float64)
    return np.asarray(np.where(raters > 0, (average - 3) / 2 * raters / (raters + 2), 0.0))


def fuse(features: Features, weights: Weights) -> Fused:
    """Combine the scores of candidates.

    This is a convex combination of the normalised scores (Bruch, Gai and Ingber, 2023) plus scores
    of the document, divided by the sum of the weights, then scaled by ratings. Index pages, which
    contain the words of all others, are discounted.
    """
    parts = (weights.document, weights.title, weights.heading, weights.summary, weights.page)
    divisor = 1 + sum(parts) + weights.graph
    dense = weights.dense * normalise(features.cosine) / divisor
    lexical = (1 - weights.dense) * normalise(features.bm25, features.bm25_full) / divisor
    evidence = document_evidence(dense + lexical, features.documents, features.sizes)
    scores = {
        "dense": dense,
        "lexical": lexical,
        "document": weights.document * evidence,
        "title": weights.title * features.title / divisor,
        "heading": weights.heading * features.heading / divisor,
        "summary": weights.summary * normalise(features.summary, features.summary_full) / divisor,
        "page": weights.page * normalise(features.page, features.page_full) / divisor,
        "graph": weights.graph * features.graph / divisor,
        "learned": weights.learned * features.learned / divisor,
    }
    total = sum(scores.values(), np.zeros(len(dense)))
    rating = total * weights.rating * features.rating
    fused = Fused(features, scores | {"rating": rating}, total + rating)
    indexes = (features.index > 0) & (features.learned == 0)  # people rated learned ones well
    return fused.multiply(np.where(indexes, _INDEX_DISCOUNT, 1.0))


def discounts(
    total: Scores, documents: Codes, duplicates: NDArray[np.bool_], per_document: int | Codes
) -> Scores:
    """Return factors for further hits of a document and near duplicates, shape ``(n,)``."""
    further = np.maximum(_ranks_within(total, documents) - per_document + 1, 0)
    return np.power(_REPEAT_DISCOUNT, further) * np.where(duplicates, _DUPLICATE_DISCOUNT, 1.0)


def near_duplicates(vectors: NDArray[np.float32], threshold: float) -> NDArray[np.bool_]:
    """Mark chunks that nearly duplicate an earlier unmarked one.

    This is the greedy selection of maximal marginal relevance (Carbonell and Goldstein, "The Use of
    MMR", 1998) with a threshold instead of a trade-off.
    """
    duplicates = np.zeros(len(vectors), np.bool_)
    if threshold >= 1:
        return duplicates
    for start in range(0, len(vectors), _BLOCK):
        # no BLAS: see `kbkit.retrieval.candidates.cosines`
        cosine = np.einsum("ij,kj->ik", vectors[start : start + _BLOCK], vectors[start:])
        close = np.triu(cosine > threshold, 1)
        for i in np.flatnonzero(close.any(axis=1)).tolist():
            if not duplicates[start + i]:
                duplicates[start:] |= close[i]
    return duplicates


def _ranks_within(scores: Scores, groups: Codes) -> Codes:
    """Return the rank of each score within its group, from 0; equal scores keep their order."""
    order = np.lexsort((-scores, groups))
    ordered = groups[order]
    is_start = np.ones(len(order), np.bool_)
    is_start[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(is_start)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order)) - starts[np.cumsum(is_start) - 1]
    return ranks


def hits_needed(specs: Sequence[PostprocessorSpec], limit: int) -> int:
    return max([limit, *(spec.hits for spec in specs)])


K1 = 1.2
B = 0.75


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """Corpus statistics for BM25.

    Attributes:
        average_length: Mean number of terms in a chunk.
        document_frequencies: Number of chunks with each query term; only terms that occur.
    """

    chunks: int
    average_length: float
    document_frequencies: Mapping[str, int]

    @classmethod
    def together(cls, several: Sequence[CorpusStatistics]) -> CorpusStatistics:
        """Combine the statistics of knowledge bases, so that their scores are comparable."""
        if len(several) == 1:
            return several[0]
        chunks = sum(statistics.chunks for statistics in several)
        # integers, so that the order does not matter
        length = sum(round(statistics.average_length * statistics.chunks) for statistics in several)
        frequencies: Counter[str] = Counter()
        for statistics in several:
            frequencies.update(statistics.document_frequencies)
        return cls(chunks, length / chunks if chunks else 0.0, frequencies)

    def idf(self, term: str) -> float:
        """Return the inverse document frequency, ``ln(1 + (N - n + 0.5) / (n + 0.5))``.

        This is the form of Lucene: the 1 keeps the weight of common terms above 0.
        """
        n = self.document_frequencies.get(term, 0)
        return math.log(1 + max(0.0, self.chunks - n + 0.5) / (n + 0.5))

    def full(self, terms: Iterable[str]) -> float:
        """Return the BM25 from which words count in full: half of the maximum of the query's terms.

        If no passage has the most telling words, the others say little about the answer.
        """
        return (K1 + 1) / 2 * sum(map(self.idf, dict.fromkeys(terms)))


class _CorpusBM25(BM25Okapi):  # type: ignore[misc]
    def __init__(
        self,
        counts: Sequence[Mapping[str, int]],
        lengths: Sequence[int],
        statistics: CorpusStatistics,
    ) -> None:
        # not the constructor of the base class, which would count the words
        self.k1, self.b = K1, B
        self.corpus_size, self.doc_freqs, self.doc_len = len(counts), counts, lengths
        self.avgdl = statistics.average_length
        self.idf = {term: statistics.idf(term) for term in statistics.document_frequencies}


def bm25_scores(
    counts: Sequence[Mapping[str, int]], lengths: Sequence[int], statistics: CorpusStatistics
) -> NDArray[np.float64]:
    terms = sorted(statistics.document_frequencies)
    if not terms or not any(counts):
        return np.zeros(len(counts))
    scores = _CorpusBM25(counts, lengths, statistics).get_scores(terms)
    return np.asarray(scores, dtype=np.float64)


def length_norms(lengths: NDArray[np.integer[Any]], average_length: float) -> NDArray[np.float32]:
    scaled = K1 * B / (average_length or 1.0) * lengths.astype(np.float32)
    return np.asarray(K1 * (1 - B) + scaled, np.float32)


def word_scores(
    postings: Mapping[str, Postings], norms: NDArray[np.float32], statistics: CorpusStatistics
) -> NDArray[np.float32]:
    """Return the BM25 of each row of ``norms``, as in `bm25_scores`."""
    scores = np.zeros(len(norms), np.float32)
    for term, (compact_rows, counts) in postings.items():
        rows = compact_rows.astype(np.intp)  # otherwise numpy converts it at each indexing
        tf = counts.astype(np.float32)
        impacts = statistics.idf(term) * (K1 + 1) * tf / (tf + norms.take(rows))
        np.add.at(scores, rows, impacts)
    return scores
