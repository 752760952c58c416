"""Vectors in Chroma: a folder of collections, opened for this process.

Chroma's persistent client is made for one process: what it opened knows nothing of what others
write afterwards, until it is opened afresh.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from kbkit.errors import WorkspaceError
from kbkit.stores.chroma.collections import HNSW, ChromaCollections, import_chromadb

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

    from kbkit.stores.chroma.collections import Collection


class ChromaStore(ChromaCollections):
    """A `kbkit.stores.vector_store.VectorStore` in a folder.

    chromadb itself shares one system for each folder and process, so there is one of these for
    each folder: `ChromaStore.of` gives it.

    Args:
        folder: Of the collections.
    """

    suffix = ""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._client: ClientAPI | None = None

    @classmethod
    def of(cls, folder: Path) -> ChromaStore:
        """The one of a folder, as long as anybody has it."""
        with _stores_mutex:
            found = _stores.get(folder)
            if found is None:
                found = _stores[folder] = cls(folder)
            return found

    def close(self) -> None:
        """Close the client; the next call opens one again."""
        if self._client is not None:
            self._client.close()  # type: ignore[attr-defined]  # its stubs lack it
        self._client = None
        self._collections.clear()

    def reopen(self) -> None:
        """Open the client afresh.

        A folder that cannot be opened is half written or damaged; what it held is derived from
        the catalog, so it is emptied.
        """
        self.close()
        chromadb = import_chromadb()
        settings = chromadb.config.Settings(anonymized_telemetry=False)
        with self._explained():
            try:
                self._client = chromadb.PersistentClient(str(self.folder), settings=settings)
            except Exception:
                # chromadb would hand the half-started system out again
                systems = chromadb.api.shared_system_client.SharedSystemClient
                systems._identifier_to_system.pop(str(self.folder), None)
                shutil.rmtree(self.folder, ignore_errors=True)
                self._client = chromadb.PersistentClient(str(self.folder), settings=settings)

    def _opened(self) -> ClientAPI:
        if self._client is None:
            self.reopen()
        assert self._client is not None
        return self._client

    def _most(self) -> int:
        return self._opened().get_max_batch_size()

    def _made(self, name: str) -> Collection:
        # its default embedding function would download a model
        return self._opened().create_collection(name, embedding_function=None, configuration=HNSW)

    def _found(self, name: str) -> Collection:
        return self._opened().get_collection(name, embedding_function=None)

    def _dropped(self, name: str) -> None:
        client = self._opened()
        if any(collection.name == name for collection in client.list_collections()):
            client.delete_collection(name)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Chroma raises errors of many kinds for a folder that is damaged or out of date."""
        try:
            yield
        except WorkspaceError:
            raise
        except Exception as error:
            raise WorkspaceError(
                f"{self.folder}: Chroma failed ({type(error).__name__}: {error}); remove that "
                "folder to have it made anew from the catalog"
            ) from error


_stores: WeakValueDictionary[Path, ChromaStore] = WeakValueDictionary()
_stores_mutex = threading.Lock()
