"""Deleted documents and knowledge bases: brought back until the trash is emptied."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time

import pytest
from PIL import Image as Pillow
from typer.testing import CliRunner

import kbkit
from kbkit import cli
from kbkit.cli import app
from kbkit.errors import ConflictError, EmbedderError, InvalidNameError, NotFoundError
from kbkit.knowledge_base import handle_of
from kbkit.recipes import FilesSource
from kbkit.stores.locks import FolderLocks


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


def test_a_deleted_document_comes_back_with_its_ratings(kb):
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
    report = kb.refresh()  # it is of its source again
    assert (report.same, report.new, report.gone) == (2, 0, 0)


def test_a_refresh_does_not_bring_back_what_was_deleted_by_hand(kb, tmp_path):
    kb.documents.delete("docs/tea.md")
    (tmp_path / "docs/tea.md").write_text("# Tea\n\nAll about tea, said anew.\n")
    assert kb.refresh().new == 0
    assert found(kb) == {"Bread"}
    kb.documents.undelete("docs/tea.md")
    assert kb.refresh().changed == 1
    assert "anew" in kb.documents["docs/tea.md"].content


def test_who_names_a_deleted_document_again_gets_it(kb):
    known = kb.documents["docs/tea.md"].id
    kb.documents.delete("docs/tea.md")
    assert kb.add("Tea", "Written anew.", source="docs/tea.md").id == known
    assert kb.documents.trash() == []
    kb.documents.delete("docs/bread.md")
    kb.ingest(FilesSource(path="docs/bread.md"))
    assert "docs/bread.md" in kb.documents


def test_documents_of_a_removed_source_come_back_without_it(kb):
    kb.sources.remove("docs")
    assert {each.uri for each in kb.documents.trash()} == {"docs/tea.md", "docs/bread.md"}
    kb.documents.undelete("docs/tea.md")
    assert found(kb) == {"Tea"}
    assert len(kb.sources) == 0


def test_what_the_trash_does_not_hold_is_a_clear_error(kb):
    with pytest.raises(NotFoundError, match="the trash is empty"):
        kb.documents.undelete("docs/tea.md")
    kb.documents.delete("docs/tea.md")
    with pytest.raises(NotFoundError, match=r"did you mean 'docs/tea\.md"):
        kb.documents.undelete("docs/tee.md")
    with pytest.raises(NotFoundError):
        kb.documents.delete("docs/tea.md")


def test_the_list_of_the_trash_names_deleted_documents_too(workspace, kb):
    def listed():
        place = str(workspace.path)
        return CliRunner().invoke(app, ["--workspace", place, "trash"]).stderr

    assert "the trash is empty" in listed()
    kb.documents.delete("docs/tea.md")
    assert f"documents of {kb.name}: 1; `kbkit trash {kb.name}` lists them" in listed()
    assert "empty" not in listed()


def test_compact_empties_the_trash_and_what_was_deleted_stays_away(workspace, kb, tmp_path):
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


def test_compact_removes_pictures_that_no_document_shows(workspace, tmp_path):
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
    for path in images.iterdir():  # as if an hour ago: what is new may be about to be stored
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


def test_a_picture_in_the_trash_stays_until_it_is_emptied(workspace, tmp_path):
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


def test_a_deleted_knowledge_base_comes_back_whole(workspace, kb):
    kb.rate(kb.documents["docs/tea.md"].id, 5)
    kb.documents.delete("docs/bread.md")
    workspace.delete("food")
    assert list(workspace) == []
    with pytest.raises(NotFoundError):
        workspace["food"]
    with pytest.raises(NotFoundError, match="was deleted"):
        kb.search("tea")
    workspace.create("food", description="Another").add("Milk", "Milk is white.")
    (deleted,) = workspace.trash()
    assert (deleted.name, deleted.documents, deleted.description) == ("food", 1, "Of food")
    with pytest.raises(ConflictError, match="choose another name"):
        workspace.undelete("food")
    with pytest.raises(InvalidNameError):
        workspace.undelete("food", to="Not A Slug")
    with pytest.raises(NotFoundError, match="but food"):
        workspace.undelete("fod")
    back = workspace.undelete("food", to="old-food")
    assert found(back) == {"Tea"}
    assert [rating.score for rating in back.ratings] == [5]
    assert [each.uri for each in back.documents.trash()] == ["docs/bread.md"]
    assert back.refresh().same == 1
    assert found(workspace["food"]) == {"Milk"}
    workspace.delete("old-food")
    assert workspace.undelete("old-food").name == "old-food"


def test_deleted_forever_is_deleted(workspace, kb):
    workspace.delete("food", forever=True)
    assert workspace.trash() == []
    assert list(workspace) == []


def test_names_and_descriptions_change(workspace, kb):
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


def test_an_embedder_is_chosen_when_it_is_made(workspace):
    assert workspace.create("small", embedding="static").spec.embedding.type == "static"
    spec = kbkit.KnowledgeBaseSpec(language="german")
    made = workspace.create("large", spec=spec, embedding="minilm").spec
    assert (made.embedding.type, made.language) == ("onnx", "german")
    with pytest.raises(EmbedderError, match="choose from"):
        workspace.create("odd", embedding="none-such")
    assert "odd" not in workspace


@pytest.mark.parametrize("name", ["open", "get"])
def test_a_workspace_says_how_to_look_one_up(workspace, name):
    with pytest.raises(AttributeError, match=r"workspace\['name'\]"):
        getattr(workspace, name)("food")
    assert not hasattr(workspace, "nothing_of_this_name")


def test_the_command_line_deletes_and_brings_back(workspace, kb, monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["kbkit", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            cli.main()
        captured = capsys.readouterr()
        return caught.value.code, captured.out, captured.err

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
    assert "but nothing" in err
    assert run("new", "models", "--embedding", "none-such")[0] == 1
