"""Vectors in two bits a number, of which a million are scanned in milliseconds.

Each two neighbouring numbers of a vector are rounded to one of sixteen pairs (product quantisation:
Jégou, Douze and Schmid, 2011), which faiss scans in registers (André, Kermarrec and Le Scouarnec,
2015). What it finds near is only where to look: whoever asks scores it anew by the vectors
themselves. Codes lie in a file beside the segment's, which is made of the vectors again where it is
missing. Without faiss there are none, and Chroma answers.
"""

from __future__ import annotations

import contextlib
import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.stores.snapshots.array_files import read_arrays, write_arrays
from kbkit.stores.snapshots.snapshot import Snapshot

FEWEST = 5_000
"""Chunks of a segment that is worth it; of fewer all vectors are scanned."""
_FORMAT = "1"
_SAMPLE = 5_000
"""Vectors by which the pairs are chosen."""
_AT_ONCE = 20_000
"""Vectors that are read at once."""
_BITS = 4


@cache
def available() -> bool:
    """Whether faiss is installed."""
    return importlib.util.find_spec("faiss") is not None


class VectorCodes:
    """The codes of a segment's vectors, in memory."""

    def __init__(self, centroids: NDArray[np.float32], codes: NDArray[np.uint8]) -> None:
        import faiss

        parts = codes.shape[1] * 8 // _BITS
        of = faiss.IndexPQ(centroids.size // 2**_BITS, parts, _BITS, faiss.METRIC_INNER_PRODUCT)
        faiss.copy_array_to_vector(centroids.ravel(), of.pq.centroids)
        faiss.copy_array_to_vector(codes.ravel(), of.codes)
        of.ntotal, of.is_trained = len(codes), True
        scan: Any = faiss.IndexPQFastScan
        self._index = scan(of)

    def nearest(
        self, vector: NDArray[np.float32], most: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The rows that are nearest to a vector, about, and about what their cosines are."""
        wanted = min(most, self._index.ntotal)
        found, rows = self._index.search(np.ascontiguousarray(vector[None], np.float32), wanted)
        return rows[0], found[0]


def write(path: Path, vectors: NDArray[np.float32]) -> None:
    """Make the codes of vectors; nothing is done where it is not worth it or faiss is missing.

    Args:
        path: Of the file of codes.
        vectors: Unit vectors, shape ``(n, dimensions)``.

    Raises:
        OSError: It cannot be written.
    """
    number, dimensions = vectors.shape
    if number < FEWEST or dimensions % 4 or not available():
        return
    import faiss

    faiss.omp_set_num_threads(1)  # of this thread; more wait with the processor in hand
    quantiser = faiss.ProductQuantizer(dimensions, dimensions // 2, _BITS)
    quantiser.cp.max_points_per_centroid = _SAMPLE
    step = max(1, number // _SAMPLE)
    quantiser.train(np.ascontiguousarray(vectors[::step]))
    codes = np.empty((number, dimensions * _BITS // 16), np.uint8)
    for start in range(0, number, _AT_ONCE):
        part = np.ascontiguousarray(vectors[start : start + _AT_ONCE])
        codes[start : start + _AT_ONCE] = quantiser.compute_codes(part)
    centroids = faiss.vector_to_array(quantiser.centroids)
    write_arrays(path, {"centroids": centroids, "codes": codes}, {"format": _FORMAT})


def path_of(file: Path) -> Path:
    """Where the codes of a segment's file are."""
    return file.with_suffix(f".codes{file.suffix}")


def codes_of(snapshot: Snapshot) -> VectorCodes | None:
    """The codes of a snapshot that a file keeps; ``None`` where it has none."""
    if "codes" not in snapshot.kept:
        snapshot.kept["codes"] = _load(snapshot)
    found: VectorCodes | None = snapshot.kept["codes"]
    return found


def _load(snapshot: Snapshot) -> VectorCodes | None:
    file: Path | None = snapshot.kept.get("file")
    if file is None or not available():
        return None
    with contextlib.suppress(OSError, KeyError, TypeError, ValueError, IndexError, RecursionError):
        about, arrays = read_arrays(path_of(file))
        number, dimensions = snapshot.vectors.shape
        centroids, codes = arrays["centroids"], arrays["codes"]
        fits = codes.shape == (number, dimensions // 4) and codes.dtype == np.uint8
        if about["format"] == _FORMAT and fits and centroids.size == dimensions * 2**_BITS:
            return VectorCodes(_own(centroids), _own(codes))
    return None


def _own(array: NDArray[Any]) -> NDArray[Any]:
    return np.array(array)
