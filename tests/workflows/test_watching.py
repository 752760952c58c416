from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kbkit import Workspace
from kbkit.recipes import FilesSource
from kbkit.workflows.builder import file_fingerprint, watch, watch_files


@pytest.fixture
def notes(tmp_path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "one.md").write_text("# One\n\nfirst\n")
    return folder


def test_a_site_follows_its_files_and_its_catalog(tmp_path, notes):
    changes = [
        lambda kb: (notes / "two.md").write_text("# Two\n\nsecond\n"),
        lambda kb: kb.rate(next(iter(kb.documents)).id, 5),
        lambda kb: (notes / "one.md").unlink(),
    ]
    seen: list[set[str]] = []
    done = threading.Event()
    with Workspace(tmp_path / "kb") as workspace:
        kb = workspace.create("notes")
        kb.ingest(FilesSource(path=str(notes)))

        def exported(report):
            seen.append({path.stem for path in (report.folder / "docs/pages").rglob("*.md")})
            if changes:
                changes.pop(0)(kb)
            else:
                done.set()

        watch(
            kb,
            folder=tmp_path / "out",
            build=False,
            interval=0.05,
            on_export=exported,
            stop=done.is_set,
        )
    assert seen == [{"one"}, {"one", "two"}, {"one", "two"}, {"two"}]


def test_a_site_follows_the_graph(tmp_path, notes):
    (notes / "one.md").write_text("# One\n\n`open_pool` and `close_pool` are near.\n")
    (notes / "two.md").write_text("# Two\n\n`open_pool` then `close_pool`.\n")
    seen: list[bool] = []
    with Workspace(tmp_path / "kb") as workspace:
        kb = workspace.create("notes")
        kb.ingest(FilesSource(path=str(notes)))
        kb.annotations.make()

        def exported(report):
            page = report.folder / "docs/graph.json"
            seen.append(page.exists() and "stays_beside" in page.read_text())
            if len(seen) == 1:
                workspace.graph.relate("open_pool", "stays_beside", "close_pool")

        watch(
            kb,
            folder=tmp_path / "out",
            build=False,
            interval=0.05,
            on_export=exported,
            stop=lambda: len(seen) > 1,
        )
    assert seen == [False, True]


def test_what_goes_wrong_is_told_and_the_next_change_is_tried(tmp_path, notes):
    blocked = tmp_path / "out/docs/index.md"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("mine")
    told: list[str] = []
    written: list[int] = []

    def trouble(error):
        told.append(str(error))
        blocked.unlink()
        (notes / "two.md").write_text("# Two\n")

    with Workspace(tmp_path / "kb") as workspace:
        kb = workspace.create("notes")
        kb.ingest(FilesSource(path=str(notes)))
        watch(
            kb,
            folder=tmp_path / "out",
            build=False,
            interval=0.05,
            on_trouble=trouble,
            on_export=lambda report: written.append(report.documents),
            stop=lambda: bool(written),
        )
    assert written == [2]
    assert len(told) == 1
    assert "index.md" in told[0]


def test_a_fingerprint_knows_the_files_that_sources_read(tmp_path, notes):
    with Workspace(tmp_path / "kb") as workspace:
        kb = workspace.create("notes")
        kb.ingest(FilesSource(path=str(notes / "**/*.md"), exclude=("drafts/**",)))
        before = file_fingerprint(kb)
        (notes / "drafts").mkdir()
        (notes / "drafts/x.md").write_text("x")
        (tmp_path / "elsewhere.md").write_text("x")
        assert file_fingerprint(kb) == before
        (notes / "one.md").write_text("# One\n\nlonger than before\n")
        assert file_fingerprint(kb) != before


def test_what_changes_among_the_files_is_searched_as_it_happens(tmp_path):
    seen: list[str] = []
    changed = threading.Condition()
    stop = threading.Event()

    def told(report):
        with changed:
            seen.extend((*report.added, *report.updated, *report.removed))
            changed.notify_all()

    def await_(path):
        with changed:
            assert changed.wait_for(lambda: path in seen, 120), seen

    with Workspace(tmp_path / "kb") as workspace:
        options = {"stop": stop, "on_sync": told, "on_trouble": seen.append}
        watcher = threading.Thread(target=watch_files, args=(workspace.files,), kwargs=options)
        watcher.start()
        try:
            root = workspace.files.path
            (root / "notes").mkdir(parents=True)
            (root / "notes/tea.md").write_text("# Tea\n\noolong\n")
            await_("notes/tea.md")
            hits = workspace["files"].search("oolong", mode="lexical")
            assert [hit.uri for hit in hits] == ["notes/tea.md"]
            seen.clear()
            (root / "notes/tea.md").unlink()
            await_("notes/tea.md")
            assert not workspace["files"].search("oolong", mode="lexical").hits
        finally:
            stop.set()
            watcher.join()
