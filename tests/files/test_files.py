"""Actions on files."""

import subprocess
from datetime import UTC, datetime

import pytest

import kbkit
from kbkit.errors import (
    ArgumentError,
    ConfigError,
    FilesError,
    InvalidPathError,
    IsFolderError,
    KbkitError,
    MissingPathError,
    NotFolderError,
    NotTextError,
    NotUniqueError,
    PathExistsError,
    VersionConflictError,
)
from tests.files.conftest import paths


def test_files_are_written_read_listed_and_drawn(files):
    assert files.list() == files.roots() == files.trash() == []
    assert str(files.tree()) == "."
    files.mkdir("projects/tea")
    files.write("projects/tea/green.md", "# Green\n")
    files.write("today.md", "")
    assert files.read("projects/tea/green.md") == "# Green\n"
    assert files.read("today.md") == ""
    assert paths(files.list()) == ["projects", "today.md"]
    assert paths(files.list("projects/tea")) == ["projects/tea/green.md"]
    assert paths(files.roots()) == ["projects"]
    assert str(files.tree()) == (
        ".\n├── projects/\n│   └── tea/\n│       └── green.md\n└── today.md"
    )
    assert str(files.tree("projects", depth=1)) == "projects\n└── tea/"
    assert files.tree().to_dict()["children"][0]["info"]["path"] == "projects"
    assert files.view("projects") == "projects\n└── tea/\n    └── green.md"


def test_files_are_a_plain_folder(tmp_path):
    with kbkit.open(tmp_path / "ws") as workspace:
        workspace.files.write("a/b.md", "zwölf\r\n")
        assert (tmp_path / "ws/files/a/b.md").read_bytes() == "zwölf\r\n".encode()
    with kbkit.open(tmp_path / "ws") as workspace:
        assert workspace.files.read("a/b.md") == "zwölf\r\n"


def test_append_starts_a_new_line(files):
    assert files.append("log.md", "one").size == 3
    files.append("log.md", "two\n")
    files.append("log.md", "three")
    assert files.read("log.md") == "one\ntwo\nthree"
    files.write("dos.txt", "one\r\ntwo")
    files.append("dos.txt", "three")
    assert files.read("dos.txt") == "one\r\ntwo\r\nthree"


def test_view_numbers_lines(files):
    files.write("a.md", "one\n\nthree\n")
    assert files.view("a.md") == "     1\tone\n     2\t\n     3\tthree"
    assert files.view("a.md", (2, 3)) == files.view("a.md", [2, -1]) == "     2\t\n     3\tthree"
    assert files.view("a.md", (3, 99)) == "     3\tthree"
    for lines in ((0, 1), (2, 1), (4, -1), (1,), "12", (1.0, 2), (True, 2), 3):
        with pytest.raises(ConfigError):
            files.view("a.md", lines)
    files.write("empty.md", "")
    assert files.view("empty.md") == ""


def test_replace_needs_a_unique_text(files):
    files.write("a.md", "tea, tea, coffee\n")
    assert files.replace("a.md", "coffee", "cocoa").size == 16
    assert files.read("a.md") == "tea, tea, cocoa\n"
    for old, count in (("tea", 2), ("milk", 0)):
        with pytest.raises(NotUniqueError, match=f"{count} times" if count else "nowhere") as error:
            files.replace("a.md", old, "x")
        assert error.value.count == count
    files.write("aaa", "aaa")
    with pytest.raises(NotUniqueError):  # overlaps
        files.replace("aaa", "aa", "b")
    with pytest.raises(ConfigError):
        files.replace("a.md", "", "x")
    files.write("dos.md", "one\r\ntwo\r\n")
    files.replace("dos.md", "one\ntwo\n", "three\nfour\n")
    assert files.read("dos.md") == "three\r\nfour\r\n"


def test_insert_adds_text_after_a_line(files):
    files.write("a.md", "one\nthree")
    files.insert("a.md", 1, "two")
    files.insert("a.md", 3, "four\n")
    files.insert("a.md", 0, "zero\n")
    assert files.read("a.md") == "zero\none\ntwo\nthree\nfour\n"
    for line in (-1, 6, "1", 1.0, True):
        with pytest.raises(ConfigError, match="0 to 5"):
            files.insert("a.md", line, "x")


def test_deleted_folders_and_files_are_restored(files):
    files.write("tea/green.md", "green")
    files.write("tea/deep/black.md", "black")
    files.delete("tea")
    assert files.list() == []
    assert [(each.path, each.kind) for each in files.trash()] == [("tea", "folder")]
    assert files.undelete("tea").is_folder
    assert files.read("tea/deep/black.md") == "black"
    assert files.trash() == []
    files.delete("tea/green.md")
    files.write("tea/green.md", "newer")
    files.delete("tea/green.md")
    first, second = files.trash()
    assert files.undelete("tea/green.md").path == "tea/green.md"
    assert files.read("tea/green.md") == "newer"
    assert files.trash() == [second]
    with pytest.raises(PathExistsError, match="restore it under another path"):
        files.undelete(second.id)
    assert files.undelete(second.id, to="old/green.md").path == "old/green.md"
    assert files.read("old/green.md") == "green"
    with pytest.raises(MissingPathError):
        files.undelete("tea/green.md")
    assert first.deleted_at > second.deleted_at


