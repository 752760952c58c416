"""Quantize vectors for a site: project, round to 4 bits, cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbkit.export.index.packing import LEVELS, OCTET, Integers

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Form:
    """Sizes of quantized vectors.

    Attributes:
        cluster: Vectors of a cluster, on average; twice as many are the most.
    """

    dimensions: int
    cluster: int


CHUNKS = Form(dimensions=160, cluster=64)
"""For 256 dimensions: 128 lost up to 1 point of nDCG@10, 192 nothing."""
CARDS = Form(dimensions=96, cluster=400)
"""For 384 dimensions. Clusters are large, since summaries are near a query mostly or not at all."""
_SAMPLE = 20_000
_ROUNDS = 10
_AT_ONCE = 2_000
"""Vectors of a batch, which bounds memory."""
_CLIPPED = 0.005
"""Share of numbers clipped by 4 bits."""


@dataclass(frozen=True, slots=True)
class QuantizedVectors:
    """The vectors of chunks or of cards as an index has them.

    Attributes:
        projection: Turns a vector of the model into one of the index; shape
            ``(model's dimensions, dimensions)``.
        values: The vectors, in steps; shape ``(n, dimensions)``.
        clusters: Which cluster each is in, shape ``(n,)``.
        centroids: Mean vector of each cluster, projected; shape ``(clusters, dimensions)``.
    """

    projection: Matrix
    scales: NDArray[np.float64]
    values: NDArray[np.int8]
    clusters: NDArray[np.int64]
    centroids: Matrix


def quantize(
    vectors: Matrix, rows: Integers | None = None, form: Form = CHUNKS
) -> QuantizedVectors:
    """Project, round and cluster vectors.

    The projection is onto the principal axes through the origin, which keeps inner products as
    well as a linear map to so few dimensions can (Eckart and Young, 1936).
    """
    rows = np.arange(len(vectors)) if rows is None else rows
    sample = vectors[rows[:: max(1, len(rows) // _SAMPLE)]].astype(np.float64)
    _, axes = np.linalg.eigh(sample.T @ sample)
    even = vectors.shape[1] // 2 * 2
    projection = axes[:, ::-1][:, : min(form.dimensions, even)].astype(np.float32)
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


def round_cards(vectors: Matrix, clusters: NDArray[np.int64]) -> QuantizedVectors:
    scales = np.abs(vectors).max(axis=0).astype(np.float64) / OCTET
    scales[scales == 0] = 1.0
    values = np.round(vectors / scales).astype(np.int8)
    axes = np.eye(vectors.shape[1], dtype=np.float32)
    return QuantizedVectors(axes, scales, values, clusters, _means(vectors, clusters)[1])


def _parts(number: int) -> Iterator[slice]:
    return (slice(start, start + _AT_ONCE) for start in range(0, number, _AT_ONCE))


def _cluster(vectors: Matrix, size: int) -> NDArray[np.int64]:
    """Clusters of about `size` near vectors, none above twice that, by k-means (Lloyd, 1982).

    Not that of scipy: to import it takes longer than the clusters of a thousand documents.
    """
    count = len(vectors) // size
    if count < 2:
        found = np.zeros(len(vectors), np.int64)
    else:
        centres = vectors[np.linspace(0, len(vectors) - 1, count).astype(np.int64)]
        sample = vectors[:: max(1, len(vectors) // _SAMPLE)]
        for _ in range(_ROUNDS):
            held, means = _means(sample, _nearest(sample, centres))
            centres[held] = means
        found = _nearest(vectors, centres)
    parts: list[NDArray[np.int64]] = []
    order = np.argsort(found, kind="stable")
    waiting = np.split(order, np.cumsum(np.bincount(found))[:-1])[::-1]
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
    held = np.flatnonzero(counts)
    # column by column, so that only one of them is held in double precision
    sums = np.stack([np.bincount(clusters, column) for column in vectors.T], axis=1)
    return held, (sums[held] / counts[held, None]).astype(np.float32)


def _halves(vectors: Matrix, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    centred = vectors[rows] - vectors[rows].mean(axis=0)
    axis = np.linalg.svd(centred, full_matrices=False)[2][0]
    order = np.argsort(centred @ axis, kind="stable")
    middle = len(rows) // 2
    return [rows[order[middle:]], rows[order[:middle]]]
