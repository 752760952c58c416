"""Every backend behaves equally."""

import shutil
import subprocess
import sys
from itertools import count

import pytest
import sqlalchemy as sa

from kbkit.stores.backend import FolderLocks
from kbkit.stores.chroma_folder import ChromaStore
from kbkit.stores.sqlite_database import SqliteDatabase
from tests.stores.database_conformance import DatabaseConformance
from tests.stores.vector_store_conformance import VectorStoreConformance

NUMBERS = count(1)
# all of them are here, whatever the other tests run on
pytestmark = pytest.mark.local


class TestSqlite(DatabaseConformance):
    def open_database(self, folder):
        return SqliteDatabase(folder / "catalog.db", FolderLocks(folder / "locks"))


class TestPostgres(DatabaseConformance):
    @pytest.fixture(autouse=True)
    def opened(self, postgres):
        self.url = postgres.catalog()

    def open_database(self, folder):
        from kbkit.stores.postgres_database import PostgresDatabase

        return PostgresDatabase(self.url)


class TestChroma(VectorStoreConformance):
    def open_store(self, folder):
        return ChromaStore(folder / "chroma")

    def damage(self, folder):
        (folder / "chroma" / "chroma.sqlite3").write_bytes(b"not a database " * 500)

    def write_elsewhere(self, folder, name, known_as, vector):
        code = (
            "import sys, numpy as np\n"
            "from pathlib import Path\n"
            "from kbkit.stores.chroma_folder import ChromaStore\n"
            "store = ChromaStore(Path(sys.argv[1]))\n"
            "vector = np.array(eval(sys.argv[4]), np.float32)\n"
            "store.upsert(sys.argv[2], [sys.argv[3]], vector[None, :])\n"
            "store.close()\n"
        )
        values = [str(folder / "chroma"), name, known_as, str(vector.tolist())]
        subprocess.run([sys.executable, "-c", code, *values], check=True)


class TestChromaEmptied(TestChroma):
    """The folder is removed rather than damaged."""

    most = 10

    def damage(self, folder):
        shutil.rmtree(folder / "chroma")


class TestPgvector(VectorStoreConformance):
    few, options = 10_000, ""
    most = 2_000

    @pytest.fixture(autouse=True)
    def opened(self, pgvector, monkeypatch):
        self.server, self.name = pgvector, f"vectors{next(NUMBERS)}"
        monkeypatch.setattr("kbkit.stores.postgres_vectors._FEW", self.few)
        pgvector.execute(f"CREATE SCHEMA {self.name}")
        options = f"-csearch_path%3D{self.name}%20{self.options}"
        self.engine = sa.create_engine(f"{pgvector.url('postgres')}&options={options}")
        yield
        self.engine.dispose()

    def open_store(self, folder):
        from kbkit.stores.postgres_vectors import pgvector_on

        return pgvector_on(self.engine, "here")

    def damage(self, folder):
        self.server.execute(f"DROP SCHEMA {self.name} CASCADE; CREATE SCHEMA {self.name}")


class TestPgvectorWithGraph(TestPgvector):
    """Each collection has a graph from its first vector on, and searches use it."""

    few, options = 0, "-cenable_seqscan%3Doff"
