"""Candidates of a query, from a snapshot, and their words.

Words are scored by BM25, rare terms first. Once the best chunks score more than the remaining terms
could add, these are looked up only in the remaining chunks. The result is the same as of scoring
all chunks. Source: MaxScore, Turtle and Flood, "Query Evaluation: Strategies and Optimizations"
(1995).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding import Matrix, Vector
from kbkit.models import Mode
from kbkit.retrieval.candidates import (
    CandidatePool,
    EncodedQuery,
    Mask,
    Rows,
    TermCounts,
    beside,
    cosines,
    counts_in,
    lowest_of_best,
    merge_candidates,
    places_in,
    top_indices,
)
from kbkit.retrieval.document_scores import (
    DocumentScores,
    SummaryScores,
    best_keys,
    document_starts,
    graph_scores,
    learned_scores,
)
from kbkit.retrieval.fusion import K1, CorpusStatistics, hits_needed, impacts, length_norms
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.snapshots import near_chunks
from kbkit.stores.snapshots.segments import SegmentedSnapshot
from kbkit.stores.snapshots.snapshot import ChunkTable, Postings
from kbkit.stores.vector_index import NearestIds, VectorIndex
from kbkit.text.analysis import analyzer

_MIN_THREADED = 100_000
"""Minimum chunks for a thread; scanning their codes takes about a millisecond."""
_RESCORED = 10
"""Candidates to rescore per result. Of 200,000 chunks, they contain 99.95 % of the nearest 100."""
_FEW = 20_000
"""Maximum chunks that pass a filter to scan them all."""
_MAX_CACHED = 50_000
"""Maximum chunks that pass a filter to cache their vectors for the next search."""
_MAX_SELECTED = 10_000
"""Maximum chunks to select by codes if few pass the filter."""


@dataclass(slots=True)
class SnapshotCorpus:
    """Data that retrievers read for one query; rows are indexes into `chunks`.

    Without a query vector, cosines are 0.
    """

    chunks: SegmentedSnapshot
    row: KnowledgeBaseRow
    index: VectorIndex
    vector: Vector | None
    _cosines: NDArray[np.float32] | None = None

    @property
    def scans_long(self) -> bool:
        return len(self.chunks) > _MIN_THREADED and self._coded

    @property
    def _coded(self) -> bool:
        return not self.chunks.is_small and near_chunks.is_coded(self.chunks)

    def nearest(self, size: int, limit: int, mask: Mask | None) -> Rows:
        """Return the nearest chunks, best first, from Chroma or codes, then from a scan."""
        dense = np.zeros(0, np.int64)
        if self.vector is not None and self._coded:
            parts = [self._near(self.vector, size, mask)]
            if limit > size:  # search again, so that the first hits do not depend on `limit`
                parts.append(self._near(self.vector, limit, mask))
            return np.concatenate(parts)
        is_large = not self.chunks.is_small
        use_index = mask is None and is_large and self.index.is_open(self.row)
        if use_index and self.vector is not None:
            dense = self.nearest_of(self.index.ask(self.row, self.vector, size), size)
        if len(dense) < limit:
            # after the results of Chroma, so that a longer list begins with the shorter one
            dense = np.concatenate([dense, self._scan(limit, mask)])
        return dense

    def nearest_of(self, answer: NearestIds, limit: int) -> Rows:
        """Return the nearest of Chroma's chunks and of those that it does not have yet.

        Return none if Chroma returned too few, for example after deletions by another process.
        """
        snapshot = self.chunks
        indexed = snapshot.rows_of(answer.ids)
        first = int(np.searchsorted(snapshot.seqs, answer.indexed_seq, "right"))
        if len(indexed) < min(limit, first):
            return indexed[:0]
        later = np.arange(first, len(snapshot))
        nearest_later = later[top_indices(self.cosines(later), limit)]
        rows = np.array(sorted({*indexed.tolist(), *nearest_later.tolist()}), np.int64)
        return rows[top_indices(self.cosines(rows), limit)]

    def _near(self, vector: Vector, limit: int, mask: Mask | None) -> Rows:
        count = limit * _RESCORED
        if mask is not None:
            passing = int(np.count_nonzero(mask))
            count = count * len(mask) // max(1, passing)
            if passing <= _FEW or count > _MAX_SELECTED:
                return self._scan(limit, mask)
        score = partial(cosines, vector=vector)
        rows, approximate = near_chunks.near_chunks(self.chunks, vector, count, score)
        if mask is not None:
            rows, approximate = rows[mask[rows]], approximate[mask[rows]]
            if len(rows) < limit * _RESCORED // 2:
                return self._scan(limit, mask)
        rows = np.sort(rows[top_indices(approximate, limit * _RESCORED)])
        return rows[top_indices(self.cosines(rows), limit)]

    def _scan(self, limit: int, mask: Mask | None) -> Rows:
        """Return the nearest chunks by a full scan.

        Used for few vectors, until Chroma is open, and with filters, which slow Chroma down.
        """
        if mask is None:
            return top_indices(self._all_cosines(), limit)
        rows, vectors = self._passing_rows(mask)
        similarity = self.cosines(rows) if self.vector is None else cosines(vectors, self.vector)
        return rows[top_indices(similarity, limit)]

    def _passing_rows(self, mask: Mask) -> tuple[Rows, Matrix]:
        """Return the chunks that pass a filter with their vectors; the last result is cached."""
        cached: tuple[Mask, Rows, Matrix] | None = self.chunks.cache.get("let through")
        if cached is not None and cached[0] is mask:
            return cached[1], cached[2]
        rows = np.flatnonzero(mask)
        vectors = self.chunks.vectors_of(rows)
        if len(rows) <= _MAX_CACHED:
            self.chunks.cache["let through"] = mask, rows, vectors
        return rows, vectors

    def cosines(self, rows: Rows) -> NDArray[np.float32]:
        # gathering a row takes about as long as scanning three
        gather = self._cosines is None and len(rows) * 3 < len(self.chunks)
        if self.vector is None or not gather:
            return self._all_cosines()[rows]
        return self.chunks.scores_of(rows, partial(cosines, vector=self.vector))

    def _all_cosines(self) -> NDArray[np.float32]:
        if self.vector is None:
            return np.zeros(len(self.chunks), np.float32)
        if self._cosines is None:
            self._cosines = self.chunks.score(partial(cosines, vector=self.vector))
        return self._cosines


_SLACK = 1e-4
"""Upper bound of relative rounding errors."""
_LOOKUP_COST = 8
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
        gains = [self.statistics.idf(term) * (K1 + 1) for term in order]
        gain, floor = sum(gains), 0.0
        scores = np.zeros(len(self.chunks), np.float32)
        remaining = list(order)
        probe: Rows | None = None
        while remaining and floor <= gain * (1 + _SLACK):
            term = remaining.pop(0)
            gain -= gains.pop(0)
            rows = self._add(term, scores)
            if remaining:  # the lower bound is useless after the last term
                passing = self._filter(rows)
                probe = passing if probe is None and len(passing) >= limit else probe
                for sample in (passing,) if probe is None or probe is passing else (passing, probe):
                    floor = max(floor, _lowest_of_best(scores[sample], limit))
        cut = (floor - gain) - _SLACK * (floor + gain)
        rows_above = self._filter(np.flatnonzero(scores >= cut if cut > 0 else scores > 0))
        while remaining:
            term = remaining.pop(0)
            gain -= gains.pop(0)
            if len(rows_above) * _LOOKUP_COST < len(self.postings[term][0]):
                scores_above = scores[rows_above]
                self._look_up(term, rows_above, scores_above)
                scores[rows_above] = scores_above
            else:
                self._add(term, scores)
                scores_above = scores[rows_above]
            floor = max(floor, _lowest_of_best(scores_above, limit))
            rows_above = rows_above[scores_above >= (floor - gain) - _SLACK * (floor + gain)]
        exact = self.of(rows_above)
        top = top_indices(exact, limit)
        return rows_above[top], exact[top]

    def _filter(self, rows: Rows) -> Rows:
        return rows if self.mask is None else rows[self.mask[rows]]

    def _add(self, term: str, scores: NDArray[np.float32]) -> Rows:
        compact_rows, counts = self.postings[term]
        rows = compact_rows.astype(np.intp)  # otherwise numpy converts it at each indexing
        np.add.at(scores, rows, self._impacts(term, rows, counts))
        return rows

    def _look_up(self, term: str, rows: Rows, scores: NDArray[np.float32]) -> None:
        term_rows, counts = self.postings[term]
        matches, places = places_in(term_rows, rows)
        scores[matches] += self._impacts(term, rows[matches], counts[places])

    def _impacts(self, term: str, rows: Rows, counts: NDArray[np.integer]) -> NDArray[np.float32]:
        chunks = self.chunks
        norms: NDArray[np.float32] | None = chunks.cache.get("norms")
        if norms is None:
            norms = chunks.cache["norms"] = length_norms(chunks.lengths, chunks.average_length)
        return impacts(counts, norms.take(rows), self.statistics.idf(term))


def _lowest_of_best(scores: NDArray[np.float32], limit: int) -> float:
    """Return the lowest of the ``limit`` best scores; 0 if there are fewer."""
    if not 0 < limit <= len(scores):
        return 0.0
    return float(lowest_of_best(scores, limit))


def find_candidates(
    corpus: SnapshotCorpus, encoded: EncodedQuery, mask: Mask | None = None
) -> CandidatePool:
    query, retrieval = encoded.query, encoded.retrieval
    chunks, analysis = corpus.chunks, analyzer(encoded.language)
    postings = chunks.holding(encoded.terms)
    statistics = CorpusStatistics(
        chunks=len(chunks),
        average_length=chunks.average_length,
        document_frequencies={term: len(rows) for term, (rows, _) in postings.items()},
    )
    size = min(retrieval.candidates, len(chunks))
    limit = max(retrieval.candidates, hits_needed(retrieval.postprocessors, query.limit))
    limit = min(limit, len(chunks))
    by_words = query.mode is not Mode.DENSE

    def frequency(word: str) -> int:
        frequencies = statistics.document_frequencies
        return min((frequencies.get(term, 0) for term in analysis.query_terms(word)), default=0)

    by_meaning = encoded.vector is not None and bool(encoded.vector.any())
    nearest = beside(
        lambda: corpus.nearest(size, limit, mask), worth=by_meaning and corpus.scans_long
    )
    summaries = beside(lambda: SummaryScores.of(chunks, encoded, mask), worth=corpus.scans_long)
    words = ChunkWords(chunks, postings if by_words else {}, statistics, mask)
    lexical, scores = words.best(limit)
    documents = DocumentScores.of_words(
        chunks, postings if by_words and retrieval.page_weight else {}
    )
    dense = nearest() if by_meaning else np.zeros(0, np.int64)
    documents = replace(documents, summaries=summaries() or documents.summaries)
    learned = learned_scores(encoded, documents)
    graph = None
    if encoded.graph is not None:
        starting = np.concatenate([dense[:size], lexical[:size]])
        starts = document_starts(
            chunks, documents, starting, corpus.cosines(starting), words.of(starting)
        )
        graph = graph_scores(query.text, encoded.graph, chunks, starts, frequency)
    best = documents.best_rows(
        chunks,
        corpus.cosines,
        words.of,
        float(scores.max(initial=0.0)),
        mask=mask,
        related=None if graph is None else graph.documents,
    )
    learned_rows = places_in(chunks.seqs, best_keys(learned))[1]
    others = np.concatenate([best, learned_rows, best_keys(graph.chunks if graph else {})])
    others = others if mask is None else others[mask[others]]
    merged, ranked = merge_candidates(dense, lexical, size, others)
    owners = chunks.owners[merged]
    title, heading = chunks.coverage(merged, encoded.terms)
    term_count = max(1, len(encoded.terms))
    which, pages, summary = documents.of_candidates(chunks, owners)
    seqs = chunks.seqs[merged]
    return CandidatePool(
        kb=corpus.row.name,
        language=encoded.language,
        retrieval=retrieval,
        terms=encoded.terms,
        seqs=seqs,
        ranked=ranked,
        document_ids=[chunks.document_ids[i] for i in owners.tolist()],
        vectors=chunks.vectors_of(merged),
        words=TermCounts(counts_in(postings, merged), chunks.lengths[merged].tolist(), statistics),
        pages=pages,
        which=which,
        embedder=documents.summaries.embedder,
        columns={
            "cosine": corpus.cosines(merged).astype(np.float64),
            "title": title / term_count,
            "heading": heading / term_count,
            "sizes": chunks.sizes[owners].astype(np.float64),
            "summary": summary,
            "graph": np.zeros(len(seqs)) if graph is None else graph.of(merged, owners),
            "learned": np.array([learned.get(seq, 0.0) for seq in seqs.tolist()]),
        },
    ).with_words()
