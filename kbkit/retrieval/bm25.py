"""BM25 of candidates with the statistics of the whole knowledge base.

rank-bm25 computes statistics from its documents, which here are the candidates of one query. So
document frequencies, corpus size and average length come from the catalog.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

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
        chunks = sum(one.chunks for one in several)
        # integers, so that the order does not matter
        length = sum(round(one.average_length * one.chunks) for one in several)
        frequencies: Counter[str] = Counter()
        for one in several:
            frequencies.update(one.document_frequencies)
        return cls(chunks, length / chunks if chunks else 0.0, frequencies)

    def idf(self, term: str) -> float:
        """Return the inverse document frequency, ``ln(1 + (N - n + 0.5) / (n + 0.5))``.

        This is the form of Lucene: the 1 keeps the weight of common terms above 0.
        """
        n = self.document_frequencies.get(term, 0)
        return math.log(1 + max(0.0, self.chunks - n + 0.5) / (n + 0.5))


class _CorpusBM25(BM25Okapi):  # type: ignore[misc]
    def __init__(
        self,
        counts: Sequence[Mapping[str, int]],
        lengths: Sequence[int],
        statistics: CorpusStatistics,
    ) -> None:
        self._lengths = lengths
        self._statistics = statistics
        super().__init__(counts, k1=K1, b=B)

    def _initialize(self, corpus: Sequence[Mapping[str, int]]) -> Mapping[str, int]:
        self.doc_freqs = corpus
        self.corpus_size = len(corpus)
        self.doc_len = self._lengths
        self.avgdl = self._statistics.average_length
        return self._statistics.document_frequencies

    def _calc_idf(self, nd: Mapping[str, int]) -> None:
        self.idf = {term: self._statistics.idf(term) for term in nd}


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


def impacts(
    counts: NDArray[np.integer[Any]], norms: NDArray[np.float32], idf: float
) -> NDArray[np.float32]:
    """Return a term's BM25 scores in the chunks that contain it, as in `bm25_scores`."""
    tf = counts.astype(np.float32)
    return np.asarray(idf * (K1 + 1) * tf / (tf + norms), np.float32)
