"""Find near chunks by quantized vectors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.stores.snapshots.segments import SegmentedSnapshot
from kbkit.stores.snapshots.snapshot import JoinedCodes, Score, SummaryPart, available, codes_of

_UNCODED = 40_000
"""Chunks without codes up to which a scan of their vectors is fast."""
_KEY = "near_chunks"
Rows = NDArray[np.int64]


def is_coded(snapshot: SegmentedSnapshot) -> bool:
    """Whether `near_chunks` is fast, because few chunks lack codes."""
    if not available():
        return False
    uncoded = [s for s in snapshot.segments if codes_of(s.snapshot) is None]
    return sum(len(segment.snapshot) for segment in uncoded) <= _UNCODED


def near_chunks(
    snapshot: SegmentedSnapshot, vector: NDArray[np.float32], limit: int, score: Score
) -> tuple[Rows, NDArray[np.float32]]:
    rows, scores = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    for i, local, similarity in _by_segment(snapshot, vector, limit, score):
        places = snapshot.places[i]
        placed = local if places is None else places[local].astype(np.int64)
        alive = placed >= 0
        rows.append(placed[alive] + snapshot.firsts[i])
        scores.append(similarity[alive])
    return np.concatenate(rows), np.concatenate(scores)


def _by_segment(
    snapshot: SegmentedSnapshot, vector: NDArray[np.float32], limit: int, score: Score
) -> Iterable[tuple[int, Rows, NDArray[np.float32]]]:
    coded: list[int] = []
    codes: list[Any] = []
    for i, segment in enumerate(snapshot.segments):
        segment_codes = codes_of(segment.snapshot)
        if segment_codes is None:
            yield i, np.arange(len(segment.snapshot)), score(segment.snapshot.vectors)
        else:
            coded.append(i)
            codes.append(segment_codes)
    if not coded:
        return
    joined: JoinedCodes | None = snapshot.cache.get(_KEY)
    if joined is None or joined.parts != codes:
        joined = snapshot.cache[_KEY] = JoinedCodes(codes)
    removed = sum(len(snapshot.segments[i].removed) for i in coded)
    rows, similarity = joined.nearest(vector, limit + min(limit, removed))
    segment_of = np.searchsorted(joined.firsts, rows, "right") - 1
    for n, i in enumerate(coded):
        mask = segment_of == n
        yield i, rows[mask] - joined.firsts[n], similarity[mask]


_MAX_UNCODED_SUMMARIES = 20_000
"""Summaries without codes up to which a scan of their vectors is fast."""
_SUMMARIES_KEY = "near_summaries"


@dataclass(frozen=True, slots=True)
class NearSummaries:
    """The current summaries of a snapshot's documents.

    Attributes:
        parts: Oldest first; later parts replace earlier ones.
        holders: Index of the part with the summary of each document; -1 without a summary.
    """

    parts: tuple[SummaryPart, ...]
    coded: JoinedCodes
    numbers: NDArray[np.int32]
    uncoded: tuple[SummaryPart, ...]
    holders: NDArray[np.int32]
    rows: NDArray[np.int32]
    mean: NDArray[np.float32]

    def nearest(self, vector: NDArray[np.float32], limit: int, score: Score) -> Rows:
        rows, _ = self.coded.nearest(vector, limit)
        numbers_of = [self.numbers[rows]]
        for part in self.uncoded:
            numbers_of.append(part.numbers[np.argsort(-score(part.vectors))[:limit]])
        numbers = np.unique(np.concatenate(numbers_of)).astype(np.int64)
        return numbers[self.holders[numbers] >= 0]

    def scores(self, numbers: Rows, score: Score) -> NDArray[np.float32]:
        """Score the summaries of documents; those without one get the mean vector's score."""
        result = np.empty(len(numbers), np.float32)
        holders = self.holders[numbers]
        for i in np.unique(holders).tolist():
            of = holders == i
            vectors = self.mean[None] if i < 0 else self.parts[i].vectors[self.rows[numbers[of]]]
            result[of] = score(vectors)
        return result


def near_summaries(snapshot: SegmentedSnapshot) -> NearSummaries | None:
    """Return an index of summaries; ``None`` without faiss, or without codes."""
    if not available():
        return None
    codes = tuple(map(codes_of, snapshot.summaries))
    cached: tuple[object, NearSummaries | None] | None = snapshot.cache.get(_SUMMARIES_KEY)
    if cached is None or cached[0] != codes:
        cached = snapshot.cache[_SUMMARIES_KEY] = codes, _near_summaries(snapshot, codes)
    return cached[1]


def _near_summaries(snapshot: SegmentedSnapshot, codes: Sequence[Any]) -> NearSummaries | None:
    parts = snapshot.summaries
    uncoded = sum(len(p.vectors) for p, c in zip(parts, codes, strict=True) if c is None)
    if uncoded > _MAX_UNCODED_SUMMARIES or not any(codes):
        return None
    number = len(snapshot.sizes)
    holders, rows = np.full(number, -1, np.int32), np.zeros(number, np.int32)
    for i, part in enumerate(parts):
        nonzero, _ = _sum_vectors(part)
        holders[part.numbers] = np.where(nonzero, i, -1)
        rows[part.numbers] = np.arange(len(part.numbers))
    holders[snapshot.sizes == 0] = -1
    total, count = np.zeros(parts[0].vectors.shape[1]), 0
    for i, part in enumerate(parts):
        used = (holders[part.numbers] == i) & (rows[part.numbers] == np.arange(len(part.numbers)))
        _, part_sum = _sum_vectors(part)
        total += part_sum - part.vectors[~used].sum(axis=0, dtype=np.float64)
        count += int(used.sum())
    with_codes = [(part, c) for part, c in zip(parts, codes, strict=True) if c is not None]
    return NearSummaries(
        parts=parts,
        coded=JoinedCodes([c for _, c in with_codes]),
        numbers=np.concatenate([part.numbers for part, _ in with_codes]),
        uncoded=tuple(part for part, c in zip(parts, codes, strict=True) if c is None),
        holders=holders,
        rows=rows,
        mean=(total / max(1, count)).astype(np.float32),
    )


def _sum_vectors(part: SummaryPart) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which vectors are not zero, and the sum of all."""
    if "summed" not in part.cache:
        total = part.vectors.sum(axis=0, dtype=np.float64)
        part.cache["summed"] = part.vectors.any(axis=1), total
    return part.cache["summed"]
