"""Vectors in a folder of Chroma.

Chroma's persistent client shows writes of other processes only after it is opened again.
"""

from __future__ import annotations

import json
import logging
import shutil
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kbkit.errors import StoreUnreachableError, WorkspaceError
from kbkit.paths import replacing
from kbkit.stores.backend import CollectionError
from kbkit.stores.chroma_collections import OF_A_COLLECTION, ChromaCollections, import_chromadb

if TYPE_CHECKING:
    from chromadb.config import Settings

    from kbkit.stores.chroma_collections import Collection

_log = logging.getLogger(__name__)


class ChromaStore(ChromaCollections):
    """A `kbkit.stores.backend.VectorStore` in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._checksums = FolderChecksums(folder)
        self._writing = False
        self._failed = False

    def close(self) -> None:
        with suppress(OSError):
            self._keep()
        if self._api is not None:
            with self._explain_errors():
                self._api._system.stop()
        self._api = None
        self._collections.clear()

    def reopen(self) -> None:
        """Open the client again.

        Damaged files would crash Chroma's native code, so checksums are compared first. A folder
        that changed, such as by an interrupted write, is deleted; the catalog has all data.
        """
        with suppress(WorkspaceError):  # a failed client may fail again
            self.close()
        self._api = None
        self._failed = self._writing = False
        if self.folder.exists() and not self.folder.is_dir():
            raise StoreUnreachableError(
                f"{self.folder}: a file is where kbkit keeps the folder of vectors; move it away"
            )
        import_chromadb()
        with self._explain_errors():
            if fault := self._checksums.fault():
                self._empty(fault)
            try:
                self._open()
            except BaseException as error:
                if _kind(error) != "damaged":
                    raise
                self._empty(f"cannot be opened ({type(error).__name__})")
                self._open()
            self._checksums.keep()

    def damage(self) -> str:
        with self._explain_errors():
            return self._checksums.fault()

    def settle(self) -> None:
        """Record checksums for the next process."""
        with self._explain_errors():
            self._keep()

    def _keep(self) -> None:
        if self._writing and not self._failed:
            self._checksums.keep()
        self._writing = False

    def _open(self) -> None:
        chromadb = import_chromadb()
        settings = _settings().model_copy(update={"persist_directory": str(self.folder)})
        system = chromadb.config.System(settings)
        api = system.instance(chromadb.api.ServerAPI)
        system.start()
        self._api = api

    def _empty(self, fault: str) -> None:
        _log.warning("%s %s; it is rebuilt from the catalog", self.folder, fault)
        shutil.rmtree(self.folder)

    def _connect(self) -> Any:
        if self._api is None:
            self.reopen()
        return self._api

    def _collection(self, name: str) -> Collection:
        self._connect()
        if name not in self._collections and not self._writing:  # opening reads the files
            self._check()
        return super()._collection(name)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._explain_errors():
            self._connect()
            if not self._writing:
                self._check()
                self._writing = True
            yield

    def _check(self) -> None:
        if fault := self._checksums.fault():
            self._failed = True
            raise CollectionError(f"{self.folder} {fault}; opening it again repairs that")

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except WorkspaceError:
            raise
        except BaseException as error:
            kind = _kind(error)
            if kind is None:
                raise
            self._failed = self._failed or kind != "refused"
            if kind == "unusable":
                raise StoreUnreachableError(
                    f"{self.folder}: {_message(error)}; written data is kept and searchable, and "
                    "is passed on with a later write: free some space, or let kbkit write there"
                ) from error
            raise CollectionError(
                f"{self.folder}: Chroma failed ({type(error).__name__}: {_message(error)}); "
                "`kbkit rebuild` rebuilds it from the catalog"
            ) from error


@lru_cache(maxsize=1)
def _settings() -> Settings:
    chromadb = import_chromadb()
    return chromadb.config.Settings(anonymized_telemetry=False, is_persistent=True)


# refused: a collection is missing, exists already, or has other dimensions
# unusable: the disk is full or read-only; no data is lost
def _kind(error: BaseException) -> Literal["refused", "damaged", "unusable"] | None:
    # a panic of Chroma's Rust code is a BaseException
    if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
        return None
    text = str(error).lower()
    if isinstance(error, OSError) or any(sign in text for sign in _UNUSABLE):
        return "unusable"
    if type(error).__name__ in OF_A_COLLECTION:
        return "refused"
    return "damaged"


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


_LIST = "checksums.json"
_DATABASE = "chroma.sqlite3"
_SAVED = "index_metadata.pickle"
"""File next to a saved HNSW graph; Chroma saves after each thousand vectors."""
_FORMAT = 1
_AT_ONCE = 1 << 20
_COUNTERS = ((24, 28), (92, 100))
"""Byte ranges of counters in SQLite's header that change with each commit."""
_OPENED = "acquire_write"
"""Table of Chroma's database that gets a row each time it is opened."""
Span = tuple[int, int]
_Stamp = tuple[int, ...]


@dataclass(slots=True)
class FolderChecksums:
    """Checksums of the files in a folder since kbkit's last write; callers hold the write lock."""

    folder: Path
    _cached: dict[str, tuple[_Stamp, tuple[Span, ...], int]] = field(default_factory=dict)

    def fault(self) -> str:
        """Return a fault of the files, empty if they match; unchanged files are read once."""
        files = set(self._files())
        if not files:
            return ""
        try:
            values = json.loads((self.folder / _LIST).read_bytes())
            if values["format"] != _FORMAT:
                raise ValueError("another version")
            checksums = {
                str(name): (int(crc), tuple((int(start), int(end)) for start, end in left_out))
                for name, (crc, left_out) in values["files"].items()
            }
        except (OSError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
            return "has no checksums that can be read"
        for name in sorted(checksums.keys() | files):
            if name not in files:
                return f"lacks {name}"
            if name not in checksums:
                return f"has {name}, which kbkit did not write"
            if self._crc(name, checksums[name][1]) != checksums[name][0]:
                return f"has {name} not as it was written"
        return ""

    def keep(self) -> None:
        values = {}
        for name in self._files():
            left_out = _ignored_spans(self.folder / name) if name == _DATABASE else ()
            values[name] = (self._crc(name, left_out), left_out)
        for name in self._cached.keys() - values.keys():
            del self._cached[name]
        text = json.dumps({"format": _FORMAT, "files": values})
        path = self.folder / _LIST
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            with replacing(path) as part:
                part.write_text(text, encoding="utf-8")

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
        status, spans = path.stat(), tuple(left_out)
        stamp = status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        cached = self._cached.get(name)
        if cached is not None and cached[:2] == (stamp, spans):
            return cached[2]
        crc = start = 0
        with path.open("rb") as file:
            while data := bytearray(file.read(_AT_ONCE)):
                for low, high in spans:
                    inside = slice(max(0, low - start), max(0, high - start))
                    data[inside] = bytes(len(data[inside]))
                crc = zlib.crc32(data, crc)
                start += len(data)
        self._cached[name] = stamp, spans, crc
        return crc


def _ignored_spans(path: Path) -> tuple[Span, ...]:
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
