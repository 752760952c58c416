"""Copy a catalog into another database, resumably, table by table.

A resumed copy keeps complete tables. Until it is complete, a mark in place of the revision keeps
every kbkit from opening it.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy import Column, Table

from kbkit import models
from kbkit.errors import ConflictError, WorkspaceError
from kbkit.stores.backend import Locks
from kbkit.stores.catalog import knowledge_bases, outbox, runs
from kbkit.stores.catalog.database import Condition, Database, Row, Transaction
from kbkit.stores.catalog.revisions import UNFINISHED, VERSION
from kbkit.stores.catalog.schema import HEAD, metadata
from kbkit.stores.catalog.schema import knowledge_bases as bases

_MAX_NAMES = 3
_MAX_MESSAGE = 500


class _DifferentRowsError(WorkspaceError):
    """The copied rows differ from those of the source."""


@dataclass
class Copier:
    """Copies a catalog into an empty one, or continues an unfinished copy of the same source."""

    source: Database
    locks: Locks
    destination: Database
    address: str
    place: str
    notify: Callable[[models.Progress], None]
    kept: int = 0
    _done: int = field(default=0, init=False)
    _total: int = field(default=0, init=False)

    def run(self, before_end: Callable[[], None]) -> tuple[models.MigratedTable, ...]:
        with self.source.write():  # needs write permission, to lock out other writers
            pass
        self._require_free_destination()
        with self.source.write() as lock, self.source.read() as transaction:
            self._require_no_readers(transaction)
            self.destination.commit(mark, self.address)
            try:
                compared = self._copy_tables(transaction)
            except _DifferentRowsError:
                if not self.kept:
                    raise
                # the source changed since the copy was interrupted
                with self.destination.write() as copy:
                    for table in reversed(metadata.sorted_tables):
                        copy.delete(table)
                compared = self._copy_tables(transaction)
            before_end()
            lock.execute(sa.select(sa.literal(1)))  # fails if the write lock was lost
            with self.destination.write() as copy:
                for column in numbered_columns():
                    copy.number_after(column, transaction.last_number(column))
                finish(copy)
        return compared

    def _require_free_destination(self) -> None:
        with self.destination.read() as transaction:
            version = transaction.execute(sa.select(VERSION.c.version_num)).scalar_one()
            unfinished = version.startswith(UNFINISHED)
            if unfinished and version != mark_of(self.address):
                raise ConflictError(
                    f"{self.place}: a migration of another workspace, or by another version of "
                    "kbkit, was started here and is not complete; run it again, or name an "
                    "empty place to migrate to"
                )
            if unfinished or not any(map(transaction.count, tables())):
                return
            names = knowledge_bases.names(transaction)
        text = ", ".join(names[:_MAX_NAMES]) + (", ..." if len(names) > _MAX_NAMES else "")
        raise ConflictError(
            f"{self.place}: a whole workspace exists there{f' (with {text})' if text else ''} "
            "and was not changed; use it, or name an empty place to migrate to"
        )

    def _require_no_readers(self, transaction: Transaction) -> None:
        for source in runs.list_sources(transaction):
            if self.locks.is_held(source.lock):
                raise ConflictError(
                    f"a source is being read into this workspace ({source.location}); "
                    "wait for that to end, and run this again"
                )

    def _copy_tables(self, transaction: Transaction) -> tuple[models.MigratedTable, ...]:
        counts = {table: transaction.count(table) for table in tables()}
        self._total = sum(counts.values())
        self._done = self.kept = 0
        for table, count in counts.items():
            copied = self.destination.look_up(Transaction.count, table)
            if copied == count:
                self.kept += count
                self._advance("copy", count, table)
            else:
                if copied:
                    self.destination.commit(Transaction.delete, table)
                self._copy(transaction, table)
            if self_references(table):
                for batch in batches(rows(transaction, table)):
                    self.destination.commit(set_self_references, table, batch)
        return self._compare(transaction)

    def _copy(self, transaction: Transaction, table: sa.Table) -> None:
        for batch in batches(rows(transaction, table)):
            try:
                self.destination.commit(insert, table, batch)
            except sa.exc.DBAPIError as error:
                message = " ".join(str(error.orig).split())[:_MAX_MESSAGE]
                does_not_fit = isinstance(error, sa.exc.IntegrityError)
                kind = _DifferentRowsError if does_not_fit else WorkspaceError
                raise kind(
                    f"{self.place}: cannot keep a row of the table {table.name}: {message}; the "
                    "source is unchanged: correct the row there, and run this again"
                ) from error
            self._advance("copy", len(batch), table)

    def _compare(self, transaction: Transaction) -> tuple[models.MigratedTable, ...]:
        compared = []
        self._done = 0
        for table in tables():
            expected = digest(rows(transaction, table))
            with self.destination.read() as copy:
                count, text = digest(rows(copy, table))
            if (count, text) != expected:
                raise _DifferentRowsError(
                    f"{self.place}: the table {table.name} came to {count:,} rows ({text}) and "
                    f"not to the {expected[0]:,} ({expected[1]}) of {self.address}, which is "
                    "unchanged; stop other writers, and run this again"
                )
            compared.append(models.MigratedTable(table.name, count, text))
            self._advance("check", count, table)
        return tuple(compared)

    def _advance(self, stage: str, rows: int, table: sa.Table) -> None:
        self._done += rows
        if rows:
            self.notify(models.Progress(stage, self._done, self._total, table.name))


def copy_folder(source: Path, destination: Path) -> None:
    """Copy a folder; skip equal files. Raise `WorkspaceError` for other existing files."""
    try:
        destination.mkdir(parents=True, exist_ok=True)
        for entry in sorted(source.iterdir()):
            target = destination / entry.name
            if entry.is_dir() and not entry.is_symlink():
                copy_folder(entry, target)
            elif not os.path.lexists(target):
                draft = target.with_name(f".kbkit-{uuid4().hex}.part")
                try:
                    shutil.copy2(entry, draft, follow_symlinks=False)
                    draft.replace(target)
                finally:
                    draft.unlink(missing_ok=True)
            elif not _is_same(entry, target):
                raise WorkspaceError(
                    f"{target}: exists and differs from {entry}; move it away, and run this again"
                )
    except OSError as error:
        raise WorkspaceError(
            f"{error.filename or destination}: {error.strerror}; fix that, and run this again"
        ) from error


def _is_same(first: Path, second: Path) -> bool:
    if first.is_symlink() or second.is_symlink():
        return first.is_symlink() and second.is_symlink() and first.readlink() == second.readlink()
    return second.is_file() and filecmp.cmp(first, second, shallow=False)


_INDEX_TABLES = ("outbox", "dropped_collections")
"""Pending work of the source's vector index; the copy has its own index."""
_FETCHED = 50
"""Rows per fetch; some tables have long rows."""
_BATCH_BYTES = 4_000_000
_BATCH_ROWS = 5_000


