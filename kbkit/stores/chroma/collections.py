"""Collections of Chroma, in a folder or on a server."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from kbkit.stores.vector_store import MissingCollectionError, VectorPayload, VectorStore

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


class ChromaCollections(VectorStore):
    """A `kbkit.stores.vector_store.VectorStore` by one of Chroma's clients."""

    def __init__(self) -> None:
        self._collections: dict[str, Collection] = {}

    @abstractmethod
    def _explained(self) -> AbstractContextManager[None]:
        """Convert Chroma's errors to kbkit's."""

    def _changing(self, name: str) -> AbstractContextManager[None]:
        return self._explained()

    @abstractmethod
    def _most(self) -> int:
        """Records that one call may have."""

    @abstractmethod
    def _made(self, name: str) -> Collection:
        """Make a collection."""

    @abstractmethod
    def _open_collection(self, name: str) -> Collection:
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
        most = self._most()
        return (slice(start, start + most) for start in range(0, count, most))


def _metadata(payload: VectorPayload) -> dict[str, Any]:
    return {name: value for name, value in payload.metadata.items() if value != []}


def import_chromadb() -> ModuleType:
    """Import chromadb without compiling 38 grammars for IRIs, which takes 2 seconds.

    jsonschema does so where JupyterLab has installed rfc3987-syntax, and works without it.
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
"""Names of collections being written, one a line."""
_DATABASE = "chroma.sqlite3"
_SAVED = "index_metadata.pickle"
"""Beside a graph that was saved, which Chroma does for each thousand vectors."""
_FORMAT = 1
_AT_ONCE = 1 << 20
_COUNTERS = ((24, 28), (92, 100))
"""Counters in SQLite's header, which change with each commit."""
_OPENED = "acquire_write"
"""The table of Chroma's database that has a row for each time it was opened, by anybody."""
_FOLDERS = """
    SELECT segments.id, collections.name FROM segments
    JOIN collections ON collections.id = segments.collection WHERE segments.scope = 'VECTOR'
"""

Span = tuple[int, int]
_Stamp = tuple[int, ...]


@dataclass(slots=True)
class FolderChecksums:
    """Checksums of the files in a folder since kbkit's last write.

    Calls come one at a time, while no other process of kbkit opens or writes the folder.
    """

    folder: Path
    _read: dict[str, tuple[_Stamp, tuple[Span, ...], int]] = field(default_factory=dict)

    def fault(self) -> str:
        """Return a fault of the files in words; empty if they match.

        A file that this process has read, and that has not been touched since, is not read again.
        """
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
        """Names of the collections that are not as they were left, or were being written.

        ``None`` where more than some collections may be harmed, or it cannot be told which.
        """
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
        """The collection of each folder of a graph; ``None`` where the database is damaged.

        SQLite takes back what a kill has left half written in it.
        """
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
        """Paths in the folder of all files that are Chroma's, and read.

        Those of a graph that was never saved are written each time it is opened.
        """
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
        crc = start = 0
        with path.open("rb") as file:
            while data := file.read(_AT_ONCE):
                crc = zlib.crc32(_blanked(data, start, spans), crc)
                start += len(data)
        self._read[name] = stamp, spans, crc
        return crc


def _blanked(data: bytes, start: int, spans: Sequence[Span]) -> bytes | bytearray:
    inside = [
        (max(0, low - start), min(len(data), high - start))
        for low, high in spans
        if low < start + len(data) and high > start
    ]
    if not inside:
        return data
    blanked = bytearray(data)
    for low, high in inside:
        blanked[low:high] = bytes(high - low)
    return blanked


def _stamp(path: Path) -> _Stamp:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _left_out(path: Path) -> tuple[Span, ...]:
    """Return the spans that opening the database changes, so that Chroma itself may open it."""
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
