"""The interface between the catalog and its database, and the tables' revisions.

`kbkit.stores.catalog` uses SQLAlchemy Core. A backend implements `Transaction` and `Database`, and
passes `DatabaseConformance` of the tests.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import cache
from importlib import import_module
from itertools import groupby
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler

from kbkit.errors import WorkspaceError
from kbkit.models import Chunk, Document, DocumentState
from kbkit.stores.catalog import schema

_P = ParamSpec("_P")
_T = TypeVar("_T")
Condition = sa.ColumnElement[bool]
Row = Mapping[str, Any]

RESTORE = "restore a backup in a new folder (kbkit --workspace FOLDER restore FILE)"
DAMAGED = f"`kbkit doctor` shows whether it can be repaired; else {RESTORE}"
_MAX_LIKE_LENGTH = 10_000


def containing(column: sa.ColumnElement[str], text: str) -> Condition:
    """Whether a column contains a text, ignoring case; SQLite's LIKE takes 50,000 bytes."""
    condition = column.icontains(text.lower(), autoescape=True)
    return condition if len(text) <= _MAX_LIKE_LENGTH else sa.false()


def pack(matrix: NDArray[np.float32]) -> list[bytes]:
    return [row.tobytes() for row in matrix.astype("<f2")]


def unpack(blobs: Sequence[bytes], dimensions: int) -> NDArray[np.float32]:
    """Decode vectors, shape ``(len(blobs), dimensions)``."""
    try:
        flat = np.frombuffer(b"".join(blobs), dtype="<f2")
        return flat.reshape(len(blobs), dimensions).astype(np.float32)
    except (TypeError, ValueError) as error:
        raise WorkspaceError(
            f"the catalog is damaged: a vector is not of {dimensions:,} numbers; {DAMAGED}"
        ) from error


DOCUMENT_COLUMNS = [schema.documents.c[each.name] for each in fields(Document)]
CHUNK_COLUMNS = [schema.chunks.c[each.name] for each in fields(Chunk)]


def alive(kb_id: str) -> tuple[Condition, Condition]:
    return schema.documents.c.kb_id == kb_id, schema.documents.c.state != DocumentState.GONE.value


