"""Vectors in PostgreSQL by pgvector: its use, its searches and faults."""

import logging

import numpy as np
import pytest
import sqlalchemy as sa

import kbkit
from kbkit.errors import StoreUnreachableError
from kbkit.models import SourceDocument
from kbkit.stores.backend import VectorStore
from kbkit.stores.catalog import knowledge_bases
from kbkit.stores.postgres_vectors import PgVectorStore
from tests.stores.workspaces import DRINKS, as_reader, execute, fill, opened, ranked

pytestmark = pytest.mark.local

TAGS = ["rare", "common"]


@pytest.fixture(autouse=True)
def index_asked(index_asked, monkeypatch):
    monkeypatch.setattr("kbkit.stores.postgres_vectors._FEW", 0)


@pytest.fixture
def url(pgvector):
    return pgvector.catalog()


def store_of(workspace):
    return workspace._stores.vectors._store


def row_of(workspace):
    with workspace._stores.database.read() as transaction:
        return knowledge_bases.get(transaction, "drinks")


def named(workspace, k=10):
    """Number of chunks that the index itself returns."""
    query = np.full(row_of(workspace).dimensions, 0.1, np.float32)
    return len(workspace._stores.vectors.ask(row_of(workspace), query, k).ids)


def tables(url):
    engine = sa.create_engine(url)
    try:
        with engine.connect() as connection:
            query = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'vectors\\_%'"
            return connection.execute(sa.text(query)).scalars().all()
    finally:
        engine.dispose()


def test_pgvector_is_used_if_installed(tmp_path, url):
    with opened(tmp_path / "one", url) as one, opened(tmp_path / "two", url) as two:
        assert isinstance(store_of(one), PgVectorStore)
        kb = fill(one)
        assert row_of(one).collection.endswith(".pgvector")
        assert kb.info().pending == 0
        assert ranked(kb, "serve red wine")[0] == "red wine"
        assert ranked(two["drinks"], "serve red wine") == ranked(kb, "serve red wine")
        assert named(one) == named(two) == len(DRINKS)
        two["drinks"].add("Maté", "# Maté\n\nHow to serve maté to guests.\n")
        kb.documents.delete("text:rum")
        assert ranked(kb, "serve maté")[0] == "Maté"
        assert "rum" not in ranked(two["drinks"], "rum")
        assert len(tables(url)) == 1
        one.delete("drinks")
        one.compact()
    assert tables(url) == []


def test_filtered_search_returns_the_full_limit(tmp_path, url):
    with opened(tmp_path, url) as workspace:
        kb = workspace.create("drinks")
        kb.ingest(
            SourceDocument(f"n:{n}", f"Tea {n}", f"Tea number {n} is hot.", tags=[TAGS[n % 10 > 0]])
            for n in range(120)
        )
        hits = kb.search("cold coffee", mode="dense", limit=12, filters={"tags": ["rare"]})
        assert len({hit.title for hit in hits}) == 12
        assert all("rare" in hit.tags for hit in hits)
        assert len(ranked(kb, "tea", limit=100)) == 100


@pytest.mark.slow
def test_search_uses_the_catalog_without_pgvector(tmp_path, url, chroma):
    with opened(tmp_path, url) as workspace:
        expected = ranked(fill(workspace), "cold drinks")
    with opened(tmp_path, url, pgvector=False) as workspace:
        assert type(store_of(workspace)) is VectorStore
        assert ranked(workspace["drinks"], "cold drinks") == expected
        workspace["drinks"].add("gin", "# gin\n\nHow to serve gin to guests.\n")
        expected = ranked(workspace["drinks"], "cold drinks")
    with opened(tmp_path, url) as workspace:  # rebuilt from the catalog
        assert ranked(workspace["drinks"], "cold drinks") == expected
        assert named(workspace) == len(DRINKS) + 1
    with opened(tmp_path, url, chroma_url=chroma.url(chroma.database())) as workspace:
        assert not isinstance(store_of(workspace), PgVectorStore)
        assert ranked(workspace["drinks"], "cold drinks") == expected


@pytest.mark.slow
def test_missing_right_to_create_the_extension_is_no_error(tmp_path, pgvector, caplog):
    pgvector.execute("DROP DATABASE IF EXISTS theirs")
    pgvector.execute("DROP ROLE IF EXISTS ann")
    pgvector.execute("CREATE ROLE ann LOGIN")
    pgvector.execute("CREATE DATABASE theirs OWNER ann")
    url = pgvector.url("theirs", "ann")
    with caplog.at_level(logging.INFO, "kbkit"), opened(tmp_path, url) as workspace:
        assert type(store_of(workspace)) is VectorStore
        assert "ask for CREATE EXTENSION vector" in caplog.text
        expected = ranked(fill(workspace), "cold drinks")
    execute(pgvector, url, "CREATE EXTENSION vector")
    with opened(tmp_path, url) as workspace:
        assert isinstance(store_of(workspace), PgVectorStore)
        assert ranked(workspace["drinks"], "cold drinks") == expected
        assert named(workspace) == len(DRINKS)


