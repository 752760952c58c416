"""The catalog in PostgreSQL."""

import socket
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, REGCLASS

from kbkit.errors import ConfigError, WorkspaceError
from kbkit.extras import extra
from kbkit.models import Chunk, Document
from kbkit.models.values import BUILT_IN
from kbkit.stores.backend import unwritable
from kbkit.stores.catalog import reading
from kbkit.stores.catalog.database import Condition, Database, Transaction
from kbkit.stores.catalog.revisions import is_current, migrate
from kbkit.stores.postgres_vectors import (
    PgVectorStore,
    PostgresImages,
    PostgresLocks,
    explain_errors,
    lock_number,
    pgvector_on,
)

BUSY_SECONDS = 60
"""Seconds that a writer waits for another process's transaction."""
_CONNECT_SECONDS = 10
_DRIVER = "postgresql+psycopg"


class PostgresDatabase(Database):
    """The catalog in a schema of a server.

    Reads use REPEATABLE READ; an advisory lock serialises writes of all machines. `address` has no
    password.
    """

    def __init__(self, url: str, *, to_fill: bool = False) -> None:
        parsed = _parse_url(url)
        self.address = without_password(url)
        self._place = parsed.render_as_string(hide_password=True)
        with extra("postgres", "psycopg", "A catalog in PostgreSQL"):
            self._engine = sa.create_engine(
                parsed,
                connect_args={
                    "connect_timeout": _CONNECT_SECONDS,
                    # notice a dead server within a minute
                    "keepalives_idle": 20,
                    "keepalives_interval": 5,
                    "keepalives_count": 4,
                    "tcp_user_timeout": 40_000,
                    "application_name": "kbkit",
                    **dict(parsed.query),
                },
                pool_pre_ping=True,
                pool_size=8,
                max_overflow=24,
                hide_parameters=True,
            )
        sa.event.listen(self._engine, "connect", _prepare)
        self._reading = self._engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        self._writing = self._engine.execution_options(isolation_level="READ COMMITTED")
        self._autocommit = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self._watcher: sa.Connection | None = None
        self._watching = threading.Lock()
        try:
            with explain_errors(self._place):
                self._schema = self._find_schema()
                self.locks = PostgresLocks(self._autocommit, self._schema, self._place)
                self._write_lock = lock_number(self._schema, "write")
                with self._engine.connect() as connection:
                    prepare(connection, self._place, self._write_lock, to_fill=to_fill)
        except BaseException:
            self._engine.dispose()
            raise

    def _find_schema(self) -> str:
        with self._autocommit.connect() as connection:
            version = connection.dialect.server_version_info
            if version is None or int(version[0]) < OLDEST:
                text = ".".join(map(str, version or ("of an unknown version",)))
                raise WorkspaceError(
                    f"{self._place}: PostgreSQL {text} is too old; kbkit needs {OLDEST} or newer"
                )
            schema: str | None = connection.execute(
                sa.select(sa.func.current_schema())
            ).scalar_one()
        if schema is None:
            raise WorkspaceError(
                f"{self._place}: no schema of the connection's search_path exists; create it "
                "(CREATE SCHEMA), or name another"
            )
        return schema

    @cached_property
    def identity(self) -> str:
        with explain_errors(self._place), self._autocommit.connect() as connection:
            return f"postgresql {connection.execute(_IDENTITY).scalar_one()}"

    def vector_store(self) -> PgVectorStore | None:
        return pgvector_on(self._writing, self._place)

    def image_store(self) -> PostgresImages:
        return PostgresImages(self._writing, self._place)

    def faults(self, *, repair: bool = False) -> list[str]:
        return []

    def compact(self) -> int:
        """Vacuum the tables; return 0, because the server keeps the space."""
        with explain_errors(self._place), self._autocommit.connect() as connection:
            names = connection.execute(
                sa.text("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
            ).scalars()
            quote = connection.dialect.identifier_preparer.quote_identifier
            for name in names.all():
                connection.exec_driver_sql(f"VACUUM (ANALYZE) {quote(name)}")
        return 0

    def close(self) -> None:
        with self._watching:
            if self._watcher is not None:
                self._watcher.close()
                self._watcher = None
        self._engine.dispose()

    def changes(self) -> int:
        with explain_errors(self._place), self._watching:
            if self._watcher is not None:
                try:
                    return int(self._watcher.scalar(_COUNT))
                except sa.exc.DBAPIError as error:
                    if not error.connection_invalidated:
                        raise
                    self._watcher.close()
            self._watcher = None  # the server restarted
            self._watcher = self._autocommit.connect()
            return int(self._watcher.scalar(_COUNT))

    def chunks(self, seqs: Sequence[int]) -> dict[int, tuple[Chunk, Document]]:
        with explain_errors(self._place), self._autocommit.connect() as connection:
            return reading.get_chunks(PostgresTransaction(connection), seqs)

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        with explain_errors(self._place), self._reading.connect() as connection, connection.begin():
            yield PostgresTransaction(connection)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with explain_errors(self._place), self._writing.connect() as connection, connection.begin():
            connection.execute(_LOCK, {"number": self._write_lock})
            yield PostgresTransaction(connection)
            connection.execute(_BUMP)


_IDENTITY = sa.text(
    "SELECT (SELECT system_identifier FROM pg_control_system())"
    " || ' ' || (SELECT oid FROM pg_database WHERE datname = current_database())"
    " || ' ' || (SELECT oid FROM pg_namespace WHERE nspname = current_schema())"
)
_LOCK = sa.text("SELECT pg_advisory_xact_lock(:number)")


def without_password(url: str) -> str:
    return _parse_url(url)._replace(password=None).render_as_string(hide_password=False)


def _parse_url(url: str) -> sa.URL:
    advice = f"write {_DRIVER}://USER:PASSWORD@HOST:PORT/DATABASE"
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise ConfigError(f"KBKIT_DATABASE_URL cannot be read; {advice}") from None
    if parsed.drivername not in (_DRIVER, "postgresql", "postgres"):
        raise ConfigError(
            f"KBKIT_DATABASE_URL: {parsed.drivername} is not a database that kbkit knows; {advice}"
        )
    return parsed.set(drivername=_DRIVER)


def _prepare(connection: Any, record: object) -> None:
    from psycopg.types.string import StrDumper

    class TextDumper(StrDumper):  # type: ignore[misc, unused-ignore]
        """Replaces NUL, which PostgreSQL cannot store, by a space, so that offsets stay valid."""

        def dump(self, value: str) -> Any:
            return super().dump(value.replace("\0", " ") if "\0" in value else value)

    connection.adapters.register_dumper(str, TextDumper)
    cursor = connection.cursor()
    cursor.execute(
        f"SET lock_timeout = '{BUSY_SECONDS}s'; SET client_min_messages = warning;"
        " SET tcp_keepalives_idle = 20; SET tcp_keepalives_interval = 5"
    )
    cursor.close()
    connection.commit()


_MARK = "home"
"""File that identifies a folder even if it is moved."""


def other_home(database: Database, folder: Path) -> str:
    """Return the other folder with the files and entries; ``""`` if it is this one.

    The first folder with files or entries becomes their home.
    """
    path, mark = folder / _MARK, ""
    with suppress(OSError):
        mark = path.read_text(encoding="utf-8").strip()
    with database.read() as transaction:
        home = transaction.execute(_HOME).first()
    if home is None and any((folder / name).is_dir() for name in BUILT_IN):
        if not mark:
            mark = uuid4().hex
            with unwritable(folder):
                path.write_text(f"{mark}\n", encoding="utf-8")
        with database.write() as transaction:
            place = f"{socket.gethostname()}:{folder}"
            transaction.execute(_CLAIM, {"mark": mark, "place": place})
            home = transaction.execute(_HOME).one()
    return "" if home is None or home.mark == mark else str(home.place)


_HOME = sa.text("SELECT mark, place FROM home")
_CLAIM = sa.text("INSERT INTO home SELECT :mark, :place WHERE NOT EXISTS (SELECT FROM home)")


class PostgresTransaction(Transaction):
    """A transaction in PostgreSQL."""

    def last_number(self, column: sa.Column[Any]) -> int:
        greatest = sa.select(sa.func.max(column)).scalar_subquery()
        last = sa.func.pg_sequence_last_value(sa.cast(_sequence(column), REGCLASS))
        return int(self.execute(sa.select(sa.func.greatest(last, greatest, 0))).scalar_one())

    def number_after(self, column: sa.Column[Any], last: int) -> None:
        last = max(last, self.last_number(column))
        if last:
            self.execute(sa.select(sa.func.setval(_sequence(column), last)))

    @staticmethod
    def _bound(values: Collection[Any]) -> list[Any]:
        return list(values)

    @staticmethod
    def _is_in(column: sa.ColumnElement[Any], bound: sa.BindParameter[Any]) -> Condition:
        kind = sa.Text if isinstance(column.type, sa.String) else sa.BigInteger
        return column == sa.any_(sa.type_coerce(bound, ARRAY(kind)))


def _sequence(column: sa.Column[Any]) -> sa.ColumnElement[str]:
    return sa.func.pg_get_serial_sequence(column.table.name, column.name)


OLDEST = 15
"""Oldest tested version of PostgreSQL."""


def prepare(connection: sa.Connection, place: str, lock: int, *, to_fill: bool = False) -> None:
    with connection.begin():
        names = _check(connection, place)
        if is_current(connection, place, to_fill=to_fill) and names.issuperset(_SERVER_TABLES):
            return
    with connection.begin():
        connection.execute(_LOCK, {"number": lock})
        if not is_current(connection, place, to_fill=to_fill):  # another process may have migrated
            migrate(connection)
        connection.exec_driver_sql(_CREATE_SERVER_TABLES)


_COUNT = sa.text("SELECT number FROM commits")
# only if the transaction wrote anything
_BUMP = sa.text(
    "UPDATE commits SET number = number + 1 WHERE pg_current_xact_id_if_assigned() IS NOT NULL"
)


def _check(connection: sa.Connection, place: str) -> set[str]:
    names = set(sa.inspect(connection).get_table_names())
    if names and not {"alembic_version", "knowledge_bases", "commits"} <= names:
        raise WorkspaceError(
            f"{place}: this schema has tables of something else; give kbkit a database of its own, "
            "or a schema (?options=-csearch_path%3DNAME)"
        )
    return names


_SERVER_TABLES = {"commits", "home", "images"}
# `commits`: see `PostgresDatabase.changes`; `home`: see `other_home`; `images`: see
# `kbkit.stores.postgres_vectors`, EXTERNAL because pictures are already compressed
_CREATE_SERVER_TABLES = """
CREATE TABLE IF NOT EXISTS commits (number bigint NOT NULL) WITH (fillfactor = 10);
INSERT INTO commits SELECT 0 WHERE NOT EXISTS (SELECT FROM commits);
CREATE TABLE IF NOT EXISTS home (mark text NOT NULL, place text NOT NULL);
CREATE TABLE IF NOT EXISTS images (
    name text COLLATE "C" PRIMARY KEY, data bytea NOT NULL, added_at timestamptz NOT NULL
);
ALTER TABLE images ALTER data SET STORAGE EXTERNAL
"""