class Transaction(ABC):
    """One transaction; opaque above `kbkit.stores`."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def insert(self, table: sa.Table, rows: Sequence[Row]) -> None:
        if rows:
            self.execute(table.insert(), rows)

    def insert_one(self, table: sa.Table, /, **values: Any) -> Any:
        """Insert a row; return the first column of its key."""
        key = self.execute(table.insert().values(**values)).inserted_primary_key
        return key and key[0]

    def put(self, table: sa.Table, rows: Sequence[Row], *, replace: bool = True) -> None:
        """Insert rows; one with the key of an existing row replaces it, or is left out."""
        if rows:
            dialect = import_module(f"sqlalchemy.dialects.{self._connection.dialect.name}")
            insert = dialect.insert(table)
            new = {name: insert.excluded[name] for name in rows[0]}
            update = insert.on_conflict_do_update(index_elements=table.primary_key, set_=new)
            self.execute(update if replace else insert.on_conflict_do_nothing(), rows)

    def update(self, table: sa.Table, /, *conditions: Condition, **values: Any) -> None:
        self.execute(table.update().where(*conditions).values(**values))

    def update_each(self, table: sa.Table, keys: Sequence[str], rows: Sequence[Row]) -> None:
        """Update rows, each selected by its keys."""
        for names, group in groupby(rows, key=tuple):  # rows of the same columns at once
            bound = {name: sa.bindparam(f"of_{name}", type_=table.c[name].type) for name in names}
            conditions = (table.c[key] == bound.pop(key) for key in keys)
            values = [{f"of_{name}": value for name, value in row.items()} for row in group]
            self.execute(table.update().where(*conditions).values(bound), values)

    def delete(self, table: sa.Table, /, *conditions: Condition) -> None:
        self.execute(table.delete().where(*conditions))

    def first(
        self, columns: Iterable[Any], *conditions: Condition
    ) -> sa.Row[*tuple[Any, ...]] | None:
        return self.execute(sa.select(*columns).where(*conditions)).first()

    def scalars(self, query: sa.Select[Any]) -> list[Any]:
        return list(self.execute(query).scalars())

    def mapping(self, query: sa.Select[Any], **parameters: Any) -> dict[Any, Any]:
        """Map the first column to the second one."""
        return dict(map(tuple, self.execute(query, parameters)))

    def grouped(self, query: sa.Select[Any], **parameters: Any) -> dict[Any, list[Any]]:
        """Map the first column to the values of the second one, in order."""
        values_of: dict[Any, list[Any]] = {}
        for key, value in self.execute(query, parameters):
            values_of.setdefault(key, []).append(value)
        return values_of

    def existing(self, column: sa.Column[_T], values: Collection[_T]) -> set[_T]:
        """Return the values that a column has."""
        return set(self.scalars(sa.select(column).where(self.is_in(column, values)).distinct()))

    def count(self, of: sa.FromClause, *conditions: Condition) -> int:
        query = sa.select(sa.func.count()).select_from(of).where(*conditions)
        return int(self.execute(query).scalar_one())

    def execute(
        self, statement: sa.Executable, parameters: Row | Sequence[Row] | None = None
    ) -> sa.CursorResult[*tuple[Any, ...]]:
        return self._connection.execute(statement, parameters)

    def reserve_seqs(self, count: int) -> int:
        """Reserve ``count`` consecutive ``chunks.seq`` that were never used; return the first."""
        first = self.last_number(schema.chunks.c.seq) + 1
        self.number_after(schema.chunks.c.seq, first + count - 1)
        return first

    @abstractmethod
    def last_number(self, column: sa.Column[Any]) -> int:
        """Return the greatest number that a numbered column ever had; 0 for none."""

    @abstractmethod
    def number_after(self, column: sa.Column[Any], last: int) -> None:
        """Number new rows of a table after ``last`` and after all existing rows."""

    def is_in(self, column: sa.ColumnElement[Any], values: Collection[Any]) -> Condition:
        """Return ``column IN values`` for any number of strings or integers."""
        return self._is_in(column, sa.literal(self._bound(values)))

    def rows_in(
        self,
        query: sa.Select[Any],
        column: sa.ColumnElement[Any],
        values: Collection[Any],
        **parameters: Any,
    ) -> Sequence[sa.Row[*tuple[Any, ...]]]:
        """Return the rows of a constant query that `is_in` selects; faster than a new query."""
        statement = _selecting(type(self), query, column)
        return self.execute(statement, {"values": self._bound(values), **parameters}).all()

    @staticmethod
    @abstractmethod
    def _bound(values: Collection[Any]) -> Any:
        """Return values as one bound value, so that a statement is compiled once."""

    @staticmethod
    @abstractmethod
    def _is_in(column: sa.ColumnElement[Any], bound: sa.BindParameter[Any]) -> Condition: ...


@cache
def _selecting(
    kind: type[Transaction], query: sa.Select[Any], column: sa.ColumnElement[Any]
) -> sa.Select[Any]:
    return query.where(kind._is_in(column, sa.bindparam("values")))


class Database(Protocol):
    """The catalog, opened for this process; it may be used from several threads."""

    def read(self) -> AbstractContextManager[Transaction]:
        """Open a read-only transaction with a stable snapshot."""

    def write(self) -> AbstractContextManager[Transaction]:
        """Open a writing transaction; only one runs at a time over all processes."""

    def look_up(
        self, query: Callable[Concatenate[Transaction, _P], _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Run one query in a read-only transaction; it may not return an iterator."""
        with self.read() as transaction:
            return query(transaction, *args, **kwargs)

    def commit(
        self, edit: Callable[Concatenate[Transaction, _P], _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Make one change in a writing transaction."""
        with self.write() as transaction:
            return edit(transaction, *args, **kwargs)

    def changes(self) -> int:
        """Return a number that differs after every commit, by anyone.

        Searches call this several times, so it should take microseconds. Numbers of different
        processes are not comparable.
        """

    def chunks(self, seqs: Sequence[int]) -> dict[int, tuple[Chunk, Document]]:
        """Return chunks by ``seq``, each with its document (``content`` empty)."""

    def faults(self, *, repair: bool = False) -> list[str]:
        """Check the database's files; return the faults. `repair` first rebuilds the indexes."""

    def compact(self) -> int:
        """Free unused space; return the number of bytes, 0 if unknown."""

    def close(self) -> None:
        """Close all connections."""


_MAX_REPEATS = 20
"""Times that a batch may repeat, because other writers change its rows meanwhile."""


def batches(
    database: Database, read: Callable[[Transaction], Sequence[_T]]
) -> Iterator[Sequence[_T]]:
    """Yield batches of unfinished rows, each read in a new transaction, until none is left.

    The caller finishes a batch before it asks for the next one.

    Raises:
        WorkspaceError: A batch repeated too often, because an index of the catalog is damaged.
    """
    previous: Sequence[_T] = ()
    repeats = 0
    while True:
        batch = database.look_up(read)
        if not batch:
            return
        repeats = repeats + 1 if batch == previous else 0
        if repeats > _MAX_REPEATS:
            raise WorkspaceError(
                f"the catalog is damaged: rows that were just written are not found; {DAMAGED}"
            )
        yield batch
        previous = batch


class byte_length(sa.sql.functions.GenericFunction[int]):  # noqa: N801 - an SQL function
    """Number of bytes of a text in UTF-8."""

    type = sa.Integer()
    inherit_cache = True


@compiles(byte_length)
def _byte_length(element: byte_length, compiler: SQLCompiler, **options: Any) -> str:
    text = compiler.process(element.clause_expr, **options)
    if compiler.dialect.name == "postgresql":
        return f"octet_length{text}"
    return f"length(CAST({text} AS BLOB))"
