"""What the parts of a workspace share, opened for this process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kbkit.config import Settings
from kbkit.errors import WorkspaceError
from kbkit.stores.catalog import reading, runs
from kbkit.stores.catalog.database import Database
from kbkit.stores.chroma.store import ChromaStore
from kbkit.stores.graph_tables import GraphTables
from kbkit.stores.images import ImageStore
from kbkit.stores.locks import FolderLocks, Locks
from kbkit.stores.snapshots.snapshots import Snapshots
from kbkit.stores.snapshots.warming import Warmer
from kbkit.stores.sqlite.database import SqliteDatabase
from kbkit.stores.vector_index import VectorIndex
from kbkit.stores.vector_store import CatalogVectors, VectorStore

_CLOCK_SECONDS = 2
"""By how much the clock of a file system may be behind."""


@dataclass(frozen=True, slots=True)
class StoresAddress:
    """Where stores are, so that another process can open them by itself.

    Attributes:
        folder: Of the workspace, absolute.
        database: Address of the catalog on a server, without its password; empty where the catalog
            is a file of the folder.
    """

    folder: str
    database: str = ""

    def open(self) -> Stores:
        """Open them for this process; see `Stores.open`.

        The password of a server is what ``KBKIT_DATABASE_URL`` says, if that names the same one.
        """
        return Stores.open(Path(self.folder), self._with_password())

    def _with_password(self) -> str:
        if not self.database:
            return ""
        from kbkit.stores.postgres.database import without_password

        told = Settings.load().database_url
        return told if told and without_password(told) == self.database else self.database

    def to_json(self) -> str:
        """As text, for the input or the command line of a process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> StoresAddress:
        """What `to_json` gave."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of one workspace; all its knowledge bases share them.

    Attributes:
        folder: Of the workspace.
        database: The catalog, which is the truth.
        vectors: Indexes of nearest neighbours, derived from the catalog.
        snapshots: Versions of knowledge bases as arrays, likewise.
        graphs: Their graphs in memory, likewise.
        warmer: Makes snapshots and opens indexes beside searches.
        locks: Between processes.
        images: Pictures of documents.
        address: What another process opens them by; ``None`` where none can.
        other_home: Where files and entries lie, if not in this folder; empty if they do.
    """

    folder: Path
    database: Database
    vectors: VectorIndex
    snapshots: Snapshots
    graphs: GraphTables
    warmer: Warmer
    locks: Locks
    images: ImageStore
    address: StoresAddress | None = None
    other_home: Callable[[], str] = str

    def require_home(self) -> None:
        """Make sure that files and entries are those of this folder.

        Raises:
            WorkspaceError: They lie in that of another machine.
        """
        if elsewhere := self.other_home():
            raise WorkspaceError(
                f"the files and entries of this workspace lie in {elsewhere}; "
                "share that folder, and name it as the workspace here"
            )

    @classmethod
    def open(cls, folder: Path, database_url: str = "") -> Stores:
        """Open the stores of a folder, made when missing.

        Args:
            folder: Of the workspace; with a server, of what this machine keeps of it.
            database_url: Address of the server that keeps the catalog; by default a file of the
                folder does.

        Raises:
            ConfigError: The address of the server cannot be read.
            WorkspaceVersionError: A newer kbkit made it.
            WorkspaceError: The folder cannot be made, read or written, or the server not be asked.
        """
        _make_folder(folder)
        if database_url:
            from kbkit.stores.postgres.database import PostgresDatabase
            from kbkit.stores.postgres.home import other_home

            server = PostgresDatabase(database_url)
            address = StoresAddress(str(folder), server.address)
            opened = cls.on(server, CatalogVectors(), folder, server.locks, address)
            return replace(opened, other_home=lambda: other_home(server, folder))
        locks = FolderLocks(folder / "locks")
        database = SqliteDatabase(folder / "catalog.db", locks)
        store = ChromaStore.of(folder / "chroma")
        return cls.on(database, store, folder, locks, StoresAddress(str(folder)))

    @classmethod
    def on(
        cls,
        database: Database,
        store: VectorStore,
        folder: Path,
        locks: Locks | None = None,
        address: StoresAddress | None = None,
    ) -> Stores:
        """The stores of a database and a store of vectors that are open already.

        Args:
            database: The catalog.
            store: Keeps vectors.
            folder: Of the workspace; snapshots and locks lie there.
            locks: Between processes; by default those of the folder.
            address: What another process opens all this by, if one can.
        """
        locks = locks or FolderLocks(folder / "locks")
        vectors = VectorIndex(store, database, locks)
        snapshots = Snapshots(folder / "snapshots", database)
        graphs = GraphTables(database)
        warmer = Warmer(snapshots, vectors)
        images = ImageStore(folder / "images")
        return cls(folder, database, vectors, snapshots, graphs, warmer, locks, images, address)

    def sweep_images(self) -> tuple[int, int]:
        """Remove pictures that no document shows; none while a source is being read.

        Returns:
            Number of pictures, and of bytes.
        """
        began = time.time() - _CLOCK_SECONDS
        with self.database.read() as transaction:
            sources = runs.list_sources(transaction)
        if any(self.locks.is_held(source.lock) for source in sources):
            return 0, 0
        with self.database.read() as transaction:
            used = reading.image_names(transaction)
        return self.images.sweep(used, began)

    def close(self) -> None:
        """Let go of the folder."""
        self.warmer.close()
        self.vectors.close()
        self.database.close()


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(
            f"{folder}: {error.strerror}; name a folder that you may write to"
        ) from error
