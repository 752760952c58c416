"""Knowledge bases as folders, the prompt and the command line."""

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
from tests.files.conftest import paths


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


def test_knowledge_bases_are_browsed_as_folders(files):
    assert paths(files.list()) == paths(files.roots()) == ["kb"]
    assert paths(files.list("kb")) == ["kb/python-docs"]
    names = ("library", "tutorial", "glossary.md")
    assert paths(files.list("kb/python-docs")) == [f"kb/python-docs/{name}" for name in names]
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
    for path, text in (
        ("/memories/kb/python-docs/library/json.md", "Text of library/json."),
        ("/memories/kb/python-docs", "\t/memories/kb/python-docs/library/json.md"),
        ("/memories", "\t/memories/kb/python-docs"),
    ):
        assert text in tool.handle({"command": "view", "path": path})


def test_folders_follow_changes_of_knowledge_bases(workspace, files):
    assert files.list("kb/python-docs/library")
    kb = workspace["python-docs"]
    kb.add("New", "Just added.\n", source="https://docs.python.org/3/library/new.html")
    assert files.read("kb/python-docs/library/new.md").endswith("Just added.\n")
    kb.documents.delete("https://docs.python.org/3/library/re.html")
    names = [info.name for info in files.list("kb/python-docs/library")]
    assert names == ["json.md", "new.md"]
    workspace.rename("python-docs", to="python")
    assert files.read("kb/python/library/new.md").endswith("Just added.\n")
    files.write("a.md", "not shown twice")
    assert [info.name for info in files.list("kb")] == ["python"]
    workspace.delete("python")
    assert paths(files.list()) == ["a.md"]


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
        (ReadOnlyPathError, lambda files: files.move("kb/python-docs", "mine")),
    ],
)
def test_knowledge_bases_are_read_only(files, error, call):
    files._store.write("a.md", b"a")
    with pytest.raises(error):
        call(files)
    assert len(files.list("kb/python-docs")) == 3
    assert not (files.path / "kb").exists()


def test_folder_named_kb_is_skipped_and_reported(files):
    (files.path / "kb").mkdir(parents=True)
    (files.path / "kb/x.md").write_text("x")
    assert paths(files.list("kb")) == ["kb/python-docs"]
    assert [each.uri for each in files.sync().skipped] == ["kb"]


def test_prompt_lists_roots_and_commands(files):
    files._store.write("notes/a/b.md", b"x")
    files._store.write("notes/c.md", b"x")
    files._store.mkdir("empty")
    prompt = files.prompt()
    roots = ("`notes/` (2 files)", "`empty/` (0 files)", "`kb/python-docs/`")
    for part in (*roots, "/memories", "`view`", "`str_replace`", "[["):
        assert part in prompt


@pytest.fixture
def run(tmp_path):
    def call(*arguments, stdin=None):
        command = ["--workspace", str(tmp_path / "ws"), *arguments]
        done = CliRunner().invoke(app, command, input=stdin, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout) if "--json" in arguments else done.stdout

    return call


def test_files_on_the_command_line(run, tmp_path):
    run("files", "write", "notes/a.md", stdin="# A\n\nzwölf\n")
    run("files", "append", "notes/a.md", "more")
    assert run("files", "cat", "notes/a.md") == "# A\n\nzwölf\nmore\n"
    info = run("files", "cat", "notes/a.md", "--json")
    assert (info["path"], info["content"]) == ("notes/a.md", "# A\n\nzwölf\nmore")
    match = ("--if-match", info["version"])
    assert run("files", "write", "notes/a.md", "new", *match, "--json")["size"] == 3
    assert run("files", "mkdir", "deep/er", "--json")["kind"] == "folder"
    assert run("files", "mv", "notes/a.md", "deep/b.md", "--json")["path"] == "deep/b.md"
    assert "deep/" in run("files", "ls")
    listed = run("files", "ls", "deep", "--json")
    assert [each["path"] for each in listed] == ["deep/er", "deep/b.md"]
    assert "└── b.md" in run("files", "tree")
    assert run("files", "tree", "--json")["children"]
    assert run("files", "rm", "deep", "--json")["path"] == "deep"
    assert [each["path"] for each in run("files", "undelete", "--json")] == ["deep"]
    assert run("files", "undelete", "deep", "--json")["path"] == "deep"
    (tmp_path / "ws/files/by-hand.md").write_text("by an editor")
    report = run("files", "sync", "--json")
    assert set(report) == {"added", "updated", "removed", "skipped"}
    run("files", "rm", "by-hand.md")
    assert run("compact", "--yes", "--json")["files"] == 1
    assert run("files", "undelete", "--json") == []


def test_cat_keeps_whitespace_and_drops_control_characters(run, tmp_path):
    run("files", "write", "a.py", stdin="if x:\n\treturn  1\x1b[31m\n    # end\n")
    terminal, output = pty.openpty()
    program = Path(sys.executable).parent / "kbkit"
    command = [program, "--workspace", tmp_path / "ws", "files", "cat", "a.py"]
    subprocess.run(command, stdout=output, check=True)
    os.close(output)
    shown = os.read(terminal, 1_000).replace(b"\r", b"")
    os.close(terminal)
    assert shown == b"if x:\n\treturn  1[31m\n    # end\n"
