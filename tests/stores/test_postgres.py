"""A catalog on a server: sharing, rankings and faults."""

import signal

import pytest
import sqlalchemy as sa

from kbkit.errors import ConfigError, WorkspaceError
from kbkit.models import Mode, SourceDocument
from kbkit.stores.catalog import knowledge_bases
from tests.postgres import TO_0024
from tests.stores.workspaces import as_reader, execute, opened

pytestmark = pytest.mark.local

TEXTS = {
    "Green tea": "Steep green tea for two minutes at 80 degrees. Green leaves, green cup.",
    "Black tea": "Black tea takes boiling water, and four minutes of `sleep(240)`.",
    "Coffee": "Grind the beans; C++ people drink it, os.path.join people too. Ünïcödé: Größe.",
    "Milk": "Warm, never boiled. See --dry-run and append_event, v1.2.3.",
    "Water": "Boil it. Boil it again, then boil it: tea, tea, tea, tea.",
    "ägg": "An egg, boiled for six minutes.",
    "Zebra": "No drink at all.",
}
QUESTIONS = [
    "how long does green tea steep",
    "boil",
    "tea",
    "os.path.join",
    "C++",
    "Größe",
    "append_event",
    "minutes of boiling water",
    "what do people drink",
    "80 degrees",
    "'; DROP TABLE chunks",
    "\0",
]


def fill(workspace):
    kb = workspace.create("drinks")
    for title, text in TEXTS.items():
        kb.add(title, f"# {title}\n\n{text}\n\n## More\n\nMore of {title.lower()}.\n", tags=[title])
    for title, score in (("Milk", 5), ("Coffee", 1)):
        kb.rate(kb.documents[f"text:{title}"].id, score, rater="ann")
    return kb


def answers(kb):
    searches = [(question, mode, None) for mode in Mode for question in QUESTIONS]
    searches += [("tea", mode, {"tags": ["Water"]}) for mode in Mode]
    searches += [("boil", mode, {"path": "*tea"}) for mode in Mode]
    return [
        [(hit.title, hit.chunk.position, hit.score, hit.snippet) for hit in hits]
        for question, mode, filters in searches
        for hits in [kb.search(question, mode=mode, limit=6, filters=filters)]
    ]


def tea(kb):
    return kb.chunks.of("text:Green tea")[0].id


def test_rankings_equal_those_of_sqlite(tmp_path, postgres):
    with opened(tmp_path / "a") as a, opened(tmp_path / "b", postgres.catalog()) as b:
        one, two = fill(a), fill(b)
        expected = answers(one)
        assert sum(map(len, expected)) > 150
        assert answers(two) == expected
        for kb in (one, two):
            kb.documents.delete("text:Water")
            kb.add("Maté", "Drunk from a gourd, boiled never.")
            kb.documents.update("text:Zebra", title="Zebra crossing")
        assert answers(two) == answers(one)
        (similar, others) = ([hit.title for hit in kb.similar(tea(kb))] for kb in (one, two))
        assert similar == others
        assert [each.uri for each in two.documents] == [each.uri for each in one.documents]


def test_two_machines_see_commits_of_each_other_at_once(tmp_path, postgres):
    url = postgres.catalog()
    with opened(tmp_path / "one", url) as one, opened(tmp_path / "two", url) as two:
        one.create("drinks")
        for writer, reader, drink in ((one, two, "oolong"), (two, one, "sencha")):
            assert not reader["drinks"].search(drink, mode="lexical")
            writer["drinks"].add(drink, f"All about {drink}.")
            assert reader["drinks"].search(drink, mode="lexical")[0].title == drink
    assert not (tmp_path / "two" / "catalog.db").exists()


def test_locks_hold_on_all_machines(tmp_path, postgres):
    url = postgres.catalog()
    with opened(tmp_path / "one", url) as one, opened(tmp_path / "two", url) as two:
        with one._stores.locks.hold("x", wait=0):
            assert two._stores.locks.is_held("x")
            assert not two._stores.locks.is_held("y")
        assert not two._stores.locks.is_held("x")


