"""A workspace moves to a server and back, despite kills and conflicts."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from functools import partial

import pytest
import sqlalchemy as sa

import kbkit
from kbkit.errors import (
    ConfigError,
    ConflictError,
    ImpossibleError,
    MissingExtraError,
    WorkspaceError,
    WorkspaceVersionError,
)
from kbkit.models import Mode
from kbkit.stores.catalog import copying
from kbkit.stores.catalog.schema import chunks
from kbkit.stores.postgres_database import PostgresDatabase
from tests.stores.test_postgres import QUESTIONS, fill
from tests.stores.workspaces import execute, opened

pytestmark = pytest.mark.local


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A workspace with rows in nearly all tables."""
    folder = tmp_path_factory.mktemp("filled") / "kb"
    with opened(folder) as workspace:
        kb = fill(workspace)
        kb.add("Zero", "One \0 two: see `sleep(1)`.", tags=["a\0b"])
        kb.documents.delete("text:Zebra")
        kb.add("Last", "Its number was the greatest.")
        kb.documents.delete("text:Last")
        workspace.compact()
        kb.documents.delete("text:Water")
        workspace.create("old").add("Rum", "Rum is distilled.")
        workspace.delete("old")
        workspace.files.write("notes/tea.md", "# Tea\n\nSteep [[coffee]].\n")
        workspace.files.write("coffee.md", "# Coffee\n\nGrind.\n")
        for name in ("AAA drink", "zzz drink"):
            workspace.graph.create(name, type="drink")
        workspace.graph.merge("zzz drink", "AAA drink")
    return folder


@pytest.fixture
def folder(filled, tmp_path):
    return shutil.copytree(filled, tmp_path / "kb")


def to_server(monkeypatch, url):
    monkeypatch.setenv("KBKIT_DATABASE_URL", url)


def answers(folder, url="", questions=QUESTIONS[:2]):
    with opened(folder, url) as workspace:
        return [
            [(hit.chunk.id, hit.score, hit.snippet) for hit in kb.search(query, mode=mode)]
            for kb in map(workspace.__getitem__, workspace)
            for mode in Mode
            for query in questions
        ]


def last_numbers(workspace):
    with workspace._stores.database.read() as transaction:
        return [transaction.last_number(column) for column in copying.numbered_columns()]


def contents(folder):
    with sqlite3.connect(folder / "catalog.db") as connection:
        return list(connection.iterdump())


def test_workspace_moves_to_a_server_and_back(folder, tmp_path, postgres, monkeypatch):
    before = answers(folder, "", QUESTIONS[:7])
    assert sum(map(len, before)) > 50
    with opened(folder) as workspace:
        numbers = last_numbers(workspace)
        with workspace._stores.database.read() as transaction:
            highest = transaction.execute(sa.select(sa.func.max(chunks.c.seq))).scalar_one()
        assert highest < max(numbers)
    url, content = postgres.empty(), contents(folder)
    forth = kbkit.migrate(folder, to=url)
    assert {table.name: table.rows for table in forth.tables}["documents"] == 9
    assert not forth.kept
    assert not forth.folders
    assert contents(folder) == content
    assert answers(folder, url, QUESTIONS[:7]) == before
    to_server(monkeypatch, url)
    back = kbkit.migrate(folder, to=tmp_path / "back")
    assert back.folders == ("files",)
    # collections have other names, and files may have been checked again
    changed = {table.name for table in set(back.tables) ^ set(forth.tables)}
    assert {"knowledge_bases"} <= changed <= {"knowledge_bases", "files"}
    assert answers(tmp_path / "back", "", QUESTIONS[:7]) == before
    for place, address in ((folder, url), (tmp_path / "back", "")):
        with opened(place, address) as workspace:
            assert all(map(int.__ge__, last_numbers(workspace), numbers))
            assert workspace.graph.entity("AAA drink").name == "zzz drink"
            assert workspace.files.read("notes/tea.md").startswith("# Tea")
            assert not workspace.files.sync().removed
            assert len(workspace["files"].documents) == 2
            assert workspace.undelete("old").search("rum")[0].title == "Rum"
            assert workspace["drinks"].documents.undelete("text:Water")
            workspace["drinks"].add("New", "Something new.")
            assert workspace["drinks"].search("something new")[0].title == "New"


KILLED = """
import os, signal, sys
import kbkit
from kbkit.stores.catalog import copying
from kbkit.stores.catalog.schema import chunks

copying._BATCH_ROWS = 3
place, to = sys.argv[1:]

def tell(progress):
    if progress.message == "chunks":
        os.kill(os.getpid(), signal.SIGKILL)

kbkit.migrate(place, to=to, on_progress=tell)
"""


