"""Every file is a document of the built-in knowledge base, found when the call returns."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest

import kbkit
from kbkit.errors import ConfigError, ConflictError, InvalidNameError
from kbkit.recipes import FilesSource


@pytest.fixture
def workspace(tmp_path):
    with kbkit.open(tmp_path / "ws") as opened:
        yield opened


@pytest.fixture
def files(workspace):
    return workspace.files


def found(workspace, query, **options):
    return [hit.uri for hit in workspace["files"].search(query, **options)]


def test_what_is_written_is_found_when_the_call_returns(workspace, files):
    assert workspace.list() == []
    assert not files.path.exists()
    files.write("notes/tea.md", "# Green tea\n\nSteep the leaves for two minutes.\n")
    assert [info.name for info in workspace.list()] == ["files"]
    for mode in ("lexical", "dense", "hybrid"):
        assert found(workspace, "steep leaves", mode=mode) == ["notes/tea.md"]
    hit = workspace.search("steep leaves").hits[0]
    assert (hit.kb, hit.title) == ("files", "Green tea")
    files.append("notes/tea.md", "Then add a sprig of peppermint.")
    assert found(workspace, "peppermint", mode="lexical") == ["notes/tea.md"]
    files.replace("notes/tea.md", "peppermint", "lemongrass")
    assert found(workspace, "peppermint", mode="lexical") == []
    assert found(workspace, "lemongrass", mode="lexical") == ["notes/tea.md"]
    files.insert("notes/tea.md", 1, "Boil cardamom first.")
    assert found(workspace, "cardamom", mode="lexical") == ["notes/tea.md"]
    assert (
        not files.memory_tool()
        .handle({"command": "create", "path": "/memories/log.txt", "file_text": "Bought turmeric."})
        .is_error
    )
    assert found(workspace, "turmeric", mode="lexical") == ["log.txt"]


def test_what_is_deleted_moved_and_brought_back_is_found_so(workspace, files):
    files.write("a/tea.md", "# Tea\n\noolong\n")
    kb = workspace["files"]
    document = kb.documents["a/tea.md"]
    kb.rate(document.id, 5)
    files.move("a", "b/c")
    assert found(workspace, "oolong") == ["b/c/tea.md"]
    assert kb.documents["b/c/tea.md"].id == document.id
    files.delete("b")
    assert found(workspace, "oolong") == []
    assert len(kb.documents) == 0
    files.undelete("b")
    assert found(workspace, "oolong") == ["b/c/tea.md"]
    assert kb.documents["b/c/tea.md"].id == document.id
    assert [rating.score for rating in kb.ratings.of(document.id)] == [5]


def test_edits_from_outside_are_taken_over(tmp_path):
    root = tmp_path / "ws/files"
    with kbkit.open(tmp_path / "ws") as workspace:
        workspace.files.write("kept.md", "saffron")
        workspace.files.write("gone.md", "paprika")
        (root / "kept.md").write_text("vanilla")
        (root / "gone.md").unlink()
        (root / "deep").mkdir()
        (root / "deep/new.md").write_text("# New\n\nnutmeg\n")
        (root / "binary.bin").write_bytes(b"\0\1")
        (root / "empty.md").touch()
        report = workspace.files.sync()
        assert report.updated == ("kept.md",)
        assert report.removed == ("gone.md",)
        assert set(report.added) == {"deep/new.md", "binary.bin", "empty.md"}
        assert {each.uri for each in report.skipped} == {"binary.bin", "empty.md"}
        assert found(workspace, "vanilla", mode="lexical") == ["kept.md"]
        assert found(workspace, "nutmeg", mode="lexical") == ["deep/new.md"]
        assert found(workspace, "paprika saffron", mode="lexical") == []
        assert not workspace.files.sync()
    (root / "deep/new.md").write_text("# New\n\ncinnamon\n")
    (root / "other.md").write_text("aniseed")
    with kbkit.open(tmp_path / "ws") as workspace:  # which looks by itself
        assert found(workspace, "cinnamon", mode="lexical") == ["deep/new.md"]
        assert found(workspace, "aniseed", mode="lexical") == ["other.md"]


def test_an_edit_that_leaves_size_and_time_is_noticed(workspace, files):
    files.write("a.md", "ginger")
    about = (files.path / "a.md").stat()
    (files.path / "a.md").write_text("garlic")
    os.utime(files.path / "a.md", ns=(about.st_atime_ns, about.st_mtime_ns))
    assert files.sync().updated == ("a.md",)
    assert found(workspace, "garlic") == ["a.md"]


def test_what_was_only_touched_is_not_stored_again(workspace, files):
    files.write("a.md", "ginger")
    version = workspace["files"].info().updated_at
    os.utime(files.path / "a.md", (1, 1))
    assert not files.sync()
    assert workspace["files"].info().updated_at == version


def test_files_of_other_formats_are_read_as_ever(workspace, files):
    files.path.mkdir()
    (files.path / "table.csv").write_text("spice,price\nsumac,3\n")
    (files.path / "page.html").write_text("<h1>Herbs</h1><p>Tarragon and dill.</p>")
    files.sync()
    assert found(workspace, "sumac", mode="lexical") == ["table.csv"]
    assert found(workspace, "tarragon", mode="lexical") == ["page.html"]


def wait_for_a_later_time(folder, than):
    """Wait until files that are written have a later time: a disk's clock goes in steps."""
    clock = folder / "clock"
    while True:
        clock.write_bytes(b"tick")
        if datetime.fromtimestamp(clock.stat().st_mtime, UTC) > than:
            return


