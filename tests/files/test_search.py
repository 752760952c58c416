"""Files as documents of the built-in knowledge base."""

import os
from datetime import UTC, datetime

import pytest

import kbkit
from kbkit.errors import ConfigError, ConflictError, InvalidNameError
from kbkit.recipes import FilesSource
from kbkit.stores.catalog import knowledge_bases


@pytest.fixture
def files(workspace):
    return workspace.files


def found(workspace, query, **options):
    return [hit.uri for hit in workspace["files"].search(query, **options)]


def words(workspace, query):
    return found(workspace, query, mode="lexical")


def test_written_files_are_found_at_once(workspace, files):
    assert workspace.list() == []
    assert not files.path.exists()
    files.write("notes/tea.md", "# Green tea\n\nSteep the leaves for two minutes.\n")
    assert [info.name for info in workspace.list()] == ["files"]
    for mode in ("lexical", "dense", "hybrid"):
        assert found(workspace, "steep leaves", mode=mode) == ["notes/tea.md"]
    hit = workspace.search("steep leaves").hits[0]
    assert (hit.kb, hit.title) == ("files", "Green tea")
    files.append("notes/tea.md", "Then add a sprig of peppermint.")
    assert words(workspace, "peppermint") == ["notes/tea.md"]
    files.replace("notes/tea.md", "peppermint", "lemongrass")
    assert words(workspace, "peppermint") == []
    assert words(workspace, "lemongrass") == ["notes/tea.md"]
    files.insert("notes/tea.md", 1, "Boil cardamom first.")
    assert words(workspace, "cardamom") == ["notes/tea.md"]
    command = {"command": "create", "path": "/memories/log.txt", "file_text": "Bought turmeric."}
    assert not files.memory_tool().handle(command).is_error
    assert words(workspace, "turmeric") == ["log.txt"]


def test_search_follows_moves_deletions_and_restores(workspace, files):
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


def test_external_edits_are_synced(tmp_path):
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
        assert words(workspace, "vanilla") == ["kept.md"]
        assert words(workspace, "nutmeg") == ["deep/new.md"]
        assert words(workspace, "paprika saffron") == []
        assert not workspace.files.sync()
    (root / "deep/new.md").write_text("# New\n\ncinnamon\n")
    (root / "other.md").write_text("aniseed")
    with kbkit.open(tmp_path / "ws") as workspace:  # syncs
        assert words(workspace, "cinnamon") == ["deep/new.md"]
        assert words(workspace, "aniseed") == ["other.md"]


def test_edit_with_equal_size_and_time_is_noticed(workspace, files):
    files.write("a.md", "ginger")
    about = (files.path / "a.md").stat()
    (files.path / "a.md").write_text("garlic")
    os.utime(files.path / "a.md", ns=(about.st_atime_ns, about.st_mtime_ns))
    assert files.sync().updated == ("a.md",)
    assert found(workspace, "garlic") == ["a.md"]


def test_touched_file_is_not_stored_again(workspace, files):
    files.write("a.md", "ginger")
    version = workspace["files"].info().updated_at
    os.utime(files.path / "a.md", (1, 1))
    assert not files.sync()
    assert workspace["files"].info().updated_at == version


def test_files_of_other_formats_are_read(workspace, files):
    files.path.mkdir()
    (files.path / "table.csv").write_text("spice,price\nsumac,3\n")
    (files.path / "page.html").write_text("<h1>Herbs</h1><p>Tarragon and dill.</p>")
    files.sync()
    assert words(workspace, "sumac") == ["table.csv"]
    assert words(workspace, "tarragon") == ["page.html"]


def wait_for_a_later_time(folder, than):
    """Wait until new files have a later time, since clocks of disks go in steps."""
    clock = folder / "clock"
    while True:
        clock.write_bytes(b"tick")
        if datetime.fromtimestamp(clock.stat().st_mtime, UTC) > than:
            return


def test_creation_times_are_kept(tmp_path):
    with kbkit.open(tmp_path / "ws") as workspace:
        created = workspace.files.write("a.md", "one").created_at
        assert abs((datetime.now(UTC) - created).total_seconds()) < 60
    with kbkit.open(tmp_path / "ws") as workspace:
        files = workspace.files
        wait_for_a_later_time(tmp_path, created)
        changed = files.append("a.md", "two")
        assert (changed.created_at, files.list()[0].created_at) == (created, created)
        assert changed.changed_at > created
        files.move("a.md", "b/c.md")
        files.delete("b")
        files.undelete("b")
        assert files.info("b/c.md").created_at == files.list("b")[0].created_at == created
        files.delete("b/c.md")
        assert files.undelete("b/c.md", to="d.md").created_at == created


def test_list_has_versions_for_if_match(files):
    files.write("a.md", "one")
    (files.path / "b.md").write_text("by an editor")
    for info in files.list():
        files.write(info.path, "two", if_match=info.version)
    (files.path / "a.md").write_text("six")
    versions = [files.info(path).version for path in ("a.md", "b.md")]
    assert [info.version for info in files.list()] == versions


def test_knowledge_base_of_files_is_managed_by_them(workspace, files):
    files.write("a.md", "saffron")
    kb = workspace["files"]
    for call in (
        lambda: workspace.delete("files"),
        lambda: workspace.delete("files", forever=True),
        lambda: workspace.rename("files", to="mine"),
    ):
        with pytest.raises(ConflictError, match="belongs to them"):
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
    kb.documents.update("a.md", tags=["spice"])  # labels are no part of the file
    files.append("a.md", "cumin")
    assert kb.documents["a.md"].tags == ("spice",)
    with pytest.raises(InvalidNameError, match=r"workspace\.files"):
        workspace.create("files")
    workspace.create("other")
    with pytest.raises(InvalidNameError):
        workspace.rename("other", to="files")


def test_existing_knowledge_base_named_files_is_a_conflict(workspace, files):
    own = workspace.create("mine")
    own.add("Own", "my own document")
    with workspace._stores.database.write() as transaction:
        knowledge_bases.rename(transaction, own.id, "files")  # as an older kbkit let it be named
    with pytest.raises(ConflictError, match="rename it"):
        files.write("a.md", "saffron")
    assert files.read("a.md") == "saffron"
    workspace.rename("files", to="mine")
    files.sync()
    assert found(workspace, "saffron") == ["a.md"]
