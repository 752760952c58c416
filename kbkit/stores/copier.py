"""Copy a catalog into another database, resumably."""

from __future__ import annotations

import filecmp
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sa

from kbkit.errors import ConflictError, WorkspaceError
from kbkit.models import MigratedTable, Progress
from kbkit.stores.catalog import copying, knowledge_bases, runs
from kbkit.stores.catalog.copying import Digest, Row
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.locks import Locks

_SHOWN = 3
_MAX_MESSAGE = 500


class _DifferentRowsError(Exception):
    """The copied rows of a table are not the first rows of the source's table."""


@dataclass
class Copier:
    """Copies a catalog into an empty one, or continues an unfinished copy of the same source."""

    source: Database
    locks: Locks
    destination: Database
    address: str
    place: str
    tell: Callable[[Progress], None]
    kept: int = 0
    _done: int = field(default=0, init=False)
    _total: int = field(default=0, init=False)

    def run(self, before_end: Callable[[], None]) -> tuple[MigratedTable, ...]:
        with self.source.write():  # needs write permission, to lock out other writers
            pass
        self._require_free_destination()
        with self.source.write() as held, self.source.read() as transaction:
            self._require_no_readers(transaction)
            with self.destination.write() as filled:
                copying.mark(filled, self.address)
            self._total = sum(transaction.count(table) for table in copying.tables())
            try:
                digests = self._copy_tables(transaction)
            except _DifferentRowsError:  # the source changed since the copy was interrupted
                self._empty()
                digests = self._copy_tables(transaction)
            tables = self._compare(digests)
            before_end()
            held.execute(sa.select(sa.literal(1)))  # fails if the write lock was lost
            with self.destination.write() as filled:
                for column in copying.numbered():
                    filled.number_after(column, transaction.last_number(column))
                copying.finish(filled)
        return tables

    def _require_free_destination(self) -> None:
        with self.destination.read() as transaction:
            mark = copying.stored_mark(transaction)
            if mark and mark != copying.mark_of(self.address):
                raise ConflictError(
                    f"{self.place}: a migration of another workspace, or by another version of "
                    "kbkit, was started here and is not complete; run it again, or name an "
                    "empty place to migrate to"
                )
            if mark or copying.is_empty(transaction):
                return
            names = knowledge_bases.names(transaction)
        shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
        raise ConflictError(
            f"{self.place}: a whole workspace exists there{f' (with {shown})' if shown else ''} "
            "and was not changed; use it, or name an empty place to migrate to"
        )

    def _require_no_readers(self, transaction: Transaction) -> None:
        for source in runs.list_sources(transaction):
            if self.locks.is_held(source.lock):
                raise ConflictError(
                    f"a source is being read into this workspace ({source.location}); "
                    "wait for that to end, and run this again"
                )

    def _copy_tables(self, transaction: Transaction) -> dict[str, Digest]:
        self._done = self.kept = 0
        return {table.name: self._copy(transaction, table) for table in copying.tables()}

    def _copy(self, transaction: Transaction, table: sa.Table) -> Digest:
        digest = Digest()
        source_rows = copying.rows(transaction, table)
        for row in self._copied_rows(table, source_rows):
            digest.add(row)
        self.kept += digest.rows
        self._advance("copy", digest.rows, table)
        for batch in copying.batches(source_rows):
            for row in batch:
                digest.add(row)
            with _explained(table, self.place), self.destination.write() as filled:
                copying.insert(filled, table, batch)
            self._advance("copy", len(batch), table)
        if copying.refers_to_itself(table):
            for batch in copying.batches(copying.rows(transaction, table)):
                with self.destination.write() as filled:
                    copying.set_self_references(filled, table, batch)
        return digest

    def _copied_rows(self, table: sa.Table, source_rows: Iterator[Row]) -> Iterator[Row]:
        with self.destination.read() as filled:
            for stored in copying.rows(filled, table):
                row = next(source_rows, None)
                if row is None or copying.beginning(table, row) != copying.beginning(table, stored):
                    raise _DifferentRowsError
                yield row

    def _empty(self) -> None:
        with self.destination.write() as filled:
            copying.empty(filled)

    def _compare(self, digests: dict[str, Digest]) -> tuple[MigratedTable, ...]:
        tables = []
        self._done = 0
        for table in copying.tables():
            expected, digest = digests[table.name], Digest()
            with self.destination.read() as filled:
                for row in copying.rows(filled, table):
                    digest.add(row)
            if (digest.rows, digest.text()) != (expected.rows, expected.text()):
                raise WorkspaceError(
                    f"{self.place}: the table {table.name} came to {digest.rows:,} rows "
                    f"({digest.text()}) and not to the {expected.rows:,} ({expected.text()}) of "
                    f"{self.address}, which is unchanged; stop other writers, and run this again"
                )
            tables.append(MigratedTable(table.name, digest.rows, digest.text()))
            self._advance("check", digest.rows, table)
        return tuple(tables)

    def _advance(self, stage: str, rows: int, table: sa.Table) -> None:
        self._done += rows
        if rows:
            self.tell(Progress(stage, self._done, self._total, table.name))


@contextmanager
def _explained(table: sa.Table, place: str) -> Iterator[None]:
    try:
        yield
    except sa.exc.DBAPIError as error:
        message = " ".join(str(error.orig).split())[:_MAX_MESSAGE]
        raise WorkspaceError(
            f"{place}: cannot keep a row of the table {table.name}: {message}; the source is "
            "unchanged: correct the row there, and run this again"
        ) from error


def copy_folder(source: Path, destination: Path) -> None:
    """Copy a folder; skip equal files. Raise `WorkspaceError` for other existing files."""
    try:
        destination.mkdir(parents=True, exist_ok=True)
        for entry in sorted(source.iterdir()):
            target = destination / entry.name
            if entry.is_dir() and not entry.is_symlink():
                copy_folder(entry, target)
            elif not os.path.lexists(target):
                _copy_file(entry, target)
            elif not _is_same(entry, target):
                raise WorkspaceError(
                    f"{target}: another file than {entry} is there; move it away, and run this "
                    "again"
                )
    except OSError as error:
        raise WorkspaceError(
            f"{error.filename or destination}: {error.strerror}; mend that, and run this again"
        ) from error


def _copy_file(source: Path, target: Path) -> None:
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return
    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=".kbkit-", suffix=".part")
    os.close(handle)
    try:
        shutil.copy2(source, draft)
        Path(draft).replace(target)
    finally:
        Path(draft).unlink(missing_ok=True)


def _is_same(one: Path, other: Path) -> bool:
    if one.is_symlink() or other.is_symlink():
        return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
    return other.is_file() and filecmp.cmp(one, other, shallow=False)
