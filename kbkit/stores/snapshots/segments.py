"""A segmented snapshot, whose update takes time in proportion to the change.

Chunks that were added together form a segment, which never changes; removed rows are listed
separately. A version of a knowledge base is a list of segments by ``seq``. Small segments are
merged later (`kbkit.stores.snapshots.making`).

Source: O'Neil, Cheng, Gawlick and O'Neil, "The Log-Structured Merge-Tree" (1996).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.snapshots.snapshot import ChunkTable, Postings, Score, Snapshot, SummaryPart

SCAN_LIMIT = 8_000_000
"""Numbers up to which all vectors are scanned, without codes: 31,000 vectors of 256 dimensions.

Measured with new queries: a scan of 20,000 vectors took 0.4 to 2 ms, Chroma 2.2 to 3 ms.
"""


def merge_summaries(parts: Sequence[SummaryPart]) -> SummaryPart:
    """Merge parts; later ones replace earlier ones."""
    numbers = np.unique(np.concatenate([part.numbers for part in parts]))
    width = max(part.vectors.shape[1] for part in parts)
    vectors = np.zeros((len(numbers), width), np.float32)
    for part in parts:
        vectors[np.searchsorted(numbers, part.numbers)] = part.vectors
    return SummaryPart(numbers, vectors)


Rows = NDArray[np.int64]
NO_ROWS: Rows = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Segment:
    """Chunks that were added together; `file` is ``""`` in memory, `removed` has removed rows."""

    snapshot: Snapshot
    file: str = ""
    removed: Rows = field(default_factory=lambda: NO_ROWS)

    def __len__(self) -> int:
        return len(self.snapshot) - len(self.removed)

    @property
    def live(self) -> Rows:
        is_kept = np.ones(len(self.snapshot), np.bool_)
        is_kept[self.removed] = False
        return np.flatnonzero(is_kept)

    def without(self, seqs: Rows) -> Segment:
        rows = np.flatnonzero(np.isin(self.snapshot.seqs, seqs, assume_unique=True))
        return replace(self, removed=np.union1d(self.removed, rows)) if len(rows) else self

    def with_vectors(self, changed: dict[int, NDArray[np.float32]]) -> Segment:
        all_seqs = self.snapshot.seqs
        rows = np.flatnonzero(np.isin(all_seqs, list(changed), assume_unique=True))
        if not len(rows):
            return self
        vectors = np.array(self.snapshot.vectors)
        vectors[rows] = [changed[seq] for seq in all_seqs[rows].tolist()]
        return replace(self, snapshot=replace(self.snapshot, vectors=vectors), file="")


LARGEST = 100_000
"""Chunks from which a segment is no longer merged."""
_TIER = 8
"""Number of neighbouring segments of similar size that are merged."""
_SMALLEST = 1_000
"""Chunks up to which all segments are of the lowest tier."""
_MAX_REMOVED = 0.3
"""Share of removed chunks at which a segment is rewritten."""


def to_merge(segments: Sequence[Segment], limit: int = LARGEST) -> slice | None:
    """Return the next neighbouring segments to merge; ``None`` if there are none."""
    for i, segment in enumerate(segments):
        if len(segment) <= limit and len(segment.removed) > _MAX_REMOVED * len(segment.snapshot):
            return slice(i, i + 1)
    tiers = [_tier(len(segment)) for segment in segments]
    for end in range(len(segments), 0, -1):
        start = end  # longest run of neighbours that ends here, of at most the last one's tier
        while start and tiers[start - 1] <= tiers[end - 1]:
            start -= 1
        if end - start >= _TIER:
            while sum(map(len, segments[start:end])) > limit and end - start > 1:
                start += 1
            if end - start > 1:
                return slice(start, end)
    return None


def _tier(size: int) -> int:
    tier = 0
    while size > _SMALLEST:
        size //= _TIER
        tier += 1
    return tier


@dataclass(slots=True)
class DocumentNumbers:
    """Numbers of documents in all versions that the process has read; never reused."""

    ids: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)
    _mutex: Lock = field(default_factory=Lock)

    def of(self, snapshot: Snapshot) -> NDArray[np.int32]:
        cached: tuple[DocumentNumbers, NDArray[np.int32]] | None
        cached = snapshot.cache.get("document numbers")
        if cached is None or cached[0] is not self:
            cached = self, self.of_ids(snapshot.document_ids)
            snapshot.cache["document numbers"] = cached
        return cached[1]

    def add(self, segments: Sequence[Segment]) -> None:
        """Number the documents of segments in their order."""
        for segment in segments:
            self.of(segment.snapshot)

    def of_ids(self, ids: Sequence[str]) -> NDArray[np.int32]:
        with self._mutex:
            for id_ in ids:
                if id_ not in self._numbers:
                    self._numbers[id_] = len(self.ids)
                    self.ids.append(id_)
            return np.array([self._numbers[id_] for id_ in ids], np.int32)


@dataclass(frozen=True, slots=True)
class SnapshotState:
    """A version of a knowledge base; `removed` is the last entry read in the log of removals."""

    version: int
    embedder: str
    summaries_version: int
    summary_embedder: str
    removed: int

    @classmethod
    def of(cls, row: KnowledgeBaseRow, removed: int = 0) -> SnapshotState:
        return cls(row.version, row.embedder, row.summaries_version, row.summary_embedder, removed)


@dataclass(frozen=True)
class SegmentedSnapshot(ChunkTable):
    """Segments as one snapshot: their rows in order, without removed ones.

    Attributes:
        numbers: Positions in `document_ids`.
        summaries: Vectors of one embedder; later parts replace earlier ones.
        places: By segment, new row of each stored row, -1 if removed; ``None`` if all stay.
        firsts: First row of each segment, and the total.
        latest: Last segment of each document, which has the current title.
    """

    state: SnapshotState
    segments: tuple[Segment, ...]
    numbers: DocumentNumbers
    summaries: tuple[SummaryPart, ...]
    places: tuple[NDArray[np.int32] | None, ...]
    firsts: NDArray[np.int64]
    latest: NDArray[np.int32]
    titled: NDArray[np.int32]

    @property
    def is_small(self) -> bool:
        """Whether a scan of all vectors is faster than codes or an index."""
        return sum(segment.snapshot.vectors.size for segment in self.segments) <= SCAN_LIMIT

    @cached_property
    def is_merged(self) -> bool:
        return to_merge(self.segments) is None

    def shows(self, row: KnowledgeBaseRow) -> bool:
        state = self.state
        return (state.version, state.embedder) == (row.version, row.embedder)

    def rows_of(self, ids: Sequence[str]) -> Rows:
        row_of: dict[str, int] = {}
        for i, segment in enumerate(self.segments):
            snapshot, places = segment.snapshot, self.places[i]
            for row in snapshot.rows_of(ids).tolist():
                place = row if places is None else int(places[row])
                if place >= 0:
                    row_of[snapshot.ids[row]] = place + int(self.firsts[i])
        return np.array([row_of[id_] for id_ in ids if id_ in row_of], np.int64)

    def holding(self, terms: Iterable[str]) -> dict[str, Postings]:
        keys = tuple(terms)
        parts: dict[str, list[Postings]] = {term: [] for term in keys}
        for i, segment in enumerate(self.segments):
            places, first = self.places[i], np.int32(self.firsts[i])
            for term, (local, times) in segment.snapshot.holding(keys).items():
                rows, counts = local, times
                if places is not None:
                    alive = places[local] >= 0
                    rows, counts = places[local][alive], times[alive]
                if len(rows):
                    parts[term].append((rows + first if first else rows, counts))
        return {
            term: several[0]
            if len(several) == 1
            else (
                np.concatenate([rows for rows, _ in several]),
                np.concatenate([counts for _, counts in several]),
            )
            for term, several in parts.items()
            if several
        }

    def score(self, score: Score) -> NDArray[np.float32]:
        return self._concatenate(lambda snapshot: score(snapshot.vectors), np.float32)

    def match_headings(self, has: Callable[[str], bool]) -> NDArray[np.bool_]:
        return self._concatenate(lambda snapshot: snapshot.match_headings(has), np.bool_)

    def vectors_of(self, rows: Rows) -> NDArray[np.float32]:
        width = max((s.snapshot.vectors.shape[1] for s in self.segments), default=0)
        vectors = np.empty((len(rows), width), np.float32)
        for mask, snapshot, local in self._by_segment(rows):
            vectors[mask] = snapshot.vectors[local]
        return vectors

    def scores_of(self, rows: Rows, score: Score) -> NDArray[np.float32]:
        scores = np.empty(len(rows), np.float32)
        for mask, snapshot, local in self._by_segment(rows):
            scores[mask] = snapshot.scores_of(local, score)
        return scores

    def coverage(self, rows: Rows, terms: Iterable[str]) -> tuple[Rows, Rows]:
        keys = tuple(terms)
        titles, headings = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        for mask, snapshot, local in self._by_segment(rows):
            term_ids = snapshot.numbers(keys).values()
            headings[mask] = snapshot.heading_terms.holding(term_ids, snapshot.headings[local])
        owners = self.owners[rows]
        latest = self.latest[owners]
        for i in _distinct(latest):
            snapshot, mask = self.segments[i].snapshot, latest == i
            term_ids = snapshot.numbers(keys).values()
            titles[mask] = snapshot.title_terms.holding(term_ids, self.titled[owners[mask]])
        return titles, headings

    def summary_scores(self, score: Score) -> NDArray[np.float32]:
        scores = np.zeros(len(self.sizes), np.float32)
        for part in self.summaries:
            scores[part.numbers] = score(part.vectors)
        scores[self.sizes == 0] = 0.0
        return scores

    def _concatenate(
        self, column_of: Callable[[Snapshot], NDArray[Any]], dtype: type[np.generic]
    ) -> NDArray[Any]:
        parts = [np.zeros(0, dtype)]
        for i, segment in enumerate(self.segments):
            column = column_of(segment.snapshot)
            places = self.places[i]
            parts.append(column if places is None else column[places >= 0])
        return np.concatenate(parts)

    def _by_segment(self, rows: Rows) -> Iterable[tuple[NDArray[np.bool_], Snapshot, Rows]]:
        segment_of = np.searchsorted(self.firsts, rows, "right") - 1
        for i in _distinct(segment_of):
            mask = segment_of == i
            segment, local = self.segments[i], rows[mask] - self.firsts[i]
            yield mask, segment.snapshot, segment.live[local] if len(segment.removed) else local


def _distinct(segments: NDArray[np.integer[Any]]) -> list[int]:
    """Return the distinct segments, ascending, without the slow import of np.unique."""
    return [int(i) for i in np.flatnonzero(np.bincount(segments))]


def join_segments(
    state: SnapshotState,
    segments: Sequence[Segment],
    numbers: DocumentNumbers,
    summaries: Sequence[SummaryPart] = (),
) -> SegmentedSnapshot:
    parts = tuple(segment for segment in segments if len(segment)) or tuple(segments[:1])
    placed = [numbers.of(segment.snapshot) for segment in parts]
    count = len(numbers.ids)
    latest, titled = np.zeros(count, np.int32), np.zeros(count, np.int32)
    owners, seqs, lengths = [np.zeros(0, np.int32)], [NO_ROWS], [np.zeros(0, np.int32)]
    places: list[NDArray[np.int32] | None] = []
    for i, segment in enumerate(parts):
        snapshot = segment.snapshot
        latest[placed[i]] = i
        titled[placed[i]] = np.arange(len(placed[i]), dtype=np.int32)
        live: Any = slice(None)
        row_of = None
        if len(segment.removed):
            live = segment.live
            row_of = np.full(len(snapshot), -1, np.int32)
            row_of[live] = np.arange(len(live), dtype=np.int32)
        places.append(row_of)
        owners.append(placed[i][snapshot.owners[live]])
        seqs.append(snapshot.seqs[live])
        lengths.append(snapshot.lengths[live])
    return SegmentedSnapshot(
        state=state,
        seqs=np.concatenate(seqs),
        document_ids=numbers.ids[:count],
        owners=np.concatenate(owners),
        lengths=np.concatenate(lengths),
        segments=parts,
        numbers=numbers,
        summaries=tuple(summaries),
        places=tuple(places),
        firsts=np.cumsum([0, *map(len, parts)]),
        latest=latest,
        titled=titled,
    )
