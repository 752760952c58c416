"""Files of local and served workspaces."""

from __future__ import annotations

import pytest

from kbkit import errors
from kbkit.models import FileKind

AWKWARD = (
    "a b/c d.md | 100%.md | a%2Fb.md | a%20b.md | ä/ß☃.md | 家.md | x#y&z=1;.md | +plus.md | "
    "tree | mkdir | move | sync | prompt | tree/tree | (a)@b,c.md | it's.md"
)


@pytest.fixture(scope="module")
def files(workspace):
    return workspace.files


def test_written_files_are_read_listed_and_linked(files):
    written = files.write("notes/a day.md", "# A day\n\nSee [b](b.md).\n")
    assert (written.path, written.kind, written.size) == ("notes/a day.md", FileKind.FILE, 24)
    assert files.read("notes/a day.md") == "# A day\n\nSee [b](b.md).\n"
    assert files.info("notes/a day.md") == written
    assert files.info("notes").is_folder
    assert files.list("notes") == [written]
    assert [info.path for info in files.list() if info.path == "notes"] == ["notes"]
    assert [info.name for info in files.roots() if info.name == "notes"] == ["notes"]
    assert str(files.tree("notes")) == "notes\n└── a day.md"
    assert files.tree(depth=0).children == ()
    with files.open("notes/a day.md") as opened:
        assert opened.read(7) == b"# A day"
    assert [link.target for link in files.links("notes/a day.md")] == ["notes/b.md"]
    files.write("notes/b.md", "b")
    assert files.backlinks("notes/b.md") == ["notes/a day.md"]
    assert "notes" in files.prompt()


def test_text_is_changed_in_place(files):
    files.write("list.md", "one\ntwo")
    files.append("list.md", "three\n")
    files.replace("list.md", "two", "2")
    files.insert("list.md", 0, "zero")
    assert files.read("list.md") == "zero\none\n2\nthree\n"
    assert files.view("list.md", (2, 3)) == "     2\tone\n     3\t2"
    assert files.view("list.md", [4, -1]) == "     4\tthree"


def test_files_are_deleted_restored_and_moved(files):
    before = files.write("old/x.md", "x")
    deleted = files.delete("old")
    assert (deleted.path, deleted.kind) == ("old", FileKind.FOLDER)
    assert files.trash()[0] == deleted
    assert files.undelete("old").is_folder
    assert files.move("old/x.md", "new/deep/x.md").version == before.version
    assert files.mkdir("empty/folder").path == "empty/folder"
    assert files.undelete(files.delete("new").id, to="back").path == "back"
    assert files.read("back/deep/x.md") == "x"


@pytest.mark.parametrize("path", AWKWARD.split(" | "))
def test_awkward_file_names(files, path):
    written = files.write(path, path)
    assert written.path == path
    assert files.read(path) == path
    assert files.append(path, "more", if_match=written.version).size > written.size
    assert files.info(path).path == path
    assert files.view(path).endswith("more")
    files.delete(path)
    with pytest.raises(errors.MissingPathError):
        files.read(path)


@pytest.mark.parametrize(
    "path", ["..", "../x", "a/../../x", "/etc/passwd", "~/x", "C:x", "..\\x", "a/..\\..\\x", "//x"]
)
def test_paths_outside_are_refused(files, path):
    for call in (files.read, files.info, files.list, files.delete, files.mkdir, files.open):
        with pytest.raises(errors.PathOutsideError):
            call(path)
    with pytest.raises(errors.PathOutsideError):
        files.write(path, "x")


def test_write_with_an_old_version_is_refused(files):
    first = files.write("v.md", "1")
    second = files.write("v.md", "2", if_match=first.version)
    for call, *arguments in (
        (files.write, "3"),
        (files.append, "3"),
        (files.replace, "2", "3"),
        (files.insert, 0, "3"),
        (files.delete,),
    ):
        with pytest.raises(errors.VersionConflictError, match="was changed since you read it"):
            call("v.md", *arguments, if_match=first.version)
    with pytest.raises(errors.VersionConflictError, match="already exists"):
        files.write("v.md", "3", if_match="")
    assert files.read("v.md") == "2"
    files.delete("v.md", if_match=second.version)
    assert files.write("v.md", "4", if_match="").size == 1


def test_file_errors(files):
    files.write("f.md", "a a")
    files.mkdir("d")
    cases = [
        (errors.MissingPathError, "none.md: no such file or folder", lambda: files.read("none.md")),
        (errors.MissingPathError, "none: no such", lambda: files.list("none")),
        (errors.MissingPathError, "d/x: no such", lambda: files.info("d/x")),
        (errors.MissingPathError, "none: no such", lambda: files.tree("none")),
        (errors.MissingPathError, "none: no such", lambda: files.insert("none", 0, "b")),
        (errors.IsFolderError, "d", lambda: files.read("d")),
        (errors.IsFolderError, "d", lambda: files.view("d", (1, 2))),
        (errors.IsFolderError, "root", lambda: files.read("")),
        (errors.NotFolderError, "f.md", lambda: files.list("f.md")),
        (errors.PathExistsError, "f.md", lambda: files.move("d", "f.md")),
        (errors.NotUniqueError, "occurs 2 times", lambda: files.replace("f.md", "a", "b")),
        (errors.InvalidPathError, "begin with a dot", lambda: files.write(".git", "x")),
        (errors.ReadOnlyPathError, "is read-only", lambda: files.write("kb/x/y.md", "x")),
        (errors.ConfigError, "old is empty", lambda: files.replace("f.md", "", "b")),
        (errors.ConfigError, "line=9: give a whole number", lambda: files.insert("f.md", 9, "b")),
        (errors.ConfigError, "line=-1: give a whole", lambda: files.insert("f.md", -1, "b")),
        (errors.ConfigError, "the first must be 1 or more", lambda: files.view("f.md", (3, 1))),
        (errors.ConfigError, "content=7", lambda: files.write("f.md", 7)),
        (errors.InvalidPathError, "give a path as text", lambda: files.read(7)),
        (errors.ArgumentError, r"write write\(path, content", lambda: files.write("a", "b", "c")),
    ]
    for kind, message, call in cases:
        with pytest.raises(kind, match=message) as caught:
            call()
        assert type(caught.value) is kind
    with pytest.raises(errors.NotUniqueError) as caught:
        files.replace("f.md", "a", "b")
    assert caught.value.count == 2


def test_memory_tool(files):
    tool = files.memory_tool(folder="agent")
    written = tool.handle({"command": "create", "path": "/memories/a.md", "file_text": "one\n"})
    assert not written.is_error
    assert files.read("agent/a.md") == "one\n"
    assert "one" in tool.handle({"command": "view", "path": "/memories/a.md"})


def test_sync_of_files(files):
    assert files.sync(on_progress=lambda _: None).skipped == ()
