"""Actions on files."""

import subprocess
from datetime import UTC, datetime

import pytest

import kbkit
from kbkit.errors import (
    ConfigError,
    FilesError,
    NotTextError,
    PathExistsError,
    VersionConflictError,
)


def test_files_are_a_plain_folder(tmp_path):
    with kbkit.open(tmp_path / "ws") as workspace:
        workspace.files.write("a/b.md", "zwölf\r\n")
        assert (tmp_path / "ws/files/a/b.md").read_bytes() == "zwölf\r\n".encode()
    with kbkit.open(tmp_path / "ws") as workspace:
        assert workspace.files.read("a/b.md") == "zwölf\r\n"


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


def test_git_ignores_the_trash(files):
    subprocess.run(["git", "init", "-q", files.path.parent / "files"], check=True)
    files.write("a.md", "a")
    files.write("b.md", "b")
    assert files.delete("b.md") == files.trash()[0]
    command = ["git", "-C", files.path, "status", "--porcelain", "-uall"]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"?? a.md\n"


def test_windows_line_ends_are_kept(files):
    files.write("dos.md", "one\r\ntwo")
    files.append("dos.md", "three")
    files.replace("dos.md", "one\ntwo\n", "2\n1\n")
    files.insert("dos.md", 2, "new")
    assert files.read("dos.md") == "2\r\n1\r\nnew\r\nthree"


def test_undelete_to_a_taken_path_is_refused(files):
    files.write("green.md", "green")
    deleted = files.delete("green.md")
    files.write("green.md", "newer")
    with pytest.raises(PathExistsError, match="restore it under another path"):
        files.undelete(deleted.id)
    assert files.trash() == [deleted]


@pytest.mark.parametrize(
    "call",
    [
        lambda files: files.read("picture.png"),
        lambda files: files.insert("picture.png", 0, "x"),
        lambda files: files.write("x", "\ud800"),
    ],
)
def test_only_text_is_read_and_written(files, call):
    files.mkdir("d")
    (files.path / "picture.png").write_bytes(b"\x89PNG\xff")
    with pytest.raises(NotTextError):
        call(files)


def test_if_match_notices_other_programs(files):
    version = files.write("a.md", "one").version
    (files.path / "a.md").write_text("by an editor")
    with pytest.raises(VersionConflictError):
        files.append("a.md", "x", if_match=version)
    with pytest.raises(VersionConflictError, match="does not exist"):
        files.write("new.md", "x", if_match=version)


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
