"""Collections of Chroma, in a folder or on a server."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from mmap import ACCESS_COPY, mmap
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from kbkit.stores.backend import MissingCollectionError, VectorPayload, VectorStore

if TYPE_CHECKING:
    from chromadb.api.models import Collection as CollectionModule

    Collection: TypeAlias = CollectionModule.Collection

_BATCH = 1_000
HNSW: Any = {"hnsw": {"space": "cosine", "ef_construction": 80, "ef_search": 200}}
"""HNSW parameters. With the default ``ef_construction`` (100), adding takes 4/3 of the time, and
recall@100 on 30,000 chunks of documentation is 0.987 instead of 0.984."""

OF_A_COLLECTION = frozenset(
    (
        "NotFoundError",
        "InvalidArgumentError",
        "InvalidDimensionException",
        "UniqueConstraintError",
        "ChromaError",
    )
)
"""Chroma's errors about missing, existing or incompatible collections."""


class ChromaCollections(VectorStore):
    """A `kbkit.stores.backend.VectorStore` on one of Chroma's clients."""

    def __init__(self) -> None:
        self._collections: dict[str, Collection] = {}

    @abstractmethod
    def _explained(self) -> AbstractContextManager[None]:
        """Convert Chroma's errors to kbkit's."""

    def _changing(self, name: str) -> AbstractContextManager[None]:
        return self._explained()

    @abstractmethod
    def _max_batch(self) -> int: ...

    @abstractmethod
    def _create_collection(self, name: str) -> Collection: ...

    @abstractmethod
    def _open_collection(self, name: str) -> Collection: ...

    @abstractmethod
    def _drop_collection(self, name: str) -> None:
        """Delete a collection, if it exists."""

    def _fitting(self, payload: VectorPayload) -> VectorPayload:
        return payload

    def create(self, name: str, dimensions: int) -> None:
        """Create an empty collection; Chroma takes the dimensions from the first vectors."""
        with self._changing(name):
            self._collections[name] = self._create_collection(name)

    def drop(self, name: str) -> None:
        self._collections.pop(name, None)
        with self._changing(name):
            self._drop_collection(name)

    def count(self, name: str) -> int:
        with self._explained():
            return self._collection(name).count()

    def items(self, name: str) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
        with self._explained():
            collection, most = self._collection(name), min(_BATCH, self._max_batch())
            start = 0
            while True:
                part = collection.get(limit=most, offset=start, include=["embeddings"])
                if not part["ids"]:
                    return
                yield list(part["ids"]), np.asarray(part["embeddings"], np.float32)
                start += most

    def upsert(
        self,
        name: str,
        ids: Sequence[str],
        vectors: NDArray[np.float32],
        payloads: Sequence[VectorPayload] | None = None,
    ) -> None:
        """Store vectors, replacing those with the same ids; payloads make this 3 times slower."""
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
        with self._changing(name):
            for part in self._parts(len(ids)):
                self._collection(name).delete(ids=list(ids[part]))

    def nearest(self, name: str, query: NDArray[np.float32], k: int) -> list[str]:
        with self._explained():
            result = self._collection(name).query(
                query_embeddings=query[None, :], n_results=k, include=[]
            )
            return list(result["ids"][0])

    def _collection(self, name: str) -> Collection:
        collection = self._collections.get(name)
        if collection is None:
            try:
                collection = self._collections[name] = self._open_collection(name)
            except Exception as error:
                if str(error) != f"Collection [{name}] does not exist":
                    raise
                raise MissingCollectionError(f"Chroma has no collection {name}") from error
        return collection

    def _parts(self, count: int) -> Iterator[slice]:
        most = self._max_batch()
        return (slice(start, start + most) for start in range(0, count, most))


def _metadata(payload: VectorPayload) -> dict[str, Any]:
    return {name: value for name, value in payload.metadata.items() if value != []}


def import_chromadb() -> ModuleType:
    """Import chromadb without rfc3987-syntax, which jsonschema would import for 2 seconds.

    JupyterLab installs it; jsonschema works without it.
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


_LIST = "checksums.json"
_WRITING = "checksums.writing"
"""Names of collections being written, one per line."""
_DATABASE = "chroma.sqlite3"
_SAVED = "index_metadata.pickle"
"""File next to a saved HNSW graph; Chroma saves after each thousand vectors."""
_FORMAT = 1
_COUNTERS = ((24, 28), (92, 100))
"""Byte ranges of counters in SQLite's header that change with each commit."""
_OPENED = "acquire_write"
"""Table of Chroma's database that gets a row each time it is opened."""
_FOLDERS = """
    SELECT segments.id, collections.name FROM segments
    JOIN collections ON collections.id = segments.collection WHERE segments.scope = 'VECTOR'
"""

Span = tuple[int, int]
_Stamp = tuple[int, ...]


