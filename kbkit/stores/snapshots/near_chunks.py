"""Chunks that are near to a query, out of codes of their vectors."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from kbkit.stores.snapshots.chunk_table import Score
from kbkit.stores.snapshots.codes import JoinedCodes, VectorCodes, available, codes_of
from kbkit.stores.snapshots.segments import SegmentedSnapshot

_UNCODED = 40_000
"""Chunks without codes up to which a scan of all their vectors is quick."""
_KEPT = "near_chunks"
Rows = NDArray[np.int64]


def is_coded(snapshot: SegmentedSnapshot) -> bool:
    """Whether `near_chunks` has to scan the vectors of few chunks only."""
    if not available():
        return False
    uncoded = [s for s in snapshot.segments if codes_of(s.snapshot) is None]
    return sum(len(segment.snapshot) for segment in uncoded) <= _UNCODED


def near_chunks(
    snapshot: SegmentedSnapshot, vector: NDArray[np.float32], most: int, score: Score
) -> tuple[Rows, NDArray[np.float32]]:
    """Rows of chunks that are about the nearest to a vector, and about what their scores are.

    Args:
        snapshot: Of the chunks.
        vector: Of the query.
        most: How many of the segments that have codes; of the others, all come.
        score: Gives the scores of some vectors, for segments that have no codes.
    """
    rows, scores = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    for i, held, near in _by_segment(snapshot, vector, most, score):
        places = snapshot.places[i]
        own = held if places is None else places[held].astype(np.int64)
        alive = own >= 0
        rows.append(own[alive] + snapshot.firsts[i])
        scores.append(near[alive])
    return np.concatenate(rows), np.concatenate(scores)


def _by_segment(
    snapshot: SegmentedSnapshot, vector: NDArray[np.float32], most: int, score: Score
) -> Iterable[tuple[int, Rows, NDArray[np.float32]]]:
    """Numbers of segments, with rows of each and about what their scores are."""
    coded: list[int] = []
    codes: list[VectorCodes] = []
    for i, segment in enumerate(snapshot.segments):
        known = codes_of(segment.snapshot)
        if known is None:
            yield i, np.arange(len(segment.snapshot)), score(segment.snapshot.vectors)
        else:
            coded.append(i)
            codes.append(known)
    if not coded:
        return
    joined = _joined(snapshot, codes)
    gone = sum(len(snapshot.segments[i].gone) for i in coded)
    found, near = joined.nearest(vector, most + min(most, gone))
    which = np.searchsorted(joined.firsts, found, "right") - 1
    for n, i in enumerate(coded):
        of = which == n
        yield i, found[of] - joined.firsts[n], near[of]


def _joined(snapshot: SegmentedSnapshot, codes: list[VectorCodes]) -> JoinedCodes:
    """Codes of segments as one; kept until others have been made."""
    held: JoinedCodes | None = snapshot.kept.get(_KEPT)
    if held is None or held.parts != codes:
        held = snapshot.kept[_KEPT] = JoinedCodes(codes)
    return held
