"""Paths, links and names that try to leave the folder of files."""

import os
import shutil
import threading
import unicodedata
from contextlib import suppress

import pytest

import kbkit
from kbkit.errors import (
    FilesError,
    MissingPathError,
    PathExistsError,
    PathOutsideError,
    ReadOnlyPathError,
)

posix = pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.md").write_text("secret")
    return folder


@pytest.fixture
def files(files):
    files.write("notes/a.md", "# A\n")
    return files


ACTIONS = {
    "read": lambda files, path: files.read(path),
    "view": lambda files, path: files.view(path),
    "info": lambda files, path: files.info(path),
    "write": lambda files, path: files.write(path, "mine"),
    "append": lambda files, path: files.append(path, "mine"),
    "replace": lambda files, path: files.replace(path, "secret", "mine"),
    "insert": lambda files, path: files.insert(path, 0, "mine"),
    "delete": lambda files, path: files.delete(path),
    "move": lambda files, path: files.move(path, "moved.md"),
    "move there": lambda files, path: files.move("notes/a.md", path),
    "mkdir": lambda files, path: files.mkdir(path),
    "undelete": lambda files, path: (files.delete("notes"), files.undelete("notes", to=path)),
}


def assert_untouched(outside):
    assert (outside / "secret.md").read_text() == "secret"
    assert [each.name for each in outside.iterdir()] == ["secret.md"]


UP = ["../outside/secret.md", "notes/../../outside/secret.md", "..\\outside\\secret.md"]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("path", [*UP, "{outside}/secret.md"])
def test_no_action_leaves_the_folder(files, outside, action, path):
    with pytest.raises(PathOutsideError):
        ACTIONS[action](files, path.format(outside=outside))
    assert_untouched(outside)


@posix
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("path", ["link/secret.md", "link/new.md", "file.md", "loop", "gone.md"])
def test_no_action_follows_a_link(files, outside, action, path):
    (files.path / "link").symlink_to(outside)
    (files.path / "file.md").symlink_to(outside / "secret.md")
    (files.path / "gone.md").symlink_to(outside / "new.md")
    (files.path / "loop").symlink_to("loop")
    with pytest.raises((PathOutsideError, PathExistsError)):
        ACTIONS[action](files, path)
    assert_untouched(outside)


@posix
def test_links_are_not_listed_and_deleted_with_their_folder(files, outside):
    (files.path / "notes/link").symlink_to(outside)
    assert [info.name for info in files.list("notes")] == ["a.md"]
    assert "link" not in str(files.tree())
    files.delete("notes")
    (files.path / ".trash/evil").symlink_to(outside)
    assert [each.path for each in files.trash()] == ["notes"]
    assert_untouched(outside)


@posix
def test_files_folder_must_not_be_a_link(tmp_path, outside):
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/files").symlink_to(outside)
    with kbkit.open(tmp_path / "ws") as workspace:
        for action in ("read", "write", "delete", "mkdir"):
            with pytest.raises(FilesError):
                ACTIONS[action](workspace.files, "secret.md")
        with pytest.raises(PathOutsideError):
            workspace.files.list()
    assert_untouched(outside)


@posix
def test_folder_swapped_for_a_link_never_leads_out(files, outside):
    """Another program swaps a folder for a link between check and use."""
    real, spare = files.path / "swap", files.path / "spare"
    files.write("swap/secret.md", "harmless")
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            with suppress(OSError):  # a write may create the folder
                real.rename(spare)
                real.symlink_to(outside)
            with suppress(OSError):
                real.unlink()
            with suppress(OSError):
                spare.rename(real)
            shutil.rmtree(spare, ignore_errors=True)

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen, refused = set(), 0
    try:
        for number in range(400):
            try:
                seen.add(files.read("swap/secret.md"))
                files.write("swap/secret.md", "harmless")
                files.write(f"swap/new{number % 5}.md", "harmless")
            except FilesError:
                refused += 1
    finally:
        stop.set()
        swapper.join()
    assert seen <= {"harmless"}
    assert refused
    assert_untouched(outside)


@posix
def test_pipes_are_refused(files):
    os.mkfifo(files.path / "pipe.md")
    with pytest.raises(FilesError, match="not a regular file"):
        files.read("pipe.md")
    assert [info.name for info in files.list()] == ["notes"]
    with pytest.raises(FilesError):
        files.write("pipe.md", "x")


def test_unwritable_names_are_not_listed(files):
    for name in (".hidden.md", "con.md", "trailing."):
        (files.path / name).write_text("x")
    assert [info.name for info in files.list()] == ["notes"]


def test_names_that_differ_in_case_only_are_refused(files):
    with pytest.raises(PathExistsError, match=r"'a\.md' already exists"):
        files.write("notes/A.md", "other")
    with pytest.raises(PathExistsError, match="'notes' already exists"):
        files.write("Notes/b.md", "other")
    with pytest.raises(MissingPathError, match=r"did you mean 'a\.md'"):
        files.read("notes/A.MD")
    assert files.move("notes/a.md", "notes/A.md").path == "notes/A.md"
    assert [info.name for info in files.list("notes")] == ["A.md"]


def test_decomposed_names_are_the_same_names(files):
    apart = unicodedata.normalize("NFD", "Grüße.md")
    (files.path / apart).write_text("hello")
    assert files.read("Grüße.md") == "hello"
    assert files.list()[-1].name == "Grüße.md"
    files.append("Grüße.md", "again")
    assert [each.name for each in files.path.glob("Gr*")] == [apart]
    assert files.read(apart) == "hello\nagain"
    files.delete("Grüße.md")
    assert not list(files.path.glob("Gr*"))


@pytest.mark.parametrize("action", sorted(set(ACTIONS) - {"read", "view", "info", "undelete"}))
def test_folder_of_knowledge_bases_is_read_only(files, action):
    for path in ("kb/x.md", "KB/x.md", "kb"):
        with pytest.raises(ReadOnlyPathError):
            ACTIONS[action](files, path)
    assert not (files.path / "kb").exists()


def test_names_of_255_bytes_are_accepted(files):
    for name in ("x" * 255, "é" * 127):
        files.write(name, "long")
        assert files.read(name) == "long"
    assert len(files.list()) == 3
