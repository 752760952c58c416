"""Vectors of a published index, of which a query reads a few clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding.base import Vector
from kbkit.export.index.packing import Integers, decode_bytes, decode_nibbles, decode_varints
from kbkit.export.index.terms import UNIT

FIRST = 50
"""Best rows by words whose clusters are read."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """How many clusters a query reads.

    Attributes:
        near: Those whose centroids it is nearest to.
        further: Those that hold most of the best rows by words, each counting
            ``1 / (10 + its place)``.
    """

    near: int
    further: int


CHUNK_CLUSTERS = Clusters(near=4, further=6)
CARD_CLUSTERS = Clusters(near=2, further=1)
MODEL_CLUSTERS = Clusters(near=8, further=4)
"""Of cards, in a browser that has the model, whose vectors tell more."""


@dataclass(frozen=True, slots=True)
class Near:
    """What is known of vectors once some clusters are read.

    Attributes:
        rows: Whose vectors are at hand, ascending.
        cosines: With the query, shape ``(n,)``; of the centroid for those that are not at hand, 0
            for those that have none.
        vectors: Unit vectors, zeros for those not at hand; shape ``(n, dimensions)``.
    """

    rows: Integers
    cosines: NDArray[np.float64]
    vectors: NDArray[np.float32]


class IndexVectors:
    """The vectors of chunks, or of cards.

    Args:
        about: What the core of the index says of them; nothing where there are none.
        rows: Number of chunks or documents.
        read: How many clusters a query reads.
        shard: Gives what a shard of vectors holds, by number.
        decode: Gives the steps of its vectors.
    """

    def __init__(
        self,
        about: Mapping[str, Any],
        rows: int,
        read: Clusters,
        shard: Callable[[int], Mapping[str, Any]],
        decode: Callable[[str, int], NDArray[np.int8]] = decode_nibbles,
    ) -> None:
        self.dimensions: int = about.get("dimensions", 0)
        self.modelled: bool = about.get("model", False)
        """Whether the model's vectors of queries can ask them."""
        self._rows, self._read, self._shard, self._decode = rows, read, shard, decode
        self._scales = np.array(about.get("scales", ()))
        # -1 for what has no vector
        self._clusters = decode_varints(about["clusters"]) - 1 if about else np.full(rows, -1)
        steps = np.array(about.get("steps", ()))
        centroids = decode_nibbles(about.get("centroids", ""), max(1, self.dimensions))
        self._centroids = centroids * (steps / UNIT)[:, None]

    @property
    def there(self) -> NDArray[np.bool_]:
        """Which rows have a vector."""
        return np.asarray(self._clusters >= 0)

    def projected(self, vector: Vector, axes: Mapping[str, Any]) -> NDArray[np.float64]:
        """A vector of the model as one of the index.

        Args:
            vector: Of a query.
            axes: What the shard ``m`` has of these vectors.
        """
        return np.asarray(decode_bytes(axes["v"], len(vector)) @ vector * np.array(axes["s"]))

    def near(
        self,
        query: NDArray[np.float64],
        best: Integers,
        allowed: NDArray[np.bool_] | None = None,
    ) -> Near:
        """What a query needs of them.

        Args:
            query: Its vector, of any length; nothing is read for zeros.
            best: Rows that are best by words, best first.
            allowed: Which rows may be found; clusters without any are not read.
        """
        vectors = np.zeros((self._rows, self.dimensions), np.float32)
        if not query.any():
            return Near(np.zeros(0, np.int64), np.zeros(self._rows), vectors)
        query = query / np.linalg.norm(query)
        near = self._centroids @ query
        cosines = np.append(near, 0.0)[self._clusters]
        parts = [np.zeros(0, np.int64)]
        for number in self._to_read(near, best, allowed):
            rows, values = self._cluster(number)
            cosines[rows] = values @ query
            norms = np.linalg.norm(values, axis=1, keepdims=True)
            vectors[rows] = values / np.where(norms > 0, norms, 1)
            parts.append(rows)
        read = np.sort(np.concatenate(parts))
        return Near(read if allowed is None else read[allowed[read]], cosines, vectors)

    def _to_read(
        self, near: NDArray[np.float64], best: Integers, allowed: NDArray[np.bool_] | None
    ) -> list[int]:
        weights = np.zeros(len(near))
        for position, row in enumerate(best[:FIRST].tolist()):
            if self._clusters[row] >= 0:
                weights[self._clusters[row]] += 1 / (10 + position)
        nearest = np.argsort(-near, kind="stable")
        if allowed is not None:
            nearest = nearest[np.isin(nearest, self._clusters[allowed])]
        chosen: list[int] = nearest[: self._read.near].tolist()
        for number in np.argsort(-weights, kind="stable").tolist():
            if len(chosen) == self._read.near + self._read.further or not weights[number]:
                break
            if number not in chosen:
                chosen.append(number)
        return chosen

    def _cluster(self, number: int) -> tuple[Integers, NDArray[np.float64]]:
        values = self._shard(number)
        steps = self._decode(values["v"], self.dimensions)
        return np.cumsum(decode_varints(values["r"])), steps * self._scales
