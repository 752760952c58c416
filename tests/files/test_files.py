"""What can be done with files, by the check-list of those who asked for them."""

from __future__ import annotations

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


def test_what_is_written_is_read_listed_and_drawn(files):
    assert files.list() == files.roots() == files.trash() == []
    assert str(files.tree()) == "."
    files.mkdir("projects/tea")
    files.write("projects/tea/green.md", "# Green\n")
    files.write("today.md", "")
    assert files.read("projects/tea/green.md") == "# Green\n"
    assert files.read("today.md") == ""
    assert [info.path for info in files.list()] == ["projects", "today.md"]
    assert [info.path for info in files.list("projects/tea")] == ["projects/tea/green.md"]
    assert [info.path for info in files.roots()] == ["projects"]
    assert str(files.tree()) == (
        ".\n├── projects/\n│   └── tea/\n│       └── green.md\n└── today.md"
    )
    assert str(files.tree("projects", depth=1)) == "projects\n└── tea/"
    assert files.tree().to_dict()["children"][0]["info"]["path"] == "projects"
    assert files.view("projects") == "projects\n└── tea/\n    └── green.md"


def test_it_is_a_plain_folder_that_lasts(tmp_path):
    with kbkit.open(tmp_path / "ws") as workspace:
        workspace.files.write("a/b.md", "zwölf\r\n")
        assert (tmp_path / "ws/files/a/b.md").read_bytes() == "zwölf\r\n".encode()
    with kbkit.open(tmp_path / "ws") as workspace:
        assert workspace.files.read("a/b.md") == "zwölf\r\n"


def test_text_is_added_on_a_line_of_its_own(files):
    assert files.append("log.md", "one").size == 3
    files.append("log.md", "two\n")
    files.append("log.md", "three")
    assert files.read("log.md") == "one\ntwo\nthree"
    files.write("dos.txt", "one\r\ntwo")
    files.append("dos.txt", "three")
    assert files.read("dos.txt") == "one\r\ntwo\r\nthree"


def test_lines_are_numbered(files):
    files.write("a.md", "one\n\nthree\n")
    assert files.view("a.md") == "     1\tone\n     2\t\n     3\tthree"
    assert files.view("a.md", (2, 3)) == files.view("a.md", [2, -1]) == "     2\t\n     3\tthree"
    assert files.view("a.md", (3, 99)) == "     3\tthree"
    for lines in ((0, 1), (2, 1), (4, -1), (1,), "12", (1.0, 2), (True, 2), 3):
        with pytest.raises(ConfigError):
            files.view("a.md", lines)
    files.write("empty.md", "")
    assert files.view("empty.md") == ""


def test_a_text_is_replaced_that_stands_there_once(files):
    files.write("a.md", "tea, tea, coffee\n")
    assert files.replace("a.md", "coffee", "cocoa").size == 16
    assert files.read("a.md") == "tea, tea, cocoa\n"
    for old, count in (("tea", 2), ("milk", 0)):
        with pytest.raises(NotUniqueError, match=f"{count} times" if count else "nowhere") as error:
            files.replace("a.md", old, "x")
        assert error.value.count == count
    files.write("aaa", "aaa")
    with pytest.raises(NotUniqueError):  # which of the two that overlap is meant?
        files.replace("aaa", "aa", "b")
    with pytest.raises(ConfigError):
        files.replace("a.md", "", "x")
    files.write("dos.md", "one\r\ntwo\r\n")
    files.replace("dos.md", "one\ntwo\n", "three\nfour\n")
    assert files.read("dos.md") == "three\r\nfour\r\n"


def test_text_is_put_behind_a_line(files):
    files.write("a.md", "one\nthree")
    files.insert("a.md", 1, "two")
    files.insert("a.md", 3, "four\n")
    files.insert("a.md", 0, "zero\n")
    assert files.read("a.md") == "zero\none\ntwo\nthree\nfour\n"
    for line in (-1, 6, "1", 1.0, True):
        with pytest.raises(ConfigError, match="0 to 5"):
            files.insert("a.md", line, "x")


def test_a_folder_goes_into_the_trash_with_all_in_it_and_comes_back(files):
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
    with pytest.raises(PathExistsError, match="bring it back under another path"):
        files.undelete(second.id)
    assert files.undelete(second.id, to="old/green.md").path == "old/green.md"
    assert files.read("old/green.md") == "green"
    with pytest.raises(MissingPathError):
        files.undelete("tea/green.md")
    assert first.deleted_at > second.deleted_at


def test_git_passes_the_trash_over(files):
    subprocess.run(["git", "init", "-q", files.path.parent / "files"], check=True)
    files.write("a.md", "a")
    files.write("b.md", "b")
    assert files.delete("b.md") == files.trash()[0]
    command = ["git", "-C", files.path, "status", "--porcelain", "-uall"]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"?? a.md\n"


def test_things_move_with_all_in_them(files):
    files.write("a/one.md", "1")
    assert files.move("a", "b/c").path == "b/c"
    assert files.read("b/c/one.md") == "1"
    assert files.move("b/c/one.md", "one.md").path == "one.md"
    assert [info.path for info in files.list()] == ["b", "one.md"]
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
def test_what_cannot_be_done_has_an_error_of_its_name(files, error, call):
    files.write("a.md", "a")
    files.mkdir("d")
    (files.path / "picture.png").write_bytes(b"\x89PNG\xff")
    with pytest.raises(error) as raised:
        call(files)
    assert isinstance(raised.value, KbkitError)
    assert files.read("a.md") == "a"
    assert files.list("d") == []


def test_a_write_that_expects_a_version_fails_when_another_came_between(files):
    first = files.write("a.md", "one")
    assert files.info("a.md").version == first.version
    second = files.write("a.md", "two", if_match=first.version)
    for call in (files.write, files.append):
        with pytest.raises(VersionConflictError, match="another change came between"):
            call("a.md", "three", if_match=first.version)
    with pytest.raises(VersionConflictError):
        files.replace("a.md", "two", "three", if_match=first.version)
    with pytest.raises(VersionConflictError):
        files.insert("a.md", 0, "three", if_match=first.version)
    with pytest.raises(VersionConflictError, match=r"^a\.md: is there already, of version"):
        files.write("a.md", "three", if_match="")
    with pytest.raises(VersionConflictError, match="is not there"):
        files.write("new.md", "three", if_match=first.version)
    assert files.read("a.md") == "two"
    files.write("new.md", "made", if_match="")
    (files.path / "a.md").write_text("by an editor")
    with pytest.raises(VersionConflictError):
        files.append("a.md", "x", if_match=second.version)


def test_a_file_keeps_its_rights(files):
    files.write("run.sh", "echo\n")
    (files.path / "run.sh").chmod(0o640)
    files.append("run.sh", "echo again\n")
    assert (files.path / "run.sh").stat().st_mode & 0o777 == 0o640


def test_times_are_told(files):
    before = datetime.now(UTC)
    made = files.write("a.md", "one")
    assert abs((made.changed_at - before).total_seconds()) < 60
    assert made.created_at <= made.changed_at


def test_a_file_that_is_too_large_is_refused(files, monkeypatch):
    monkeypatch.setattr("kbkit.files.store.MAX_BYTES", 10)
    with pytest.raises(FilesError, match="at most"):
        files.write("a.md", "x" * 11)
    assert files.list() == []
