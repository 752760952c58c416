"""The measure is tried with pages whose losses are known."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kbkit import fidelity
from kbkit.errors import SourceError
from kbkit.ingest.embedding import RunCounters
from kbkit.models import KnowledgeBaseInfo, SourceDocument
from kbkit.recipes import MirrorSource
from kbkit.sources.archives import MirrorReader
from kbkit.sources.base import SourceContext
from kbkit.sources.html.fidelity import KINDS, Fidelity, recurring, survey
from kbkit.sources.html.fidelity_report import FidelityReport, PageFidelity
from kbkit.workflows.builder import BuildReport
from tests.sources.html.generated_pages import PAGES

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAGE = """<html><head><title>Guide</title><meta name="generator" content="Sphinx"></head><body>
<div class="sphinxsidebar"><a href="/">All the chapters</a> <a href="/x">In the text</a></div>
<div role="main"><h1 id="guide">Guide</h1><p>What stands in <a href="/two">the text</a> is kept.</p>
<pre>a = 1

  b</pre><h2 id="two">Two</h2><table><tr><th>x</th><th>y</th></tr><tr><td>1</td><td>2</td></tr>
</table><dl><dt id="run">run()</dt><dd>Runs.</dd></dl></div></body></html>"""
MARKDOWN = """# Guide {#guide}

What stands in [the text](https://x.example/two) is kept.

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
    assert result.add(PAGE, markdown, url="https://x.example/p") is not None
    return result


def test_an_ampersand_before_a_name_begins_no_entity():
    result = Fidelity()
    html = "<p>A copy(const Set &amp;copy) and an &copy; sign, in a page with some words.</p>"
    result.add(html, "A copy(const Set &copy) and an &copy; sign, in a page with some words.")
    assert result.share("words") == 1.0
    assert result.share("surplus") == 0.0


def test_a_faithful_page_keeps_all() -> None:
    result = measured(MARKDOWN)
    assert {kind: (result.kept[kind], result.wanted[kind]) for kind in KINDS} == {
        "words": (18, 18),
        "headings": (2, 2),
        "anchors": (2, 2),
        "terms": (1, 1),
        "code": (1, 1),
        "rows": (2, 2),
        "cells": (4, 4),
        "links": (1, 1),
        "surplus": (18, 18),
    }
    assert result.score == 1


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("words", "is kept", "is"),
        ("headings", "## Two", "### Two"),
        ("anchors", "{#two}", "{#too}"),
        ("terms", "{#run}", ""),
        ("code", "\n  b", "\n b"),
        ("rows", "| 1 | 2 |", "| 2 | 1 |"),
        ("cells", "| 1 | 2 |", "| 1 | |"),
        ("links", "x.example/two", "x.example/too"),
        ("surplus", "Runs.", "Runs. [All the chapters](https://x.example/)"),
    ],
)
def test_every_loss_is_seen(kind: str, right: str, wrong: str) -> None:
    assert right in MARKDOWN
    result = measured(MARKDOWN.replace(right, wrong))
    assert result.kept[kind] < result.wanted[kind]
    assert result.lost[kind]
    along = {"headings": {"anchors"}, "cells": {"rows", "words"}}.get(kind, set())
    assert all(result.kept[one] == result.wanted[one] for one in set(KINDS) - {kind} - along)


@pytest.mark.parametrize("name", PAGES)
def test_what_a_shape_of_a_generator_lost_is_seen(name: str) -> None:
    page = PAGES[name]
    bodies = [f"<title>Manual</title><body>{body}</body>" for body in (page.html, *page.others)]
    template = recurring([survey(body) for body in bodies])
    bad, good = Fidelity(), Fidelity()
    for found, markdown in ((bad, page.bad), (good, page.good)):
        found.add(bodies[0], markdown, url="https://docs.example/p.html", template=template)
    lost = {kind for kind in KINDS if bad.kept[kind] < bad.wanted[kind]}
    assert set(page.kinds) <= lost
    assert {kind: good.lost[kind] for kind in KINDS if good.kept[kind] < good.wanted[kind]} == {}


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        (
            "<h1 id='top'>Pot</h1><pre>pot-&gt;<a href='/s'>source</a> = 1;\nboil();</pre>",
            "# Pot {#top}\n\n```\npot->source = 1;\nboil();\n```\n",
        ),
        ("<h1>Pot <a href=''>Kettle</a></h1><p>Boils.</p>", "# Pot Kettle\n\nBoils.\n"),
        (
            "<h1>Pot</h1><div id='use'><p><a href='/n' rel='next'>Next</a> <a href='/p' rel='prev'>"
            "Previous</a></p><span id='use-1'></span><h2>Use</h2><p>Boil.</p></div>",
            "# Pot\n\n## Use {#use}\n\nBoil.\n",
        ),
        (
            "<h1>Pot</h1><p>Boils.</p><div class='navfooter'><table><tr><td><a accesskey='p' href="
            "'/p'>Prev</a></td><td><a accesskey='n' href='/n'>Next</a></td></tr><tr><td>Cups</td>"
            "<td>Spoons</td></tr></table></div>",
            "# Pot\n\nBoils.\n",
        ),
        (
            "<main><aside class='sidebar'><h1><a href='#/'>Tea</a></h1><ul><li><a href='#/a'>A</a>"
            "</li></ul></aside><section><h1>Pot</h1><p>Boils.</p></section></main>",
            "# Pot\n\nBoils.\n",
        ),
        ("<h1>Pot</h1><h2 id='&lt;a&gt;'>A</h2><p>B.</p>", "# Pot\n\n## A {#%3Ca%3E}\n\nB.\n"),
    ],
)
def test_what_is_kept_is_not_called_lost(html: str, markdown: str) -> None:
    result = Fidelity()
    result.add(html, markdown, url="https://docs.example/p.html")
    assert {kind: result.lost[kind] for kind in KINDS if result.lost.get(kind)} == {}


