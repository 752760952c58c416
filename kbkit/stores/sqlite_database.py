"""The catalog in an SQLite file."""

import json
import logging
import sqlite3
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, SQLAlchemyError
from sqlalchemy.util import LRUCache

from kbkit.errors import KbkitError, WorkspaceError
from kbkit.models import Chunk, Document
from kbkit.stores.backend import Locks
from kbkit.stores.catalog import database, inspection, reading, revisions
from kbkit.stores.catalog.schema import HEAD

_log = logging.getLogger(__name__)

BUSY_SECONDS = 60.0
"""Seconds that a writer waits for another process's transaction."""
_MAX_PAUSE = 0.12
"""Seconds; SQLite looks for a free lock every 0.1 s."""


_LONG = 50_000
"""Characters from which decoded JSON is cached."""


_decode_cached = lru_cache(maxsize=4)(json.loads)


def _decode_json(text: str) -> Any:
    """Decode JSON; long values are cached, because each transaction reads a recipe's names."""
    return _decode_cached(text) if len(text) > _LONG else json.loads(text)


class _Checked(sa.types.TypeEngine[Any]):
    """Checks the type of values, because SQLite stores any type in any column."""

    wrong_types: tuple[type, ...]

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Any:
        inner, wrong_types = super().result_processor(dialect, coltype), self.wrong_types

        def checked(value: Any) -> Any:
            if isinstance(value, wrong_types):
                raise ValueError(f"{str(value)[:40]!r} in a column of another type")
            return inner(value) if inner else value

        return checked


def _checked(kind: type[sa.types.TypeEngine[Any]], *wrong_types: type) -> type[Any]:
    return type(f"Checked{kind.__name__}", (_Checked, kind), {"wrong_types": wrong_types})


_CHECKED = {
    sa.String: _checked(sa.String, bytes),
    sa.Integer: _checked(sa.Integer, str, bytes),
    sa.Float: _checked(sa.Float, str, bytes),
    sa.Boolean: _checked(sa.Boolean, str, bytes),
    sa.LargeBinary: _checked(sa.LargeBinary, str, int, float),
}


_COMPILED: LRUCache[Any, Any] = LRUCache(1_000)
"""Compiled statements, shared by all catalogs."""


@lru_cache(maxsize=1)
def _dialect() -> sa.Dialect:
    """Return the dialect that all catalogs share, so that they share compiled statements."""
    engine = sa.create_engine("sqlite://", json_deserializer=_decode_json)
    engine.dialect.colspecs = {**engine.dialect.colspecs, **_CHECKED}
    engine.connect().close()  # initializes the dialect
    engine.dispose()
    return engine.dialect


class SqliteDatabase(database.Database):
    """The catalog in a file (WAL mode).

    Attributes:
        pauses: Pause after each write, for as long as it took, so that other processes can write.
    """

    def __init__(self, path: Path, locks: Locks, *, to_fill: bool = False) -> None:
        self.path = path
        self.pauses = False
        self._watcher: sqlite3.Connection | None = None
        self._watching = threading.Lock()
        self._writing = threading.Lock()
        self._engine = sa.create_engine(
            f"sqlite:///{path}", connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False}
        )
        self._engine.dialect = _dialect()
        self._engine.update_execution_options(compiled_cache=_COMPILED)
        sa.event.listen(self._engine, "connect", _prepare)
        sa.event.listen(self._engine, "begin", _begin)
        if sqlite3.sqlite_version_info < (3, 35):
            raise WorkspaceError(
                f"SQLite {sqlite3.sqlite_version} is too old; "
                "use a Python with SQLite 3.35 or newer"
            )
        try:
            with explain_errors(path):
                with self._connect() as connection:
                    current = revisions.is_current(connection, path.parent, to_fill=to_fill)
                if not current:
                    with locks.hold("migrate", wait=BUSY_SECONDS):
                        self._back_up()
                        with self._connect(True) as connection:
                            revisions.migrate(connection)
        except BaseException:
            self._engine.dispose()
            raise

    def _back_up(self) -> None:
        with self._connect() as connection:
            revision = revisions.revision_of(connection)
        if not revision or revision == HEAD:
            return
        copy = self.path.with_name(f"catalog-{revision}.db")
        draft = copy.with_suffix(".part")
        with (
            closing(sqlite3.connect(self.path)) as original,
            closing(sqlite3.connect(draft)) as backup,
        ):
            original.backup(backup)
        draft.replace(copy)
        _log.warning(
            "%s: upgrading the catalog of an older kbkit (revision %s); %s is a copy of it, which "
            "you may delete when all is well",
            self.path,
            revision,
            copy,
        )

    @property
    def identity(self) -> str:
        return f"sqlite {self.path.stat().st_ino}"

    def faults(self, *, repair: bool = False) -> list[str]:
        if repair:
            with suppress(sa.exc.DatabaseError), self._connect(writes=True) as connection:
                connection.exec_driver_sql("REINDEX")
        with explain_errors(self.path):
            return inspection.file_faults(self.path)

    def compact(self) -> int:
        before = self.path.stat().st_size
        with explain_errors(self.path), closing(self._engine.raw_connection()) as pooled:
            assert pooled.driver_connection is not None
            pooled.driver_connection.execute("VACUUM")
            pooled.driver_connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return max(0, before - self.path.stat().st_size)

    def close(self) -> None:
        with self._watching:
            if self._watcher is not None:
                self._watcher.close()
                self._watcher = None
        self._engine.dispose()

    def changes(self) -> int:
        with explain_errors(self.path), self._watching:
            if self._watcher is None:
                self._watcher = sqlite3.connect(
                    self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
                )
            # changes with commits of other connections only; this one commits nothing
            return self._watcher.execute("PRAGMA data_version").fetchone()[0]

    def chunks(self, seqs: Sequence[int]) -> dict[int, tuple[Chunk, Document]]:
        return self.look_up(reading.get_chunks, seqs)

    @contextmanager
    def read(self) -> Iterator[database.Transaction]:
        with explain_errors(self.path), self._connect() as connection:
            yield SqliteTransaction(connection)

    @contextmanager
    def write(self) -> Iterator[database.Transaction]:
        # threads wait here, because SQLite would let them sleep and poll
        acquired = self._writing.acquire(timeout=BUSY_SECONDS)
        try:
            with explain_errors(self.path), self._connect(writes=True) as connection:
                began = time.monotonic()
                yield SqliteTransaction(connection)
        finally:
            if acquired:
                self._writing.release()
        if self.pauses:
            time.sleep(min(time.monotonic() - began, _MAX_PAUSE))

    @contextmanager
    def _connect(self, writes: bool = False) -> Iterator[sa.Connection]:
        with self._engine.connect() as connection:
            if writes:
                connection.execution_options(kbkit_write=True)
            with connection.begin():
                yield connection


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (DatabaseError, sqlite3.DatabaseError) as error:
        text = str(error.orig if isinstance(error, DatabaseError) else error)
        for sign, advice in _ADVICE:
            if sign in text:
                raise WorkspaceError(f"{path}: {text}; {advice}") from error
        _check(path, error)
        raise
    except _UNREADABLE as error:
        if not isinstance(error, KbkitError):
            _check(path, error)
        raise