@dataclass(slots=True)
class FolderChecksums:
    """Checksums of the files in a folder since kbkit's last write; callers hold the write lock."""

    folder: Path
    _read: dict[str, tuple[_Stamp, tuple[Span, ...], int]] = field(default_factory=dict)

    def fault(self) -> str:
        """Return a fault of the files, empty if they match; unchanged files are read once."""
        files = self._files()
        if not files:
            return ""
        noted = self._noted_checksums()
        if noted is None:
            return "has no checksums that can be read"
        for name in sorted(noted.keys() | set(files)):
            if name not in files:
                return f"lacks {name}"
            if name not in noted:
                return f"has {name}, which kbkit did not write"
            if not self._is_as_left(name, noted[name]):
                return f"has {name} not as it was written"
        return ""

    def harmed(self) -> frozenset[str] | None:
        """Return the collections that changed or were being written; ``None`` if all may be."""
        noted, writing = self._noted_checksums(), self.being_written()
        if noted is None:
            return None
        files = set(self._files())
        changed = {
            name
            for name in noted.keys() | files
            if name not in files or name not in noted or not self._is_as_left(name, noted[name])
        }
        beside = {name for name in changed if "/" not in name}
        if beside and not (writing and all(name.startswith(_DATABASE) for name in beside)):
            return None
        of_folder = self._collections()
        if of_folder is None:
            return None
        folders = {name.partition("/")[0] for name in changed - beside}
        return writing | {of_folder[folder] for folder in folders if folder in of_folder}

    def discard(self, names: frozenset[str]) -> None:
        of_folder = self._collections() or {}
        for path in self.folder.iterdir():
            if path.is_dir() and of_folder.get(path.name) in {None, *names}:
                shutil.rmtree(path)

    def begin(self, name: str) -> None:
        with (self.folder / _WRITING).open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")

    def being_written(self) -> frozenset[str]:
        try:
            return frozenset((self.folder / _WRITING).read_text(encoding="utf-8").split())
        except (FileNotFoundError, UnicodeDecodeError):
            return frozenset()

    def _noted_checksums(self) -> dict[str, tuple[int, tuple[Span, ...]]] | None:
        """Return CRC-32 and ignored spans of each file; ``None`` if unreadable."""
        try:
            values = json.loads((self.folder / _LIST).read_bytes())
            if values["format"] != _FORMAT:
                return None
            return {
                str(name): (int(crc), tuple((int(start), int(end)) for start, end in left_out))
                for name, (crc, left_out) in values["files"].items()
            }
        except (OSError, KeyError, TypeError, ValueError, RecursionError):
            return None

    def _is_as_left(self, name: str, expected: tuple[int, tuple[Span, ...]]) -> bool:
        crc, left_out = expected
        return self._crc(name, left_out) == crc

    def _collections(self) -> dict[str, str] | None:
        # mode=rw lets SQLite roll back a transaction that a kill interrupted
        uri = f"{(self.folder / _DATABASE).absolute().as_uri()}?mode=rw"
        try:
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                if connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
                    return None
                return dict(connection.execute(_FOLDERS).fetchall())
        except (sqlite3.Error, UnicodeDecodeError):
            return None

    def keep(self) -> None:
        values = {}
        for name in self._files():
            left_out = _left_out(self.folder / name) if name == _DATABASE else ()
            values[name] = (self._crc(name, left_out), left_out)
        for name in self._read.keys() - values.keys():
            del self._read[name]
        text = json.dumps({"format": _FORMAT, "files": values})
        path = self.folder / _LIST
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            part = path.with_suffix(f".{uuid4().hex}.part")
            try:
                part.write_text(text, encoding="utf-8")
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
        (self.folder / _WRITING).unlink(missing_ok=True)

    def _files(self) -> list[str]:
        # leaves out unsaved graphs, whose files Chroma rewrites whenever it opens them
        saved = {path.parent for path in self.folder.glob(f"*/{_SAVED}")}
        return [
            path.relative_to(self.folder).as_posix()
            for path in self.folder.rglob("*")
            if not path.is_dir()
            and not path.name.startswith(_LIST.partition(".")[0])
            and (path.parent == self.folder or path.parent in saved)
        ]

    def _crc(self, name: str, left_out: Sequence[Span]) -> int:
        path = self.folder / name
        stamp = _stamp(path)
        spans = tuple(left_out)
        cached = self._read.get(name)
        if cached is not None and cached[:2] == (stamp, spans):
            return cached[2]
        with path.open("rb") as file, _mapped(file) as data:
            for low, high in spans:
                data[low:high] = bytes(len(data[low:high]))
            crc = zlib.crc32(data)
        self._read[name] = stamp, spans, crc
        return crc


def _mapped(file: BinaryIO) -> AbstractContextManager[mmap | bytearray]:
    """Map a file; changes stay in memory. An empty file cannot be mapped."""
    if not os.fstat(file.fileno()).st_size:
        return nullcontext(bytearray())
    return mmap(file.fileno(), 0, access=ACCESS_COPY)


def _stamp(path: Path) -> _Stamp:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _left_out(path: Path) -> tuple[Span, ...]:
    """Return the spans that change when Chroma opens the database."""
    query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            row = connection.execute(query, (_OPENED,)).fetchone()
            size = connection.execute("PRAGMA page_size").fetchone()[0]
    except sqlite3.Error as error:
        raise OSError(f"{path}: {error}") from error
    opened = ((size * (row[0] - 1), size * row[0]),) if row else ()
    return (*_COUNTERS, *opened)