def test_files_stay_in_their_folder(tmp_path, postgres):
    url = postgres.catalog()
    with opened(tmp_path / "one", url) as one, opened(tmp_path / "two", url) as two:
        one.files.write("notes/tea.md", "# Tea\n\nSteep it.\n")
        with pytest.raises(WorkspaceError, match=f"{tmp_path / 'one'}; share that folder"):
            two.files.sync()
        assert two.search("steep")[0].title == "Tea"
        assert "Steep it" in str(two.context("steep"))
    with opened(tmp_path / "two", url) as two, pytest.raises(WorkspaceError, match="share"):
        two.entries.sync()
    with opened(tmp_path / "one", url) as one:
        assert one.files.read("notes/tea.md").startswith("# Tea")


def test_password_is_never_shown(postgres, tmp_path):
    secret = "not told to anybody"
    postgres.execute("GRANT ALL ON DATABASE postgres TO secretive")
    postgres.execute("CREATE DATABASE theirs OWNER secretive")
    url = postgres.url("theirs", "secretive", secret.replace(" ", "%20"))
    with opened(tmp_path, url) as workspace:
        workspace.create("drinks").add("Tea", "Steep it.")
        shown = repr(workspace._stores) + repr(workspace) + workspace._stores.catalog_address
        assert secret not in shown
        assert "not%20told" not in shown
    with pytest.raises(WorkspaceError, match="check the user and the password") as caught:
        opened(tmp_path, url.replace("told", "s3cret"))
    assert "s3cret" not in str(caught.value)
    for cause in (caught.value.__cause__, caught.value.__context__):
        assert "s3cret" not in str(cause)


@pytest.mark.slow
def test_lost_server_costs_only_uncommitted_writes(tmp_path, postgres):
    with opened(tmp_path, postgres.catalog()) as workspace:
        kb = fill(workspace)
        before = [hit.title for hit in kb.search("tea")]

        def write():
            with workspace._stores.database.write() as transaction:
                kb_row = knowledge_bases.get(transaction, "drinks")
                knowledge_bases.touch(transaction, kb_row.id)
                postgres.stop(signal.SIGQUIT)
                knowledge_bases.touch(transaction, kb_row.id)

        with workspace._stores.database.read() as transaction:
            version = knowledge_bases.get(transaction, "drinks").version
        try:
            with pytest.raises(WorkspaceError, match="no partial change is kept"):
                write()
            for call in (lambda: kb.search("milk"), lambda: kb.add("Rum", "Rum."), workspace.list):
                with pytest.raises(WorkspaceError, match="server can be reached"):
                    call()
            with (
                pytest.raises(WorkspaceError, match="server can be reached"),
                workspace._stores.locks.hold("x", wait=0),
            ):
                pass
        finally:
            postgres.start()
        with workspace._stores.database.read() as transaction:
            assert knowledge_bases.get(transaction, "drinks").version == version
        assert [hit.title for hit in kb.search("tea")] == before
        kb.add("Rum", "Rum is distilled.")
        assert kb.search("rum")[0].title == "Rum"


def test_next_search_works_after_lost_connection(tmp_path, postgres):
    with opened(tmp_path, postgres.catalog()) as workspace:
        fill(workspace)
        database = workspace._stores.database

        def read():
            with database.read() as transaction:
                knowledge_bases.names(transaction)
                postgres.stop(signal.SIGINT)  # as an administrator ends it
                postgres.start()
                knowledge_bases.names(transaction)

        with pytest.raises(WorkspaceError, match="run this again"):
            read()
        assert database.changes() == database.changes()
        assert workspace["drinks"].search("coffee")[0].title == "Coffee"


@pytest.mark.slow
def test_ingest_keeps_commits_after_server_loss(tmp_path, postgres):
    documents = [SourceDocument(f"n:{n}", f"Number {n}", f"word{n} " * 900) for n in range(60)]

    def stop_after_some(progress):
        if progress.done == 45:
            postgres.stop()  # in an accident this server forgets commits, to be quick

    with opened(tmp_path, postgres.catalog()) as workspace:
        kb = workspace.create("numbers")
        try:
            with pytest.raises(WorkspaceError, match="server can be reached"):
                kb.ingest(documents, on_progress=stop_after_some)
            with pytest.raises(WorkspaceError, match="server can be reached"):
                kb.ingest(documents)
        finally:
            postgres.start()
        before = {each.uri for each in kb.documents}
        assert {f"n:{n}" for n in range(5)} < before < {f"n:{n}" for n in range(45)}
        assert kb.search("word3", mode="lexical")[0].title == "Number 3"
        report = kb.ingest(documents)
        assert (report.new, report.same) == (60 - len(before), len(before))
        assert kb.search("word59", mode="lexical")[0].title == "Number 59"
        assert workspace.doctor().sound


