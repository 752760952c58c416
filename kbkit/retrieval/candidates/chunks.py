"""The legs of chunks, over a snapshot: by vectors, and by words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding.base import Vector
from kbkit.retrieval.bm25 import CorpusStatistics, impacts
from kbkit.retrieval.candidates.base import Mask, Postings, Rows, cosines, top_indices
from kbkit.stores.snapshots.snapshot import Snapshot
from kbkit.stores.vector_index import Answer

_SCAN_LIMIT = 8_000_000
"""Numbers that a scan reads in less time than Chroma takes to answer: 31,000 vectors of 256.

Measured with queries that were not asked before: a scan of 20,000 took 0.4 to 2 ms, as the machine
was busy or not, Chroma 2.2 to 3.
"""


def scan_is_faster(snapshot: Snapshot) -> bool:
    """Whether a scan of all vectors takes less time than asking Chroma."""
    return snapshot.vectors.size <= _SCAN_LIMIT


@dataclass(slots=True)
class ChunkCosines:
    """Cosines of a query and the chunks of a snapshot; once all are known, they are kept.

    Attributes:
        vector: Of the query; ``None`` where there is none, so that no chunk is near it.
    """

    snapshot: Snapshot
    vector: Vector | None
    _all: NDArray[np.float32] | None = None

    def of(self, rows: Rows) -> NDArray[np.float32]:
        """Those of some chunks, by row."""
        # to gather a row takes about as long as to scan three
        few = self._all is None and len(rows) * 3 < len(self.snapshot)
        if self.vector is None or not few:
            return self.all()[rows]
        return cosines(self.snapshot.vectors[rows], self.vector)

    def all(self) -> NDArray[np.float32]:
        """Those of all chunks."""
        if self._all is None and self.vector is not None:
            self._all = cosines(self.snapshot.vectors, self.vector)
        if self._all is None:
            return np.zeros(len(self.snapshot), np.float32)
        return self._all


def nearest_by_chroma(snapshot: Snapshot, answer: Answer, found: ChunkCosines, most: int) -> Rows:
    """Rows of the nearest chunks, best first: of those that Chroma names and those new to it.

    None where Chroma named too few, as when another process has deleted what it names.
    """
    named = snapshot.rows_of(answer.ids)
    first = int(np.searchsorted(snapshot.seqs, answer.known, "right"))
    if len(named) < min(most, first):
        return named[:0]
    later = np.arange(first, len(snapshot))
    new = later[top_indices(found.of(later), most)]
    rows = np.array(sorted({*named.tolist(), *new.tolist()}), np.int64)
    return rows[top_indices(found.of(rows), most)]


def nearest_by_scan(found: ChunkCosines, most: int, mask: Mask | None) -> Rows:
    """Rows of the nearest chunks, best first, by a full scan.

    The way for few vectors, until Chroma is open, and for filters, which make Chroma many times
    slower.
    """
    if mask is None:
        return top_indices(found.all(), most)
    rows = np.flatnonzero(mask)
    return rows[top_indices(found.of(rows), most)]


def bm25_of_all(
    snapshot: Snapshot,
    postings: Mapping[str, Postings],
    statistics: CorpusStatistics,
    mask: Mask | None,
) -> NDArray[np.float32]:
    """BM25 of every chunk, 0 for those that may be no candidates."""
    scores = np.zeros(len(snapshot), np.float32)
    for term, (rows, counts) in postings.items():
        lengths = snapshot.lengths[rows]
        scores[rows] += impacts(counts, lengths, snapshot.average_length, statistics.idf(term))
    if mask is not None:
        scores *= mask
    return scores


def counts_of(postings: Mapping[str, Postings], chosen: Rows) -> list[dict[str, int]]:
    """How often each term stands in each row."""
    counts: list[dict[str, int]] = [{} for _ in range(len(chosen))]
    for term, (rows, times) in postings.items():
        places = np.searchsorted(rows, chosen)
        places[places == len(rows)] = 0
        there = np.flatnonzero(rows[places] == chosen)
        for i, count in zip(there.tolist(), times[places[there]].tolist(), strict=True):
            counts[i][term] = count
    return counts
