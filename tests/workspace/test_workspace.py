"""Creating, listing, searching and deleting knowledge bases of a workspace."""

import sqlite3

import pytest
import sqlalchemy as sa

import kbkit
from kbkit.errors import ConfigError, InvalidNameError, NotFoundError, WorkspaceError


def rows(workspace, table):
    with sqlite3.connect(workspace.path / "catalog.db") as connection:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def collections(workspace):
    with sqlite3.connect(workspace.path / "chroma" / "chroma.sqlite3") as connection:
        return {name for (name,) in connection.execute("SELECT name FROM collections")}


@pytest.mark.parametrize("name", ["", "A", "a b", "-a", "a-", "../x", "a" * 64, "ü"])
def test_invalid_name_is_refused(workspace, name):
    with pytest.raises(InvalidNameError, match="cannot name a knowledge base"):
        workspace.create(name)


def test_one_letter_name_works_despite_chroma_limit(workspace):
    kb = workspace.create("a")
    kb.add("Tea", "Steep for three minutes.")
    assert len(kb.search("tea")) == 1


def test_deletion_leaves_no_rows_or_collections(workspace):
    for name in ("keep", "drop"):
        kb = workspace.create(name)
        added = kb.add("Tea", "Steep for three minutes.")
        kb.rate(added.id, 5)
    workspace.delete("drop", forever=True)
    assert list(workspace) == ["keep"]
    assert workspace.trash() == []
    for table in ("documents", "chunks", "vectors", "ratings"):
        assert rows(workspace, table) == 1
    assert len(collections(workspace)) == 1
    workspace.create("drop")  # the name is free again


def test_several_knowledge_bases_are_searched_at_once(workspace):
    workspace.create("drinks").add("Tea", "Steep the tea for three minutes.")
    workspace.create("food").add("Bread", "Bake the bread for an hour.")
    hits = workspace.search("how long to bake bread")
    assert hits[0].kb == "food"
    assert {hit.kb for hit in workspace.search("tea", kbs=["drinks"])} == {"drinks"}
    with pytest.raises(NotFoundError, match="did you mean 'drinks'"):
        workspace.search("tea", kbs=["drink"])


def test_empty_list_of_knowledge_bases_is_refused(workspace):
    workspace.create("drinks").add("Tea", "Steep the tea for three minutes.")
    for search in (workspace.search, workspace.ask):
        with pytest.raises(ConfigError, match="kbs is empty"):
            search("tea", kbs=[])
    with pytest.raises(ConfigError, match="kbs is empty"):
        workspace.as_retriever(kbs=[])
    assert workspace.as_retriever(kbs="drinks").retrieve("tea")


def test_search_of_an_empty_workspace_hints_at_new(workspace):
    with pytest.raises(NotFoundError, match="kbkit new"):
        workspace.search("tea")


def test_unknown_language_is_refused_before_creation(workspace):
    with pytest.raises(ConfigError, match="german"):
        workspace.create("notes", spec=kbkit.KnowledgeBaseSpec(language="klingon"))
    assert len(workspace) == 0


def test_empty_catalog_file_is_completed(tmp_path):
    (tmp_path / "catalog.db").touch()  # killed before the first page was written
    with kbkit.open(tmp_path) as workspace:
        assert len(workspace) == 0


def test_foreign_file_in_place_of_the_catalog_is_kept(tmp_path):
    (tmp_path / "catalog.db").write_bytes(b"my diary " * 1000)
    with pytest.raises(WorkspaceError, match="not a database"):
        kbkit.open(tmp_path)
    assert (tmp_path / "catalog.db").read_bytes().startswith(b"my diary")


def test_path_below_a_file_is_a_clear_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(WorkspaceError, match="file"):
        kbkit.open(tmp_path / "file" / "kb")


def test_new_catalog_equals_a_migrated_one(tmp_path):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from kbkit.stores.catalog.revisions import create, upgrade
    from kbkit.stores.catalog.schema import metadata
    from tests.stores.workspaces import oldest_catalog

    def tables(url, make) -> dict[str, list[object]]:
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            make(connection)
            assert make is not create or (
                compare_metadata(MigrationContext.configure(connection), metadata) == []
            )
            inspector = sa.inspect(connection)
            parts = {}
            for name in inspector.get_table_names():
                columns = inspector.get_columns(name)
                parts[name] = [
                    *(column | {"type": str(column["type"])} for column in columns),
                    inspector.get_pk_constraint(name),
                    *inspector.get_foreign_keys(name),
                    *inspector.get_unique_constraints(name),
                    *inspector.get_indexes(name),
                ]
            revision = list(connection.execute(sa.text("SELECT * FROM alembic_version")))
        return {name: sorted(map(str, each)) for name, each in parts.items()} | {
            "revision": revision
        }

    created = tables("sqlite://", create)
    path = oldest_catalog(tmp_path / "old")
    upgraded = tables(f"sqlite:///{path}", upgrade)
    assert {name: upgraded[name] for name in created} == created
    assert len(created) > 40


def test_catalog_uses_a_write_ahead_log(workspace):
    with sqlite3.connect(workspace.path / "catalog.db") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
