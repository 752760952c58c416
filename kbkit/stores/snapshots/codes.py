"""Quantized vectors, two bits a number, to scan a million in milliseconds.

Pairs of neighbouring numbers are rounded to one of sixteen (product quantisation: Jégou, Douze and
Schmid, 2011), which faiss scans in registers (André, Kermarrec and Le Scouarnec, 2015). Callers
score the candidates again by the vectors. Codes lie in a file beside the segment's and are rebuilt
if missing. Without faiss Chroma answers.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.stores.snapshots.chunk_table import read_arrays, write_arrays
from kbkit.stores.snapshots.snapshot import Snapshot

MIN = 5_000
"""Chunks of a segment that is worth it; of fewer all vectors are scanned."""
_FORMAT = "2"
_SAMPLE = 5_000
"""Vectors by which the pairs are chosen."""
_AT_ONCE = 20_000
"""Vectors of a batch."""
_BITS = 4
_SAME = 0.9
"""Share of a vector's pairs that are the same when they are made again."""


@cache
def available() -> bool:
    return importlib.util.find_spec("faiss") is not None


class _Index:
    _index: Any

    def nearest(
        self, vector: NDArray[np.float32], limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        wanted = min(limit, self._index.ntotal)
        similarity, rows = self._index.search(
            np.ascontiguousarray(vector[None], np.float32), wanted
        )
        return rows[0], similarity[0]


class VectorCodes(_Index):
    """The codes of some vectors, in memory."""

    def __init__(
        self,
        centroids: NDArray[np.float32],
        codes: NDArray[np.uint8],
        there: NDArray[np.bool_],
        total: NDArray[np.float64],
    ) -> None:
        import faiss

        self.there, self.total = there, total
        parts = codes.shape[1] * 8 // _BITS
        of = faiss.IndexPQ(centroids.size // 2**_BITS, parts, _BITS, faiss.METRIC_INNER_PRODUCT)
        faiss.copy_array_to_vector(centroids.ravel(), of.pq.centroids)
        faiss.copy_array_to_vector(codes.ravel(), of.codes)
        of.ntotal, of.is_trained = len(codes), True
        scan: Any = faiss.IndexPQFastScan
        self._index = scan(of)


class JoinedCodes(_Index):
    """Codes of several parts, scanned as one, so that no scan waits for Python.

    Attributes:
        firsts: First row of each part, and the total.
    """

    def __init__(self, parts: Sequence[VectorCodes]) -> None:
        import faiss

        self.parts = parts
        self.firsts = np.cumsum([0, *(part._index.ntotal for part in parts)])
        threaded, rows_go_on = False, True
        shards: Any = faiss.IndexShards
        self._index = shards(parts[0]._index.d, threaded, rows_go_on)
        for part in parts:
            self._index.add_shard(part._index)


def write(path: Path, vectors: NDArray[np.float32]) -> None:
    """Quantize vectors; does nothing if they are few or faiss is missing."""
    number, dimensions = vectors.shape
    if number < MIN or dimensions % 4 or not available():
        return
    import faiss

    faiss.omp_set_num_threads(1)  # of this thread; more wait with the processor in hand
    quantiser = faiss.ProductQuantizer(dimensions, dimensions // 2, _BITS)
    quantiser.cp.max_points_per_centroid = _SAMPLE
    step = max(1, number // _SAMPLE)
    quantiser.train(np.ascontiguousarray(vectors[::step]))
    codes = np.empty((number, dimensions * _BITS // 16), np.uint8)
    there, total = np.empty(number, np.uint8), np.zeros(dimensions)
    for start in range(0, number, _AT_ONCE):
        part = np.ascontiguousarray(vectors[start : start + _AT_ONCE])
        codes[start : start + _AT_ONCE] = quantiser.compute_codes(part)
        there[start : start + _AT_ONCE] = part.any(axis=1)
        total += part.sum(axis=0, dtype=np.float64)
    centroids = faiss.vector_to_array(quantiser.centroids)
    arrays = {"centroids": centroids, "codes": codes, "there": there}
    arrays["total"] = total.astype(np.float32)
    write_arrays(path, arrays, {"format": _FORMAT})


def path_of(file: Path, *, summaries: bool = False) -> Path:
    return file.with_suffix(f".{'summaries.' * summaries}codes{file.suffix}")


def codes_of(snapshot: Snapshot) -> VectorCodes | None:
    """Return a snapshot's quantized vectors; ``None`` without a file."""
    if "codes" not in snapshot.kept:
        snapshot.kept["codes"] = _load(snapshot)
    codes: VectorCodes | None = snapshot.kept["codes"]
    return codes


def _load(snapshot: Snapshot) -> VectorCodes | None:
    file: Path | None = snapshot.kept.get("file")
    return load(path_of(file), snapshot.vectors) if file is not None else None


def strangers(path: Path, vectors: NDArray[np.float32]) -> int:
    """Count vectors whose codes do not match; 0 without codes or faiss."""
    codes = load(path, vectors)
    if codes is None:
        return 0
    import faiss

    _, arrays = read_arrays(path)
    number, dimensions = vectors.shape
    quantiser = faiss.ProductQuantizer(dimensions, dimensions // 2, _BITS)
    faiss.copy_array_to_vector(_own(arrays["centroids"]).ravel(), quantiser.centroids)
    wrong = 0
    for start in range(0, number, _AT_ONCE):
        part = np.ascontiguousarray(vectors[start : start + _AT_ONCE])
        same = quantiser.compute_codes(part) == arrays["codes"][start : start + _AT_ONCE]
        theirs = part.any(axis=1) == codes.there[start : start + _AT_ONCE]
        # a number that lies between two pairs may fall to another one on another processor
        wrong += int(np.count_nonzero((same.mean(axis=1) < _SAME) | ~theirs))
    return wrong


def load(path: Path, vectors: NDArray[np.float32]) -> VectorCodes | None:
    """Load quantized vectors; ``None`` if no file fits."""
    if not available():
        return None
    with contextlib.suppress(OSError, KeyError, TypeError, ValueError, IndexError, RecursionError):
        about, arrays = read_arrays(path)
        number, dimensions = vectors.shape
        centroids, codes, there = arrays["centroids"], arrays["codes"], arrays["there"]
        fits = codes.shape == (number, dimensions // 4) and codes.dtype == np.uint8
        fits = fits and there.shape == (number,) and arrays["total"].shape == (dimensions,)
        if about["format"] == _FORMAT and fits and centroids.size == dimensions * 2**_BITS:
            total = arrays["total"].astype(np.float64)
            return VectorCodes(_own(centroids), _own(codes), there.astype(np.bool_), total)
    return None


def _own(array: NDArray[Any]) -> NDArray[Any]:
    return np.array(array)
