"""Candidates of a query, from a snapshot."""

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
from kbkit.retrieval.fusion import CorpusStatistics, hits_needed, length_norms, word_scores
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


def chunk_scores(
    chunks: ChunkTable, postings: Mapping[str, Postings], statistics: CorpusStatistics
) -> NDArray[np.float32]:
    """Return the BM25 of all chunks for a query."""
    norms: NDArray[np.float32] | None = chunks.cache.get("norms")
    if norms is None:
        norms = chunks.cache["norms"] = length_norms(chunks.lengths, chunks.average_length)
    return word_scores(postings, norms, statistics)


def best_scored(scores: NDArray[np.float32], limit: int, mask: Mask | None = None) -> Rows:
    """Return the rows of the highest positive scores, best first."""
    if mask is not None:
        scores = np.where(mask, scores, 0)
    floor = lowest_of_best(scores, limit)
    rows = np.flatnonzero(scores >= floor if floor > 0 else scores > 0)
    return rows[top_indices(scores[rows], limit)]


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
    words = chunk_scores(chunks, postings if by_words else {}, statistics)
    lexical = best_scored(words, limit, mask) if by_words else np.zeros(0, np.int64)
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
            chunks, documents, starting, corpus.cosines(starting), words[starting]
        )
        graph = graph_scores(query.text, encoded.graph, chunks, starts, frequency)
    best = documents.best_rows(
        chunks,
        corpus.cosines,
        words,
        words[lexical].max(initial=0.0),
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
