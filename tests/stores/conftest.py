"""Fixtures: a catalog without a workspace."""

import os
from contextlib import suppress

import pytest

from kbkit.errors import KbkitError
from kbkit.stores.backend import FolderLocks
from kbkit.stores.snapshots import near_chunks
from kbkit.stores.snapshots.snapshots import Warmer
from kbkit.stores.sqlite_database import SqliteDatabase
from tests.stores.workspaces import create_row


@pytest.fixture
def database(tmp_path, request):
    if os.environ.get("KBKIT_TEST_DATABASE") == "postgresql":
        from kbkit.stores.postgres_database import PostgresDatabase

        opened = PostgresDatabase(request.getfixturevalue("postgres").catalog())
    else:
        opened = SqliteDatabase(tmp_path / "catalog.db", FolderLocks(tmp_path / "locks"))
    yield opened
    opened.close()


@pytest.fixture
def kb_id(database):
    with database.write() as connection:
        return create_row(connection, "notes").id


@pytest.fixture
def index_asked(monkeypatch):
    """Searches open and ask the index of vectors, as if there were too many to scan."""

    def searched(warmer, kb_id, **_):
        with suppress(KbkitError):
            warmer.vectors.open(kb_id)

    monkeypatch.setattr("kbkit.stores.snapshots.segments.SCAN_LIMIT", 0)
    monkeypatch.setattr(near_chunks, "is_coded", lambda _: False)
    monkeypatch.setattr(Warmer, "record_search", searched)
    monkeypatch.setattr("kbkit.stores.vector_index._RETRY_SECONDS", 0.0)
