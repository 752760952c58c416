"""What SQLite itself does, and what is said of its faults."""

import sqlite3
import threading

import pytest
import sqlalchemy as sa

from kbkit.errors import WorkspaceError
from kbkit.stores.catalog import knowledge_bases
from kbkit.stores.catalog.database import batches
from kbkit.stores.locks import FolderLocks
from kbkit.stores.sqlite.database import SqliteDatabase, explained

pytestmark = pytest.mark.local


def make(connection, name):
    return knowledge_bases.create(
        connection, name, description="", config={}, embedder="none", dimensions=2
    )


def names(database):
    with database.read() as connection:
        return knowledge_bases.names(connection)


def tables(database):
    with database.read() as connection:
        return set(connection.execute(sa.text("SELECT name FROM sqlite_master")).scalars())


def test_an_error_in_a_transaction_leaves_nothing(database):
    before = tables(database)

    def fail():
        with database.write() as connection:
            make(connection, "half")  # rows, and a table of its own
            assert knowledge_bases.names(connection) == ["half"]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert names(database) == []
    assert tables(database) == before


def test_what_was_committed_stays_when_the_next_transaction_fails(database):
    with database.write() as connection:
        make(connection, "one")

    def fail():
        with database.write() as connection:
            connection.execute(sa.text("UPDATE knowledge_bases SET description = 'x'"))
            connection.execute(sa.text("INSERT INTO vectors VALUES (1, x'00')"))  # of no chunk

    with pytest.raises(sa.exc.IntegrityError):
        fail()
    with database.read() as connection:
        assert knowledge_bases.get(connection, "one").description == ""


def test_a_reader_sees_one_state_while_others_write(database):
    with database.read() as connection:
        assert knowledge_bases.names(connection) == []
        with database.write() as writer:
            make(writer, "new")
        assert knowledge_bases.names(connection) == []
    assert names(database) == ["new"]


def test_writers_wait_for_one_another(database):
    began, order = threading.Event(), []

    def second():
        began.wait()
        with database.write() as connection:
            order.append("second")
            make(connection, "b")

    thread = threading.Thread(target=second)
    thread.start()
    with database.write() as connection:
        began.set()
        thread.join(0.2)
        make(connection, "a")
        order.append("first")
    thread.join(120)
    assert order == ["first", "second"]
    assert names(database) == ["a", "b"]


def test_two_open_the_same_file(database, tmp_path):
    other = SqliteDatabase(tmp_path / "catalog.db", FolderLocks(tmp_path / "locks"))
    with database.write() as connection:
        make(connection, "one")
    assert names(other) == ["one"]
    other.close()


@pytest.mark.parametrize(
    ("says", "advice"),
    [
        ("attempt to write a readonly database", "make it writable"),
        ("unable to open database file", "may write to it"),
        ("database disk image is malformed", "restore a backup"),
        ("file is not a database", "no catalog"),
        ("database or disk is full", "free some space"),
        ("disk I/O error", "full or fails: free some space; kbkit needs a local folder"),
        ("database is locked", "run this again"),
    ],
)
def test_what_sqlite_says_is_explained(tmp_path, says, advice):
    path = tmp_path / "catalog.db"
    with pytest.raises(WorkspaceError, match=advice) as caught, explained(path):
        raise sa.exc.OperationalError("SELECT 1", {}, sqlite3.OperationalError(says))
    assert str(caught.value).startswith(f"{path}: {says}")
    assert "SELECT" not in str(caught.value)


def test_what_is_our_own_mistake_is_not_explained_away(database):
    with pytest.raises(sa.exc.OperationalError), database.read() as connection:
        connection.execute(sa.text("SELECT nothing FROM nowhere"))


def test_a_catalog_that_turns_readonly_is_explained(database):
    def fail():
        with database.write() as connection:
            connection.execute(sa.text("PRAGMA query_only=ON"))
            make(connection, "one")

    with pytest.raises(WorkspaceError, match="make it writable"):
        fail()


def test_a_damaged_catalog_is_explained(database, tmp_path):
    with database.write() as connection:
        make(connection, "one")
    database.close()
    path = tmp_path / "catalog.db"
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with pytest.raises(WorkspaceError, match="restore a backup in a new folder"):
        names(SqliteDatabase(path, FolderLocks(tmp_path / "locks")))


def test_work_that_changes_nothing_ends_with_an_error(database):
    work = batches(database, lambda transaction: ["a", "b"])
    assert next(work) == ["a", "b"]
    with pytest.raises(WorkspaceError, match="rows that were just written are not found"):
        next(work)
