"""Knowledge bases as folders of Markdown files; the prompt; the command line."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kbkit
from kbkit.cli import app
from kbkit.errors import IsFolderError, MissingPathError, NotFolderError, ReadOnlyPathError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shown") / "ws"
    with kbkit.open(folder) as opened:
        kb = opened.create("python-docs")
        for page in ("library/json", "library/re", "tutorial/index", "glossary"):
            kb.add(
                page.rpartition("/")[2],
                f"# About {page}\n\nText of {page}.\n",
                source=f"https://docs.python.org/3/{page}.html",
            )
    return folder


@pytest.fixture
def workspace(folder, tmp_path):
    with kbkit.open(shutil.copytree(folder, tmp_path / "ws")) as opened:
        yield opened


@pytest.fixture
def files(workspace):
    return workspace.files


def test_a_knowledge_base_is_browsed_as_notes_are(files):
    assert [info.path for info in files.list()] == ["kb"]
    assert [info.path for info in files.roots()] == ["kb"]
    assert [info.path for info in files.list("kb")] == ["kb/python-docs"]
    assert [info.path for info in files.list("kb/python-docs")] == [
        "kb/python-docs/library",
        "kb/python-docs/tutorial",
        "kb/python-docs/glossary.md",
    ]
    assert [info.name for info in files.list("kb/python-docs/library")] == ["json.md", "re.md"]
    info = files.info("kb/python-docs/library/json.md")
    assert (info.read_only, info.is_folder) == (True, False)
    text = files.read("kb/python-docs/library/json.md")
    assert text.endswith("# About library/json\n\nText of library/json.\n")
    assert "https://docs.python.org/3/library/json.html" in text
    assert "json.md" in str(files.tree("kb/python-docs"))
    assert str(files.tree()) == ".\n└── kb/\n    └── python-docs/"
    assert "     1\t---" in files.view("kb/python-docs/glossary.md", (1, 3))
    tool = files.memory_tool()
    said = tool.handle({"command": "view", "path": "/memories/kb/python-docs/library/json.md"})
    assert "Text of library/json." in said
    said = tool.handle({"command": "view", "path": "/memories/kb/python-docs"})
    assert "\t/memories/kb/python-docs/library/json.md" in said
    assert "\t/memories/kb/python-docs" in tool.handle({"command": "view", "path": "/memories"})


def test_it_follows_the_knowledge_base(workspace, files):
    assert files.list("kb/python-docs/library")
    kb = workspace["python-docs"]
    kb.add("New", "Just added.\n", source="https://docs.python.org/3/library/new.html")
    assert files.read("kb/python-docs/library/new.md").endswith("Just added.\n")
    kb.documents.delete("https://docs.python.org/3/library/re.html")
    names = [info.name for info in files.list("kb/python-docs/library")]
    assert names == ["json.md", "new.md"]
    workspace.rename("python-docs", to="python")
    assert files.read("kb/python/library/new.md").endswith("Just added.\n")
    files.write("a.md", "of the files themselves nothing is shown twice")
    assert [info.name for info in files.list("kb")] == ["python"]
    workspace.delete("python")
    assert [info.path for info in files.list()] == ["a.md"]


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (MissingPathError, lambda files: files.read("kb/nothing/x.md")),
        (MissingPathError, lambda files: files.read("kb/python-docs/x.md")),
        (MissingPathError, lambda files: files.read("kb/files/x.md")),
        (MissingPathError, lambda files: files.list("kb/python-docs/x")),
        (IsFolderError, lambda files: files.read("kb/python-docs")),
        (IsFolderError, lambda files: files.read("kb")),
        (NotFolderError, lambda files: files.list("kb/python-docs/glossary.md")),
        (ReadOnlyPathError, lambda files: files.write("kb/python-docs/glossary.md", "x")),
        (ReadOnlyPathError, lambda files: files.append("kb/python-docs/new.md", "x")),
        (ReadOnlyPathError, lambda files: files.replace("kb/python-docs/glossary.md", "a", "b")),
        (ReadOnlyPathError, lambda files: files.insert("kb/python-docs/glossary.md", 0, "b")),
        (ReadOnlyPathError, lambda files: files.mkdir("kb/mine")),
        (ReadOnlyPathError, lambda files: files.delete("kb/python-docs")),
        (ReadOnlyPathError, lambda files: files.move("kb/python-docs", "mine")),
        (ReadOnlyPathError, lambda files: files.move("a.md", "kb/a.md")),
    ],
)
def test_it_can_only_be_read(files, error, call):
    files._store.write("a.md", b"a")
    with pytest.raises(error):
        call(files)
    assert len(files.list("kb/python-docs")) == 3
    assert not (files.path / "kb").exists()


def test_a_folder_of_that_name_is_not_shown_and_said(files):
    (files.path / "kb").mkdir(parents=True)
    (files.path / "kb/x.md").write_text("x")
    assert [info.path for info in files.list("kb")] == ["kb/python-docs"]
    assert [each.uri for each in files.sync().skipped] == ["kb"]


def test_the_prompt_has_the_roots_and_how_to_use_them(files):
    files._store.write("notes/a/b.md", b"x")
    files._store.write("notes/c.md", b"x")
    files._store.mkdir("empty")
    said = files.prompt()
    for part in (
        "`notes/` (2 files)",
        "`empty/` (0 files)",
        "`kb/python-docs/`",
        "/memories",
        "`view`",
        "`str_replace`",
        "[[",
    ):
        assert part in said


def run(folder, *arguments, given=None):
    done = CliRunner().invoke(app, ["--workspace", str(folder), "files", *arguments], input=given)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_command_line_does_the_same(tmp_path):
    folder = tmp_path / "ws"
    run(folder, "write", "notes/a.md", given="# A\n\nzwölf\n")
    run(folder, "append", "notes/a.md", "more")
    assert run(folder, "cat", "notes/a.md") == "# A\n\nzwölf\nmore\n"
    info = json.loads(run(folder, "cat", "notes/a.md", "--json"))
    assert (info["path"], info["content"]) == ("notes/a.md", "# A\n\nzwölf\nmore")
    made = json.loads(
        run(folder, "write", "notes/a.md", "new", "--if-match", info["version"], "--json")
    )
    assert made["size"] == 3
    assert json.loads(run(folder, "mkdir", "deep/er", "--json"))["kind"] == "folder"
    assert json.loads(run(folder, "mv", "notes/a.md", "deep/b.md", "--json"))["path"] == "deep/b.md"
    assert "deep/" in run(folder, "ls")
    assert [each["path"] for each in json.loads(run(folder, "ls", "deep", "--json"))] == [
        "deep/er",
        "deep/b.md",
    ]
    assert "└── b.md" in run(folder, "tree")
    assert json.loads(run(folder, "tree", "--json"))["children"]
    assert json.loads(run(folder, "rm", "deep", "--json"))["path"] == "deep"
    assert [each["path"] for each in json.loads(run(folder, "undelete", "--json"))] == ["deep"]
    assert json.loads(run(folder, "undelete", "deep", "--json"))["path"] == "deep"
    (folder / "files/by-hand.md").write_text("by an editor")
    report = json.loads(run(folder, "sync", "--json"))
    assert set(report) == {"added", "updated", "removed", "skipped"}
    run(folder, "rm", "by-hand.md")
    done = CliRunner().invoke(app, ["--workspace", str(folder), "compact", "--yes", "--json"])
    assert json.loads(done.stdout)["files"] == 1
    assert json.loads(run(folder, "undelete", "--json")) == []


def test_a_terminal_shows_the_spaces_of_a_file_without_its_control_characters(tmp_path):
    folder = tmp_path / "ws"
    run(folder, "write", "a.py", given="if x:\n\treturn  1\x1b[31m\n    # end\n")
    terminal, output = pty.openpty()
    command = [Path(sys.executable).parent / "kbkit", "--workspace", folder, "files", "cat", "a.py"]
    subprocess.run(command, stdout=output, check=True)
    os.close(output)
    shown = os.read(terminal, 1_000).replace(b"\r", b"")
    os.close(terminal)
    assert shown == b"if x:\n\treturn  1[31m\n    # end\n"
