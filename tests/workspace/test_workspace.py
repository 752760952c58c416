import sqlite3
import zipfile

import pytest
import sqlalchemy as sa

import kbkit
from kbkit.errors import (
    ConfigError,
    ConflictError,
    InvalidNameError,
    NotFoundError,
    WorkspaceError,
    WorkspaceVersionError,
)


@pytest.fixture
def workspace(tmp_path):
    with kbkit.open(tmp_path / "kb") as opened:
        yield opened


def rows(workspace, table):
    with sqlite3.connect(workspace.path / "catalog.db") as connection:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def collections(workspace):
    with sqlite3.connect(workspace.path / "chroma" / "chroma.sqlite3") as connection:
        return {name for (name,) in connection.execute("SELECT name FROM collections")}


def test_the_registry_keeps_what_was_made(workspace, tmp_path):
    workspace.create("notes", description="Mine")
    workspace["notes"].add("Tea", "Steep for three minutes.")
    with kbkit.open(tmp_path / "kb") as other:
        (info,) = other.list()
    assert (info.name, info.description, info.documents, info.chunks) == ("notes", "Mine", 1, 1)
    assert info.embedder.startswith("static:")
    assert info.created_at <= info.updated_at


@pytest.mark.parametrize("name", ["", "A", "a b", "-a", "a-", "../x", "a" * 64, "ü"])
def test_a_bad_name_is_refused(workspace, name):
    with pytest.raises(InvalidNameError, match="cannot name a knowledge base"):
        workspace.create(name)


def test_a_name_of_one_letter_works_though_chroma_wants_three(workspace):
    kb = workspace.create("a")
    kb.add("Tea", "Steep for three minutes.")
    assert len(kb.search("tea")) == 1


def test_a_taken_name_and_a_missing_one_are_clear_errors(workspace):
    workspace.create("notes")
    with pytest.raises(ConflictError, match="'notes'"):
        workspace.create("notes")
    with pytest.raises(NotFoundError, match="did you mean 'notes'"):
        workspace["note"]
    with pytest.raises(NotFoundError):
        workspace.delete("note")


def test_deleting_leaves_nothing_behind(workspace):
    for name in ("keep", "drop"):
        kb = workspace.create(name)
        added = kb.add("Tea", "Steep for three minutes.")
        kb.rate(added.id, 5)
    workspace.delete("drop", forever=True)
    assert list(workspace) == ["keep"]
    for table in ("documents", "chunks", "vectors", "ratings"):
        assert rows(workspace, table) == 1
    with sqlite3.connect(workspace.path / "catalog.db") as connection:
        query = "SELECT count(*) FROM sqlite_master WHERE sql LIKE '%USING fts5(%'"
        assert connection.execute(query).fetchone()[0] == 1
    assert len(collections(workspace)) == 1
    workspace.create("drop")  # the name is free again


def test_a_deleted_knowledge_base_says_so(workspace):
    kb = workspace.create("notes")
    workspace.delete("notes")
    with pytest.raises(NotFoundError, match="deleted"):
        kb.search("tea")
    with pytest.raises(NotFoundError, match="deleted"):
        kb.add("Tea", "Steep.")


def test_several_knowledge_bases_are_searched_at_once(workspace):
    workspace.create("drinks").add("Tea", "Steep the tea for three minutes.")
    workspace.create("food").add("Bread", "Bake the bread for an hour.")
    hits = workspace.search("how long to bake bread")
    assert hits[0].kb == "food"
    assert {hit.kb for hit in workspace.search("tea", kbs=["drinks"])} == {"drinks"}
    with pytest.raises(NotFoundError, match="did you mean 'drinks'"):
        workspace.search("tea", kbs=["drink"])


def test_an_empty_list_of_knowledge_bases_is_no_wish_for_all(workspace):
    workspace.create("drinks").add("Tea", "Steep the tea for three minutes.")
    for search in (workspace.search, workspace.ask):
        with pytest.raises(ConfigError, match="kbs is empty"):
            search("tea", kbs=[])
    with pytest.raises(ConfigError, match="kbs is empty"):
        workspace.as_retriever(kbs=[])
    assert workspace.as_retriever(kbs="drinks").retrieve("tea")


