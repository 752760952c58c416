"""A catalog of its own, without a workspace around it."""

import os

import pytest

import kbkit
from kbkit.stores.catalog import knowledge_bases
from kbkit.stores.locks import FolderLocks
from kbkit.stores.sqlite.database import SqliteDatabase


@pytest.fixture
def database(tmp_path, request):
    if os.environ.get("KBKIT_TEST_DATABASE") == "postgresql":
        from kbkit.stores.postgres.database import PostgresDatabase

        opened = PostgresDatabase(request.getfixturevalue("postgres").catalog())
    else:
        opened = SqliteDatabase(tmp_path / "catalog.db", FolderLocks(tmp_path / "locks"))
    yield opened
    opened.close()


@pytest.fixture
def kb_id(database):
    """Id of an empty knowledge base in it."""
    with database.write() as connection:
        return knowledge_bases.create(
            connection, "notes", description="", config={}, embedder="none", dimensions=2
        ).id


@pytest.fixture
def workspace(tmp_path):
    with kbkit.open(tmp_path / "kb") as opened:
        yield opened
