"""A catalog of its own, without a workspace around it."""

import pytest

from kbkit.stores import registry
from kbkit.stores.database import Database
from kbkit.stores.locks import FolderLocks


@pytest.fixture
def database(tmp_path):
    opened = Database(tmp_path / "catalog.db", FolderLocks(tmp_path / "locks"))
    yield opened
    opened.close()


@pytest.fixture
def kb_id(database):
    """Id of an empty knowledge base in it."""
    with database.write() as connection:
        return registry.create(
            connection, "notes", description="", config={}, embedder="none", dimensions=2
        ).id
