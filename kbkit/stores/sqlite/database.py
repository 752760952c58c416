"""Opens the catalog's SQLite file: pragmas, transactions, migrations, and clear errors."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError

from kbkit.errors import WorkspaceError, WorkspaceVersionError
from kbkit.stores.catalog import schema
from kbkit.stores.catalog.schema import HEAD
from kbkit.stores.locks import FolderLocks

BUSY_SECONDS = 60.0
"""How long a writer waits for another process's transaction."""


class Database:
    """The catalog's file, opened for this process.

    Reads see one consistent state (WAL snapshot); writes are serialised over all processes.
    """

    def __init__(self, path: Path, locks: FolderLocks) -> None:
        """Open the file, making or migrating it where needed.

        Raises:
            WorkspaceVersionError: A newer kbkit made it.
            WorkspaceError: It is not a database, or cannot be written.
        """
        self.path = path
        self._watcher: sqlite3.Connection | None = None
        self._watching = threading.Lock()
        self._engine = sa.create_engine(
            f"sqlite:///{path}", connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False}
        )
        sa.event.listen(self._engine, "connect", _prepare)
        sa.event.listen(self._engine, "begin", _begin)
        try:
            with explained(path):
                if self._revision() != HEAD:
                    with locks.hold("migrate", wait=BUSY_SECONDS):
                        self._migrate()
        except BaseException:
            self._engine.dispose()
            raise

    def close(self) -> None:
        """Close all connections."""
        with self._watching:
            if self._watcher is not None:
                self._watcher.close()
                self._watcher = None
        self._engine.dispose()

    def changes(self) -> int:
        """A number that is another one as soon as anybody has committed anything.

        It takes microseconds, where a transaction takes a good part of what a search does. Only
        numbers that the same process got compare.
        """
        with explained(self.path), self._watching:
            if self._watcher is None:
                self._watcher = sqlite3.connect(
                    self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
                )
            # changes only with commits of other connections, and this one commits nothing
            number: int = self._watcher.execute("PRAGMA data_version").fetchone()[0]
            return number

    def fetch(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Rows of one SELECT as SQLite gives them: for what every search reads."""
        with explained(self.path):
            pooled = self._engine.raw_connection()
            try:
                assert pooled.driver_connection is not None
                rows: list[tuple[Any, ...]] = pooled.driver_connection.execute(
                    sql, parameters
                ).fetchall()
                return rows
            finally:
                pooled.close()

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A transaction that only reads."""
        with explained(self.path), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A transaction that writes: all of it is kept, or nothing."""
        with explained(self.path), self._engine.connect() as connection:
            connection.execution_options(kbkit_write=True)
            with connection.begin():
                yield connection

    def _revision(self) -> str | None:
        """Revision the file is at, ``None`` where it is new.

        Raises:
            WorkspaceVersionError: A newer kbkit made it.
        """
        with self.read() as connection:
            if not sa.inspect(connection).has_table("alembic_version"):
                return None
            revision = connection.execute(
                sa.text("SELECT version_num FROM alembic_version")
            ).scalar_one_or_none()
        if revision is not None and revision > HEAD:
            raise WorkspaceVersionError(
                f"{self.path.parent}: made by a newer kbkit (catalog revision {revision}, this "
                f"kbkit knows {HEAD}); upgrade kbkit, or open another folder"
            )
        return revision

    def _migrate(self) -> None:
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(Path(schema.__file__).parent / "migrations"))
        with self.write() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what SQLite says of a bad file or folder into a `WorkspaceError`."""
    try:
        yield
    except (DatabaseError, sqlite3.DatabaseError) as error:
        text = str(error.orig if isinstance(error, DatabaseError) else error)
        for sign, advice in _ADVICE:
            if sign in text:
                raise WorkspaceError(f"{path}: {text}; {advice}") from error
        raise


_ADVICE = (
    ("readonly", "kbkit writes beside what it reads: make the folder writable, or copy it"),
    ("unable to open", "make sure that the folder exists and that you may write to it"),
    ("not a database", "this file is not a catalog: move it away, or restore it from a copy"),
    ("malformed", "the file is damaged: restore it from a copy, or build the recipe anew"),
    ("disk is full", "free some space and run this again"),
    ("disk I/O error", "the disk or network folder fails; kbkit needs a local folder"),
    ("database is locked", "another process has been writing for long; run this again"),
)


def _prepare(connection: sqlite3.Connection, record: Any) -> None:
    # transactions begin where _begin says, not where sqlite3 guesses, so that DDL is
    # part of them and a writer takes its lock before it reads
    connection.isolation_level = None
    for pragma in (
        "journal_mode=WAL",
        "synchronous=NORMAL",
        "wal_autocheckpoint=8000",  # pages; at 1,000 most transactions of an ingest would do one
        "foreign_keys=ON",
        "temp_store=MEMORY",
        "cache_size=-65536",
        "mmap_size=268435456",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("kbkit_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