def test_git_ignores_the_trash(files):
    subprocess.run(["git", "init", "-q", files.path.parent / "files"], check=True)
    files.write("a.md", "a")
    files.write("b.md", "b")
    assert files.delete("b.md") == files.trash()[0]
    command = ["git", "-C", files.path, "status", "--porcelain", "-uall"]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"?? a.md\n"


def test_folders_and_files_are_moved(files):
    files.write("a/one.md", "1")
    assert files.move("a", "b/c").path == "b/c"
    assert files.read("b/c/one.md") == "1"
    assert files.move("b/c/one.md", "one.md").path == "one.md"
    assert paths(files.list()) == ["b", "one.md"]
    files.write("two.md", "2")
    with pytest.raises(PathExistsError):
        files.move("one.md", "two.md")
    with pytest.raises(InvalidPathError, match="into itself"):
        files.move("b", "b/c/d")
    with pytest.raises(MissingPathError):
        files.move("nowhere", "x")
    assert files.move("one.md", "one.md").path == "one.md"
    assert files.read("two.md") == "2"


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (MissingPathError, lambda files: files.read("x.md")),
        (MissingPathError, lambda files: files.list("x")),
        (MissingPathError, lambda files: files.info("d/x")),
        (MissingPathError, lambda files: files.tree("x")),
        (MissingPathError, lambda files: files.delete("x")),
        (MissingPathError, lambda files: files.undelete("x")),
        (MissingPathError, lambda files: files.replace("x", "a", "b")),
        (MissingPathError, lambda files: files.insert("x", 0, "b")),
        (IsFolderError, lambda files: files.read("d")),
        (IsFolderError, lambda files: files.read("")),
        (IsFolderError, lambda files: files.write("d", "x")),
        (IsFolderError, lambda files: files.append("d", "x")),
        (IsFolderError, lambda files: files.view("d", (1, 2))),
        (NotFolderError, lambda files: files.list("a.md")),
        (NotFolderError, lambda files: files.write("a.md/b", "x")),
        (NotFolderError, lambda files: files.read("a.md/b")),
        (PathExistsError, lambda files: files.mkdir("a.md")),
        (InvalidPathError, lambda files: files.delete("")),
        (InvalidPathError, lambda files: files.write("", "x")),
        (NotTextError, lambda files: files.read("picture.png")),
        (NotTextError, lambda files: files.insert("picture.png", 0, "x")),
        (NotTextError, lambda files: files.write("x", "\ud800")),
        (ConfigError, lambda files: files.write("x", b"bytes")),
        (ArgumentError, lambda files: files.write("x", "y", "z")),
    ],
)
def test_each_failure_has_its_own_error(files, error, call):
    files.write("a.md", "a")
    files.mkdir("d")
    (files.path / "picture.png").write_bytes(b"\x89PNG\xff")
    with pytest.raises(error) as raised:
        call(files)
    assert isinstance(raised.value, KbkitError)
    assert files.read("a.md") == "a"
    assert files.list("d") == []


def test_if_match_refuses_outdated_versions(files):
    first = files.write("a.md", "one")
    assert files.info("a.md").version == first.version
    second = files.write("a.md", "two", if_match=first.version)
    for call, arguments in (
        (files.write, ("three",)),
        (files.append, ("three",)),
        (files.replace, ("two", "three")),
        (files.insert, (0, "three")),
    ):
        with pytest.raises(VersionConflictError, match="it was changed meanwhile"):
            call("a.md", *arguments, if_match=first.version)
    with pytest.raises(VersionConflictError, match=r"^a\.md: already exists, at version"):
        files.write("a.md", "three", if_match="")
    with pytest.raises(VersionConflictError, match="does not exist"):
        files.write("new.md", "three", if_match=first.version)
    assert files.read("a.md") == "two"
    files.write("new.md", "new", if_match="")
    (files.path / "a.md").write_text("by an editor")
    with pytest.raises(VersionConflictError):
        files.append("a.md", "x", if_match=second.version)


def test_write_returns_times_and_append_keeps_permissions(files):
    before = datetime.now(UTC)
    info = files.write("run.sh", "echo\n")
    assert abs((info.changed_at - before).total_seconds()) < 60
    assert info.created_at <= info.changed_at
    (files.path / "run.sh").chmod(0o640)
    files.append("run.sh", "echo again\n")
    assert (files.path / "run.sh").stat().st_mode & 0o777 == 0o640


def test_too_large_file_is_refused(files, monkeypatch):
    monkeypatch.setattr("kbkit.files.store.MAX_BYTES", 10)
    with pytest.raises(FilesError, match="at most"):
        files.write("a.md", "x" * 11)
    assert files.list() == []
