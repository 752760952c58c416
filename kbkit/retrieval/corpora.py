"""Candidates of a query, from a snapshot, and their words.

Words are scored by BM25, rare terms first. Once the best chunks score more than the remaining terms
could add, these are looked up only in the remaining chunks. The result is the same as of scoring
all chunks. Source: MaxScore, Turtle and Flood, "Query Evaluation: Strategies and Optimizations"
(1995).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding import Matrix, Vector
from kbkit.models import Mode
from kbkit.retrieval.candidates import (
    Candidates,
    EncodedQuery,
    Mask,
    Rows,
    TermCounts,
    beside,
    cosines,
    lowest_of_best,
    merge_candidates,
    top_indices,
)
from kbkit.retrieval.document_scores import (
    DocumentScores,
    SummaryScores,
    document_starts,
    graph_scores,
    learned_rows,
    learned_scores,
)
from kbkit.retrieval.fusion import K1, CorpusStatistics, impacts, length_norms
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.snapshots import near_chunks
from kbkit.stores.snapshots.chunk_table import ChunkTable
from kbkit.stores.snapshots.segments import SegmentedSnapshot
from kbkit.stores.snapshots.snapshot import Postings
from kbkit.stores.vector_index import NearestIds, VectorIndex
from kbkit.text.analysis import analyzer

_SCAN_LIMIT = 8_000_000
"""Maximum numbers to scan instead of asking Chroma: 31,000 vectors of 256 dimensions.

