"""Locks, gathered work, and copies of folders."""

import os
import threading

import psutil
import pytest
from filelock import FileLock

from kbkit.errors import ConflictError, WorkspaceError
from kbkit.stores.backend import FolderLocks
from kbkit.stores.catalog.copying import copy_folder
from kbkit.stores.stores import WriteBatcher

pytestmark = pytest.mark.local


@pytest.fixture
def locks(tmp_path):
    return FolderLocks(tmp_path / "more/locks")


def hold(locks, name, **options):
    with locks.hold(name, **{"wait": 0, **options}):
        return "held"


def test_lock_has_one_holder(locks, tmp_path):
    with locks.hold("chroma", wait=0, task="writing"):
        assert hold(locks, "other") == "held"
        assert locks.is_held("chroma")
        with pytest.raises(ConflictError, match="another process is writing; wait for it"):
            hold(locks, "chroma", task="writing")
        with pytest.raises(ConflictError, match=r"another process is holding chroma\.lock;"):
            hold(FolderLocks(tmp_path / "more/locks"), "chroma")
    assert locks.is_held("chroma") is False
    assert hold(locks, "chroma") == "held"


def test_error_inside_releases_the_lock(locks):
    with pytest.raises(KeyError), locks.hold("a", wait=0):
        raise KeyError
    assert hold(locks, "a") == "held"


def test_lock_waits_for_threads_and_processes(locks, tmp_path):
    other = FileLock(tmp_path / "more/locks/a.lock")
    other.acquire()
    with pytest.raises(ConflictError):
        hold(locks, "a", wait=0.05, poll=0.01)
    results = []
    waiting = [
        threading.Thread(target=lambda: results.append(hold(locks, "a", wait=60, poll=0.01)))
        for _ in range(3)
    ]
    for thread in waiting:
        thread.start()
    assert results == []
    other.release()
    for thread in waiting:
        thread.join(60)
    assert results == ["held"] * 3


def test_unavailable_lock_explains_why(locks, tmp_path):
    (tmp_path / "more/locks/a.lock").mkdir()
    with pytest.raises(WorkspaceError, match=r"a\.lock: Is a directory; kbkit needs to write"):
        hold(locks, "a")
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceError, match="name a folder that you may write to"):
        FolderLocks(tmp_path / "file/locks")


def test_work_runs_at_once_unless_gathered():
    work, done = WriteBatcher(), []
    work.do("a", done.append, ["x"])
    assert done == [["x"]]
    work.gather()
    for item in ("x", "y", "x"):
        work.do("a", done.append, [item])
    work.do("b", done.append, ["z"])
    assert done == [["x"]]
    work.gather(more=False)
    assert done[1:] == [{"x", "y"}, {"z"}], "the items of each key together"
    work.finish()
    work.do("a", done.append, ["z"])
    assert done[3:] == [["z"]]


def test_gathered_work_runs_soon_despite_failures(monkeypatch):
    monkeypatch.setattr("kbkit.stores.stores._SECONDS", 0.01)
    work = WriteBatcher()
    work.gather()

    def deleted(_):
        raise ConflictError("deleted meanwhile")

    for _ in range(2):
        done = threading.Event()
        work.do("a", deleted, [])
        work.do("b", lambda _, done=done: done.set(), [])
        assert done.wait(60)
    work.do("a", deleted, [])
    work.finish()


@pytest.fixture
def folder(tmp_path):
    source = tmp_path / "source"
    (source / "deep/empty").mkdir(parents=True)
    (source / "a.md").write_text("A")
    (source / "deep/b.md").write_text("B")
    (source / "deep/link").symlink_to("b.md")
    (source / "loop").symlink_to(source)
    return source


def tree(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_folder_is_copied_with_its_content(folder, tmp_path):
    copy = tmp_path / "new/place"
    copy_folder(folder, copy)
    assert tree(copy) == ["a.md", "deep", "deep/b.md", "deep/empty", "deep/link", "loop"]
    assert (copy / "deep/b.md").read_text() == "B"
    assert (copy / "deep/link").readlink() == (folder / "deep/link").readlink()
    assert (copy / "loop").is_symlink()
    (copy / "mine.md").write_text("mine")
    (copy / "a.md").unlink()
    copy_folder(folder, copy)
    assert (copy / "a.md").read_text() == "A"
    assert (copy / "mine.md").read_text() == "mine"


def test_equal_size_and_time_do_not_make_files_equal(folder, tmp_path):
    copy = tmp_path / "there"
    copy_folder(folder, copy)
    (copy / "a.md").write_text("Z")  # same size and time
    stat = (folder / "a.md").stat()
    os.utime(copy / "a.md", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(WorkspaceError, match=r"a\.md"):
        copy_folder(folder, copy)
    (copy / "a.md").unlink()
    (copy / "deep/link").unlink()
    (copy / "deep/link").write_text("B")  # the content behind the link
    with pytest.raises(WorkspaceError, match="deep/link"):
        copy_folder(folder, copy)


def test_failed_copy_leaves_nothing(folder, tmp_path, monkeypatch):
    def full(source, target, **options):
        raise OSError(28, "No space left on device", str(target))

    copy, opened = tmp_path / "there", psutil.Process().num_fds()
    with monkeypatch.context() as patched:
        patched.setattr("kbkit.stores.catalog.copying.shutil.copy2", full)
        with pytest.raises(WorkspaceError, match="No space left on device; fix that"):
            copy_folder(folder, copy)
    assert tree(copy) == []
    copy_folder(folder, copy)
    assert psutil.Process().num_fds() == opened


@pytest.mark.parametrize("name", ["a.md", "deep/b.md", "deep/link", "deep/empty"])
@pytest.mark.parametrize("other", ["file", "link", "folder"])
def test_existing_other_file_is_kept_and_named(folder, tmp_path, name, other):
    copy = tmp_path / "there"
    target = copy / name
    target.parent.mkdir(parents=True)
    if other == "file":
        target.write_text("X")
    elif other == "link":
        target.symlink_to("elsewhere")
    else:
        target.mkdir()
    if (name, other) == ("deep/empty", "folder"):
        copy_folder(folder, copy)
        return
    with pytest.raises(WorkspaceError, match=name):
        copy_folder(folder, copy)
    assert target.is_dir() if other == "folder" else not target.is_dir()
    assert not list(copy.rglob("*.part"))
