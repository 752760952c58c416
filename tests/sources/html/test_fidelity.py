"""The measure is tried with pages whose losses are known."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kbkit import fidelity
from kbkit.builder import BuildReport
from kbkit.errors import SourceError
from kbkit.ingest.counters import RunCounters
from kbkit.models import KnowledgeBaseInfo, SourceDocument
from kbkit.recipes import MirrorSource
from kbkit.sources.base import SourceContext
from kbkit.sources.disk.mirror import MirrorReader
from kbkit.sources.html.fidelity import KINDS, Fidelity

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAGE = """<html><head><title>Guide</title><meta name="generator" content="Sphinx"></head><body>
<div class="sphinxsidebar"><a href="/">All the chapters</a> <a href="/x">In the text</a></div>
<div role="main"><h1 id="guide">Guide</h1><p>What stands in the text is kept.</p>
<pre>a = 1

  b</pre><h2 id="two">Two</h2><table><tr><th>x</th><th>y</th></tr><tr><td>1</td><td>2</td></tr>
</table><dl><dt id="run">run()</dt><dd>Runs.</dd></dl></div></body></html>"""
MARKDOWN = """# Guide {#guide}

What stands in the text is kept.

```
a = 1

  b
```

## Two {#two}

| x | y |
| --- | --- |
| 1 | 2 |

### run() {#run}

Runs.
"""


def measured(markdown: str) -> Fidelity:
    result = Fidelity()
    assert result.add(PAGE, markdown)
    return result


def test_a_faithful_page_keeps_all() -> None:
    result = measured(MARKDOWN)
    assert {kind: (result.kept[kind], result.wanted[kind]) for kind in KINDS} == {
        "code": (1, 1), "headings": (2, 2), "anchors": (2, 2), "terms": (1, 1), "rows": (2, 2),
        "navigation": (1, 1),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("code", "\n  b", "\n b"),
        ("headings", "## Two", "### Two"),
        ("anchors", "{#two}", "{#too}"),
        ("terms", "{#run}", ""),
        ("rows", "| 1 | 2 |", "| 2 | 1 |"),
        ("navigation", "Runs.", "Runs. [All the chapters](https://x.example/)"),
    ],
)
def test_every_loss_is_seen(kind: str, right: str, wrong: str) -> None:
    assert right in MARKDOWN
    result = measured(MARKDOWN.replace(right, wrong))
    assert result.share(kind) < 1
    assert result.lost[kind]
    others = set(KINDS) - {kind, "headings", "anchors"}
    assert all(result.share(other) == 1 for other in others)


def test_a_folder_a_file_and_an_address_are_measured(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/guide.html").write_text(PAGE, "utf-8")
    (tmp_path / "empty.html").write_text("<html></html>", "utf-8")
    report = fidelity(tmp_path)
    assert [page.uri for page in report.pages] == ["deep/guide.html", "empty.html"]
    assert report.pages[1].reason
    assert not any(page.poor for page in report.pages)
    assert report.to_dict()["total"]["code"] == {"share": 1.0, "kept": 1, "wanted": 1}
    assert "guide.html" in report._repr_html_()
    alone = fidelity(tmp_path / "deep/guide.html")
    assert alone.total.to_dict() == report.total.to_dict()
    with pytest.raises(SourceError, match="no such file or folder"):
        fidelity(tmp_path / "nowhere")
    with pytest.raises(SourceError, match=r"127\.0\.0\.1"):
        fidelity("http://127.0.0.1:1/")


def test_the_build_report_says_how_pages_were_read(tmp_path: Path) -> None:
    (tmp_path / "guide.html").write_text(PAGE, "utf-8")
    source = MirrorReader(MirrorSource(path=str(tmp_path), base_url="https://docs.example/"))
    tally = RunCounters()
    for event in source.events(SourceContext()):
        assert event.document is not None
        tally.measured(event.document)
    report = tally.report()
    assert report.fidelity["code"] == (1, 1)
    assert report.fidelity["pages"] == (1, 1)
    assert report.poorly_read == ()
    bad = SourceDocument("https://x.example/", "X", "x", fidelity={"code": (1, 4), "rows": (3, 3)})
    tally.measured(bad)
    report = tally.report()
    assert report.fidelity["code"] == (2, 5)
    assert [page.reason for page in report.poorly_read] == ["kept of the page: code 1 of 4"]
    assert report.to_dict()["poorly_read"][0]["uri"] == "https://x.example/"
    info = KnowledgeBaseInfo("1", "x", "", (), 1, 1, "", 1, "", NOW, NOW, {}, {}, 0)
    said = dict(BuildReport(info, report, None, None, None, {}).lines())
    assert said["read"].startswith("2 pages measured: kept code 40.0 %")
    assert said["poorly read"] == "https://x.example/: kept of the page: code 1 of 4"
