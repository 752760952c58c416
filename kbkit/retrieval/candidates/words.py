"""Retrieve by words: BM25 of chunks, with pruning.

Rare terms come first. Once the best chunks score more than the remaining terms could add, these are
looked up only in the remaining chunks. The result is the same as of scoring all chunks. Source:
MaxScore, Turtle and Flood, "Query Evaluation: Strategies and Optimizations" (1995).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kbkit.models import Mode
from kbkit.retrieval.candidates.base import (
    Candidates,
    Corpus,
    EncodedQuery,
    Mask,
    Postings,
    Rows,
    beside,
    lowest_of_best,
    merge_candidates,
    top_indices,
)
from kbkit.retrieval.candidates.documents import (
    DocumentScores,
    SummaryScores,
    document_starts,
    graph_scores,
    learned_rows,
    learned_scores,
)
from kbkit.retrieval.fusion import K1, CorpusStatistics, impacts, length_norms
from kbkit.stores.snapshots.chunk_table import ChunkTable
from kbkit.text.analysis import analyzer

_SLACK = 1e-4
"""Upper bound of relative rounding errors."""
_LOOKED_UP = 8
"""Cost of a lookup relative to adding a posting."""


@dataclass(frozen=True, slots=True)
class ChunkWords:
    """BM25 of the chunks of a knowledge base for one query; postings have ascending rows."""

    chunks: ChunkTable
    postings: Mapping[str, Postings]
    statistics: CorpusStatistics
    mask: Mask | None = None

    def of(self, rows: Rows) -> NDArray[np.float32]:
        scores = np.zeros(len(rows), np.float32)
        for term in self.postings:  # in a fixed order, so that rounding is reproducible
            self._look_up(term, rows, scores)
        return scores

    def best(self, limit: int) -> tuple[Rows, NDArray[np.float32]]:
        """Return the best chunks with any of the terms, best first, and their BM25."""
        order = sorted(self.postings, key=lambda term: len(self.postings[term][0]))
        rests = [self.statistics.idf(term) * (K1 + 1) for term in order]
        rest, least = sum(rests), 0.0
        scores = np.zeros(len(self.chunks), np.float32)
        left = list(order)
        probe: Rows | None = None
        while left and least <= rest * (1 + _SLACK):
            term = left.pop(0)
            rest -= rests.pop(0)
            rows = self._add(term, scores)
            if left:  # the lower bound is useless after the last term
                own = self._allowed(rows)
                probe = own if probe is None and len(own) >= limit else probe
                for few in (own,) if probe is None or probe is own else (own, probe):
                    least = max(least, _lowest_of_best(scores[few], limit))
        rows_above = self._above(scores, least, rest)
        while left:
            term = left.pop(0)
            rest -= rests.pop(0)
            if len(rows_above) * _LOOKED_UP < len(self.postings[term][0]):
                own_scores = scores[rows_above]
                self._look_up(term, rows_above, own_scores)
                scores[rows_above] = own_scores
            else:
                self._add(term, scores)
                own_scores = scores[rows_above]
            least = max(least, _lowest_of_best(own_scores, limit))
            rows_above = rows_above[own_scores >= (least - rest) - _SLACK * (least + rest)]
        exact = self.of(rows_above)
        best = top_indices(exact, limit)
        return rows_above[best], exact[best]

    def _above(self, scores: NDArray[np.float32], least: float, rest: float) -> Rows:
        cut = (least - rest) - _SLACK * (least + rest)
        return self._allowed(np.flatnonzero(scores >= cut if cut > 0 else scores > 0))

    def _allowed(self, rows: Rows) -> Rows:
        return rows if self.mask is None else rows[self.mask[rows]]

    def _add(self, term: str, scores: NDArray[np.float32]) -> Rows:
        held, counts = self.postings[term]
        rows = held.astype(np.intp)  # otherwise numpy converts it at each indexing
        np.add.at(scores, rows, self._impacts(term, rows, counts))
        return rows

    def _look_up(self, term: str, rows: Rows, scores: NDArray[np.float32]) -> None:
        held, counts = self.postings[term]
        # convert the shorter array, otherwise numpy converts the longer one
        places = np.searchsorted(held, rows.astype(held.dtype))
        places[places == len(held)] = 0
        there = np.flatnonzero(held[places] == rows)
        scores[there] += self._impacts(term, rows[there], counts[places[there]])

    def _impacts(self, term: str, rows: Rows, counts: NDArray[np.integer]) -> NDArray[np.float32]:
        chunks = self.chunks
        norms: NDArray[np.float32] | None = chunks.kept.get("norms")
        if norms is None:
            norms = chunks.kept["norms"] = length_norms(chunks.lengths, chunks.average_length)
        return impacts(counts, norms.take(rows), self.statistics.idf(term))


def _lowest_of_best(scores: NDArray[np.float32], limit: int) -> float:
    """Return the lowest of the ``limit`` best scores; 0 if there are fewer."""
    if not 0 < limit <= len(scores):
        return 0.0
    return float(lowest_of_best(scores, limit))


def find_candidates(corpus: Corpus, query: EncodedQuery, mask: Mask | None = None) -> Candidates:
    chunks, of_language = corpus.chunks, analyzer(query.language)
    postings = corpus.postings(query.terms)
    statistics = CorpusStatistics(
        chunks=len(chunks),
        average_length=chunks.average_length,
        document_frequencies={term: len(rows) for term, (rows, _) in postings.items()},
    )
    size, most = query.sizes(len(chunks))
    by_words = query.mode is not Mode.DENSE

    def frequency(word: str) -> int:
        frequencies = statistics.document_frequencies
        return min((frequencies.get(term, 0) for term in of_language.query_terms(word)), default=0)

    by_meaning = query.vector is not None and bool(query.vector.any())
    nearest = beside(
        lambda: corpus.nearest(size, most, mask), worth=by_meaning and corpus.scans_long
    )
    summaries = beside(lambda: SummaryScores.of(chunks, query, mask), worth=corpus.scans_long)
    words = ChunkWords(chunks, postings if by_words else {}, statistics, mask)
    lexical, scores = words.best(most)
    documents = DocumentScores.of_words(chunks, postings if by_words and query.pages else {})
    dense = nearest() if by_meaning else np.zeros(0, np.int64)
    documents = replace(documents, summaries=summaries() or documents.summaries)
    learned = learned_scores(query, documents)
    graph = None
    if query.graph is not None:
        near = np.concatenate([dense[:size], lexical[:size]])
        starts = document_starts(chunks, documents, near, corpus.cosines(near), words.of(near))
        graph = graph_scores(query.text, query.graph, chunks, starts, frequency)
    related = None if graph is None else graph.documents
    others = [
        documents.best_rows(
            chunks,
            corpus.cosines,
            words.of,
            float(scores.max(initial=0.0)),
            mask=mask,
            related=related,
        ),
        learned_rows(learned, chunks, mask),
    ]
    if graph is not None:
        others.append(graph.rows(mask))
    chosen, ranked = merge_candidates(dense, lexical, size, np.concatenate(others))
    owners = chunks.owners[chosen]
    title, heading = corpus.coverage(chosen, query.terms)
    return Candidates(
        seqs=chunks.seqs[chosen],
        ranked=ranked,
        document_ids=[chunks.document_ids[i] for i in owners.tolist()],
        sizes=chunks.sizes[owners],
        title=title,
        heading=heading,
        lengths=chunks.lengths[chosen].tolist(),
        counts=_counts_of(postings, chosen),
        vectors=corpus.vectors(chosen),
        statistics=statistics,
        pages=documents.of_candidates(chunks, owners),
        learned=learned,
        graph=None if graph is None else graph.of(chosen, owners),
    )


def _counts_of(postings: Mapping[str, Postings], chosen: Rows) -> list[dict[str, int]]:
    counts: list[dict[str, int]] = [{} for _ in range(len(chosen))]
    for term, (rows, times) in postings.items():
        places = np.searchsorted(rows, chosen.astype(rows.dtype))
        places[places == len(rows)] = 0
        there = np.flatnonzero(rows[places] == chosen)
        for i, count in zip(there.tolist(), times[places[there]].tolist(), strict=True):
            counts[i][term] = count
    return counts
