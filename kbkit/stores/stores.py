"""The stores of a workspace."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

from kbkit.errors import WorkspaceError
from kbkit.models.files import BUILT_IN
from kbkit.runtime.config import Settings
from kbkit.runtime.processes import run_module
from kbkit.stores.backend import (
    FolderImages,
    FolderLocks,
    ImageStore,
    Locks,
    VectorStore,
    take_images,
    unwritable,
)
from kbkit.stores.catalog import reading, runs
from kbkit.stores.catalog.copying import copy_folder
from kbkit.stores.catalog.database import RESTORE, Database
from kbkit.stores.catalog.graph_tables import GraphTables
from kbkit.stores.chroma_collections import ChromaAddress, ChromaServer
from kbkit.stores.chroma_folder import ChromaStore
from kbkit.stores.snapshots.snapshots import Snapshots, Warmer
from kbkit.stores.sqlite_database import SqliteDatabase
from kbkit.stores.vector_index import VectorIndex, WriteBatcher

_CATALOG = "catalog.db"
_IMAGES = "images"
_DERIVED = ("chroma", "snapshots")
"""Folders derived from the catalog, rebuilt if missing."""
_CLOCK_SECONDS = 2
"""Coarsest resolution of file times."""


@dataclass(frozen=True, slots=True)
class StoresAddress:
    """Address of stores for other processes, without passwords and tokens.

    Attributes:
        database: Database URL; empty for a file in the folder.
        pgvector: Whether a catalog on a server also indexes vectors.
    """

    folder: str
    database: str = ""
    chroma: str = ""
    pgvector: bool = True

    def open(self) -> Stores:
        """Open the stores; password and token come from settings for the same servers."""
        if not self.database and not self.chroma:
            return Stores.open(Path(self.folder))
        settings = Settings.load()
        chroma = None
        if self.chroma:
            chroma = ChromaAddress.parse(self.chroma)
            url = settings.chroma_url
            if url and ChromaAddress.parse(url) == chroma:
                chroma = replace(chroma, token=settings.chroma_token)
        database = self._with_password(settings)
        return Stores.open(Path(self.folder), database, chroma, pgvector=self.pgvector)

    def _with_password(self, settings: Settings) -> str:
        if not self.database:
            return ""
        from kbkit.stores.postgres_database import without_password

        url = settings.database_url
        return url if url and without_password(url) == self.database else self.database

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> StoresAddress:
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of one workspace, shared by its knowledge bases.

    Attributes:
        later: Delayed work of a server.
        address: Address for other processes; ``None`` if they cannot open the stores.
        other_home: Returns the other folder with the files and entries; ``""`` for this one.
    """

    folder: Path
    database: Database
    vectors: VectorIndex
    snapshots: Snapshots
    graphs: GraphTables
    warmer: Warmer
    locks: Locks
    images: ImageStore
    later: WriteBatcher
    address: StoresAddress | None = None
    other_home: Callable[[], str] = str

    @property
    def catalog_address(self) -> str:
        return self.address.database if self.address and self.address.database else str(self.folder)

    def require_home(self) -> None:
        if elsewhere := self.other_home():
            raise WorkspaceError(
                f"the files and entries of this workspace are in {elsewhere}; "
                "share that folder, and name it as the workspace here"
            )

    def pause_between_writes(self) -> None:
        """Let other processes write between this one's transactions."""
        if isinstance(self.database, SqliteDatabase):  # locks of PostgreSQL are a queue
            self.database.pauses = True

    @classmethod
    def of_settings(cls, folder: Path, settings: Settings) -> Stores:
        """Open the stores of a folder on the servers in the settings."""
        url, token = settings.chroma_url, settings.chroma_token
        chroma = ChromaAddress.parse(url, token) if url else None
        return cls.open(folder, settings.database_url, chroma, pgvector=settings.pgvector)

    @classmethod
    def open(
        cls,
        folder: Path,
        database_url: str = "",
        chroma: ChromaAddress | None = None,
        *,
        pgvector: bool = True,
    ) -> Stores:
        _make_folder(folder)
        if database_url:
            from kbkit.stores.postgres_database import PostgresDatabase, other_home

            server = PostgresDatabase(database_url)
            place = chroma.place if chroma else ""
            address = StoresAddress(str(folder), server.address, place, pgvector)
            vectors: VectorStore | None = None
            if chroma:
                vectors = ChromaServer(chroma, server.identity)
            elif pgvector:
                vectors = server.vector_store()
            vectors = vectors or VectorStore()
            opened = cls.on(server, vectors, folder, server.locks, address)
            return replace(
                opened, images=server.image_store(), other_home=lambda: other_home(server, folder)
            )
        _check_catalog(folder)
        locks = FolderLocks(folder / "locks")
        database = SqliteDatabase(folder / _CATALOG, locks)
        address = StoresAddress(str(folder), chroma=chroma.place if chroma else "")
        store = (
            ChromaServer(chroma, database.identity) if chroma else ChromaStore.of(folder / "chroma")
        )
        return cls.on(database, store, folder, locks, address)

    @classmethod
    def on(
        cls,
        database: Database,
        store: VectorStore,
        folder: Path,
        locks: Locks | None = None,
        address: StoresAddress | None = None,
    ) -> Stores:
        locks = locks or FolderLocks(folder / "locks")
        vectors = VectorIndex(store, database, locks)
        snapshots = Snapshots(folder / "snapshots", database)
        graphs = GraphTables(database)
        warmer = Warmer(snapshots, vectors)
        images, later = FolderImages(folder / _IMAGES), WriteBatcher()
        return cls(
            folder, database, vectors, snapshots, graphs, warmer, locks, images, later, address
        )

    def gather(self, *, more: bool = True) -> None:
        """Batch updates of single writes, as a server does; ``False`` flushes the batch."""
        self.later.gather(more=more)  # first, because delayed work may add vectors
        self.vectors.gather(more=more)

    def preload(self) -> None:
        """Import chromadb before the first write."""
        from kbkit.stores.chroma_collections import import_chromadb

        import_chromadb()

    def sweep_images(self) -> tuple[int, int]:
        """Remove unused pictures, unless a source is being read; return their number and bytes."""
        began = self.images.now() - _CLOCK_SECONDS
        with self.database.read() as transaction:
            sources = runs.list_sources(transaction)
        if any(self.locks.is_held(source.lock) for source in sources):
            return 0, 0
        with self.database.read() as transaction:
            used = reading.image_names(transaction)
        return self.images.sweep(used, began)

    def close(self) -> None:
        self.later.gather(more=False)
        self.warmer.close()
        self.vectors.close()
        self.database.close()