@pytest.mark.parametrize("way", ["to a server", "to a folder"])
@pytest.mark.soak
def test_killed_migration_is_resumed(folder, tmp_path, postgres, monkeypatch, way):
    before, url, to = answers(folder), postgres.empty(), tmp_path / "new"
    if way == "to a folder":
        kbkit.migrate(folder, to=url)
        to_server(monkeypatch, url)
    else:
        to = url
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder), str(to)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == -signal.SIGKILL, run.stderr
    with pytest.raises(WorkspaceError, match=r"not complete.*run the same `kbkit migrate`"):
        opened(tmp_path / "new", url if to == url else "")
    done = kbkit.migrate(folder, to=to)
    assert 0 < done.kept < done.rows
    assert answers(folder if to == url else to, url if to == url else "") == before


def test_lost_server_costs_at_most_one_table(folder, postgres, monkeypatch):
    before, url = answers(folder), postgres.empty()
    monkeypatch.setattr(copying, "_BATCH_ROWS", 3)

    def stop(progress):
        if progress.message == "chunks":
            postgres.stop(signal.SIGQUIT)

    try:
        with pytest.raises(
            WorkspaceError, match=r"check that the server can be reached.*run this again"
        ):
            kbkit.migrate(folder, to=url, on_progress=stop)
        with pytest.raises(WorkspaceError, match="check that the server can be reached"):
            kbkit.migrate(folder, to=url)
    finally:
        postgres.start()
    done = kbkit.migrate(folder, to=url)
    assert 0 < done.kept < done.rows
    assert answers(folder, url) == before


@pytest.mark.slow
def test_changed_source_is_copied_again(folder, postgres):
    url = postgres.empty()

    class Cut(Exception):
        pass

    def cut(progress):
        if progress.message == "vectors":
            raise Cut

    with pytest.raises(Cut):
        kbkit.migrate(folder, to=url, on_progress=cut)
    with opened(folder) as workspace:
        workspace["drinks"].documents.delete("text:Milk")
        workspace["drinks"].add("Aaa", "Comes first.")
    done = kbkit.migrate(folder, to=url)
    assert not done.kept
    assert answers(folder, url) == answers(folder)


@pytest.mark.parametrize("way", ["to a server", "to a folder"])
@pytest.mark.soak
def test_writes_are_refused_during_migration(folder, tmp_path, postgres, monkeypatch, way):
    monkeypatch.setattr("kbkit.stores.sqlite_database.BUSY_SECONDS", 0.1)
    monkeypatch.setattr("kbkit.stores.postgres_database.BUSY_SECONDS", 1)
    url = postgres.empty()
    if way == "to a folder":
        kbkit.migrate(folder, to=url)
        to_server(monkeypatch, url)
    refused = []
    with opened(folder, url if way == "to a folder" else "") as workspace:

        def write(progress):
            if not refused:
                with pytest.raises(WorkspaceError, match="has been writing for long") as caught:
                    workspace["drinks"].rate(next(iter(workspace["drinks"].documents)).id, 5)
                refused.append(caught)
                assert workspace["drinks"].search("tea")

        to = url if way == "to a server" else tmp_path / "new"
        kbkit.migrate(folder, to=to, on_progress=write)
        assert refused
        workspace["drinks"].add("Rum", "Written when that was done.")


@pytest.mark.slow
def test_migration_with_differing_rows_is_incomplete(folder, postgres):
    url = postgres.empty()

    def meddle(progress):
        if progress.message == "vectors" and progress.stage == "copy":
            execute(postgres, url, "UPDATE documents SET title = 'x' WHERE title = 'Milk'")

    with pytest.raises(WorkspaceError, match=r"table documents came to 9 rows.*run this again"):
        kbkit.migrate(folder, to=url, on_progress=meddle)
    with pytest.raises(WorkspaceError, match="not complete"):
        opened(folder, url)
    kbkit.migrate(folder, to=url)
    assert answers(folder, url) == answers(folder)


def test_target_with_another_workspace_is_refused(folder, tmp_path, postgres, monkeypatch):
    url = postgres.catalog()
    with opened(tmp_path / "other", url) as workspace:
        workspace.create("mine").add("Cup", "A cup.")
    before = answers(tmp_path / "other", url)
    with pytest.raises(
        ConflictError, match=r"a whole workspace exists there \(with mine\).*empty place"
    ):
        kbkit.migrate(folder, to=url)
    assert answers(tmp_path / "other", url) == before
    content = contents(folder)
    to_server(monkeypatch, url)
    with pytest.raises(
        ConflictError, match=r"a whole workspace exists there \(with drinks, files\)"
    ):
        kbkit.migrate(tmp_path / "other", to=folder)
    assert contents(folder) == content
    with pytest.raises(ImpossibleError, match="already exists"):
        kbkit.migrate(tmp_path / "other", to=url)
    monkeypatch.delenv("KBKIT_DATABASE_URL")
    with pytest.raises(ImpossibleError, match="already exists"):
        kbkit.migrate(folder, to=f"{folder}/../{folder.name}")


