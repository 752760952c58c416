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

_FREQUENT = 10_000
"""Chunks that hold a term of which it is kept how often documents do."""
_MOST_KEPT = 4_000_000
"""Documents of all such terms together: 32 MB."""
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

    @property
    def kept(self) -> dict[str, Any]:
        """What searches have made of them, for those that come."""


@dataclass(frozen=True, slots=True)
class DocumentScores:
    """What each document of a knowledge base says to a query as a whole.

    Attributes:
        counts: By term, the documents that hold it, ascending, and how often.
        statistics: Of the documents.
        page: BM25 of each.
        card: Cosine of the query and the card of each; the mean of the others for one without.
        embedder: Of the cards; ``""`` where they have no part.
    """

    counts: Mapping[str, Postings]
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
            term: _per_document(documents, term, rows, times)
            for term, (rows, times) in postings.items()
        }
        frequencies = {term: len(there) for term, (there, _) in counts.items()}
        statistics = CorpusStatistics(held, average, frequencies)
        page = np.zeros(number, np.float32)
        for term, (there, times) in counts.items():
            page[there] += impacts(times, lengths[there], average, statistics.idf(term))
        return cls(counts, statistics, page, np.zeros(number, np.float32), "")

    def best_rows(
        self,
        documents: Documents,
        dense: Callable[[Rows], NDArray[np.floating[Any]]],
        lexical: Callable[[Rows], NDArray[np.float32]],
        most: float,
        *,
        mask: Mask | None,
        related: NDArray[np.float64] | None = None,
    ) -> Rows:
        """The best chunk of each of the documents that are best as a whole.

        Args:
            documents: Of the chunks.
            dense: Gives the cosines of some chunks.
            lexical: Gives the BM25 of some chunks.
            most: The greatest of all.
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
        rows = _rows_of(documents, np.flatnonzero(best))
        rows = rows if mask is None else rows[mask[rows]]
        own = lexical(rows) / max(most, 1e-9)
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
        for term, (there, times) in self.counts.items():
            places = np.searchsorted(there, chosen.astype(there.dtype))
            places[places == len(there)] = 0
            for i in np.flatnonzero(there[places] == chosen).tolist():
                counts[i][term] = int(times[places[i]])
        return WholeDocuments(
            which=np.asarray(which, np.int64),
            counts=counts,
            lengths=documents.document_lengths[chosen].tolist(),
            statistics=self.statistics,
            card=self.card[chosen].astype(np.float64),
            embedder=self.embedder,
        )


def _per_document(
    documents: Documents, term: str, rows: NDArray[np.integer[Any]], times: NDArray[np.integer[Any]]
) -> Postings:
    """The documents that hold a term, ascending, and how often; kept for one that many hold.

    Args:
        documents: All of them.
        term: The term.
        rows: The chunks that hold it.
        times: How often each does.
    """
    if len(rows) < _FREQUENT:
        return _added_up(documents.owners[rows], times, len(documents.sizes))
    kept: dict[str, Postings] = documents.kept.setdefault("frequent", {})
    found = kept.get(term)
    if found is None:
        there, counts = _added_up(documents.owners[rows], times, len(documents.sizes))
        found = there.astype(np.int32), counts.astype(np.int32)
        if sum(len(held) for held, _ in list(kept.values())) + len(there) > _MOST_KEPT:
            kept.clear()
        kept[term] = found
    return found


def _added_up(
    owners: NDArray[np.integer[Any]], times: NDArray[np.integer[Any]], number: int
) -> Postings:
    """How often a term stands in each document that holds it."""
    first = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]])[: len(owners)])
    there = owners[first]
    if (there[1:] > there[:-1]).all():  # chunks of a document mostly stand together, in order
        return there, np.add.reduceat(times, first, dtype=np.int64) if len(first) else times
    counts = np.bincount(owners, times, number).astype(np.int64)
    there = np.flatnonzero(counts)
    return there, counts[there]


def _rows_of(documents: Documents, chosen: Rows) -> Rows:
    """The chunks of some documents, ascending."""
    held: Postings | None = documents.kept.get("rows")
    if held is None:
        order = np.argsort(documents.owners, kind="stable").astype(np.int32)
        held = order, np.cumsum([0, *documents.sizes])
        documents.kept["rows"] = held
    parts = [held[0][held[1][i] : held[1][i + 1]] for i in chosen.tolist()]
    return np.sort(np.concatenate([np.zeros(0, np.int64), *parts]))