@dataclass(frozen=True, slots=True)
class Destination:
    """A place to copy a catalog into.

    Attributes:
        address: See `Stores.catalog_address`.
        folder: Folder of the workspace; ``None`` for a catalog on a server.
    """

    database: Database
    locks: Locks
    address: str
    folder: Path | None
    images: ImageStore

    @staticmethod
    def is_at(place: str | Path, address: str) -> bool:
        if _is_server(place):
            from kbkit.stores.postgres_database import without_password

            return without_password(str(place)) == address
        return Path(place).resolve() == Path(address).resolve()

    @classmethod
    def open(cls, place: str | Path) -> Destination:
        if _is_server(place):
            from kbkit.stores.postgres_database import PostgresDatabase

            server = PostgresDatabase(str(place), to_fill=True)
            return cls(server, server.locks, server.address, None, server.image_store())
        folder = Path(place).absolute()
        _make_folder(folder)
        locks = FolderLocks(folder / "locks")
        database = SqliteDatabase(folder / _CATALOG, locks, to_fill=True)
        return cls(database, locks, str(folder), folder, FolderImages(folder / _IMAGES))

    def prepare(self, origin: Path, images: ImageStore) -> tuple[str, ...]:
        """Copy files, entries and pictures; delete derived data. Return what was copied."""
        if self.folder is None:
            from kbkit.stores.postgres_database import other_home

            other_home(self.database, origin)
            return (_IMAGES,) if take_images(self.images, images) else ()
        for name in _DERIVED:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        copied = []
        for name in BUILT_IN:
            if origin.resolve() != self.folder.resolve() and (origin / name).is_dir():
                copy_folder(origin / name, self.folder / name)
                copied.append(name)
        if take_images(self.images, images):
            copied.append(_IMAGES)
        return tuple(copied)


def _is_server(place: str | Path) -> bool:
    return "://" in str(place)


def _check_catalog(folder: Path) -> None:
    catalog = folder / _CATALOG
    log = catalog.with_name(f"{_CATALOG}-wal")
    if any(path.exists() and path.stat().st_size for path in (catalog, log)):
        return
    derived = [name for name in _DERIVED if any((folder / name).glob("*"))]
    if derived:
        raise WorkspaceError(
            f"{catalog}: the catalog is {'empty' if catalog.exists() else 'gone'}, while data "
            f"derived from it exists ({', '.join(derived)}); {RESTORE}, "
            "or move the folder away and start again (where a server keeps the catalog, set "
            "KBKIT_DATABASE_URL)"
        )


def _make_folder(folder: Path) -> None:
    with unwritable(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _CATALOG).exists()  # fails without permission to enter the folder


_MIN_CHUNKS = 2_000
"""New chunks for which a child is started, which takes about a second."""
_STEP = 1_000
"""Chunks between two messages to the child."""


class IndexWriter:
    """Updates the index of a knowledge base while a block runs.

    The caller applies the rest, and everything if there was little to do or the child failed.
    """

    def __init__(
        self, meanwhile: Callable[[], object], address: StoresAddress | None, kb_id: str
    ) -> None:
        self._meanwhile = meanwhile
        self._arguments = None if address is None else (address.to_json(), kb_id)
        self._stored = 0
        self._reported = _MIN_CHUNKS - _STEP
        self._child: subprocess.Popen[bytes] | None = None

    def note_stored(self, chunks: int) -> None:
        self._stored += chunks
        if self._arguments is None or self._stored - self._reported < _STEP:
            return
        self._reported = self._stored
        with contextlib.suppress(OSError):  # the caller then applies all changes
            if self._child is None:
                self._child = run_module("kbkit.stores.stores", *self._arguments)
            assert self._child.stdin is not None
            self._child.stdin.write(b"\n")
            self._child.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._child is not None:
            for stream in (self._child.stdin, self._child.stdout):
                assert stream is not None
                with contextlib.suppress(OSError):
                    stream.close()
            try:
                if kind is None:
                    self._meanwhile()
            finally:
                self._child.wait()


def main(address: str, kb_id: str) -> None:
    """Update the index for each line of input, and once at the end."""
    # Ctrl-C reaches the whole process group; the parent handles it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stores = StoresAddress.from_json(address).open()
    for _ in sys.stdin.buffer:
        stores.vectors.apply(kb_id)
    stores.vectors.apply(kb_id)
    stores.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
