"""Collections of Chroma, in a folder or on a server."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kbkit.stores.vector_store import Damage, MissingCollectionError, VectorPayload

if TYPE_CHECKING:
    from chromadb.api.models import Collection as CollectionModule

    Collection: TypeAlias = CollectionModule.Collection

_READ = 1_000
"""Vectors of a batch."""
HNSW: Any = {"hnsw": {"space": "cosine", "ef_construction": 80, "ef_search": 200}}
"""HNSW parameters. With this construction effort adding takes three quarters of the time of
Chroma's default (100); recall@100 on 30,000 chunks of documentation is 0.984 instead of 0.987."""

OF_A_COLLECTION = frozenset(
    (
        "NotFoundError",
        "InvalidArgumentError",
        "InvalidDimensionException",
        "UniqueConstraintError",
        "ChromaError",
    )
)
"""Chroma's messages about missing, existing or incompatible collections."""


class ChromaCollections(ABC):
    """A `kbkit.stores.vector_store.VectorStore` by one of Chroma's clients."""

    def __init__(self) -> None:
        self._collections: dict[str, Collection] = {}

    @abstractmethod
    def _explained(self) -> AbstractContextManager[None]:
        """Convert Chroma's errors to kbkit's."""

    def _changing(self, name: str) -> AbstractContextManager[None]:
        return self._explained()

    def damage(self) -> Damage | None:
        return None

    @abstractmethod
    def settle(self) -> None:
        """Note that what was written is whole."""

    @abstractmethod
    def _most(self) -> int:
        """Records that one call may have."""

    @abstractmethod
    def _made(self, name: str) -> Collection:
        """Make a collection."""

    @abstractmethod
    def _found(self, name: str) -> Collection:
        """One that is there."""

    @abstractmethod
    def _dropped(self, name: str) -> None:
        """Delete one, if it is there."""

    def _fitting(self, payload: VectorPayload) -> VectorPayload:
        return payload

    def create(self, name: str, dimensions: int) -> None:
        """Create an empty collection; Chroma takes the dimensions from the first vectors."""
        with self._changing(name):
            self._collections[name] = self._made(name)

    def drop(self, name: str) -> None:
        """Delete a collection; does nothing if there is none."""
        self._collections.pop(name, None)
        with self._changing(name):
            self._dropped(name)

    def count(self, name: str) -> int:
        with self._explained():
            return self._collection(name).count()

    def items(self, name: str) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
        with self._explained():
            collection, most = self._collection(name), min(_READ, self._most())
            start = 0
            while True:
                found = collection.get(limit=most, offset=start, include=["embeddings"])
                if not found["ids"]:
                    return
                yield list(found["ids"]), np.asarray(found["embeddings"], np.float32)
                start += most

    def upsert(
        self,
        name: str,
        ids: Sequence[str],
        vectors: NDArray[np.float32],
        payloads: Sequence[VectorPayload] | None = None,
    ) -> None:
        """Store vectors, replacing those with the same ids.

        Without payloads Chroma adds more than three times as many a second.
        """
        with self._changing(name):
            for part in self._parts(len(ids)):
                beside = [self._fitting(each) for each in payloads[part]] if payloads else None
                self._collection(name).upsert(
                    ids=list(ids[part]),
                    embeddings=vectors[part],
                    metadatas=[_metadata(each) for each in beside] if beside else None,
                    documents=[each.text for each in beside] if beside else None,
                )

    def delete(self, name: str, ids: Sequence[str]) -> None:
        """Delete vectors; ids that are not there are passed over."""
        with self._changing(name):
            for part in self._parts(len(ids)):
                self._collection(name).delete(ids=list(ids[part]))

    def nearest(self, name: str, query: NDArray[np.float32], k: int) -> list[str]:
        """Ids of the ``k`` vectors nearest to a unit vector, nearest first; fewer if there are."""
        with self._explained():
            result = self._collection(name).query(
                query_embeddings=query[None, :], n_results=k, include=[]
            )
            return list(result["ids"][0])

    def _collection(self, name: str) -> Collection:
        found = self._collections.get(name)
        if found is None:
            try:
                found = self._collections[name] = self._found(name)
            except Exception as error:
                if str(error) != f"Collection [{name}] does not exist":
                    raise
                raise MissingCollectionError(f"Chroma has no collection {name}") from error
        return found

    def _parts(self, count: int) -> Iterator[slice]:
        most = self._most()
        return (slice(start, start + most) for start in range(0, count, most))


def _metadata(payload: VectorPayload) -> dict[str, Any]:
    return {name: value for name, value in payload.metadata.items() if value != []}


def import_chromadb() -> ModuleType:
    """Import chromadb without the grammars that its import may bring.

    chromadb imports jsonschema, which, where JupyterLab has installed rfc3987-syntax, compiles
    38 grammars to check IRIs: 2 seconds for something that nothing here uses. jsonschema does
    without that package when it is missing, so it is hidden for the moment.
    """
    slow = "rfc3987_syntax"
    hide = slow not in sys.modules
    if hide:
        sys.modules[slow] = None  # type: ignore[assignment]  # documented: makes import fail
    try:
        import chromadb
        import chromadb.api.shared_system_client
        import chromadb.config
    finally:
        if hide:
            del sys.modules[slow]
    return chromadb
