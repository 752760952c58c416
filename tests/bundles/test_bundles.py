"""Bundles move knowledge bases and ratings between workspaces."""

import json
import os
import signal
import subprocess
import sys
import threading
import zipfile

import pytest
from typer.testing import CliRunner

from kbkit import cli
from kbkit.embedding.static import StaticEmbedder
from kbkit.errors import BundleError, ConflictError, ImpossibleError, NotFoundError
from kbkit.models import Mode
from kbkit.recipes import FilesSource
from kbkit.stores.catalog import bundled
from tests.stores.workspaces import opened

pytestmark = pytest.mark.local

ALL = ("drinks", "entries", "files", "food")
QUESTIONS = ("green tea", "how long does bread bake", "`kettle3.boil()`")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A workspace with all kinds of content of a bundle."""
    folder = tmp_path_factory.mktemp("source")
    (folder / "docs").mkdir()
    for name in ("bread", "rye", "oats"):
        (folder / f"docs/{name}.md").write_text(f"# {name.title()}\n\n{name} bakes for an hour.\n")
    with opened(folder / "kb") as workspace:
        kb = workspace.create("drinks", description="Of drinks")
        for n in range(8):
            kb.add(
                f"Tea {n}",
                f"# Tea {n}\n\nGreen tea {n} is steeped at {60 + n} degrees.\n\n"
                f"## Brewing\n\nUse `kettle{n}.boil()` from the class `Kettle{n}`.\n",
                tags=["hot"],
            )
        hit = kb.search("green tea")[0]
        kb.rate(hit.chunk.id, 5, query="green tea", rater="ann")
        kb.rate(kb.documents["text:Tea 1"].id, 2, rater="ann")
        food = workspace.create("food")
        food.ingest(FilesSource(path=str(folder / "docs")))
        uri = next(each.uri for each in food.documents if "oats" in each.uri)
        food.documents.delete(uri)
        workspace.graph.create("Samovar", type="device")
        workspace.graph.create("Kettle", type="device")
        workspace.graph.relate("Samovar", "replaces", "Kettle")
        workspace.files.write("notes/tea.md", "# Tea notes\n\nSteep it. See [[bread]].\n")
        workspace.entries.create(title="Brew tea", prompt="Boil water.", description="How to brew")
        workspace.graph.relations()  # updates the graph
    return folder / "kb"


@pytest.fixture(scope="module")
def full(source, tmp_path_factory):
    path = tmp_path_factory.mktemp("bundle") / "all.kbkit.zip"
    with opened(source) as workspace:
        done = workspace.bundle(path)
    assert done.knowledge_bases == ALL
    assert done.bytes == path.stat().st_size
    return path


@pytest.fixture(scope="module")
def drinks(source, tmp_path_factory):
    path = tmp_path_factory.mktemp("bundle") / "drinks.kbkit.zip"
    with opened(source) as workspace:
        workspace.bundle(path, kbs=["drinks"])
    return path


def answers(workspace):
    return [
        [(hit.chunk.id, hit.score, hit.snippet) for hit in workspace[name].search(each, mode=mode)]
        for name in ALL
        for each in QUESTIONS
        for mode in Mode
    ]


def relations(workspace):
    edges = workspace.graph.relations(name="replaces")
    return [(each.source, each.target, each.weight) for each in edges]


def rows(workspace):
    """Rows of a catalog that go into bundles."""
    with workspace._stores.database.read() as transaction:
        ids = [workspace[name].id for name in workspace]
        return {name: list(each) for name, each in bundled.rows(transaction, ids, whole=True)}


@pytest.mark.parametrize("server", [False, True])
def test_restored_workspace_is_complete_and_searchable(
    source, full, tmp_path, server, request, monkeypatch
):
    url = request.getfixturevalue("postgres").empty() if server else ""
    with opened(source) as workspace:
        before, expected = answers(workspace), rows(workspace)
        replaced = relations(workspace)
    assert sum(map(len, before)) > 50

    def fail(self, texts):
        raise AssertionError("a restored bundle was embedded")

    monkeypatch.setattr(StaticEmbedder, "embed_passages", fail)
    with opened(tmp_path / "kb", url) as workspace:
        done = workspace.restore(full, trust=True)
        assert all(kb.new for kb in done.knowledge_bases)
        assert sorted(kb.name for kb in done.knowledge_bases) == sorted(ALL)
        assert answers(workspace) == before
        assert workspace["drinks"].ratings.total(workspace["drinks"].documents["text:Tea 1"].id)
        assert len(workspace["drinks"].feedback.judgements()) > 0
        assert relations(workspace) == replaced
        assert workspace.files.read("notes/tea.md").startswith("# Tea notes")
        assert workspace.entries.read("brew-tea").prompt.strip() == "Boil water."
        assert not workspace.files.sync()
        restored = rows(workspace)
        repeated = workspace.restore(full, trust=True)
        assert not any(kb.documents or kb.ratings or kb.new for kb in repeated.knowledge_bases)
        assert rows(workspace) == restored
    counts = {name: len(each) for name, each in expected.items()}
    assert {name: len(each) for name, each in restored.items()} == counts
    for table, column in (("chunks", "text"), ("vectors", "vector")):
        values = [row[column] for row in expected[table]]
        assert [row[column] for row in restored[table]] == values


def test_same_content_gives_the_same_bytes(source, drinks, tmp_path):
    with opened(source) as workspace:
        workspace.bundle(tmp_path / "again.zip", kbs=["drinks"])
    assert (tmp_path / "again.zip").read_bytes() == drinks.read_bytes()


def test_bundle_of_one_reveals_nothing_of_others(drinks):
    with zipfile.ZipFile(drinks) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        text = "".join(archive.read(name).decode() for name in archive.namelist())
    assert manifest["knowledge_bases"] == ["drinks"]
    assert not [name for name in manifest["members"] if name.startswith(("files/", "entries/"))]
    assert not [word for word in ("rye", "Steep it", "Boil water", "oats") if word in text]


def test_restored_sources_are_disabled_until_trusted(full, tmp_path):
    with opened(tmp_path / "a") as workspace:
        assert workspace.restore(full).sources == 1
        assert [each.enabled for each in workspace["food"].sources] == [False]
    with opened(tmp_path / "b") as workspace:
        assert workspace.restore(full, trust=True).sources == 0
        food = workspace["food"]
        assert food.refresh().new == 0  # deleted documents stay deleted
        assert len(food.documents) == 2


def test_two_workspaces_exchange_ratings(drinks, tmp_path):
    with opened(tmp_path / "a") as a, opened(tmp_path / "b") as b:
        for workspace in (a, b):
            workspace.restore(drinks)
        tea = a["drinks"].documents["text:Tea 1"].id
        a["drinks"].rate(tea, 4, rater="ann", note="better")  # her last rating is below
        b["drinks"].rate(tea, 1, rater="bob")
        b["drinks"].rate(tea, 5, rater="ann")
        b["drinks"].add("Cocoa", "# Cocoa\n\nHot and sweet.\n")
        b["drinks"].documents.delete("text:Tea 2")
        a["drinks"].documents.update("text:Tea 3", tags=["mine"])
        a.bundle(tmp_path / "a.zip", kbs=["drinks"])
        b.bundle(tmp_path / "b.zip", kbs=["drinks"])
        (to_b,) = b.restore(tmp_path / "a.zip").knowledge_bases
        (to_a,) = a.restore(tmp_path / "b.zip").knowledge_bases
        assert (to_b.ratings, to_b.documents, to_b.new) == (1, 0, False)
        assert (to_a.ratings, to_a.documents, to_a.new) == (2, 0, False)
        totals = [each["drinks"].ratings.total(tea) for each in (a, b)]
        assert totals[0] == totals[1]
        assert (totals[0].raters, totals[0].average) == (2, 3.0)
        assert "text:Cocoa" not in a["drinks"].documents
        assert "text:Tea 2" in a["drinks"].documents
        assert "text:Tea 2" not in b["drinks"].documents
        assert a["drinks"].documents["text:Tea 3"].tags == ("mine",)
        for workspace, file in ((a, "b.zip"), (b, "a.zip")):
            before = rows(workspace)
            (repeated,) = workspace.restore(tmp_path / file).knowledge_bases
            assert (repeated.ratings, repeated.documents) == (0, 0)
            assert rows(workspace) == before


def test_taken_names_and_trashed_knowledge_bases_are_refused(drinks, full, tmp_path):
    with opened(tmp_path / "kb") as workspace:
        other = workspace.create("other").id
        with pytest.raises(ConflictError, match="--as"):
            workspace.restore(drinks, name="other")
        with pytest.raises(ImpossibleError, match="4 knowledge bases"):
            workspace.restore(full, name="several")
        workspace.restore(drinks, name="tea")
        assert workspace["tea"].search("green tea")
        with pytest.raises(ConflictError, match="already exists, as 'tea'"):
            workspace.restore(drinks, name="copy")
        workspace.rename("tea", to="drinks")
        workspace.delete("drinks")
        with pytest.raises(ConflictError, match="undelete"):
            workspace.restore(drinks)
        assert list(workspace) == ["other"]
        assert workspace["other"].id == other
        workspace.compact()
        assert workspace.restore(drinks).knowledge_bases[0].new
        with pytest.raises(NotFoundError):
            workspace.bundle(tmp_path / "x.zip", kbs=["nothing"])
        with pytest.raises(ImpossibleError, match="files of a workspace"):
            workspace.bundle(tmp_path / "x.zip", kbs=["files"])
        with pytest.raises(ConflictError, match="already exists"):
            workspace.bundle(drinks, kbs=["drinks"])
        with pytest.raises(BundleError, match="is not a folder"):
            workspace.bundle(tmp_path / "no" / "x.zip", kbs=["drinks"])
        assert sorted(path.name for path in tmp_path.iterdir()) == ["kb"]


def test_differing_files_are_kept(full, tmp_path):
    with opened(tmp_path / "kb") as workspace:
        workspace.files.write("notes/tea.md", "mine\n")
        done = workspace.restore(full)
        assert done.kept == ("files/notes/tea.md",)
        assert [each for each in done.files if each.startswith("files/")] == []
        assert workspace.files.read("notes/tea.md") == "mine\n"
        assert workspace["files"].search("mine")[0].snippet.strip() == "mine"


def test_backup_shows_one_moment_during_writes(tmp_path):
    with opened(tmp_path / "kb") as workspace, opened(tmp_path / "kb") as other:
        kb = workspace.create("pairs")
        kb.add("0", "zero")
        done = threading.Event()

        def write():
            for n in range(1, 500):
                if done.is_set():
                    return
                added = other["pairs"].add(f"{n}", f"number {n}")
                other["pairs"].rate(added.id, 3, rater=f"r{n}")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            bundles = [workspace.bundle(tmp_path / f"{n}.zip") for n in range(4)]
        finally:
            done.set()
            writer.join()
    for number, each in enumerate(bundles):
        with opened(tmp_path / f"back{number}") as back:
            back.restore(each.path)
            kb = back["pairs"]
            assert len(kb.documents) == each.documents
            # a rating is committed after its document
            assert each.documents - len(kb.ratings) in (1, 2)


KILLED = """
import os, signal, sys
import kbkit
from kbkit.bundles import bundling as restoring
from kbkit.entries.store import EntryStore
place, folder, bundle = sys.argv[1:]
def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if place == "rows":
    restoring.Placement.put = kill
