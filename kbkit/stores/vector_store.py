"""The interface of vector stores such as Chroma.

A store passes `VectorStoreConformance` of the tests.
"""

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
    """Text and metadata beside a vector, for other readers of the store."""

    text: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Damage:
    """Files of a store that changed without kbkit.

    Attributes:
        fault: The fault in words, to follow a name: ``has a file not as it was written``.
        collections: Lost collections; ``None`` if all may be.
    """

    fault: str
    collections: frozenset[str] | None

    def costs(self, name: str) -> bool:
        return self.collections is None or name in self.collections


class VectorStore:
    """Named collections of vectors, by id, searched by cosine.

    It holds only what the catalog has, so it may lose all of it. Calls come one at a time. This
    class itself holds nothing.

    Attributes:
        suffix: Ends the names of its collections, behind a dot, where others share the place; empty
            where nobody does. A collection whose name ends otherwise is another store's.

    Raises:
        StoreUnreachableError: The server is away.
        WorkspaceError: Anything else; the caller opens the store again or rebuilds the collection.
    """

    suffix = ""

    def reopen(self) -> None:
        """See writes of other processes; the caller excludes writers."""

    def settle(self) -> None:
        """Record that writes are complete, before others open the store."""

    def damage(self) -> Damage | None:
        """Return what `reopen` would drop or rebuild, if anything; the caller excludes writers."""

    def close(self) -> None:
        """Close the store; the next call opens it again."""

    def create(self, name: str, dimensions: int) -> None:
        """Make an empty collection."""

    def drop(self, name: str) -> None:
        """Delete a collection; does nothing if there is none."""

    def count(self, name: str) -> int:
        """Number of vectors in a collection."""
        return sys.maxsize

    def items(self, name: str) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
        """Iterate over a collection: ids and vectors, in batches.

        Vectors may be of another length than they were given.
        """
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
        """Delete vectors; ids that are not there are passed over."""

    def nearest(self, name: str, query: NDArray[np.float32], k: int) -> list[str]:
        """Ids of the ``k`` vectors nearest to a unit vector, nearest first; fewer if there are."""
        return []


class MissingCollectionError(WorkspaceError):
    """A collection is missing from the store; others may be, too."""


def suffix_of(collection: str) -> str:
    """Return the end of a collection's name; knowledge base names have no dot."""
    return collection.partition(".")[2].partition(".")[2]


class CatalogVectors(VectorStore):
    """Store without an index, for a catalog that many machines share: search scores all vectors."""