def test_a_heading_above_links_to_the_page_itself_is_none_of_its_content() -> None:
    def page(name: str) -> str:
        parts = ("one", "two", "three")
        text = "".join(f"<h2 id='{part}'>{name} {part}</h2><p>{name} {part}.</p>" for part in parts)
        links = "".join(f"<a href='#{part}'>{name} {part}</a> " for part in parts)
        return f"<h1>{name}</h1>{text}<aside><h3>On this page</h3><div>{links}</div></aside>"

    names = ("Pot", "Cup", "Jug", "Pan", "Urn")
    template = recurring([survey(page(name)) for name in names])
    result = Fidelity()
    found = result.add(page("Pot"), "# Pot\n", url="https://docs.example/p", template=template)
    assert found is not None
    assert [heading.text for heading in found.headings] == ["pot", "potone", "pottwo", "potthree"]


def test_a_line_of_many_brackets_and_backticks_is_read_once() -> None:
    line = "[" + "`a` " * 5000  # tried in all ways, this would take longer than anybody waits
    result = Fidelity()
    result.add("<p>a</p>", f"{line}\n\n[`a[0]`](https://x.example/)\n")
    assert result.wanted["surplus"] == 5002


def test_pages_that_have_one_title_though_they_have_names_are_seen(tmp_path: Path) -> None:
    def report(*titles: tuple[str, str]) -> FidelityReport:
        pages = [
            PageFidelity(f"{place}.html", Fidelity(), title=title, names=("manual", name))
            for place, (title, name) in enumerate(titles)
        ]
        return FidelityReport(tuple(pages), Fidelity())

    assert report(("Manual", "tea"), ("Manual", "cup"), ("Jam", "jam")).titles == 1 / 3
    assert report(("Tea", "tea"), ("Cup", "cup")).titles == 1
    # nothing on them tells these apart
    assert report(("Index", "index"), ("Index", "index")).titles == 1


def test_a_build_warns_of_a_site_and_names_its_worst_pages(tmp_path: Path) -> None:
    for number in range(6):
        parts = "".join(
            f"<details><summary><h3 id='p{part}'>Part {part} of {number}</h3></summary>"
            f"<p>Says something of {part}.</p></details>"
            for part in range(number)
        )
        body = f"<main><h1>Page {number}</h1><p>It has {number} parts.</p>{parts}</main>"
        (tmp_path / f"p{number}.html").write_text(f"<body>{body}</body>", "utf-8")
    tally = RunCounters()
    for number in range(6):
        html = (tmp_path / f"p{number}.html").read_text("utf-8")
        # the headings of the parts were written as bold lines
        markdown = f"# Page {number}\n\nIt has {number} parts.\n" + "".join(
            f"\n**Part {part} of {number}**\n\nSays something of {part}.\n"
            for part in range(number)
        )
        found = Fidelity()
        found.add(html, markdown)
        uri = f"https://docs.example/p{number}.html"
        tally.measured(SourceDocument(uri, "P", markdown, fidelity=found.counts()))
    tally.judge("https://docs.example/", {})
    (warning,) = tally.report().warnings
    assert warning.uri == "https://docs.example/"
    assert warning.reason == (
        "71.4% of the headings are missing (6 pages measured; worst: https://docs.example/p5.html, "
        "https://docs.example/p4.html, https://docs.example/p3.html)"
    )
    tally.judge("https://docs.example/", tally.report().fidelity)
    assert len(tally.report().warnings) == 1
    now = KnowledgeBaseInfo("1", "x", "", (), 1, 1, "", 1, "", NOW, NOW, {}, {}, 0)
    said = dict(BuildReport(now, tally.report(), None, None, None, {}).lines())
    assert said["warning"] == f"poorly read: https://docs.example/: {warning.reason}"


