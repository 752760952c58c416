"""Deleted documents and knowledge bases can be restored until the trash is emptied."""

import json
import os
import sqlite3
import time

import pytest
from PIL import Image as Pillow
from typer.testing import CliRunner

import kbkit
from kbkit.cli import app
from kbkit.errors import ConflictError, EmbedderError, InvalidNameError, NotFoundError
from kbkit.knowledge_base import handle_of
from kbkit.recipes import FilesSource
from kbkit.stores.backend import FolderLocks


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KBKIT_WORKSPACE", raising=False)
    (tmp_path / "docs").mkdir()
    for name in ("tea", "bread"):
        (tmp_path / f"docs/{name}.md").write_text(f"# {name.title()}\n\nAll about {name}.\n")
    with kbkit.open("kb") as opened:
        yield opened


@pytest.fixture
def kb(workspace):
    kb = workspace.create("food", description="Of food")
    kb.ingest(FilesSource(path="docs"))
    return kb


def found(kb):
    return {hit.title for hit in kb.search("all about tea and bread")}


def test_undeleted_document_has_its_ratings(kb):
    document = kb.documents.update("docs/tea.md", tags=["hot"])
    chunk = kb.chunks.of(document.id)[0].id
    kb.rate(document.id, 5)
    kb.rate(chunk, 4, query="what is tea")
    kb.documents.delete("docs/tea.md")
    assert found(kb) == {"Bread"}
    assert "docs/tea.md" not in kb.documents
    assert len(kb.documents) == 1
    assert [(each.uri, each.title) for each in kb.documents.trash()] == [("docs/tea.md", "Tea")]
    assert len(kb.feedback.judgements()) == 0
    back = kb.documents.undelete("docs/tea.md")
    assert (back.id, back.tags) == (document.id, ("hot",))
    assert kb.chunks.of(back.id)[0].id == chunk
    assert found(kb) == {"Tea", "Bread"}
    assert kb.ratings.total(document.id).average == 5
    assert len(kb.feedback.judgements()) == 1
    assert kb.documents.trash() == []
    report = kb.refresh()  # it belongs to its source again
    assert (report.same, report.new, report.gone) == (2, 0, 0)


def test_refresh_does_not_restore_deleted_documents(kb, tmp_path):
    kb.documents.delete("docs/tea.md")
    (tmp_path / "docs/tea.md").write_text("# Tea\n\nAll about tea, said anew.\n")
    assert kb.refresh().new == 0
    assert found(kb) == {"Bread"}
    kb.documents.undelete("docs/tea.md")
    assert kb.refresh().changed == 1
    assert "anew" in kb.documents["docs/tea.md"].content


def test_adding_a_deleted_document_restores_it(kb):
    document_id = kb.documents["docs/tea.md"].id
    kb.documents.delete("docs/tea.md")
    assert kb.add("Tea", "Written anew.", source="docs/tea.md").id == document_id
    assert kb.documents.trash() == []
    kb.documents.delete("docs/bread.md")
    kb.ingest(FilesSource(path="docs/bread.md"))
    assert "docs/bread.md" in kb.documents


def test_documents_are_restored_without_their_source(kb):
    kb.sources.remove("docs")
    assert {each.uri for each in kb.documents.trash()} == {"docs/tea.md", "docs/bread.md"}
    kb.documents.undelete("docs/tea.md")
    assert found(kb) == {"Tea"}
    assert len(kb.sources) == 0


def test_undelete_of_unknown_documents_is_a_clear_error(kb):
    with pytest.raises(NotFoundError, match="the trash is empty"):
        kb.documents.undelete("docs/tea.md")
    kb.documents.delete("docs/tea.md")
    with pytest.raises(NotFoundError, match=r"did you mean 'docs/tea\.md"):
        kb.documents.undelete("docs/tee.md")
    with pytest.raises(NotFoundError):
        kb.documents.delete("docs/tea.md")


