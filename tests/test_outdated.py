"""A knowledge base that an older kbkit indexed."""

import sqlite3

import kbkit


def test_outdated_index_is_noted_and_refreshed(tmp_path):
    page = tmp_path / "tea.md"
    page.write_text("# Green tea\n\nSteep `brew_leaves` in water.\n", encoding="utf-8")
    with kbkit.open(tmp_path / "kb") as workspace:
        workspace.create("tea").ingest(kbkit.FilesSource(path=str(page)))
        assert workspace.search("brew_leaves").notes == ()
    with sqlite3.connect(tmp_path / "kb" / "catalog.db") as catalog:
        catalog.execute("UPDATE knowledge_bases SET analyzer = 0")
        catalog.execute("UPDATE chunks SET terms = 'old rules'")
        catalog.execute("UPDATE documents SET content_hash = 'of old rules'")
    with kbkit.open(tmp_path / "kb") as workspace:
        assert "kbkit refresh tea" in workspace.search("brew_leaves").notes[0]
        report = workspace["tea"].refresh()
        assert (report.new, report.changed) == (0, 0)
        hits = workspace.search("brew_leaves", mode="lexical")
        assert hits.notes == ()
        assert hits[0].parts.bm25 > 0
