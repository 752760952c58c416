"""Transactions of SQLite, and its errors."""

import sqlite3
from itertools import islice

import pytest
import sqlalchemy as sa

from kbkit.errors import WorkspaceError
from kbkit.stores.backend import FolderLocks
from kbkit.stores.catalog import knowledge_bases
from kbkit.stores.catalog.database import batches
from kbkit.stores.sqlite_database import SqliteDatabase, explain_errors
from tests.stores.workspaces import create_row

pytestmark = pytest.mark.local


def names(database):
    with database.read() as connection:
        return knowledge_bases.names(connection)


def tables(database):
    with database.read() as connection:
        return set(connection.execute(sa.text("SELECT name FROM sqlite_master")).scalars())


def test_failed_transaction_leaves_no_table(database):
    before = tables(database)

    def fail():
        with database.write() as connection:
            create_row(connection, "half")  # rows, and a table of its own
            assert knowledge_bases.names(connection) == ["half"]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert names(database) == []
    assert tables(database) == before


def test_other_processes_write_while_the_background_pauses(database, tmp_path, monkeypatch):
    pauses = []

    def write(seconds):
        pauses.append(seconds)
        other = SqliteDatabase(database.path, FolderLocks(tmp_path / "locks"))
        with other.write() as connection:
            create_row(connection, "between")
        other.close()

    monkeypatch.setattr("kbkit.stores.sqlite_database.time.sleep", write)
    database.pauses = True
    with database.write() as connection:
        create_row(connection, "one")
    assert names(database) == ["between", "one"]
    assert 0 < pauses[0] <= 0.12


def test_commits_survive_a_later_failure(database):
    with database.write() as connection:
        create_row(connection, "one")

    def fail():
        with database.write() as connection:
            connection.execute(sa.text("UPDATE knowledge_bases SET description = 'x'"))
            connection.execute(sa.text("INSERT INTO vectors VALUES (1, x'00')"))  # of no chunk

    with pytest.raises(sa.exc.IntegrityError):
        fail()
    with database.read() as connection:
        assert knowledge_bases.get(connection, "one").description == ""


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("attempt to write a readonly database", "make it writable"),
        ("unable to open database file", "may write to it"),
        ("database disk image is malformed", "restore a backup"),
        ("file is not a database", "not a catalog"),
        ("database or disk is full", "free some space"),
        ("disk I/O error", "full or fails: free some space; kbkit needs a local folder"),
        ("database is locked", "run this again"),
    ],
)
def test_sqlite_errors_are_explained(tmp_path, message, advice):
    path = tmp_path / "catalog.db"
    with pytest.raises(WorkspaceError, match=advice) as caught, explain_errors(path):
        raise sa.exc.OperationalError("SELECT 1", {}, sqlite3.OperationalError(message))
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "SELECT" not in str(caught.value)


def test_invalid_sql_stays_an_operational_error(database):
    with pytest.raises(sa.exc.OperationalError), database.read() as connection:
        connection.execute(sa.text("SELECT nothing FROM nowhere"))


def test_read_only_catalog_is_explained(database):
    def fail():
        with database.write() as connection:
            connection.execute(sa.text("PRAGMA query_only=ON"))
            create_row(connection, "one")

    with pytest.raises(WorkspaceError, match="make it writable"):
        fail()


def test_damaged_catalog_is_explained(database, tmp_path):
    with database.write() as connection:
        create_row(connection, "one")
    database.close()
    path = tmp_path / "catalog.db"
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with pytest.raises(WorkspaceError, match="restore a backup in a new folder"):
        names(SqliteDatabase(path, FolderLocks(tmp_path / "locks")))


def test_batches_without_progress_end_with_an_error(database):
    work = batches(database, lambda transaction: ["a", "b"])
    again = list(islice(work, 21))  # others may change rows between two reads
    assert again == [["a", "b"]] * 21
    with pytest.raises(WorkspaceError, match="rows that were just written are not found"):
        next(work)
