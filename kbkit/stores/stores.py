"""The stores of a workspace."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from kbkit.errors import KbkitError, WorkspaceError
from kbkit.runtime.config import Settings
from kbkit.runtime.processes import run_module
from kbkit.stores import backend
from kbkit.stores.catalog import reading, runs
from kbkit.stores.catalog.database import RESTORE, Database
from kbkit.stores.chroma_collections import ChromaAddress, ChromaServer
from kbkit.stores.chroma_folder import ChromaStore
from kbkit.stores.snapshots.snapshots import Snapshots, Warmer
from kbkit.stores.sqlite_database import SqliteDatabase
from kbkit.stores.vector_index import VectorIndex

if TYPE_CHECKING:
    from kbkit.stores.postgres_database import PostgresDatabase

_CATALOG = "catalog.db"
_IMAGES = "images"
DERIVED = ("chroma", "snapshots")
"""Folders derived from the catalog, rebuilt if missing."""
_CLOCK_SECONDS = 2
"""Coarsest resolution of file times."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of one workspace, shared by its knowledge bases.

    Attributes:
        settings: Settings with the servers.
        later: Delayed work of a server.
        other_home: Returns the other folder with the files and entries; ``""`` for this one.
    """

    folder: Path
    settings: Settings
    database: Database
    vectors: VectorIndex
    snapshots: Snapshots
    warmer: Warmer
    locks: backend.Locks
    images: backend.ImageStore
    later: WriteBatcher
    other_home: Callable[[], str] = str

    @property
    def catalog_address(self) -> str:
        return catalog_address(self.folder, self.settings)

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
    def open(cls, folder: Path, settings: Settings, *, to_fill: bool = False) -> Stores:
        """Open the stores of a folder; with `to_fill` also an incomplete copy of a catalog."""
        url = settings.chroma_url
        chroma = ChromaAddress.parse(url, settings.chroma_token) if url else None
        with backend.unwritable(folder):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / _CATALOG).exists()  # fails without permission to enter the folder
        database: SqliteDatabase | PostgresDatabase
        store: backend.VectorStore | None = None
        locks: backend.Locks
        images: backend.ImageStore
        home: Callable[[], str] = str
        if settings.database_url:
            from kbkit.stores.postgres_database import PostgresDatabase, other_home

            database = PostgresDatabase(settings.database_url, to_fill=to_fill)
            locks, images = database.locks, database.image_store()
            home = partial(other_home, database, folder)
            if settings.pgvector and not chroma:
                store = database.vector_store()
            store = store or backend.VectorStore()
        else:
            if not to_fill:
                _check_catalog(folder)
            locks = backend.FolderLocks(folder / "locks")
            images = backend.FolderImages(folder / _IMAGES)
            database = SqliteDatabase(folder / _CATALOG, locks, to_fill=to_fill)
            store = ChromaStore(folder / "chroma")
        if chroma:
            store = ChromaServer(chroma, database.identity)
        vectors = VectorIndex(store, database, locks)
        snapshots = Snapshots(folder / "snapshots", database)
        return cls(
            folder,
            settings,
            database,
            vectors,
            snapshots,
            Warmer(snapshots, vectors),
            locks,
            images,
            WriteBatcher(),
            home,
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
        sources = self.database.look_up(runs.list_sources)
        if any(self.locks.is_held(source.lock) for source in sources):
            return 0, 0
        used = self.database.look_up(reading.image_names)
        return self.images.sweep(used, began)

    def close(self) -> None:
        self.later.gather(more=False)
        self.warmer.close()
        self.vectors.close()
        self.database.close()


def catalog_address(folder: Path, settings: Settings) -> str:
    """Return the server of a catalog, without a password, or else its folder."""
    if not settings.database_url:
        return str(folder)
    from kbkit.stores.postgres_database import without_password

    return without_password(settings.database_url)


def _check_catalog(folder: Path) -> None:
    catalog = folder / _CATALOG
    log = catalog.with_name(f"{_CATALOG}-wal")
    if any(path.exists() and path.stat().st_size for path in (catalog, log)):
        return
    derived = [name for name in DERIVED if any((folder / name).glob("*"))]
    if derived:
        raise WorkspaceError(
            f"{catalog}: the catalog is {'empty' if catalog.exists() else 'gone'}, while data "
            f"derived from it exists ({', '.join(derived)}); {RESTORE}, "
            "or move the folder away and start again (where a server keeps the catalog, set "
            "KBKIT_DATABASE_URL)"
        )


_SECONDS = 1.0
_Work = Callable[[Collection[str]], None]


class WriteBatcher:
    """Runs work at once, or within about a second in a thread of a server.

    Delayed work is lost if the process is killed.

    Attributes:
        complete: Keys whose lost work this process has made up for.
    """

    def __init__(self) -> None:
        self.complete: set[str] = set()
        self._waiting: dict[str, tuple[_Work, Collection[str]]] = {}
        self._mutex = threading.Lock()
        self._running = threading.Lock()
        self._timer: threading.Timer | None = None
        self._gathers = False

    def gather(self, *, more: bool = True) -> None:
        """Delay work from now on; ``False`` runs the delayed work."""
        self._gathers = more
        if not more:
            self.finish()

    def do(self, key: str, work: _Work, items: Collection[str]) -> None:
        if not self._gathers:
            work(items)
            return
        with self._mutex:
            _, before = self._waiting.get(key, (work, ()))
            self._waiting[key] = work, {*before, *items}
            if self._timer is None:
                self._timer = threading.Timer(_SECONDS, self.finish)
                self._timer.daemon = True
                self._timer.start()

    def finish(self) -> None:
        with self._running:
            with self._mutex:
                waiting, self._waiting, self._timer = self._waiting, {}, None
            for work, items in waiting.values():
                with contextlib.suppress(KbkitError):  # deleted meanwhile, or no model
                    work(items)


_MIN_CHUNKS = 2_000
"""New chunks for which a child is started, which takes about a second."""
_STEP = 1_000
"""Chunks between two messages to the child."""


@contextlib.contextmanager
def index_writer(stores: Stores, kb_id: str) -> Iterator[Callable[[int], None]]:
    """Update the index while a block runs and reports stored chunks; save the snapshot meanwhile.

    The caller applies the rest, and everything if there was little to do or the child failed.
    """
    stdin: IO[bytes] | None = None
    unreported = _STEP - _MIN_CHUNKS

    def note_stored(chunks: int) -> None:
        nonlocal stdin, unreported
        unreported += chunks
        if unreported < _STEP:
            return
        unreported = 0
        with contextlib.suppress(OSError):  # the caller then applies all changes
            if stdin is None:
                variables = stores.settings.variables()
                child = run_module(
                    "kbkit.stores.stores", str(stores.folder), kb_id, variables=variables
                )
                assert child.stdin is not None
                assert child.stdout is not None
                stack.callback(child.wait)
                stack.enter_context(child.stdout)
                stdin = stack.enter_context(child.stdin)
            os.write(stdin.fileno(), b"\n")

    with contextlib.ExitStack() as stack:
        yield note_stored
        if stdin is not None:
            stdin.close()
            stores.snapshots.save(kb_id)


def main(folder: str, kb_id: str) -> None:
    """Update the index for each line of input, and once at the end."""
    # Ctrl-C reaches the whole process group; the parent handles it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stores = Stores.open(Path(folder), Settings.load())
    for _ in sys.stdin.buffer:
        stores.vectors.apply(kb_id)
    stores.vectors.apply(kb_id)
    stores.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
