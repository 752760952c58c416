"""Encode and decode the numbers in shards."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = NDArray[np.int64]

_START, _END = "kbkitShard(", ");\n"
LEVELS = 7
"""Maximum of a 4-bit value."""
OCTET = 127
"""Maximum of an 8-bit value."""


def encode_shard(values: Mapping[str, Any]) -> bytes:
    return encode_call("kbkitShard", [values])


def encode_call(function: str, arguments: Sequence[Any]) -> bytes:
    text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))[1:-1]
    # line ends that JSON allows in strings, but old scripts do not
    text = text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return f"{function}({text});\n".encode("utf-8", "replace")


def decode_shard(data: bytes) -> dict[str, Any]:
    text = data.decode()
    if not text.startswith(_START) or not text.endswith(_END):
        raise ValueError("not a shard")
    return json.loads(text[len(_START) : -len(_END)])


def encode_varints(numbers: ArrayLike) -> str:
    """Encode non-negative numbers."""
    values = np.asarray(numbers, np.int64)
    lengths = np.ones(len(values), np.int64)
    for bits in range(7, 63, 7):
        lengths += values >> bits > 0
    ends = np.cumsum(lengths)
    out = np.zeros(int(lengths.sum()), np.uint8)
    for place in range(int(lengths.max(initial=0))):
        more = lengths > place
        part = (values[more] >> (7 * place)) & 0x7F
        out[(ends - lengths)[more] + place] = part | np.where(lengths[more] > place + 1, 0x80, 0)
    return to_base64(out)


def decode_varints(text: str) -> Integers:
    data = from_base64(text)
    last = np.flatnonzero(data < 0x80)
    if not len(last):
        return np.zeros(0, np.int64)
    starts = np.concatenate([[0], last[:-1] + 1])
    places = np.arange(len(data)) - np.repeat(starts, last - starts + 1)
    parts = (data & 0x7F).astype(np.int64) << (7 * places)
    return np.asarray(np.add.reduceat(parts, starts), np.int64)


def encode_nibbles(matrix: NDArray[np.int8]) -> str:
    """Encode values from -7 to 7, two per byte, low half first; rows have even length."""
    flat = (matrix.astype(np.int16) + 8).astype(np.uint8).reshape(-1)
    return to_base64((flat[0::2] | flat[1::2] << 4).astype(np.uint8))


def decode_nibbles(text: str, columns: int) -> NDArray[np.int8]:
    """Decode the output of `encode_nibbles`, shape ``(n, columns)``."""
    data = from_base64(text)
    flat = np.empty(2 * len(data), np.int8)
    flat[0::2] = (data & 0xF).astype(np.int8) - 8
    flat[1::2] = (data >> 4).astype(np.int8) - 8
    return flat.reshape(-1, columns)


def to_base64(data: NDArray[np.uint8] | NDArray[np.int8]) -> str:
    return base64.b64encode(data.tobytes()).decode()


def from_base64(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(base64.b64decode(text), np.uint8)


Matrix = NDArray[np.float32]


class VectorForm(NamedTuple):
    """Sizes of quantized vectors; `cluster` is the average size of a cluster, half the maximum."""

    dimensions: int
    cluster: int


CHUNKS = VectorForm(dimensions=160, cluster=64)
"""For 256 dimensions: 128 lost up to 1 point of nDCG@10, 192 nothing."""
SUMMARIES = VectorForm(dimensions=96, cluster=400)
"""For 384 dimensions; large clusters, since most or no summaries of a cluster are near a query."""
_SAMPLE = 20_000
_ROUNDS = 10
_BATCH = 2_000  # vectors; bounds memory
_CLIPPED = 0.005  # share of numbers clipped by 4 bits


@dataclass(frozen=True, slots=True)
class QuantizedVectors:
    """Quantized vectors of chunks or summaries.

    Attributes:
        projection: Shape ``(model's dimensions, dimensions)``.
        values: The vectors, in steps of `scales`; shape ``(n, dimensions)``.
        clusters: Cluster of each vector, shape ``(n,)``.
        centroids: Mean vector of each cluster, projected; shape ``(clusters, dimensions)``.
    """

    projection: Matrix
    scales: NDArray[np.float64]
    values: NDArray[np.int8]
    clusters: NDArray[np.int64]
    centroids: Matrix


def quantize(
    vectors: Matrix, rows: Integers | None = None, form: VectorForm = CHUNKS
) -> QuantizedVectors:
    """Project, round and cluster vectors.

    Projects onto the principal axes through the origin, which preserve inner products best for
    their number of dimensions (Eckart and Young, 1936).
    """
    rows = np.arange(len(vectors)) if rows is None else rows
    sample = vectors[rows[:: max(1, len(rows) // _SAMPLE)]].astype(np.float64)
    _, axes = np.linalg.eigh(sample.T @ sample)
    even_width = vectors.shape[1] // 2 * 2
    projection = axes[:, ::-1][:, : min(form.dimensions, even_width)].astype(np.float32)
    projected = np.empty((len(rows), projection.shape[1]), np.float32)
    for part in _parts(len(rows)):
        projected[part] = vectors[rows[part]] @ projection
    scales = np.array(
        [np.quantile(np.abs(column), 1 - _CLIPPED) for column in projected.T], np.float64
    )
    scales /= LEVELS
    scales[scales == 0] = 1.0
    values = np.empty(projected.shape, np.int8)
    for part in _parts(len(rows)):
        values[part] = np.clip(np.round(projected[part] / scales), -LEVELS, LEVELS)
    clusters = _cluster(projected, form.cluster)
    return QuantizedVectors(projection, scales, values, clusters, _means(projected, clusters)[1])


def _parts(number: int) -> Iterator[slice]:
    return (slice(start, start + _BATCH) for start in range(0, number, _BATCH))


def _cluster(vectors: Matrix, size: int) -> NDArray[np.int64]:
    """Cluster vectors by k-means (Lloyd, 1982), into at most ``2 * size`` vectors each.

    Importing scipy's k-means takes longer than clustering a thousand documents.
    """
    count = len(vectors) // size
    if count < 2:
        nearest = np.zeros(len(vectors), np.int64)
    else:
        centres = vectors[np.linspace(0, len(vectors) - 1, count).astype(np.int64)]
        sample = vectors[:: max(1, len(vectors) // _SAMPLE)]
        for _ in range(_ROUNDS):
            filled, means = _means(sample, _nearest(sample, centres))
            centres[filled] = means
        nearest = _nearest(vectors, centres)
    parts: list[NDArray[np.int64]] = []
    order = np.argsort(nearest, kind="stable")
    waiting = np.split(order, np.cumsum(np.bincount(nearest))[:-1])[::-1]
    while waiting:
        rows = waiting.pop()
        if len(rows) > 2 * size:
            waiting += _halves(vectors, rows)
        elif len(rows):
            parts.append(rows)
    clusters = np.empty(len(vectors), np.int64)
    for number, rows in enumerate(parts):
        clusters[rows] = number
    return clusters


def _nearest(vectors: Matrix, centres: Matrix) -> NDArray[np.int64]:
    halves = (centres * centres).sum(axis=1) / 2
    parts = _parts(len(vectors))
    return np.concatenate([np.argmax(vectors[p] @ centres.T - halves, axis=1) for p in parts])


def _means(vectors: Matrix, clusters: NDArray[np.int64]) -> tuple[NDArray[np.int64], Matrix]:
    counts = np.bincount(clusters)
    filled = np.flatnonzero(counts)
    # by column, so that only one column is converted to double precision at a time
    sums = np.stack([np.bincount(clusters, column) for column in vectors.T], axis=1)
    return filled, (sums[filled] / counts[filled, None]).astype(np.float32)


def _halves(vectors: Matrix, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    centred = vectors[rows] - vectors[rows].mean(axis=0)
    axis = np.linalg.svd(centred, full_matrices=False)[2][0]
    order = np.argsort(centred @ axis, kind="stable")
    middle = len(rows) // 2
    return [rows[order[middle:]], rows[order[:middle]]]