def test_a_folder_a_file_and_an_address_are_measured(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/guide.html").write_text(PAGE, "utf-8")
    (tmp_path / "empty.html").write_text("<html></html>", "utf-8")
    report = fidelity(tmp_path)
    assert [page.uri for page in report.pages] == ["deep/guide.html", "empty.html"]
    assert report.pages[1].reason
    assert not any(page.poor for page in report.pages)
    assert (report.titles, report.warning, report.worst) == (1, "", ())
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
    assert said["read"].startswith(
        "2 pages measured: kept words 100.0 %, headings 100.0 %, code 40.0 %"
    )
    assert said["poorly read"] == "https://x.example/: kept of the page: code 1 of 4"


def test_a_list_of_one_part_under_its_own_heading_is_none_of_the_content() -> None:
    page = (
        "<h1>Pot</h1><h2 id='use'>Use</h2><p>Boil it.</p><details class='page-navigation'>"
        "<summary><h3>On this page</h3></summary><a href='#use'>Use</a></details>"
    )
    result = Fidelity()
    result.add(page, "# Pot\n\n## Use {#use}\n\nBoil it.\n", url="https://docs.example/p")
    assert {kind: result.lost[kind] for kind in KINDS if result.lost.get(kind)} == {}


def test_a_paragraph_of_links_that_pages_share_may_be_written_amid_the_content() -> None:
    names = ("Pot", "Cup", "Jug", "Pan", "Urn")

    def page(name: str) -> str:
        inherited = (
            "<h2>Inherited</h2><p><a href='/k#boil'>boil</a>, <a href='/k#pour'>pour</a></p>"
        )
        return f"<h1>{name}</h1><p>A {name}.</p>{inherited}<h2>Own</h2><p>It is a {name}.</p>"

    template = recurring([survey(page(name)) for name in names])
    written = "# Pot\n\nA Pot.\n\n## Inherited\n\n{}## Own\n\nIt is a Pot.\n"
    links = "[boil](https://docs.example/k#boil), [pour](https://docs.example/k#pour)\n\n"
    for text in (links, ""):
        result = Fidelity()
        result.add(
            page("Pot"), written.format(text), url="https://docs.example/p", template=template
        )
        assert result.lost["surplus"] == []
        assert result.lost["words"] == []


def test_terms_in_items_of_items_are_seen() -> None:
    result = Fidelity()
    result.add(
        "<ul><li><dl><dt>hot</dt><dd>It boils</dd></dl></li></ul>", "-   -   **hot**: It boils\n"
    )
    assert (result.kept["terms"], result.wanted["terms"]) == (1, 1)


def test_links_that_pages_share_may_be_written_in_the_main_part_and_where_nothing_else_is() -> None:
    names = ("Pot", "Cup", "Jug", "Pan", "Urn")
    menu = "".join(f"<li><a href='/{name}'>{name}</a></li>" for name in names)
    bases = "<ul><li><a href='/Thing'>Thing</a></li></ul>"
    pages = [
        f"<main><h1>{name}</h1><p>A {name} is made of clay.</p><h3>Bases</h3>{bases}"
        f"<p>A {name} breaks.</p></main><div class='side'>{menu}</div>"
        for name in names
    ]
    template = recurring([survey(page) for page in pages])
    text = "# Pot\n\nA Pot is made of clay.\n\n### Bases\n\n-   [Thing](https://docs.example/Thing)\n\n"
    result = Fidelity()
    result.add(pages[0], f"{text}A Pot breaks.\n", url="https://docs.example/p", template=template)
    assert (result.lost["surplus"], result.lost["words"]) == ([], [])
    result.add(pages[0], f"{text}Cup Jug\n", url="https://docs.example/p", template=template)
    assert result.lost["surplus"] == ["cup", "jug"]
    index = Fidelity()
    written = "".join(f"-   [{name}](https://docs.example/{name})\n" for name in names)
    index.add(f"<h1>All</h1><ul>{menu}</ul>", f"# All\n\n{written}", template=template)
    assert index.lost["surplus"] == []


def test_verses_are_no_code_and_contents_may_name_their_own_page() -> None:
    verses = "<div class='line-block'><div class='line'>One</div><div class='line'>Two</div></div>"
    contents = "".join(f"<li><a href='p.html#{name}'>{name}</a></li>" for name in "abc")
    parts = "".join(f"<h2 id='{name}'>{name}</h2><p>Text.</p>" for name in "abc")
    result = Fidelity()
    written = "# Pot\n\nOne\n\nTwo\n" + "".join(
        f"\n## {name} {{#{name}}}\n\nText.\n" for name in "abc"
    )
    result.add(
        f"<h1>Pot</h1>{verses}<ul>{contents}</ul>{parts}",
        written,
        url="https://docs.example/p.html",
    )
    assert {kind: result.lost[kind] for kind in KINDS if result.lost.get(kind)} == {}