def test_trash_command_mentions_deleted_documents(workspace, kb):
    def listed():
        place = str(workspace.path)
        return CliRunner().invoke(app, ["--workspace", place, "trash"]).stderr

    assert "the trash is empty" in listed()
    kb.documents.delete("docs/tea.md")
    assert f"documents of {kb.name}: 1; `kbkit trash {kb.name}` lists them" in listed()
    assert "empty" not in listed()


def test_compact_empties_the_trash_for_good(workspace, kb, tmp_path):
    kb.add("By hand", "Written by hand.", source="note")
    kb.documents.delete("docs/tea.md")
    kb.documents.delete("note")
    workspace.create("other").add("Milk", "Milk is white.")
    workspace.delete("other")
    done = workspace.compact()
    assert (done.documents, done.knowledge_bases) == (2, 1)
    assert kb.documents.trash() == []
    assert workspace.trash() == []
    with sqlite3.connect(tmp_path / "kb/catalog.db") as connection:
        dump = "\n".join(connection.iterdump())
    assert "All about bread" in dump
    for text in ("All about tea", "Written by hand", "Milk is white"):
        assert text not in dump
    assert kb.refresh().new == 0
    assert found(kb) == {"Bread"}
    assert kb.documents.undelete("docs/tea.md") is None  # its source is asked again
    assert kb.refresh().new == 1
    with pytest.raises(NotFoundError):
        kb.documents.undelete("note")


def test_compact_removes_unused_images(workspace, tmp_path):
    for color in ("red", "green", "blue"):
        Pillow.new("RGB", (4, 3), color).save(tmp_path / f"docs/{color}.png")
        (tmp_path / f"docs/{color}.md").write_text(f"# {color}\n\n![a box]({color}.png)\n")
    kb = workspace.create("boxes")
    kb.ingest(FilesSource(path="docs"))
    names = {one.title: name for one in kb.documents for name in one.images.values()}
    images = tmp_path / "kb/images"
    (images / "draft.part").write_bytes(b"of a process that was killed")
    (images / "notes.txt").write_text("not ours")
    assert {*names.values()} < {path.name for path in images.iterdir()}
    (tmp_path / "docs/red.md").write_text("# red\n\nNo box any more.\n")
    kb.refresh()
    kb.documents.delete("docs/green.md")
    for path in images.iterdir():  # young files may belong to a running ingest
        os.utime(path, (time.time() - 3600,) * 2)
    reading = f"source-{kb.sources['docs'].id}"
    with FolderLocks(tmp_path / "kb/locks").hold(reading, wait=0):
        assert workspace.compact().images == 0
    done = workspace.compact()
    assert done.images == 2
    assert {path.name for path in images.iterdir()} == {names["blue"], "notes.txt"}
    assert kb.export(folder="out", build=False).documents == 4
    workspace.delete("boxes")
    assert workspace.compact().images == 1
    assert [path.name for path in images.iterdir()] == ["notes.txt"]


def test_image_in_the_trash_stays_until_it_is_emptied(workspace, tmp_path):
    Pillow.new("RGB", (4, 3), "red").save(tmp_path / "docs/red.png")
    (tmp_path / "docs/red.md").write_text("# Red\n\n![a box](red.png)\n")
    kb = workspace.create("boxes")
    kb.ingest(FilesSource(path="docs"))
    (name,) = kb.documents["docs/red.md"].images.values()
    kb.documents.delete("docs/red.md")
    assert handle_of(kb).stores.sweep_images() == (0, 0)
    kb.documents.undelete("docs/red.md")
    os.utime(tmp_path / "kb/images" / name, (0, 0))
    assert workspace.compact().images == 0
    assert (tmp_path / "kb/images" / name).is_file()


