"""The doctor finds damage; it repairs what derives from the catalog."""

import json
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import kbkit
from kbkit.cli import app
from kbkit.errors import KbkitError, WorkspaceError, WorkspaceVersionError
from kbkit.recipes import KnowledgeBaseSpec
from tests.workspace.damage import flip_a_snapshot, sql

pytestmark = pytest.mark.local


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """A closed workspace with a knowledge base of two documents and a snapshot."""
    root = tmp_path_factory.mktemp("closed")
    (root / "docs").mkdir()
    (root / "docs" / "tea.md").write_text("# Tea\n\n## Green\n\nSteep for two minutes.\n")
    with kbkit.open(root / "kb") as workspace:
        kb = workspace.create("notes")
        kb.add("Milk", "# Milk\n\nKeep milk cold.\n")
        kb.ingest({"type": "files", "path": str(root / "docs")})
        workspace._stores.snapshots.save(kb.id)
    return root / "kb"


@pytest.fixture
def folder(closed, tmp_path):
    return Path(shutil.copytree(closed, tmp_path / "kb"))


def chroma(folder, change):
    """Change a collection, and keep its checksums valid."""
    with kbkit.open(folder) as workspace:
        vectors, row = workspace._stores.vectors, workspace["notes"].info()
        vectors.open(workspace["notes"].id)
        change(vectors._store, row.collection, [chunk.id for chunk in workspace["notes"].chunks])
        vectors._store.settle()


def lose_a_vector(folder):
    chroma(folder, lambda store, name, ids: store.delete(name, ids[:1]))


def change_a_vector(folder):
    other = np.full((1, 256), 1 / 16, np.float32)
    chroma(folder, lambda store, name, ids: store.upsert(name, ids[:1], other))


def lose_chroma(folder):
    shutil.rmtree(folder / "chroma")


def damage_chroma(folder):
    path = folder / "chroma" / "chroma.sqlite3"
    path.write_bytes(path.read_bytes()[:-4096])


