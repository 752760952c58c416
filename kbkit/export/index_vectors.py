"""Vectors of a published index, read by cluster."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding import Vector
from kbkit.errors import ConfigError
from kbkit.export.index_packing import Integers, decode_bytes, decode_nibbles, decode_varints
from kbkit.export.index_terms import UNIT, utf16_key
from kbkit.export.index_writer import KINDS
from kbkit.models import DocumentState, Filters, SubjectKind
from kbkit.text import subject_key

FIRST = 50
"""Number of best rows by words that select further clusters."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """Number of clusters that a query reads.

    Attributes:
        further: Clusters with the best rows by words, each weighted ``1 / (10 + its place)``.
    """

    near: int
    further: int


CLUSTERS = {
    "v": Clusters(near=4, further=6),
    "c": Clusters(near=2, further=1),
    "e": Clusters(near=8, further=4),  # in browsers with the model, whose vectors are better
}
"""Clusters that a query reads, by kind of shard."""


@dataclass(frozen=True, slots=True)
class Near:
    """Result of a search over clusters of vectors.

    Attributes:
        cosines: Cosines with the query, shape ``(n,)``; those of centroids for unread vectors.
        vectors: Unit vectors, zeros for unread ones; shape ``(n, dimensions)``.
    """

    rows: Integers
    cosines: NDArray[np.float64]
    vectors: NDArray[np.float32]


class IndexVectors:
    """The vectors of chunks, or of summaries; `kind` is that of their shards."""

    def __init__(
        self,
        about: Mapping[str, Any],
        rows: int,
        kind: str,
        shard: Callable[[str], Mapping[str, Any]],
    ) -> None:
        self.dimensions: int = about.get("dimensions", 0)
        self.modelled: bool = about.get("model", False)
        """Whether the browsers' model embeds queries for them."""
        self._rows, self._kind, self._shard, self._read = rows, kind, shard, CLUSTERS[kind]
        self._scales = np.array(about.get("scales", ()))
        # -1 without a vector
        self._clusters = decode_varints(about["clusters"]) - 1 if about else np.full(rows, -1)
        steps = np.array(about.get("steps", ()))
        centroids = decode_nibbles(about.get("centroids", ""), max(1, self.dimensions))
        self._centroids = centroids * (steps / UNIT)[:, None]

    @property
    def has_vector(self) -> NDArray[np.bool_]:
        return np.asarray(self._clusters >= 0)

    def projected(self, vector: Vector, axes: Mapping[str, Any]) -> NDArray[np.float64]:
        return np.asarray(decode_bytes(axes["v"], len(vector)) @ vector * np.array(axes["s"]))

    def near(
        self, query: NDArray[np.float64], best: Integers, allowed: NDArray[np.bool_] | None = None
    ) -> Near:
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
        # rounded, since browsers sum in another order
        nearest = np.argsort(-np.rint(near * 1e9), kind="stable")
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
        values = self._shard(f"{self._kind}/{number}")
        decode = decode_bytes if self._kind == "e" else decode_nibbles
        steps = decode(values["v"], self.dimensions)
        return np.cumsum(decode_varints(values["r"])), steps * self._scales


Mask = NDArray[np.bool_]

_FIELDS = frozenset(
    {"document_type", "tags", "min_rating", "after", "state", "frame", "subject", "entity"}
)
"""Conditions that a published index supports."""


class IndexFilters:
    """The filters of one index."""

    def __init__(
        self, core: Mapping[str, Any], owners: Integers, shard: Callable[[str], Mapping[str, Any]]
    ) -> None:
        self._core, self._owners, self._shard = core, owners, shard

    def mask(self, filters: Filters) -> Mask | None:
        """Return the mask of filters; ``None`` without filters."""
        if not filters:
            return None
        for field in fields(filters):
            if field.name not in _FIELDS and getattr(filters, field.name) not in ((), "", None):
                names = ", ".join(sorted(_FIELDS))
                raise ConfigError(f"filters: a published index has no {field.name}; it has {names}")
        mask = self._documents(filters)[self._owners]
        if filters.frame:
            mask = mask & self._stating([frame.value for frame in filters.frame])
        for name in filters.subject:
            mask = mask & self._speaking(name, KINDS)
        for name in filters.entity:
            mask = mask & self._speaking(name, [SubjectKind.ENTITY])
        return mask

    def _documents(self, filters: Filters) -> Mask:
        core = self._core
        days = decode_varints(core["days"])
        mask = np.ones(len(days), np.bool_)
        if filters.document_type:
            kinds = [
                core["kinds"].index(kind) for kind in filters.document_type if kind in core["kinds"]
            ]
            mask &= np.isin(decode_varints(core["kind"]), kinds)
        for tag in filters.tags:
            number = core["tags"].index(tag) if tag in core["tags"] else -1
            mask &= np.array([number in tags for tags in core["tag"]] or [False] * len(mask))
        if filters.min_rating is not None:
            ratings = np.zeros(len(mask))
            for owner, rating in core["ratings"]:
                ratings[owner] = rating
            mask &= ratings >= filters.min_rating
        if filters.after is not None:
            epoch = datetime(1970, 1, 1, tzinfo=UTC)
            after = filters.after if filters.after.tzinfo else filters.after.replace(tzinfo=UTC)
            midnight = datetime.combine(after.astimezone(UTC).date(), time(), UTC)
            mask &= days >= (midnight - epoch).days
        if filters.state:
            stale = np.isin(np.arange(len(mask)), core["stale"])
            states = {DocumentState.STALE: stale, DocumentState.CURRENT: ~stale}
            mask &= np.any(
                [states.get(state, np.zeros_like(stale)) for state in filters.state], axis=0
            )
        return mask

    def _stating(self, frames: Sequence[str]) -> Mask:
        if "frames" not in self._core:
            return np.zeros(len(self._owners), np.bool_)
        about = self._shard("a")
        bits = sum(1 << place for place, name in enumerate(about["frames"]) if name in frames)
        return np.asarray(decode_varints(about["f"]) & bits > 0)

    def _speaking(self, name: str, kinds: Sequence[SubjectKind]) -> Mask:
        mask = np.zeros(len(self._owners), np.bool_)
        if "frames" not in self._core:
            return mask
        firsts = [utf16_key(first) for first in self._shard("a")["firsts"]]
        keys = {(subject_key(kind, name), KINDS.index(kind)) for kind in kinds}
        for subject, kind in keys:
            number = bisect_right(firsts, utf16_key(subject)) - 1
            if number < 0:
                continue
            values = self._shard(f"s/{number}")
            ends = np.cumsum([0, *values["n"]])
            postings = decode_varints(values["p"])
            for place, key in enumerate(values["k"]):
                if key == subject and values["d"][place] == kind:
                    mask[np.cumsum(postings[ends[place] : ends[place + 1]])] = True
        return mask
