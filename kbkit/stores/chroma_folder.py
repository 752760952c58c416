"""Vectors in a folder of Chroma.

Chroma's persistent client shows writes of other processes only after it is opened again.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from kbkit.errors import StoreUnreachableError, WorkspaceError
from kbkit.stores import backend
from kbkit.stores.backend import Damage
from kbkit.stores.chroma_collections import (
    HNSW,
    OF_A_COLLECTION,
    ChromaCollections,
    FolderChecksums,
    import_chromadb,
)

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.config import Settings

    from kbkit.stores.chroma_collections import Collection

_log = logging.getLogger(__name__)


class ChromaStore(ChromaCollections):
    """A `kbkit.stores.backend.VectorStore` in a folder; see `ChromaStore.of`."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._client: ClientAPI | None = None
        self._checksums = FolderChecksums(folder)
        self._writing: set[str] = set()
        self._failed = False

    @classmethod
    def of(cls, folder: Path) -> ChromaStore:
        with _stores_mutex:
            store = _stores.get(folder)
            if store is None:
                store = _stores[folder] = cls(folder)
            return store

    def close(self) -> None:
        with suppress(OSError):
            self._keep()
        if self._client is not None:
            with self._explained():
                self._client.close()  # type: ignore[attr-defined]  # its stubs lack it
        self._client = None
        self._collections.clear()

    def reopen(self) -> None:
        """Open the client again.

        Damaged files would crash Chroma's native code, so checksums are compared first. Changed
        collections are dropped, or the folder is deleted; the catalog has all data.
        """
        with suppress(WorkspaceError):  # a failed client may fail again
            self.close()
        self._client = None
        self._failed = False
        self._writing.clear()
        if self.folder.exists() and not self.folder.is_dir():
            raise StoreUnreachableError(
                f"{self.folder}: a file is where kbkit keeps the folder of vectors; move it away"
            )
        import_chromadb()
        with self._explained():
            damage = self._damage()
            if damage is not None and damage.collections is None:
                self._empty(damage.fault)
            elif damage is not None:
                self._discard(damage.fault, damage.collections or frozenset())
            try:
                self._open()
            except BaseException as error:
                if _kind(error) is not _Kind.DAMAGED:
                    raise
                self._empty(f"cannot be opened ({type(error).__name__})")
                self._open()
            harmed = damage.collections if damage is not None else None
            for name in harmed or ():
                self._drop_collection(name)
            self._checksums.keep()

    def damage(self) -> Damage | None:
        with self._explained():
            return self._damage()

    def _damage(self) -> Damage | None:
        fault = self._checksums.fault()
        return Damage(fault, self._checksums.harmed()) if fault else None

    def settle(self) -> None:
        """Record checksums for the next process."""
        with self._explained():
            self._keep()

    def _keep(self) -> None:
        if self._writing and not self._failed:
            self._checksums.keep()
        self._writing.clear()

    def _open(self) -> None:
        chromadb = import_chromadb()
        settings = _settings().model_copy()
        try:
            self._client = chromadb.PersistentClient(str(self.folder), settings=settings)
        except BaseException:
            self._forget()
            raise

    def _forget(self) -> None:
        systems = import_chromadb().api.shared_system_client.SharedSystemClient
        systems._identifier_to_system.pop(str(self.folder), None)

    def _empty(self, fault: str) -> None:
        self._forget()
        _log.warning("%s %s; it is rebuilt from the catalog", self.folder, fault)
        backend.note_repair(self.folder.parent, "index", f"the index of vectors {fault}")
        shutil.rmtree(self.folder)

    def _discard(self, fault: str, names: frozenset[str]) -> None:
        named = ", ".join(sorted(names)) or "unknown files"
        _log.warning(
            "%s %s; of its collections %s rebuilt from the catalog",
            self.folder,
            fault,
            f"{named} {'is' if len(names) == 1 else 'are'}",
        )
        if names - self._checksums.being_written():  # interrupted writes are not damage
            backend.note_repair(self.folder.parent, "index", f"the index of vectors {fault}")
        self._forget()
        self._checksums.discard(names)

    def _opened(self) -> ClientAPI:
        if self._client is None:
            self.reopen()
        assert self._client is not None
        return self._client

    def _max_batch(self) -> int:
        return self._opened().get_max_batch_size()

    def _create_collection(self, name: str) -> Collection:
        # the default embedding function would download a model
        return self._opened().create_collection(name, embedding_function=None, configuration=HNSW)

    def _open_collection(self, name: str) -> Collection:
        client = self._opened()
        if not self._writing:  # opening reads the files
            self._check()
        return client.get_collection(name, embedding_function=None)

    def _drop_collection(self, name: str) -> None:
        client = self._opened()
        if any(collection.name == name for collection in client.list_collections()):
            client.delete_collection(name)

    @contextmanager
    def _changing(self, name: str) -> Iterator[None]:
        with self._explained():
            self._opened()
            if not self._writing:
                self._check()
            if name not in self._writing:
                self._checksums.begin(name)
                self._writing.add(name)
            yield

    def _check(self) -> None:
        if fault := self._checksums.fault():
            self._failed = True
            raise WorkspaceError(f"{self.folder} {fault}; opening it afresh mends that")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except WorkspaceError:
            raise
        except BaseException as error:
            kind = _kind(error)
            if kind is None:
                raise
            self._failed = self._failed or kind is not _Kind.REFUSED
            if kind is _Kind.UNUSABLE:
                raise StoreUnreachableError(
                    f"{self.folder}: {_message(error)}; written data is kept and searchable, and "
                    "is passed on with a later write: free some space, or let kbkit write there"
                ) from error
            raise WorkspaceError(
                f"{self.folder}: Chroma failed ({type(error).__name__}: {_message(error)}); "
                "`kbkit rebuild` rebuilds it from the catalog"
            ) from error


@lru_cache(maxsize=1)
def _settings() -> Settings:
    settings: Settings = import_chromadb().config.Settings(anonymized_telemetry=False)
    return settings


class _Kind(Enum):
    """Kinds of errors by their meaning for the folder."""

    REFUSED = auto()
    """A collection is missing, exists already, or has other dimensions."""
    DAMAGED = auto()
    UNUSABLE = auto()
    """The disk is full or read-only; no data is lost."""


def _kind(error: BaseException) -> _Kind | None:
    # a panic of Chroma's Rust code is a BaseException
    if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
        return None
    text = str(error).lower()
    if isinstance(error, OSError) or any(sign in text for sign in _UNUSABLE):
        return _Kind.UNUSABLE
    if type(error).__name__ in OF_A_COLLECTION:
        return _Kind.REFUSED
    return _Kind.DAMAGED


_UNUSABLE = (
    "disk is full",
    "no space left",
    "os error 28",
    "permission denied",
    "readonly database",
    "read-only file system",
    "unable to open database file",
    "disk i/o error",
)
_MAX_LENGTH = 200


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split())[:_MAX_LENGTH]


_stores: WeakValueDictionary[Path, ChromaStore] = WeakValueDictionary()
_stores_mutex = threading.Lock()