def test_undeleted_knowledge_base_is_complete(workspace, kb):
    kb.rate(kb.documents["docs/tea.md"].id, 5)
    kb.documents.delete("docs/bread.md")
    workspace.delete("food")
    assert list(workspace) == []
    with pytest.raises(NotFoundError):
        workspace["food"]
    for use in (lambda: kb.search("tea"), lambda: kb.add("Tea", "Steep.")):
        with pytest.raises(NotFoundError, match="was deleted"):
            use()
    workspace.create("food", description="Another").add("Milk", "Milk is white.")
    (deleted,) = workspace.trash()
    assert (deleted.name, deleted.documents, deleted.description) == ("food", 1, "Of food")
    with pytest.raises(ConflictError, match="choose another name"):
        workspace.undelete("food")
    with pytest.raises(InvalidNameError):
        workspace.undelete("food", to="Not A Slug")
    with pytest.raises(NotFoundError, match="there are: food"):
        workspace.undelete("fod")
    back = workspace.undelete("food", to="old-food")
    assert found(back) == {"Tea"}
    assert [rating.score for rating in back.ratings] == [5]
    assert [each.uri for each in back.documents.trash()] == ["docs/bread.md"]
    assert back.refresh().same == 1
    assert found(workspace["food"]) == {"Milk"}
    workspace.delete("old-food")
    assert workspace.undelete("old-food").name == "old-food"


def test_rename_and_describe(workspace, kb):
    kb.rate(kb.documents["docs/tea.md"].id, 5)
    renamed = workspace.rename("food", to="meals")
    assert (renamed.name, list(workspace), kb.info().name) == ("meals", ["meals"], "meals")
    assert renamed.search("tea")[0].kb == "meals"
    assert len(renamed.ratings) == 1
    workspace.create("food")
    with pytest.raises(ConflictError):
        workspace.rename("food", to="meals")
    with pytest.raises(InvalidNameError):
        workspace.rename("food", to="A B")
    workspace.describe("meals", description="Of  meals")
    assert workspace["meals"].info().description == "Of meals"


def test_embedder_is_chosen_at_creation(workspace):
    assert workspace.create("small", embedding="static").spec.embedding.type == "static"
    spec = kbkit.KnowledgeBaseSpec(language="german")
    large = workspace.create("large", spec=spec, embedding="minilm").spec
    assert (large.embedding.type, large.language) == ("onnx", "german")
    with pytest.raises(EmbedderError, match="choose from"):
        workspace.create("odd", embedding="none-such")
    assert "odd" not in workspace


@pytest.mark.parametrize("name", ["open", "get"])
def test_missing_methods_hint_at_the_lookup_syntax(workspace, name):
    with pytest.raises(AttributeError, match=r"workspace\['name'\]"):
        getattr(workspace, name)("food")
    assert not hasattr(workspace, "nothing_of_this_name")


def test_command_line_deletes_and_restores(workspace, kb, run_kbkit):
    run = run_kbkit
    assert run("delete", "food", "--document", "docs/tea.md")[0] == 0
    assert found(kb) == {"Bread"}
    listed = json.loads(run("trash", "food", "--json")[1])
    assert [each["uri"] for each in listed] == ["docs/tea.md"]
    assert "docs/tea.md" in run("trash", "food")[1]
    assert run("undelete", "food", "--document", "docs/tea.md")[0] == 0
    assert found(kb) == {"Tea", "Bread"}
    assert run("delete", "food", "--document", "docs/no.md")[0] == 1
    assert run("delete", "food", "--yes")[0] == 0
    assert json.loads(run("trash", "--json")[1])[0]["name"] == "food"
    assert run("undelete", "food", "--to", "meals")[0] == 0
    assert run("rename", "meals", "food")[0] == 0
    assert run("describe", "food", "Of bread and tea")[0] == 0
    assert json.loads(run("show", "food", "--json")[1])["description"] == "Of bread and tea"
    assert run("delete", "food", "--yes")[0] == 0
    assert run("compact", "--yes")[0] == 0
    assert json.loads(run("trash", "--json")[1]) == []
    code, _, err = run("undelete", "food")
    assert code == 1
    assert "there are: none" in err
    assert run("new", "models", "--embedding", "none-such")[0] == 1