def test_an_empty_workspace_says_what_to_do(workspace):
    with pytest.raises(NotFoundError, match="kbkit new"):
        workspace.search("tea")


def test_an_unknown_language_is_refused_before_anything_is_made(workspace):
    with pytest.raises(ConfigError, match="german"):
        workspace.create("notes", spec=kbkit.KnowledgeBaseSpec(language="klingon"))
    assert len(workspace) == 0


def test_a_folder_made_by_a_newer_kbkit_is_left_alone(tmp_path):
    kbkit.open(tmp_path).close()
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    before = (tmp_path / "catalog.db").read_bytes()
    with pytest.raises(WorkspaceVersionError, match="upgrade kbkit"):
        kbkit.open(tmp_path)
    assert (tmp_path / "catalog.db").read_bytes() == before


def test_a_half_written_catalog_is_completed(tmp_path):
    (tmp_path / "catalog.db").touch()  # made, and killed before its first page was written
    with kbkit.open(tmp_path) as workspace:
        assert len(workspace) == 0


def test_a_file_that_is_no_catalog_is_refused_and_kept(tmp_path):
    (tmp_path / "catalog.db").write_bytes(b"my diary " * 1000)
    with pytest.raises(WorkspaceError, match="not a database"):
        kbkit.open(tmp_path)
    assert (tmp_path / "catalog.db").read_bytes().startswith(b"my diary")


def test_a_path_that_cannot_be_a_folder_is_a_clear_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(WorkspaceError, match="file"):
        kbkit.open(tmp_path / "file" / "kb")


def test_lost_or_damaged_vectors_are_made_anew_from_the_catalog(tmp_path):
    with kbkit.open(tmp_path) as workspace:
        kb = workspace.create("notes")
        kb.add("Tea", "Steep for three minutes.")
        kb.add("Bread", "Bake for an hour.")
    for damage in (
        lambda folder: [path.unlink() for path in folder.rglob("*") if path.is_file()],
        lambda folder: (folder / "chroma.sqlite3").write_bytes(b"nonsense" * 999),
        lambda folder: (folder / "chroma.sqlite3").write_bytes(b""),
    ):
        damage(tmp_path / "chroma")
        with kbkit.open(tmp_path) as workspace:
            hits = workspace["notes"].search("oven baked loaf", mode="dense")
            assert hits[0].title == "Bread"
            assert workspace["notes"].info().pending == 0


def test_a_new_catalog_is_what_all_migrations_come_to(tmp_path):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from kbkit.stores.catalog.migrating import create, upgrade
    from kbkit.stores.catalog.schema import OLDEST, metadata
    from tests.make_old_catalogs import ARCHIVE

    def tables(url, make) -> dict[str, list[object]]:
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            make(connection)
            assert make is not create or (
                compare_metadata(MigrationContext.configure(connection), metadata) == []
            )
            inspector = sa.inspect(connection)
            found = {
                name: sorted(
                    map(
                        str,
                        (
                            *(
                                {**column, "type": str(column["type"])}
                                for column in inspector.get_columns(name)
                            ),
                            inspector.get_pk_constraint(name),
                            *inspector.get_foreign_keys(name),
                            *inspector.get_unique_constraints(name),
                            *inspector.get_indexes(name),
                        ),
                    )
                )
                for name in inspector.get_table_names()
            }
            query = sa.text("SELECT * FROM alembic_version")
            return {**found, "revision": list(connection.execute(query))}

    created = tables("sqlite://", create)
    path = tmp_path / "old.db"
    with zipfile.ZipFile(ARCHIVE) as archive:
        path.write_bytes(archive.read(f"{OLDEST}.db"))
    upgraded = tables(f"sqlite:///{path}", upgrade)
    assert {name: upgraded[name] for name in created} == created
    assert len(created) > 40


def test_writes_use_a_journal_that_readers_do_not_wait_for(workspace):
    with sqlite3.connect(workspace.path / "catalog.db") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