def test_older_pgvector_is_not_used(tmp_path, url, monkeypatch, caplog):
    monkeypatch.setattr("kbkit.stores.postgres_vectors._OLDEST", (99,))
    with caplog.at_level(logging.INFO, "kbkit"), opened(tmp_path, url) as workspace:
        assert type(store_of(workspace)) is VectorStore
    assert "is too old; ALTER EXTENSION vector UPDATE" in caplog.text


@pytest.mark.slow
def test_schemas_have_separate_vectors(tmp_path, pgvector, url):
    with opened(tmp_path / "one", url) as workspace:
        fill(workspace)
    execute(pgvector, url, "CREATE SCHEMA own")
    with opened(tmp_path / "two", f"{url}&options=-csearch_path%3Down") as workspace:
        assert ranked(fill(workspace, DRINKS[:2]), "tea")[0] == "green tea"
        assert named(workspace) == 2
    execute(pgvector, url, "DROP SCHEMA own CASCADE")
    with opened(tmp_path / "one", url) as workspace:
        assert ranked(workspace["drinks"], "tea")[0] == "green tea"
        assert named(workspace) == len(DRINKS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE {}",
        "DELETE FROM {}",
        "DROP TABLE {0}; CREATE TABLE {0} (id text PRIMARY KEY, embedding halfvec(3))",
    ],
)
def test_lost_vectors_are_rebuilt(tmp_path, pgvector, url, damage):
    with opened(tmp_path, url) as workspace:
        expected = ranked(fill(workspace), "cold drinks")
    execute(pgvector, url, damage.format(tables(url)[0]))
    with opened(tmp_path, url) as workspace:
        assert ranked(workspace["drinks"], "cold drinks") == expected
        assert named(workspace) == len(DRINKS)


@pytest.mark.parametrize("searched", [True, False])
def test_dropped_extension_loses_nothing(tmp_path, pgvector, url, caplog, searched):
    with opened(tmp_path, url) as workspace:
        kb = fill(workspace)
        expected = ranked(kb, "cold drinks")
        execute(pgvector, url, "DROP EXTENSION vector CASCADE")
        if searched:
            assert ranked(kb, "cold drinks") == expected
            assert "continuing without the index of vectors" in caplog.text
        with pytest.raises(StoreUnreachableError, match="the extension vector is there"):
            kb.add("gin", "# gin\n\nHow to serve gin to guests.\n")
        if searched:
            assert ranked(kb, "serve gin")[0] == "gin"
        execute(pgvector, url, "CREATE EXTENSION vector")
        kb.add("tonic", "# tonic\n\nHow to serve tonic to guests.\n")
        assert kb.info().pending == 0
        assert named(workspace) == len(DRINKS) + 2


def test_doctor_checks_each_vector(tmp_path, pgvector, url):
    with opened(tmp_path, url) as workspace:
        fill(workspace)
        assert workspace.doctor().sound
        table = tables(url)[0]
        execute(
            pgvector,
            url,
            f"UPDATE {table} SET embedding = (SELECT embedding FROM {table} ORDER BY id LIMIT 1)"
            f" WHERE id = (SELECT max(id) FROM {table})",
        )
        problems = [finding.problem for finding in workspace.doctor(repair=True).findings]
        assert problems == ["its index of vectors has wrong vectors for 1 chunks"]
        assert workspace.doctor().sound
        workspace.rebuild(["drinks"])
        assert named(workspace) == len(DRINKS)


def test_read_only_role_can_search(tmp_path, pgvector, url):
    with opened(tmp_path / "one", url) as workspace:
        expected = ranked(fill(workspace), "cold drinks")
    url = as_reader(pgvector, url)
    for enabled in (True, False):  # without pgvector nothing can be rebuilt
        with opened(tmp_path / f"two{enabled}", url, pgvector=enabled) as workspace:
            assert ranked(workspace["drinks"], "cold drinks") == expected


def test_workspace_moves_to_pgvector_and_back(tmp_path, url, monkeypatch):
    with opened(tmp_path / "one", "") as workspace:
        expected = ranked(fill(workspace), "cold drinks")
    kbkit.migrate(tmp_path / "one", to=url)
    with opened(tmp_path / "two", url) as workspace:
        assert ranked(workspace["drinks"], "cold drinks") == expected
        assert named(workspace) == len(DRINKS)
    monkeypatch.setenv("KBKIT_DATABASE_URL", url)
    kbkit.migrate(tmp_path / "two", to=tmp_path / "three")
    with opened(tmp_path / "three", "") as workspace:
        assert ranked(workspace["drinks"], "cold drinks") == expected