def _check(path: Path, error: Exception) -> None:
    try:
        problems = inspection.file_faults(path) or _unreadable(path)
    except Exception as failure:  # a file that cannot be checked is damaged
        problems = [" ".join(str(failure).split())[:200]]
    if problems:
        raise WorkspaceError(f"{path}: {problems[0]}; {database.DAMAGED}") from error


def _unreadable(path: Path) -> list[str]:
    engine = sa.create_engine(f"sqlite:///{path}")
    engine.dialect = _dialect()
    sa.event.listen(engine, "connect", _prepare)
    try:
        with engine.connect() as connection:
            transaction = SqliteTransaction(connection)
            return [*inspection.unreadable(transaction)] or [*inspection.misfits(transaction)]
    finally:
        engine.dispose()


_UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
    SQLAlchemyError,
)
"""Possible errors of damaged values; the file is checked, because they may be bugs of kbkit."""


_ADVICE = (
    ("readonly", "kbkit also writes into this folder: make it writable, or copy it"),
    ("unable to open", "make sure that the folder exists and that you may write to it"),
    ("not a database", f"the file is not a catalog: move it away, or {database.RESTORE}"),
    ("malformed", f"{database.RESTORE}, or build the recipe again"),
    ("disk is full", "free some space and run this again"),
    ("disk I/O error", "the disk is full or fails: free some space; kbkit needs a local folder"),
    ("database is locked", "another process has been writing for long; run this again"),
)


def _prepare(connection: sqlite3.Connection, record: Any) -> None:
    # `_begin` starts transactions instead of sqlite3, so that they include DDL and writers lock
    # before they read
    connection.isolation_level = None
    for pragma in (
        "journal_mode=WAL",
        "synchronous=NORMAL",
        "wal_autocheckpoint=8000",  # pages; with 1,000, most writes of an ingest would checkpoint
        "foreign_keys=ON",
        "temp_store=MEMORY",
        "cache_size=-65536",
        "mmap_size=268435456",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("kbkit_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


class SqliteTransaction(database.Transaction):
    """A transaction in SQLite."""

    def last_number(self, column: sa.Column[Any]) -> int:
        query = "SELECT seq FROM sqlite_sequence WHERE name = ?"
        result = self._connection.exec_driver_sql(query, (column.table.name,))
        return result.scalar_one_or_none() or 0

    def number_after(self, column: sa.Column[Any], last: int) -> None:
        name, current = column.table.name, self.last_number(column)
        self._connection.exec_driver_sql("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
        self._connection.exec_driver_sql(
            "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (name, max(last, current))
        )

    @staticmethod
    def _bound(values: Collection[Any]) -> str:
        return json.dumps(list(values))

    @staticmethod
    def _is_in(column: sa.ColumnElement[Any], bound: sa.BindParameter[Any]) -> database.Condition:
        element = sa.func.json_each(bound).table_valued("value")
        return column.in_(sa.select(element.c.value))
