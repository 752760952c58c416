"""Data that retrievers read from a snapshot, or from the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding import Matrix, Vector
from kbkit.retrieval.candidates.base import Mask, Postings, Rows, Scores, cosines, top_indices
from kbkit.stores.catalog import corpus
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.snapshots import near_chunks
from kbkit.stores.snapshots.chunk_table import ChunkTable
from kbkit.stores.snapshots.segments import SegmentedSnapshot
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
    """A `Corpus` that reads a snapshot; without a query vector it has no nearest chunks."""

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

    def postings(self, terms: Sequence[str]) -> dict[str, Postings]:
        return self.chunks.holding(terms)

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
            dense = self.named(self.index.ask(self.row, self.vector, size), size)
        if len(dense) < limit:
            # after the results of Chroma, so that a longer list starts like a shorter one
            dense = np.concatenate([dense, self._scanned(limit, mask)])
        return dense

    def named(self, answer: NearestIds, limit: int) -> Rows:
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
                return self._scanned(limit, mask)
        rows, about = near_chunks.near_chunks(
            self.chunks, vector, asked, lambda vectors: cosines(vectors, vector)
        )
        if mask is not None:
            rows, about = rows[mask[rows]], about[mask[rows]]
            if len(rows) < limit * _RESCORED // 2:
                return self._scanned(limit, mask)
        rows = np.sort(rows[top_indices(about, limit * _RESCORED)])
        return rows[top_indices(self.cosines(rows), limit)]

    def _scanned(self, limit: int, mask: Mask | None) -> Rows:
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
            self._cosines = self.chunks.scored(lambda vectors: cosines(vectors, vector))
        if self._cosines is None:
            return np.zeros(len(self.chunks), np.float32)
        return self._cosines

    def vectors(self, rows: Rows) -> Matrix:
        return self.chunks.vectors_of(rows)

    def coverage(self, rows: Rows, terms: Sequence[str]) -> tuple[Scores, Scores]:
        titles, headings = self.chunks.coverage(rows, terms)
        whole = max(1, len(terms))
        return titles / whole, headings / whole


@dataclass(slots=True)
class CatalogCorpus:
    """A `Corpus` that reads the catalog; without a query vector it has no nearest chunks."""

    transaction: Transaction
    chunks: ChunkTable
    row: KnowledgeBaseRow
    index: VectorIndex
    vector: Vector | None
    language: str
    scans_long: ClassVar[bool] = False

    def postings(self, terms: Sequence[str]) -> dict[str, Postings]:
        postings = self.transaction.lexical.postings(self.row.id, terms)
        return {term: (self._rows(seqs), counts) for term, (seqs, counts) in postings.items()}

    def nearest(self, size: int, limit: int, mask: Mask | None) -> Rows:
        """Return the nearest chunks, best first, from Chroma or, with a mask, from a scan."""
        if self.vector is None:
            return np.zeros(0, np.int64)
        if mask is not None:
            rows = np.flatnonzero(mask)
            return rows[top_indices(self.cosines(rows), limit)]
        nearest = self.index.nearest(self.transaction, self.row, self.vector, size)
        if limit > size:  # search again, so that the first ones do not depend on `limit`
            nearest += self.index.nearest(self.transaction, self.row, self.vector, limit)
        return self._rows(np.array(nearest, np.int64))

    def _rows(self, seqs: NDArray[np.int64]) -> Rows:
        return np.asarray(np.searchsorted(self.chunks.seqs, seqs), np.int64)

    def cosines(self, rows: Rows) -> NDArray[np.float32]:
        if self.vector is None:
            return np.zeros(len(rows), np.float32)
        return cosines(self.vectors(rows), self.vector)

    def vectors(self, rows: Rows) -> Matrix:
        seqs = self.chunks.seqs[rows].tolist()
        return corpus.vectors_of(self.transaction, self.row.dimensions, seqs)

    def coverage(self, rows: Rows, terms: Sequence[str]) -> tuple[Scores, Scores]:
        seqs = self.chunks.seqs[rows].tolist()
        named = corpus.headings_of(self.transaction, seqs)
        wanted, of = frozenset(terms), analyzer(self.language).terms

        def share(texts: Sequence[str]) -> Scores:
            return np.array([len(wanted.intersection(of(t))) for t in texts]) / max(1, len(wanted))

        return share([title for title, _ in named]), share([heading for _, heading in named])