def tables() -> list[Table]:
    return [table for table in metadata.sorted_tables if table.name not in _INDEX_TABLES]


def numbered_columns() -> list[Column[Any]]:
    """Columns whose numbers are never reused."""
    numbered = (t for t in metadata.sorted_tables if t.dialect_options["sqlite"]["autoincrement"])
    return [column for table in numbered for column in table.primary_key]


def rows(transaction: Transaction, table: Table, *conditions: Condition) -> Iterator[Row]:
    """Iterate over rows in key order."""
    query = sa.select(table).where(*conditions).order_by(*table.primary_key)
    result = transaction.execute(query.execution_options(yield_per=_FETCHED))
    return (dict(row._mapping) for row in result)


def batches(rows_read: Iterable[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    size = 0
    for row in rows_read:
        batch.append(row)
        size += sum(len(value) for value in row.values() if isinstance(value, str | bytes))
        if size > _BATCH_BYTES or len(batch) == _BATCH_ROWS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def insert(transaction: Transaction, table: Table, batch: Sequence[Row]) -> None:
    """Insert rows; `set_self_references` sets their self-references later."""
    refs = self_references(table)
    values = [{name: value for name, value in row.items() if name not in refs} for row in batch]
    transaction.insert(table, values)


def set_self_references(transaction: Transaction, table: Table, batch: Sequence[Row]) -> None:
    keys = table.primary_key.columns.keys()
    for reference in self_references(table):
        referring = (row for row in batch if row[reference] is not None)
        updates = [{name: row[name] for name in (*keys, reference)} for row in referring]
        transaction.update_each(table, keys, updates)


@cache
def self_references(table: Table) -> frozenset[str]:
    return frozenset(
        c.name for c in table.c if any(key.column.table is table for key in c.foreign_keys)
    )


def digest(rows_read: Iterable[Row]) -> tuple[int, str]:
    """Return the number of rows and a digest of them, in order."""
    count, hashed = 0, hashlib.blake2b(digest_size=16)
    for row in rows_read:
        count += 1
        values = [  # PostgreSQL cannot store NUL
            value.replace("\0", " ") if isinstance(value, str) else value for value in row.values()
        ]
        hashed.update(repr(values).encode())
    return count, hashed.hexdigest()


def mark(transaction: Transaction, source: str) -> None:
    transaction.execute(VERSION.update().values(version_num=mark_of(source)))


def mark_of(source: str) -> str:
    digest = hashlib.blake2b(source.encode(), digest_size=6).hexdigest()
    return f"{UNFINISHED} {HEAD} {digest}"


def finish(transaction: Transaction) -> None:
    """Mark a complete catalog as ready to be opened; its vector index starts empty."""
    for kb_id in knowledge_bases.ids(transaction):
        outbox.begin(transaction, knowledge_bases.get_by_id(transaction, kb_id))
    in_trash = sa.select(bases.c.id, bases.c.name).where(bases.c.deleted_at.is_not(None))
    for row in transaction.execute(in_trash).all():
        collection = f"{row.name}.{uuid4().hex[:8]}"
        knowledge_bases.change(transaction, row.id, collection=collection, applied_seq=0)
    transaction.execute(VERSION.update().values(version_num=HEAD))