def test_times_of_creation_last(tmp_path):
    with kbkit.open(tmp_path / "ws") as workspace:
        made = workspace.files.write("a.md", "one").created_at
        assert abs((datetime.now(UTC) - made).total_seconds()) < 60
    with kbkit.open(tmp_path / "ws") as workspace:
        files = workspace.files
        wait_for_a_later_time(tmp_path, made)
        changed = files.append("a.md", "two")
        assert (changed.created_at, files.list()[0].created_at) == (made, made)
        assert changed.changed_at > made
        files.move("a.md", "b/c.md")
        files.delete("b")
        files.undelete("b")
        assert files.info("b/c.md").created_at == files.list("b")[0].created_at == made
        files.delete("b/c.md")
        assert files.undelete("b/c.md", to="d.md").created_at == made


def test_a_folder_is_as_old_as_what_is_oldest_in_it(tmp_path, files):
    made = files.write("a/b/c.md", "one").created_at
    wait_for_a_later_time(tmp_path, made)
    files.write("a/d.md", "two")
    files.write("ab/e.md", "three")
    assert files.info("a").created_at == made
    assert files.info("a/b").created_at <= made
    assert files.info("a").changed_at > made
    assert {info.path: info.created_at <= made for info in files.list()} == {"a": True, "ab": False}


def test_a_list_has_the_versions_that_writes_expect(files):
    files.write("a.md", "one")
    (files.path / "b.md").write_text("by an editor")
    for info in files.list():
        files.write(info.path, "two", if_match=info.version)
    (files.path / "a.md").write_text("six")
    assert [info.version for info in files.list()] == [
        files.info(path).version for path in ("a.md", "b.md")
    ]


def test_the_knowledge_base_of_the_files_goes_with_them(workspace, files):
    files.write("a.md", "saffron")
    kb = workspace["files"]
    for call in (
        lambda: workspace.delete("files"),
        lambda: workspace.delete("files", forever=True),
        lambda: workspace.rename("files", to="mine"),
    ):
        with pytest.raises(ConflictError, match="goes with them"):
            call()
    for call in (
        lambda: kb.add("x", "y"),
        lambda: kb.ingest(FilesSource(path="x")),
        lambda: kb.sync([FilesSource(path="x")]),
        lambda: kb.sources.add(FilesSource(path="x")),
        lambda: kb.documents.delete("a.md"),
        lambda: kb.documents.update("a.md", content="other"),
        lambda: kb.documents.undelete("a.md"),
    ):
        with pytest.raises(ConfigError, match=r"workspace\.files"):
            call()
    kb.documents.update("a.md", tags=["spice"])  # what is said of it is no part of the file
    files.append("a.md", "cumin")
    assert kb.documents["a.md"].tags == ("spice",)
    with pytest.raises(InvalidNameError, match=r"workspace\.files"):
        workspace.create("files")
    workspace.create("other")
    with pytest.raises(InvalidNameError):
        workspace.rename("other", to="files")


def test_a_knowledge_base_of_that_name_stays_and_files_say_what_to_do(workspace, files):
    own = workspace.create("mine")
    own.add("Own", "my own document")
    with workspace._stores.database.write() as transaction:
        from kbkit.stores.catalog import knowledge_bases

        knowledge_bases.rename(transaction, own.id, "files")  # as an older kbkit let it be named
    with pytest.raises(ConflictError, match="rename it"):
        files.write("a.md", "saffron")
    assert files.read("a.md") == "saffron"
    workspace.rename("files", to="mine")
    files.sync()
    assert found(workspace, "saffron") == ["a.md"]