Measured with new queries: a scan of 20,000 vectors took 0.4 to 2 ms, Chroma 2.2 to 3 ms.
"""
_LONG = 100_000
"""Minimum chunks for a thread; scanning their codes takes about a millisecond."""
_RESCORED = 10
"""Candidates to rescore per result. Of 200,000 chunks, they contain 99.95 % of the nearest 100."""
_FEW = 20_000
"""Maximum chunks that pass a filter to scan them all."""
_MAX_KEPT = 50_000
"""Maximum chunks that pass a filter to cache their vectors for the next search."""
_MAX_ASKED = 10_000
"""Maximum chunks to select by codes if few pass the filter."""


def scan_is_faster(snapshot: SegmentedSnapshot, dimensions: int) -> bool:
    return len(snapshot) * dimensions <= _SCAN_LIMIT


@dataclass(slots=True)
class SnapshotCorpus:
    """What retrievers read for one query; rows are indexes into `chunks`.

    Without a query vector, cosines are 0.
    """

    chunks: SegmentedSnapshot
    row: KnowledgeBaseRow
    index: VectorIndex
    vector: Vector | None
    _cosines: NDArray[np.float32] | None = None

    @property
    def scans_long(self) -> bool:
        return len(self.chunks) > _LONG and self._coded

    @property
    def _coded(self) -> bool:
        return not scan_is_faster(self.chunks, self.row.dimensions) and near_chunks.is_coded(
            self.chunks
        )

    def nearest(self, size: int, limit: int, mask: Mask | None) -> Rows:
        """Return the nearest chunks, best first, from Chroma or codes, then from a scan."""
        dense = np.zeros(0, np.int64)
        if self.vector is not None and self._coded:
            near = [self._near(self.vector, size, mask)]
            if limit > size:  # search again, so that the first ones do not depend on `limit`
                near.append(self._near(self.vector, limit, mask))
            return np.concatenate(near)
        scan = scan_is_faster(self.chunks, self.row.dimensions)
        asked = mask is None and not scan and self.index.is_open(self.row)
        if asked and self.vector is not None:
            dense = self.nearest_of(self.index.ask(self.row, self.vector, size), size)
        if len(dense) < limit:
            # after the results of Chroma, so that a longer list starts like a shorter one
            dense = np.concatenate([dense, self._scan(limit, mask)])
        return dense

    def nearest_of(self, answer: NearestIds, limit: int) -> Rows:
        """Return the nearest of Chroma's chunks and of those that it does not have yet.

        Return none if Chroma returned too few, for example after deletions by another process.
        """
        snapshot = self.chunks
        named = snapshot.rows_of(answer.ids)
        first = int(np.searchsorted(snapshot.seqs, answer.known, "right"))
        if len(named) < min(limit, first):
            return named[:0]
        later = np.arange(first, len(snapshot))
        new = later[top_indices(self.cosines(later), limit)]
        rows = np.array(sorted({*named.tolist(), *new.tolist()}), np.int64)
        return rows[top_indices(self.cosines(rows), limit)]

    def _near(self, vector: Vector, limit: int, mask: Mask | None) -> Rows:
        asked = limit * _RESCORED
        if mask is not None:
            open_ = int(np.count_nonzero(mask))
            asked = asked * len(mask) // max(1, open_)
            if open_ <= _FEW or asked > _MAX_ASKED:
                return self._scan(limit, mask)
        rows, about = near_chunks.near_chunks(
            self.chunks, vector, asked, lambda vectors: cosines(vectors, vector)
        )
        if mask is not None:
            rows, about = rows[mask[rows]], about[mask[rows]]
            if len(rows) < limit * _RESCORED // 2:
                return self._scan(limit, mask)
        rows = np.sort(rows[top_indices(about, limit * _RESCORED)])
        return rows[top_indices(self.cosines(rows), limit)]

    def _scan(self, limit: int, mask: Mask | None) -> Rows:
        """Return the nearest chunks by a full scan.

        Used for few vectors, until Chroma is open, and with filters, which slow Chroma down.
        """
        if mask is None:
            return top_indices(self._all_cosines(), limit)
        rows, vectors = self._let_through(mask)
        similarity = self.cosines(rows) if self.vector is None else cosines(vectors, self.vector)
        return rows[top_indices(similarity, limit)]

    def _let_through(self, mask: Mask) -> tuple[Rows, Matrix]:
        """Return the chunks that pass a filter with their vectors; the last result is cached."""
        kept: tuple[Mask, Rows, Matrix] | None = self.chunks.kept.get("let through")
        if kept is not None and kept[0] is mask:
            return kept[1], kept[2]
        rows = np.flatnonzero(mask)
        vectors = self.chunks.vectors_of(rows)
        if len(rows) <= _MAX_KEPT:
            self.chunks.kept["let through"] = mask, rows, vectors
        return rows, vectors

    def cosines(self, rows: Rows) -> NDArray[np.float32]:
        # gathering a row takes about as long as scanning three
        few = self._cosines is None and len(rows) * 3 < len(self.chunks)
        if self.vector is None or not few:
            return self._all_cosines()[rows]
        vector = self.vector
        return self.chunks.scores_of(rows, lambda vectors: cosines(vectors, vector))

    def _all_cosines(self) -> NDArray[np.float32]:
        vector = self.vector
        if self._cosines is None and vector is not None:
            self._cosines = self.chunks.score(lambda vectors: cosines(vectors, vector))
        if self._cosines is None:
            return np.zeros(len(self.chunks), np.float32)
        return self._cosines


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
                own = self._filter(rows)
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
        return self._filter(np.flatnonzero(scores >= cut if cut > 0 else scores > 0))

    def _filter(self, rows: Rows) -> Rows:
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


def find_candidates(
    corpus: SnapshotCorpus, query: EncodedQuery, mask: Mask | None = None
) -> Candidates:
    chunks, of_language = corpus.chunks, analyzer(query.language)
    postings = chunks.holding(query.terms)
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
    title, heading = chunks.coverage(chosen, query.terms)
    whole = max(1, len(query.terms))
    which, pages, summary = documents.of_candidates(chunks, owners)
    seqs = chunks.seqs[chosen]
    return Candidates(
        seqs=seqs,
        ranked=ranked,
        document_ids=[chunks.document_ids[i] for i in owners.tolist()],
        vectors=chunks.vectors_of(chosen),
        words=TermCounts(_counts_of(postings, chosen), chunks.lengths[chosen].tolist(), statistics),
        pages=pages,
        which=which,
        embedder=documents.summaries.embedder,
        columns={
            "cosine": corpus.cosines(chosen).astype(np.float64),
            "title": title / whole,
            "heading": heading / whole,
            "sizes": chunks.sizes[owners].astype(np.float64),
            "summary": summary,
            "graph": np.zeros(len(seqs)) if graph is None else graph.of(chosen, owners),
            "learned": np.array([learned.get(seq, 0.0) for seq in seqs.tolist()]),
        },
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