def test_target_with_half_a_foreign_migration_is_refused(folder, tmp_path, postgres):
    url = postgres.empty()
    PostgresDatabase(url).close()  # empty tables, as `kbkit list` leaves them
    database = PostgresDatabase(url, to_fill=True)
    with database.write() as transaction:
        copying.mark(transaction, "elsewhere")
    database.close()
    with pytest.raises(ConflictError, match="a migration of another workspace"):
        kbkit.migrate(folder, to=url)


@pytest.mark.parametrize(
    ("revision", "kind", "message"),
    [
        ("9999", WorkspaceVersionError, "upgrade kbkit"),
        ("0024", WorkspaceError, "a workspace of an older kbkit exists"),
    ],
)
def test_target_of_another_version_is_left_alone(
    folder, tmp_path, postgres, revision, kind, message
):
    url = postgres.catalog()
    statement = f"UPDATE alembic_version SET version_num = '{revision}'"
    execute(postgres, url, statement)
    with opened(tmp_path / "other"):
        pass
    with sqlite3.connect(tmp_path / "other" / "catalog.db") as connection:
        connection.execute(statement)
    for place in (url, tmp_path / "other"):
        with pytest.raises(kind, match=message):
            kbkit.migrate(folder, to=place)
    assert contents(tmp_path / "other")[1:]
    if revision == "9999":
        with pytest.raises(kind, match=message):
            kbkit.migrate(tmp_path / "other", to=tmp_path / "new")
        assert not (tmp_path / "new").exists()


def test_unreachable_targets_are_explained(folder, tmp_path, postgres, monkeypatch):
    def refuses(kind, message, to, place=folder):
        with pytest.raises(kind, match=message) as caught:
            kbkit.migrate(place, to=to)
        assert "s3cret" not in str(caught.value)
        assert "KBKIT_DATABASE_URL" not in str(caught.value)

    refuses(WorkspaceError, "there is no workspace", tmp_path / "new", tmp_path / "nothing")
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "nothing").exists()
    for address in ("mysql://ann:s3cret@db/kb", "postgresql://ann:s3cret@db:port/kb"):
        refuses(ConfigError, "cannot be read; write postgresql", address)
    refuses(
        WorkspaceError, "server can be reached", "postgresql+psycopg://ann:s3cret@127.0.0.1:1/kb"
    )
    wrong = postgres.url("postgres", "secretive", "s3cret")
    refuses(WorkspaceError, "check the user and the password", wrong)
    refuses(WorkspaceError, "createdb", postgres.url("nowhere"))
    url = postgres.empty()
    execute(postgres, url, "DROP ROLE IF EXISTS onlooker", "CREATE ROLE onlooker LOGIN")
    onlooker = postgres.url(sa.make_url(url).database, "onlooker")
    refuses(WorkspaceError, "permission denied.*grant", onlooker)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "psycopg", None)
        refuses(MissingExtraError, r"kbkit\[postgres\]", url)
    kbkit.migrate(folder, to=url)
    execute(postgres, url, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO onlooker")
    to_server(monkeypatch, onlooker)
    refuses(WorkspaceError, "permission denied.*use another user", tmp_path / "new")


def test_row_that_postgres_cannot_store_is_explained(folder, tmp_path, postgres):
    with sqlite3.connect(folder / "catalog.db") as connection:
        connection.execute("UPDATE documents SET metadata = '{\"n\": NaN}' WHERE title = 'Milk'")
    with pytest.raises(WorkspaceError, match=r"a row of the table documents.*NaN"):
        kbkit.migrate(folder, to=postgres.empty())


def test_existing_files_are_not_replaced(folder, tmp_path, postgres, monkeypatch):
    url = postgres.empty()
    kbkit.migrate(folder, to=url)
    to_server(monkeypatch, url)
    with pytest.raises(WorkspaceError, match=f"are in .*{folder}; share that folder"):
        kbkit.migrate(tmp_path / "another", to=tmp_path / "new")
    (tmp_path / "new" / "files" / "notes").mkdir(parents=True)
    theirs = tmp_path / "new" / "files" / "notes" / "tea.md"
    theirs.write_text("mine")
    with pytest.raises(WorkspaceError, match=r"differs from .*; move it away"):
        kbkit.migrate(folder, to=tmp_path / "new")
    assert theirs.read_text() == "mine"
    theirs.unlink()
    assert kbkit.migrate(folder, to=tmp_path / "new").kept


def test_migrate_command_reports_tables_and_folders(
    folder, postgres, tmp_path, monkeypatch, run_kbkit
):
    run = partial(run_kbkit, "--workspace", folder)
    url = postgres.empty()
    code, out, err = run("migrate", "--to", url)
    assert code == 0
    assert "documents" in out
    for message in ("all tables are the same", "is unchanged", "set KBKIT_DATABASE_URL"):
        assert message in err
    code, out, err = run("migrate", "--to", url)
    assert (code, out) == (1, "")
    assert err.startswith(f"kbkit: {url.partition('?')[0]}")
    to_server(monkeypatch, url)
    code, out, err = run("migrate", "--to", str(tmp_path / "new"), "--json")
    assert json.loads(out)["folders"] == ["files"]