def change_a_graph(folder):
    """Flip bits of a file that Chroma's native code reads."""
    with kbkit.open(folder) as workspace:
        kb = workspace["notes"]
        kb.add("Cups", "\n\n".join(f"## Cup {i}\n\nTea {i}.\n" for i in range(1_100)))
    (path,) = (folder / "chroma").rglob("data_level0.bin")
    data = bytearray(path.read_bytes())
    for place in range(0, len(data), len(data) // 200):
        data[place] ^= 4
    path.write_bytes(data)


def another_snapshot(folder):
    """Write intact files that differ from the catalog."""
    with kbkit.open(folder) as workspace:
        files, (kb_id,) = workspace._stores.snapshots._files, (workspace["notes"].id,)
        snapshot = files.read(kb_id)
        segments = tuple(segment.without(snapshot.seqs[:1]) for segment in snapshot.segments)
        files.write(kb_id, replace(snapshot, segments=segments))


DERIVED = {
    "a vector of Chroma": (lose_a_vector, "index", "lacks 1 of 2"),
    "another vector of Chroma": (change_a_vector, "index", "wrong vectors for 1"),
    "the folder of Chroma": (lose_chroma, "index", "Chroma has no collection"),
    "a file of Chroma": (damage_chroma, "index", "chroma.sqlite3 not as it was written"),
    "a graph of Chroma": (change_a_graph, "index", "data_level0.bin not as it was written"),
    "a bit of a snapshot": (flip_a_snapshot, "snapshot", "is damaged"),
    "a snapshot of something else": (another_snapshot, "snapshot", "differ from the catalog"),
}


def run(folder, *command):
    return CliRunner().invoke(app, ["--workspace", str(folder), *command])


@pytest.mark.parametrize("name", DERIVED)
def test_damaged_derived_data_is_found_and_repaired(folder, name):
    damage, part, problem = DERIVED[name]
    damage(folder)
    with kbkit.open(folder) as workspace:
        health = workspace.doctor()
        assert [(each.part, each.kb) for each in health.findings] == [(part, "notes")]
        assert problem in health.findings[0].problem
        assert not health.sound
        assert workspace.doctor() == health
        assert workspace.doctor(repair=True).sound
        assert workspace.doctor().findings == ()
        assert workspace["notes"].search("steep minutes")[0].title == "Tea"


def test_doctor_command_exit_code_shows_soundness(folder):
    sound = run(folder, "doctor")
    assert (sound.exit_code, sound.output) == (0, "1 knowledge base: sound\n")
    another_snapshot(folder)
    broken = run(folder, "doctor")
    assert broken.exit_code == 1
    assert "kbkit doctor --repair" in broken.output
    report = json.loads(run(folder, "doctor", "--json").output)
    assert (report["sound"], report["findings"][0]["part"]) == (False, "snapshot")
    assert run(folder, "doctor", "--repair").exit_code == 0
    assert run(folder, "doctor").exit_code == 0


def test_rebuild_renews_all_derived_data(folder):
    for damage in (lose_a_vector, another_snapshot):
        damage(folder)
    assert run(folder, "rebuild", "notes").output == "rebuilt: notes\n"
    with kbkit.open(folder) as workspace:
        assert workspace.doctor().findings == ()
    assert run(folder, "rebuild", "other").exception is not None


def test_runs_are_listed(folder):
    with kbkit.open(folder) as workspace:
        workspace["notes"].refresh()
        last, first = workspace.runs()
        assert workspace.runs(["notes"]) == [last, first]
    assert (first.kb, first.source, first.counts["new"]) == ("notes", "docs", 1)
    assert last.counts["same"] == 1
    assert last.finished_at is not None
    assert last.seconds > 0
    shown = run(folder, "runs")
    assert "new 1" in shown.output
    assert len(json.loads(run(folder, "runs", "--json").output)) == 2


CATALOGS = {
    "a vector too short": ("UPDATE vectors SET vector = substr(vector, 1, 7)", "numbers"),
    "a vector of nothing": ("UPDATE vectors SET vector = zeroblob(3) || substr(vector, 4)", ""),
    "bad UTF-8": ("UPDATE chunks SET heading_path = CAST(x'fffe80' AS TEXT)", "chunks"),
    "no JSON": ("UPDATE documents SET tags = 'x'", "documents"),
    "no date": ("UPDATE documents SET fetched_at = 'x'", "documents"),
    "a table is gone": ("DROP TABLE outbox", "outbox"),
}


@pytest.mark.parametrize("name", CATALOGS)
def test_damaged_catalog_is_one_clear_error(folder, name):
    statement, problem = CATALOGS[name]
    sql(folder, statement)
    (folder / "snapshots").rename(folder / "away")
    if name != "a vector of nothing":
        with kbkit.open(folder) as workspace:

            def use():
                workspace["notes"].search("steep for two minutes")
                workspace["notes"].add("new", "A jar of honey.")

            with pytest.raises(WorkspaceError, match="restore"):
                use()
    with kbkit.open(folder) as workspace:
        health = workspace.doctor(repair=True)
    assert not health.sound
    assert problem in health.findings[0].problem


def test_damaged_table_index_is_rebuilt(folder):
    stored = "sqlite_master WHERE name = 'documents_by_type'"
    with closing(sqlite3.connect(folder / "catalog.db")) as connection:
        (row,) = connection.execute(f"SELECT * FROM {stored}")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(f"DELETE FROM {stored}")
        connection.commit()
    sql(folder, "UPDATE documents SET document_type = 'manual'")  # the index misses it
    with closing(sqlite3.connect(folder / "catalog.db")) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", row)
        connection.commit()
    with kbkit.open(folder) as workspace:
        for repair in (False, True):
            health = workspace.doctor(repair=repair)
            assert "from index documents_by_type" in health.findings[0].problem
            assert "doctor --repair" in health.findings[0].remedy
            assert health.findings[0].mended is repair
        assert workspace.doctor().sound


def test_snapshot_of_another_kbkit_is_no_damage(folder):
    (path,) = (folder / "snapshots").glob("*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 1}))
    with kbkit.open(folder) as workspace:
        assert workspace.doctor().sound


@pytest.mark.parametrize("statement", ["DROP TABLE alembic_version", "DELETE FROM alembic_version"])
def test_catalog_without_a_version_is_refused(folder, statement):
    sql(folder, statement)
    with pytest.raises(WorkspaceError, match="its version is missing"):
        kbkit.open(folder)


def test_text_in_an_integer_column_is_found(folder):
    with kbkit.open(folder) as workspace:
        workspace["notes"].rate(workspace["notes"].documents["text:Milk"].id, 4)
    sql(folder, "UPDATE ratings SET score = 'high'")
    with kbkit.open(folder) as workspace:
        problems = [finding.problem for finding in workspace.doctor().findings]
    assert "the table ratings cannot be read ('high' in a column of another type)" in problems


def test_zeroed_page_gives_at_most_one_clear_error(folder):
    path = folder / "catalog.db"
    data = path.read_bytes()
    for page in range(4096, len(data), 4096 * 29):
        path.write_bytes(data[:page] + bytes(4096) + data[page + 4096 :])
        with suppress(KbkitError), kbkit.open(folder) as workspace:
            workspace["notes"].search("steep")
            workspace.doctor()


def test_configuration_of_a_newer_kbkit_is_found(folder):
    sql(folder, "UPDATE knowledge_bases SET config = json_set(config, '$.quantum', 1)")
    with kbkit.open(folder) as workspace:
        with pytest.raises(WorkspaceVersionError, match=r"quantum.*upgrade kbkit"):
            workspace["notes"].search("tea")
        (finding,) = workspace.doctor().findings
    assert finding.part == "configuration"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"language": "klingon"}, "klingon"),
        ({"retrieval": {"postprocessors": [{"path": "no.such:Thing"}]}}, "no.such:Thing: is not"),
        ({"retrieval": {"postprocessors": [{"path": "os.path.no:Thing"}]}}, "is not installed"),
        ({"retrieval": {"postprocessors": [{"path": "email.no.such:Thing"}]}}, "is not installed"),
        ({"annotation": {"type": "plugin", "name": "nobody"}}, "provides an annotator"),
    ],
)
def test_unavailable_settings_are_refused_on_an_empty_base(tmp_path, values, message):
    spec = KnowledgeBaseSpec.model_validate(values)
    with kbkit.open(tmp_path) as workspace:
        kb = workspace.create("notes")
        with pytest.raises(KbkitError, match=message):
            kb.configure(spec)
        with pytest.raises(KbkitError, match=message):
            workspace.create("others", spec=spec)
        assert kb.spec == KnowledgeBaseSpec()
        assert not workspace.search("tea")


def test_run_of_an_unreadable_source_has_failed(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "tea.md").write_text("# Tea\n\nSteep for two minutes.\n")
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("notes")
        kb.ingest({"type": "files", "path": str(docs)})
        shutil.rmtree(docs)
        assert len(kb.refresh().failed_sources) == 1
        last = workspace.runs()[0]
        assert last.counts == {"failed": 1}
        assert last.finished_at is not None
        assert len(kb.documents) == 1