@pytest.mark.slow
def test_server_loss_before_reading_texts_is_an_error(tmp_path, postgres, monkeypatch):
    with opened(tmp_path, postgres.catalog()) as workspace:
        kb = fill(workspace)
        expected = [(hit.title, hit.score) for hit in kb.search("boiled tea")]
        read = workspace._stores.database.chunks

        def without_server(seqs):
            assert len(seqs)
            postgres.stop()  # in an accident this server forgets commits, to be quick
            return read(seqs)

        try:
            with monkeypatch.context() as patched:
                patched.setattr(workspace._stores.database, "chunks", without_server)
                with pytest.raises(WorkspaceError, match="server can be reached"):
                    kb.search("boiled tea")
        finally:
            postgres.start()
        assert [(hit.title, hit.score) for hit in kb.search("boiled tea")] == expected


def test_read_only_role_can_search(tmp_path, postgres):
    url = postgres.catalog()
    with opened(tmp_path / "one", url) as workspace:
        fill(workspace)
    with opened(tmp_path / "two", as_reader(postgres, url)) as workspace:
        kb = workspace["drinks"]
        assert kb.search("coffee")[0].title == "Coffee"
        with pytest.raises(WorkspaceError, match=r"permission denied.*use another user"):
            kb.add("Rum", "Rum.")
        assert kb.search("coffee")[0].title == "Coffee"


def test_foreign_database_is_left_alone(tmp_path, postgres):
    url = postgres.empty()
    execute(postgres, url, "CREATE TABLE alembic_version (version_num text)")
    with pytest.raises(WorkspaceError, match=r"tables of something else.*search_path"):
        opened(tmp_path, url)
    execute(postgres, url, "CREATE SCHEMA own")
    with opened(tmp_path, f"{url}&options=-csearch_path%3Down") as workspace:
        assert fill(workspace).search("coffee")[0].title == "Coffee"
    with pytest.raises(WorkspaceError, match="CREATE SCHEMA"):
        opened(tmp_path, f"{url}&options=-csearch_path%3Dmissing")


def test_older_server_is_refused(tmp_path, postgres, monkeypatch):
    monkeypatch.setattr("kbkit.stores.postgres_database.OLDEST", 99)
    with pytest.raises(WorkspaceError, match=r"PostgreSQL \d+.* is too old; kbkit needs 99"):
        opened(tmp_path, postgres.catalog())


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://ann:s3cret@db/kb", "mysql is not a database that kbkit knows"),
        ("s3cret", "cannot be read; write postgresql"),
        ("postgresql://ann:s3cret@db:port/kb", "cannot be read; write postgresql"),
    ],
)
def test_error_does_not_repeat_an_invalid_address(tmp_path, url, message):
    with pytest.raises(ConfigError, match=message) as caught:
        opened(tmp_path, url)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("database", "user", "advice"),
    [("nowhere", "kbkit", "createdb"), ("postgres", "nobody-here", "check the user")],
)
def test_unknown_database_or_user_is_explained(tmp_path, postgres, database, user, advice):
    with pytest.raises(WorkspaceError, match=f"does not exist.*{advice}"):
        opened(tmp_path, postgres.url(database, user))


def kinds_of_columns(url):
    """Types and collations of integer and text columns."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        kinds = connection.execute(
            sa.text(
                "SELECT DISTINCT data_type, collation_name FROM information_schema.columns"
                " WHERE table_schema = 'public' AND table_name NOT IN ('home', 'alembic_version')"
                " AND data_type IN ('integer', 'bigint', 'text', 'character varying')"
            )
        ).all()
    engine.dispose()
    return set(map(tuple, kinds))


def test_texts_sort_by_code_points_and_integers_are_64_bit(postgres):
    assert kinds_of_columns(postgres.catalog()) == {("bigint", None), ("text", "C")}


def test_older_catalog_is_migrated(tmp_path, postgres):
    url = postgres.catalog()
    execute(postgres, url, *TO_0024)
    with opened(tmp_path, url) as workspace:
        kb = fill(workspace)
        kb.documents.delete("text:Coffee")
        assert kb.search("boil an egg")[0].title == "ägg"
    assert kinds_of_columns(url) == {("bigint", None), ("text", "C")}
