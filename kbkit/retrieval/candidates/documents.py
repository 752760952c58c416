"""The legs of documents as a whole: by their cards, and by all of their words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kbkit.models import Mode
from kbkit.retrieval.bm25 import CorpusStatistics, impacts
from kbkit.retrieval.candidates.base import (
    EncodedQuery,
    Mask,
    Postings,
    Rows,
    WholeDocuments,
    cosines,
    top_indices,
)
from kbkit.stores.snapshots.chunk_table import ChunkTable

_BEST_DOCUMENTS = 30
"""Documents that bring their best chunk, by their cards and by their words."""


class Documents(Protocol):
    """Which chunks are of which document, as a `ChunkTable` has it."""

    @property
    def owners(self) -> NDArray[np.integer[Any]]:
        """The document of each chunk."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of chunks of each document."""

    @property
    def document_lengths(self) -> NDArray[np.int64]:
        """Number of terms of each document's chunks."""


@dataclass(frozen=True, slots=True)
class DocumentScores:
    """What each document of a knowledge base says to a query as a whole.

    Attributes:
        counts: By term, how often it stands in each document.
        statistics: Of the documents.
        page: BM25 of each.
        card: Cosine of the query and the card of each; the mean of the others for one without.
        embedder: Of the cards; ``""`` where they have no part.
    """

    counts: Mapping[str, NDArray[np.int64]]
    statistics: CorpusStatistics
    page: NDArray[np.float32]
    card: NDArray[np.float32]
    embedder: str

    @classmethod
    def of(
        cls, chunks: ChunkTable, postings: Mapping[str, Postings], query: EncodedQuery
    ) -> DocumentScores:
        """Score all documents."""
        by_words = query.pages and query.mode is not Mode.DENSE
        scores = cls.of_words(chunks, postings if by_words else {})
        # cards may have been embedded anew since the query was
        if query.card_vector is None or query.card_embedder != chunks.card_embedder:
            return scores
        vector = query.card_vector
        card = chunks.card_scores(lambda vectors: cosines(vectors, vector))
        known = card != 0  # zeros are of those that have none; to read them all takes longer
        card[~known] = card[known].mean() if known.any() else 0.0
        return replace(scores, card=card, embedder=chunks.card_embedder)

    @classmethod
    def of_words(cls, documents: Documents, postings: Mapping[str, Postings]) -> DocumentScores:
        """Score all documents by their words alone."""
        number, lengths = len(documents.sizes), documents.document_lengths
        held = int(np.count_nonzero(lengths))
        average = float(lengths.sum()) / held if held else 0.0
        counts = {
            term: np.bincount(documents.owners[rows], times, number).astype(np.int64)
            for term, (rows, times) in postings.items()
        }
        frequencies = {term: int(np.count_nonzero(found)) for term, found in counts.items()}
        statistics = CorpusStatistics(held, average, frequencies)
        page = np.zeros(number, np.float32)
        for term, found in counts.items():
            there = np.flatnonzero(found)
            idf = statistics.idf(term)
            page[there] += impacts(found[there], lengths[there], average, idf)
        return cls(counts, statistics, page, np.zeros(number, np.float32), "")

    def best_rows(
        self,
        documents: Documents,
        dense: Callable[[Rows], NDArray[np.floating[Any]]],
        lexical: NDArray[np.float32],
        mask: Mask | None,
        related: NDArray[np.float64] | None = None,
    ) -> Rows:
        """The best chunk of each of the documents that are best as a whole.

        Args:
            documents: Of the chunks.
            dense: Gives the cosines of some chunks.
            lexical: BM25 of all chunks.
            mask: Which chunks may be candidates.
            related: How much relations lead to each document, where they have a part.
        """
        owners, open_ = documents.owners, documents.sizes > 0
        if mask is not None:
            open_ = np.bincount(owners[mask], minlength=len(open_)) > 0
        best = np.zeros(len(open_), np.bool_)
        by_graph = () if related is None else (related,)
        for scores in (self.page, self.card, *by_graph):
            there = np.flatnonzero(open_ & (scores > 0))
            best[there[top_indices(scores[there], _BEST_DOCUMENTS)]] = True
        rows = np.flatnonzero(best[owners] if mask is None else best[owners] & mask)
        own = lexical[rows] / max(float(lexical.max(initial=0.0)), 1e-9)
        near = np.maximum(dense(rows), 0.0)
        own = own + near / max(float(near.max(initial=0.0)), 1e-9)
        order = np.lexsort((-own, owners[rows]))
        _, first = np.unique(owners[rows][order], return_index=True)
        return np.asarray(rows[order[first]], np.int64)

    def of_candidates(
        self, documents: Documents, owners: NDArray[np.integer[Any]]
    ) -> WholeDocuments:
        """What is known of the documents of some candidates."""
        chosen, which = np.unique(owners, return_inverse=True)
        counts: list[dict[str, int]] = [{} for _ in range(len(chosen))]
        for term, found in self.counts.items():
            for i, times in enumerate(found[chosen].tolist()):
                if times:
                    counts[i][term] = times
        return WholeDocuments(
            which=np.asarray(which, np.int64),
            counts=counts,
            lengths=documents.document_lengths[chosen].tolist(),
            statistics=self.statistics,
            card=self.card[chosen].astype(np.float64),
            embedder=self.embedder,
        )
