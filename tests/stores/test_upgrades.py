"""Older catalogs are backed up, upgraded and searched."""

import logging
import sqlite3

import pytest

import kbkit
from kbkit.errors import WorkspaceVersionError
from kbkit.stores.backend import FolderLocks
from kbkit.stores.catalog.schema import OLDEST
from kbkit.stores.sqlite_database import SqliteDatabase
from tests.stores.workspaces import oldest_catalog

pytestmark = pytest.mark.local


def contents(path):
    with sqlite3.connect(path) as connection:
        return list(connection.execute("SELECT id, text FROM chunks ORDER BY seq")), list(
            connection.execute("SELECT target, score, query, rater FROM ratings")
        )


def old_tables(path):
    with sqlite3.connect(path) as connection:
        query = "SELECT name FROM sqlite_master WHERE name LIKE 'lexical%' OR name LIKE 'replayed%'"
        return connection.execute(query).fetchall()


def test_old_tables_are_dropped(tmp_path):
    kbkit.open(tmp_path / "kb").close()
    path = tmp_path / "kb/catalog.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE replayed_answers (key TEXT)")
        connection.execute("CREATE VIRTUAL TABLE lexical_0af USING fts5(terms, content='')")
        connection.execute(
            "CREATE VIRTUAL TABLE lexical_0af_terms USING fts5vocab(lexical_0af, row)"
        )
    assert old_tables(path)
    kbkit.open(tmp_path / "kb").close()
    assert not old_tables(path)


def test_older_catalog_is_backed_up_and_upgraded(tmp_path, caplog):
    path = oldest_catalog(tmp_path / "kb")
    before = contents(path)
    with caplog.at_level(logging.WARNING):
        SqliteDatabase(path, FolderLocks(tmp_path / "kb/locks")).close()
    assert contents(path) == before
    assert not old_tables(path)
    kept = path.with_name(f"catalog-{OLDEST}.db")
    assert str(kept) in caplog.text
    with sqlite3.connect(kept) as copy:
        assert copy.execute("SELECT version_num FROM alembic_version").fetchall() == [(OLDEST,)]
    assert contents(kept) == before


def test_old_workspace_is_searchable(tmp_path):
    oldest_catalog(tmp_path / "kb")
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace["drinks"]
        assert kb.search("tea")[0].title == "Tea"
        assert kb.ratings.total(kb.documents["text:Tea"].id).average == 4
        kb.add("Cocoa", "# Cocoa\n\nSweet.\n")
        assert kb.search("sweet cocoa")[0].title == "Cocoa"


def test_catalog_before_first_release_is_refused_unchanged(tmp_path):
    path = oldest_catalog(tmp_path / "kb")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0023'")
    with pytest.raises(WorkspaceVersionError, match="build its recipes again"):
        kbkit.open(tmp_path / "kb")
    assert contents(path)


def test_catalog_of_newer_kbkit_is_refused_unchanged(tmp_path):
    kbkit.open(tmp_path / "kb").close()
    path = tmp_path / "kb/catalog.db"
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    before = path.read_bytes()
    with pytest.raises(WorkspaceVersionError, match="upgrade kbkit"):
        kbkit.open(tmp_path / "kb")
    assert [each.name for each in path.parent.glob("*.db")] == ["catalog.db"]
    assert path.read_bytes() == before
