"""BM25 of candidates with the statistics of the whole knowledge base.

rank-bm25 takes its statistics from the documents it is given. Here these are the few candidates
of one query, so document frequencies, corpus size and average length come from the catalog.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

K1 = 1.2
B = 0.75


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """What BM25 must know of all chunks.

    Attributes:
        chunks: Number of chunks.
        average_length: Mean number of terms in a chunk.
        document_frequencies: Number of chunks that hold each query term.
    """

    chunks: int
    average_length: float
    document_frequencies: Mapping[str, int]

    def idf(self, term: str) -> float:
        """Inverse document frequency, above 0 for every term.

        ``ln(1 + (N - n + 0.5) / (n + 0.5))``, the form Lucene uses: Robertson and Walker's
        weight with 1 added inside the logarithm, which keeps common terms from scoring below 0.
        """
        n = self.document_frequencies.get(term, 0)
        return math.log(1 + max(0.0, self.chunks - n + 0.5) / (n + 0.5))


class _CorpusBM25(BM25Okapi):  # type: ignore[misc]
    """rank-bm25 over candidates, with statistics from outside."""

    def __init__(
        self, candidates: Sequence[list[str]], lengths: Sequence[int], statistics: CorpusStatistics
    ) -> None:
        self._statistics = statistics
        super().__init__(candidates, k1=K1, b=B)
        self.avgdl = statistics.average_length
        self.doc_len = lengths

    def _calc_idf(self, nd: Mapping[str, int]) -> None:
        self.idf = {term: self._statistics.idf(term) for term in nd}


def bm25_scores(
    query: Sequence[str],
    candidates: Sequence[str],
    lengths: Sequence[int],
    statistics: CorpusStatistics,
) -> NDArray[np.float64]:
    """BM25 of each candidate.

    Args:
        query: Analyzer terms of the query.
        candidates: Analyzer terms of each chunk, joined by spaces.
        lengths: Number of terms of each chunk.
        statistics: Of all chunks of the knowledge base.

    Returns:
        One score a candidate, 0 or more. Source of the formula: Robertson and Zaragoza, "The
        Probabilistic Relevance Framework: BM25 and Beyond" (2009), k1 = 1.2, b = 0.75.
    """
    wanted = {term for term in query if term in statistics.document_frequencies}
    if not wanted or not candidates:
        return np.zeros(len(candidates))
    # only query terms can score, so only they are counted; the lengths are those of all terms
    matching = [[term for term in text.split(" ") if term in wanted] for text in candidates]
    if not any(matching):
        return np.zeros(len(candidates))
    scores = _CorpusBM25(matching, lengths, statistics).get_scores(sorted(wanted))
    return np.asarray(scores, dtype=np.float64)
