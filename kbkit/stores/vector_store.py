"""The interface of vector stores; implementations pass `VectorStoreConformance` of the tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.errors import WorkspaceError


@dataclass(frozen=True, slots=True)
class VectorPayload:
    """Text and metadata of a vector, for other readers of the store."""

    text: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Damage:
    """Files of a store that changed without kbkit.

    Attributes:
        fault: A predicate for messages: ``has a file not as it was written``.
        collections: Lost collections; ``None`` if all may be lost.
    """

    fault: str
    collections: frozenset[str] | None

    def costs(self, name: str) -> bool:
        return self.collections is None or name in self.collections


class VectorStore:
    """Named collections of vectors, by id, searched by cosine.

    It is rebuilt from the catalog if lost. Calls are serialised. This base class stores nothing.

    Attributes:
        suffix: End of its collection names, after a dot; others belong to another store.

    Raises:
        StoreUnreachableError: The server is unreachable.
        WorkspaceError: Other errors; the caller opens the store again or rebuilds the collection.
    """

    suffix = ""

    def reopen(self) -> None:
        """Show writes of other processes; the caller holds the write lock."""

    def settle(self) -> None:
        """Record that writes are complete, before others open the store."""

    def damage(self) -> Damage | None:
        """Return what `reopen` would drop or rebuild; the caller holds the write lock."""

    def close(self) -> None:
        """Close the store; the next call opens it again."""

    def create(self, name: str, dimensions: int) -> None:
        """Create an empty collection."""

    def drop(self, name: str) -> None:
        """Delete a collection, if it exists."""

    def count(self, name: str) -> int:
        """Return the number of vectors in a collection."""
        return sys.maxsize

    def items(self, name: str) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
        """Yield ids and vectors (not necessarily of the stored length) in batches."""
        return iter(())

    def upsert(
        self,
        name: str,
        ids: Sequence[str],
        vectors: NDArray[np.float32],
        payloads: Sequence[VectorPayload] | None = None,
    ) -> None:
        """Store vectors, replacing those with the same ids."""

    def delete(self, name: str, ids: Sequence[str]) -> None:
        """Delete vectors; unknown ids are ignored."""

    def nearest(self, name: str, query: NDArray[np.float32], k: int) -> list[str]:
        """Return the ids of the at most ``k`` vectors nearest to a unit vector, nearest first."""
        return []


class MissingCollectionError(WorkspaceError):
    """A collection is missing from the store."""


def suffix_of(collection: str) -> str:
    """Return the suffix of a collection name ``NAME.ID.SUFFIX``."""
    return collection.partition(".")[2].partition(".")[2]


class CatalogVectors(VectorStore):
    """No index: searches score all vectors of a catalog on a server."""
