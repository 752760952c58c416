"""The catalog in a file of SQLite: pragmas, transactions, and clear errors."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError

from kbkit.errors import WorkspaceError
from kbkit.models import Chunk, Document
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.migrating import is_current, migrate
from kbkit.stores.catalog.reading import hydrated
from kbkit.stores.locks import Locks
from kbkit.stores.sqlite.transaction import SqliteTransaction, chunk_rows

BUSY_SECONDS = 60.0
"""How long a writer waits for another process's transaction."""


_LONG = 50_000
"""Characters of JSON that are decoded once for as long as they stay the same."""


def _decoded(text: str) -> Any:
    """JSON values, which nobody changes: a recipe of many names is read with each transaction."""
    return _decoded_once(text) if len(text) > _LONG else json.loads(text)


@lru_cache(maxsize=4)
def _decoded_once(text: str) -> Any:
    return json.loads(text)


class SqliteDatabase:
    """The catalog's file, opened for this process: a `kbkit.stores.catalog.database.Database`.

    Reads see one consistent state (WAL snapshot); writes are serialised over all processes.
    """

    def __init__(self, path: Path, locks: Locks, *, to_fill: bool = False) -> None:
        """Open the file, making or migrating it where needed.

        Args:
            path: Of the file.
            locks: Between processes.
            to_fill: Whether another catalog is to be copied into it; see `is_current`.

        Raises:
            WorkspaceVersionError: A newer kbkit made it.
            WorkspaceError: It is not a database, or cannot be written.
        """
        self.path = path
        self._watcher: sqlite3.Connection | None = None
        self._watching = threading.Lock()
        self._engine = sa.create_engine(
            f"sqlite:///{path}",
            connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
            json_deserializer=_decoded,
        )
        sa.event.listen(self._engine, "connect", _prepare)
        sa.event.listen(self._engine, "begin", _begin)
        if sqlite3.sqlite_version_info < (3, 35):
            raise WorkspaceError(
                f"SQLite {sqlite3.sqlite_version} is too old; "
                "use a Python with SQLite 3.35 or newer"
            )
        try:
            with explained(path):
                with self._connect() as connection:
                    current = is_current(connection, path.parent, to_fill=to_fill)
                if not current:
                    with (
                        locks.hold("migrate", wait=BUSY_SECONDS),
                        self._connect(True) as connection,
                    ):
                        migrate(connection)
        except BaseException:
            self._engine.dispose()
            raise

    @property
    def identity(self) -> str:
        """Of this file: another for each copy, the same wherever it is moved on its disk."""
        return f"sqlite {self.path.stat().st_ino}"

    def compact(self) -> int:
        """Write the file anew without the pages that are free; gives how many bytes that saved."""
        before = self.path.stat().st_size
        with explained(self.path):
            pooled = self._engine.raw_connection()
            try:
                assert pooled.driver_connection is not None
                pooled.driver_connection.execute("VACUUM")
                pooled.driver_connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                pooled.close()
        return max(0, before - self.path.stat().st_size)

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

    def chunks(self, seqs: Sequence[int]) -> dict[int, tuple[Chunk, Document]]:
        """Chunks by ``seq``, each with its document, whose ``content`` is left empty."""
        return hydrated(chunk_rows(self._fetch, seqs))

    def _fetch(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
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
    def read(self) -> Iterator[Transaction]:
        """A transaction that only reads."""
        with explained(self.path), self._connect() as connection:
            yield SqliteTransaction(connection)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """A transaction that writes: all of it is kept, or nothing."""
        with explained(self.path), self._connect(writes=True) as connection:
            yield SqliteTransaction(connection)

    @contextmanager
    def _connect(self, writes: bool = False) -> Iterator[sa.Connection]:
        with self._engine.connect() as connection:
            if writes:
                connection.execution_options(kbkit_write=True)
            with connection.begin():
                yield connection


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
