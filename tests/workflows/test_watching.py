"""Watching files, and exporting a site after each change."""

import queue
import threading
from contextlib import contextmanager
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


@contextmanager
def knowledge_base(tmp_path, **source):
    with Workspace(tmp_path / "kb") as workspace:
        kb = workspace.create("notes")
        kb.ingest(FilesSource(**{"path": str(tmp_path / "notes"), **source}))
        yield workspace, kb


def watched(kb, tmp_path, **options):
    watch(kb, folder=tmp_path / "out", build=False, interval=0.05, **options)


def test_watch_exports_changes_of_files_and_catalog(tmp_path, notes):
    changes = [
        lambda kb: (notes / "two.md").write_text("# Two\n\nsecond\n"),
        lambda kb: kb.rate(next(iter(kb.documents)).id, 5),
        lambda kb: (notes / "one.md").unlink(),
    ]
    exports: list[set[str]] = []
    done = threading.Event()
    with knowledge_base(tmp_path) as (_, kb):

        def exported(report):
            exports.append({path.stem for path in (report.folder / "docs/pages").rglob("*.md")})
            if changes:
                changes.pop(0)(kb)
            else:
                done.set()

        watched(kb, tmp_path, on_export=exported, stop=done.is_set)
    assert exports == [{"one"}, {"one", "two"}, {"one", "two"}, {"two"}]


def test_watch_exports_changes_of_the_graph(tmp_path, notes):
    (notes / "one.md").write_text("# One\n\n`open_pool` and `close_pool` are near.\n")
    (notes / "two.md").write_text("# Two\n\n`open_pool` then `close_pool`.\n")
    related: list[bool] = []
    with knowledge_base(tmp_path) as (workspace, kb):
        kb.annotations.make()

        def exported(report):
            page = report.folder / "docs/graph.json"
            related.append(page.exists() and "stays_beside" in page.read_text())
            if len(related) == 1:
                workspace.graph.relate("open_pool", "stays_beside", "close_pool")

        watched(kb, tmp_path, on_export=exported, stop=lambda: len(related) > 1)
    assert related == [False, True]


def test_watch_reports_an_error_and_tries_the_next_change(tmp_path, notes):
    blocked = tmp_path / "out/docs/index.md"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("mine")
    errors: list[str] = []
    written: list[int] = []

    def trouble(error):
        errors.append(str(error))
        blocked.unlink()
        (notes / "two.md").write_text("# Two\n")

    with knowledge_base(tmp_path) as (_, kb):
        options = {"on_trouble": trouble, "stop": lambda: bool(written)}
        watched(kb, tmp_path, on_export=lambda report: written.append(report.documents), **options)
    assert written == [2]
    (error,) = errors
    assert "index.md" in error


def test_fingerprint_covers_files_of_sources(tmp_path, notes):
    source = {"path": str(notes / "**/*.md"), "exclude": ("drafts/**",)}
    with knowledge_base(tmp_path, **source) as (_, kb):
        before = file_fingerprint(kb)
        (notes / "drafts").mkdir()
        (notes / "drafts/x.md").write_text("x")
        (tmp_path / "elsewhere.md").write_text("x")
        assert file_fingerprint(kb) == before
        (notes / "one.md").write_text("# One\n\nlonger than before\n")
        assert file_fingerprint(kb) != before


def test_watch_files_indexes_changes(tmp_path):
    reports, stop = queue.Queue(), threading.Event()

    def wait_for(path, change):
        while path not in getattr(reports.get(timeout=120), change, ()):
            pass

    with Workspace(tmp_path / "kb") as workspace:
        options = {"stop": stop, "on_sync": reports.put, "on_trouble": reports.put}
        watcher = threading.Thread(target=watch_files, args=(workspace.files,), kwargs=options)
        watcher.start()
        try:
            root = workspace.files.path
            (root / "notes").mkdir(parents=True)
            (root / "notes/tea.md").write_text("# Tea\n\noolong\n")
            wait_for("notes/tea.md", "added")
            hits = workspace["files"].search("oolong", mode="lexical")
            assert [hit.uri for hit in hits] == ["notes/tea.md"]
            (root / "notes/tea.md").unlink()
            wait_for("notes/tea.md", "removed")
            assert not workspace["files"].search("oolong", mode="lexical").hits
        finally:
            stop.set()
            watcher.join()