elif place == "files":
    EntryStore.place = kill
elif place == "commit":
    put = restoring.Placement.put
    restoring.Placement.put = lambda *a: (put(*a), kill())
elif place == "committed":
    restoring.bundled.forget = kill
kbkit.open(folder).restore(bundle)
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["rows", "files", "commit", "committed"])
def test_killed_restore_leaves_all_or_nothing(full, tmp_path, place):
    folder = tmp_path / "kb"
    with opened(folder) as workspace:
        workspace.files.write("mine.md", "mine\n")
    run = subprocess.run([sys.executable, "-c", KILLED, place, folder, full], check=False)
    assert run.returncode == -signal.SIGKILL
    with opened(folder) as workspace:
        committed = place == "committed"
        assert ("drinks" in workspace) is committed
        assert (folder / "files/notes/tea.md").exists() is committed
        assert (folder / "entries/brew-tea").exists() is committed
        assert workspace.files.read("mine.md") == "mine\n"
        assert not (folder / "restoring.json").exists()
        done = workspace.restore(full)
        assert done.knowledge_bases[0].new is not committed
        assert workspace.entries.read("brew-tea").prompt.strip() == "Boil water."
        assert workspace["drinks"].search("green tea")
        with workspace._stores.database.read() as transaction:
            names = bundled.rows(transaction, [workspace["drinks"].id], whole=True)
            assert all("." not in row["name"] for row in dict(names)["name_uses"])


def test_command_line(source, tmp_path, monkeypatch):
    monkeypatch.setenv("KBKIT_WORKSPACE", str(source))

    def run(*arguments, code=0):
        result = CliRunner().invoke(cli.app, list(map(str, arguments)))
        assert result.exit_code == code, result.output
        return result.stdout

    file = tmp_path / "one.zip"
    assert json.loads(run("bundle", "drinks", file, "--json"))["documents"] == 8
    run("bundle", file, code=2)
    run("bundle", "drinks", file, "--all", code=2)
    run("backup", tmp_path)
    (backup,) = tmp_path.glob("kbkit-*.kbkit.zip")
    monkeypatch.setenv("KBKIT_WORKSPACE", str(tmp_path / "kb"))
    report = json.loads(run("restore", file, "--as", "tea", "--json"))
    assert report["knowledge_bases"][0]["name"] == "tea"
    run("restore", backup)
    assert os.fspath(backup) in json.loads(run("restore", backup, "--json"))["bundle"]
