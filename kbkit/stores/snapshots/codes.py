"""Quantized vectors, two bits a number, to scan a million in milliseconds.

Pairs of neighbouring numbers are rounded to one of 16 centroids (product quantization: Jégou, Douze
and Schmid, 2011), which faiss scans in registers (André, Kermarrec and Le Scouarnec, 2015). Callers
score the candidates again by the vectors. Without faiss, searches use Chroma.
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
"""Vectors below which no codes are written."""
_FORMAT = "2"
_SAMPLE = 5_000
"""Vectors that determine the centroids."""
_AT_ONCE = 20_000
_BITS = 4
_SAME = 0.9
"""Minimum share of equal codes when a vector is quantized again."""


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
    """Codes in memory; `nonzero` marks nonzero vectors, `total` is the sum of all vectors."""

    def __init__(
        self,
        centroids: NDArray[np.float32],
        codes: NDArray[np.uint8],
        nonzero: NDArray[np.bool_],
        total: NDArray[np.float64],
    ) -> None:
        import faiss

        self.nonzero, self.total = nonzero, total
        parts = codes.shape[1] * 8 // _BITS
        of = faiss.IndexPQ(centroids.size // 2**_BITS, parts, _BITS, faiss.METRIC_INNER_PRODUCT)
        faiss.copy_array_to_vector(centroids.ravel(), of.pq.centroids)
        faiss.copy_array_to_vector(codes.ravel(), of.codes)
        of.ntotal, of.is_trained = len(codes), True
        scan: Any = faiss.IndexPQFastScan
        self._index = scan(of)


class JoinedCodes(_Index):
    """Codes of several parts, scanned as one; `firsts` has the first row of each, and the total."""

    def __init__(self, parts: Sequence[VectorCodes]) -> None:
        import faiss

        self.parts = parts
        self.firsts = np.cumsum([0, *(part._index.ntotal for part in parts)])
        threaded, successive_ids = False, True
        shards: Any = faiss.IndexShards
        self._index = shards(parts[0]._index.d, threaded, successive_ids)
        for part in parts:
            self._index.add_shard(part._index)


def write(path: Path, vectors: NDArray[np.float32]) -> None:
    """Quantize vectors, unless they are few or faiss is missing."""
    number, dimensions = vectors.shape
    if number < MIN or dimensions % 4 or not available():
        return
    import faiss

    faiss.omp_set_num_threads(1)  # of this thread, because more of them busy-wait
    quantiser = faiss.ProductQuantizer(dimensions, dimensions // 2, _BITS)
    quantiser.cp.max_points_per_centroid = _SAMPLE
    step = max(1, number // _SAMPLE)
    quantiser.train(np.ascontiguousarray(vectors[::step]))
    codes = np.empty((number, dimensions * _BITS // 16), np.uint8)
    nonzero, total = np.empty(number, np.uint8), np.zeros(dimensions)
    for start in range(0, number, _AT_ONCE):
        part = np.ascontiguousarray(vectors[start : start + _AT_ONCE])
        codes[start : start + _AT_ONCE] = quantiser.compute_codes(part)
        nonzero[start : start + _AT_ONCE] = part.any(axis=1)
        total += part.sum(axis=0, dtype=np.float64)
    centroids = faiss.vector_to_array(quantiser.centroids)
    arrays = {"centroids": centroids, "codes": codes, "there": nonzero}
    arrays["total"] = total.astype(np.float32)
    write_arrays(path, arrays, {"format": _FORMAT})


def path_of(file: Path, *, summaries: bool = False) -> Path:
    return file.with_suffix(f".{'summaries.' * summaries}codes{file.suffix}")


def codes_of(snapshot: Snapshot) -> VectorCodes | None:
    """Return a snapshot's codes; ``None`` without a file."""
    if "codes" not in snapshot.kept:
        snapshot.kept["codes"] = _load(snapshot)
    codes: VectorCodes | None = snapshot.kept["codes"]
    return codes


def _load(snapshot: Snapshot) -> VectorCodes | None:
    file: Path | None = snapshot.kept.get("file")
    return load(path_of(file), snapshot.vectors) if file is not None else None


def count_mismatches(path: Path, vectors: NDArray[np.float32]) -> int:
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
        same_zeros = part.any(axis=1) == codes.nonzero[start : start + _AT_ONCE]
        # rounding may differ between processors
        wrong += int(np.count_nonzero((same.mean(axis=1) < _SAME) | ~same_zeros))
    return wrong


def load(path: Path, vectors: NDArray[np.float32]) -> VectorCodes | None:
    """Load codes; ``None`` if the file is missing or does not fit the vectors."""
    if not available():
        return None
    with contextlib.suppress(OSError, KeyError, TypeError, ValueError, IndexError, RecursionError):
        about, arrays = read_arrays(path)
        number, dimensions = vectors.shape
        centroids, codes, nonzero = arrays["centroids"], arrays["codes"], arrays["there"]
        fits = codes.shape == (number, dimensions // 4) and codes.dtype == np.uint8
        fits = fits and nonzero.shape == (number,) and arrays["total"].shape == (dimensions,)
        if about["format"] == _FORMAT and fits and centroids.size == dimensions * 2**_BITS:
            total = arrays["total"].astype(np.float64)
            return VectorCodes(_own(centroids), _own(codes), nonzero.astype(np.bool_), total)
    return None


def _own(array: NDArray[Any]) -> NDArray[Any]:
    return np.array(array)
