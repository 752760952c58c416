"""Text and tables of reports."""

import re
from datetime import UTC, datetime

from kbkit.export import ExportReport
from kbkit.models import (
    EntrySyncReport,
    IngestReport,
    Problem,
    Rating,
    SyncReport,
    Target,
    TargetKind,
)

REPORT = IngestReport(
    new=1200,
    failed=(Problem("a.md", "a.md: is locked"), Problem("b.md", "b.md: is locked")),
    skipped=(Problem("<b>c</b>", "is empty"),),
    seconds={"crawl": 1.23},
    interrupted=True,
)


def test_reason_leaves_out_its_subject():
    problem = Problem("a.md", "a.md: is locked")
    assert (problem.reason, str(problem)) == ("is locked", "a.md: is locked")


def test_report_names_each_reason_once():
    assert REPORT.lines() == [
        ("documents", "1,200 new, 0 changed, 0 same, 0 gone"),
        ("chunks", "0 embedded, 0 removed"),
        ("fetched", "0"),
        ("failed", "a.md and 1 more: is locked"),
        ("skipped", "<b>c</b>: is empty"),
        ("stopped", "early; the next run continues from here"),
        ("seconds", "crawl 1.2"),
    ]


def test_notebooks_show_tables(tmp_path):
    target, at = Target(TargetKind.CHUNK, "c"), datetime(2026, 1, 1, tzinfo=UTC)
    rating = Rating(1, "kb", target, 4, "<i>How?</i>", "ann", "", at)
    for value in (REPORT, rating, ExportReport(tmp_path, documents=3)):
        shown = value._repr_html_()
        assert shown.startswith("<table>")
        assert type(value).__name__ not in shown
        assert not re.search("<[bi]>", shown)


def test_sync_reports_are_counts():
    names = tuple(f"notes/{n}.md" for n in range(10_000))
    skipped = (Problem("big.bin", "no text"),)
    assert repr(SyncReport(names)) == "SyncReport(10,000 added, 0 updated, 0 removed)"
    report = EntrySyncReport(updated=names[:2], skipped=skipped)
    assert repr(report) == "EntrySyncReport(0 added, 2 updated, 0 removed, 1 skipped)"
