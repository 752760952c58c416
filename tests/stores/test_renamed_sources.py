"""A workspace whose URIs were paths of the machine gets names for them, and loses nothing."""

from __future__ import annotations

import contextlib
import json
import sqlite3

import pytest

import kbkit
from kbkit.recipes import FilesSource, OpenApiSource
from tests.old_catalogs import KNOWLEDGE_TABLES, forget_card_versions

API = {
    "openapi": "3.0.0",
    "info": {"title": "Tea", "version": "1"},
    "paths": {
        "/tea": {"get": {"summary": "Makes tea", "responses": {"200": {"description": "."}}}}
    },
}


# no catalog on a server is that old
pytestmark = pytest.mark.local


@pytest.fixture
def old(tmp_path, monkeypatch):
    """A workspace as revision 0014 of the catalog left it, and the folder of its sources."""
    docs = tmp_path / "docs"
    (docs / "deep").mkdir(parents=True)
    (docs / "a.md").write_text("# Tea\n\nTea is steeped for three minutes.\n")
    (docs / "deep/t.csv").write_text("name,price\ntea,1\n")
    (tmp_path / "api.json").write_text(json.dumps(API))
    (tmp_path / "work").mkdir()
    (tmp_path / "work/own.md").write_text("# Own\n\nBelow the base.\n")
    monkeypatch.chdir(tmp_path / "work")
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("tea")
        kb.ingest(FilesSource(path=str(docs)), FilesSource(path="own.md"))
        kb.ingest(OpenApiSource(path=str(tmp_path / "api.json")))
        kb.add("By hand", "Written by hand.", source="by-hand")
        kb.rate(kb.documents["docs/a.md"].id, 5)
        kb.rate(kb.chunks.of("docs/a.md")[0].id, 4, query="how long")
    with contextlib.closing(sqlite3.connect(tmp_path / "kb/catalog.db")) as connection, connection:
        for name in ("docs", "api.json"):
            for table, column in (
                ("documents", "uri"),
                ("pages", "url"),
                ("pages", "document_uri"),
            ):
                connection.execute(
                    f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE {column} LIKE ?",
                    (str(tmp_path / name), len(name) + 1, f"{name}%"),
                )
        connection.execute("UPDATE documents SET uri = ? WHERE uri = 'by-hand'", (str(docs / "h"),))
        (docs / "h").touch()
        for table in KNOWLEDGE_TABLES:
            connection.execute(f"DROP TABLE {table}")
        forget_card_versions(connection)
        connection.execute("DROP TABLE deleted_documents")
        connection.execute("ALTER TABLE knowledge_bases DROP COLUMN deleted_at")
        for column in ("name", "enabled"):
            connection.execute(f"ALTER TABLE sources DROP COLUMN {column}")
        connection.execute("UPDATE alembic_version SET version_num = '0014'")
    return tmp_path


def test_documents_get_names_and_keep_all_else(old):
    with kbkit.open(old / "kb") as workspace:
        kb = workspace["tea"]
        uris = [document.uri for document in kb.documents]
        assert not any(str(old) in uri for uri in uris)
        assert {"docs/a.md", "docs/deep/t.csv", "own.md", "api.json"} <= set(uris)
        assert any(uri.startswith("api.json#/") for uri in uris)
        before = {document.uri: document.id for document in kb.documents}
        assert kb.search("steeped")[0].uri == "docs/a.md"
        report = kb.refresh()
        assert (report.new, report.gone, report.chunks_embedded) == (0, 0, 0)
        assert {document.uri: document.id for document in kb.documents} == before
        assert [rating.score for rating in kb.ratings] == [5, 4]
        assert len(kb.feedback.judgements()) == 1
        assert kb.documents[str(old / "docs/a.md")].uri == "docs/a.md"


def test_changed_and_lost_files_are_known_by_their_names(old):
    (old / "docs/a.md").write_text("# Tea\n\nTea is steeped for four minutes.\n")
    (old / "docs/deep/t.csv").unlink()
    with kbkit.open(old / "kb") as workspace:
        report = workspace["tea"].refresh()
        assert (report.new, report.changed, report.gone) == (0, 1, 1)
