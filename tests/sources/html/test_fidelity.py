"""How faithfully pages are read, measured on pages whose losses are known."""

import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kbkit import fidelity
from kbkit.errors import SourceError
from kbkit.ingest.embedding import RunCounters
from kbkit.models import KnowledgeBaseInfo, SourceDocument
from kbkit.recipes import MirrorSource
from kbkit.sources import SourceContext
from kbkit.sources.archives import read_mirror
from kbkit.sources.fidelity_report import FidelityReport, PageFidelity
from kbkit.sources.html.fidelity import KINDS, Fidelity, recurring, survey
from kbkit.workflows.builder import BuildReport
from tests.sources.html.generated_pages import PAGES

NOW = datetime(2026, 1, 1, tzinfo=UTC)
INFO = KnowledgeBaseInfo("1", "x", "", (), 1, 1, "", 1, "", NOW, NOW, {}, {}, 0)
NAMES = ("Pot", "Cup", "Jug", "Pan", "Urn")
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


def lost(html: str, markdown: str, url: str = "https://docs.example/p.html", **options) -> dict:
    """What of a page its Markdown lost, by kind."""
    fidelity = Fidelity()
    fidelity.add(html, markdown, url=url, **options)
    return {kind: fidelity.lost[kind] for kind in KINDS if fidelity.lost.get(kind)}


def measured(markdown: str) -> Fidelity:
    result = Fidelity()
    assert result.add(PAGE, markdown, url="https://x.example/p") is not None
    return result


def test_ampersand_before_a_name_is_no_entity() -> None:
    result = Fidelity()
    html = "<p>A copy(const Set &amp;copy) and an &copy; sign, in a page with some words.</p>"
    result.add(html, "A copy(const Set &copy) and an &copy; sign, in a page with some words.")
    assert (result.share("words"), result.share("surplus")) == (1.0, 0.0)


def test_faithful_page_has_full_score() -> None:
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
def test_each_loss_is_measured(kind: str, right: str, wrong: str) -> None:
    assert right in MARKDOWN
    result = measured(MARKDOWN.replace(right, wrong))
    assert result.kept[kind] < result.wanted[kind]
    assert result.lost[kind]
    along = {"headings": {"anchors"}, "cells": {"rows", "words"}}.get(kind, set())
    assert all(result.kept[one] == result.wanted[one] for one in set(KINDS) - {kind} - along)


@pytest.mark.parametrize("name", PAGES)
def test_losses_of_generated_pages_are_measured(name: str) -> None:
    page = PAGES[name]
    html, *others = (
        f"<title>Manual</title><body>{body}</body>" for body in (page.html, *page.others)
    )
    template = recurring([survey(body) for body in (html, *others)])
    assert set(page.kinds) <= set(lost(html, page.bad, template=template))
    assert lost(html, page.good, template=template) == {}


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        (
            "<h1 id='top'>Pot</h1><pre>pot-&gt;<a href='/s'>source</a> = 1;\nboil();</pre>",
            "# Pot {#top}\n\n```\npot->source = 1;\nboil();\n```\n",
        ),
        ("<h1>Pot <a href=''>Kettle</a></h1><p>Boils.</p>", "# Pot Kettle\n\nBoils.\n"),
        (
            "<h1>Pot</h1><p>Boils.</p><a href='https://x.example/'><h2>Kettle</h2><p>Whistles.</p></a>",
            "# Pot\n\nBoils.\n\n## [Kettle](https://x.example/)\n\nWhistles.\n",
        ),
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
        (
            "<h1>Pot</h1><h2 id='use'>Use</h2><p>Boil it.</p><details class='page-navigation'>"
            "<summary><h3>On this page</h3></summary><a href='#use'>Use</a></details>",
            "# Pot\n\n## Use {#use}\n\nBoil it.\n",
        ),
        (
            "<h1>Pot</h1><div class='line-block'><div class='line'>One</div><div class='line'>Two"
            "</div></div><ul><li><a href='p.html#a'>a</a></li><li><a href='p.html#b'>b</a></li>"
            "<li><a href='p.html#c'>c</a></li></ul><h2 id='a'>a</h2><p>Text.</p><h2 id='b'>b</h2>"
            "<p>Text.</p><h2 id='c'>c</h2><p>Text.</p>",
            "# Pot\n\nOne\n\nTwo\n\n## a {#a}\n\nText.\n\n"
            "## b {#b}\n\nText.\n\n## c {#c}\n\nText.\n",
        ),
        (
            "<h1>Pot</h1><div><dl><dt>1. <a href='#a'>a</a></dt><dt>1.1. <a href='#b'>b</a></dt>"
            "<dt>1.2. <a href='#c'>c</a></dt></dl></div><h2 id='a'>a</h2><p>Text.</p><h2 id='b'>b"
            "</h2><p>Text.</p><h2 id='c'>c</h2><p>Text.</p>",
            "# Pot\n\n## a {#a}\n\nText.\n\n## b {#b}\n\nText.\n\n## c {#c}\n\nText.\n",
        ),
        (
            "<h1>Pot</h1><table><tr><td>C</td><td><div class='fragment'><div class='line'>a();"
            "</div><div class='line'>b();</div></div></td></tr><tr><td>D</td><td>No.</td></tr>"
            "</table>",
            "# Pot\n\n|  |  |\n| --- | --- |\n| C |  |\n\n```\na();\nb();\n```\n\n|  |  |\n"
            "| --- | --- |\n| D | No. |\n",
        ),
        (
            "<h1>Pot</h1><a id='OLD'></a><h2>Use<a href='#use' id='use'>#</a></h2><p>Boil it.</p>",
            "# Pot\n\n## Use {#use}\n\nBoil it.\n",
        ),
    ],
)
def test_kept_content_is_not_reported_lost(html: str, markdown: str) -> None:
    assert lost(html, markdown) == {}


def test_heading_over_page_contents_is_not_measured() -> None:
    def page(name: str) -> str:
        parts = ("one", "two", "three")
        text = "".join(f"<h2 id='{part}'>{name} {part}</h2><p>{name} {part}.</p>" for part in parts)
        links = "".join(f"<a href='#{part}'>{name} {part}</a> " for part in parts)
        return f"<h1>{name}</h1>{text}<aside><h3>On this page</h3><div>{links}</div></aside>"

    template = recurring([survey(page(name)) for name in NAMES])
    added = Fidelity().add(page("Pot"), "# Pot\n", url="https://docs.example/p", template=template)
    assert added is not None
    assert [heading.text for heading in added.headings] == ["pot", "potone", "pottwo", "potthree"]


def test_brackets_and_backticks_are_read_in_linear_time() -> None:
    line = "[" + "`a` " * 5000
    result = Fidelity()
    result.add("<p>a</p>", f"{line}\n\n[`a[0]`](https://x.example/)\n")
    assert result.wanted["surplus"] == 5002


@pytest.mark.parametrize(
    ("titles", "share"),
    [
        ([("Manual", "tea"), ("Manual", "cup"), ("Jam", "jam")], 1 / 3),
        ([("Tea", "tea"), ("Cup", "cup")], 1),
        ([("Index", "index"), ("Index", "index")], 1),  # no text tells them apart
    ],
)
def test_repeated_titles_of_named_pages_are_measured(
    titles: list[tuple[str, str]], share: float
) -> None:
    pages = tuple(
        PageFidelity(f"{place}.html", Fidelity(), title=title, names=("manual", name))
        for place, (title, name) in enumerate(titles)
    )
    assert FidelityReport(pages, Fidelity()).titles == share


def test_build_warns_about_a_site_and_its_worst_pages() -> None:
    counters = RunCounters()
    for number in range(6):
        parts = "".join(
            f"<details><summary><h3 id='p{part}'>Part {part} of {number}</h3></summary>"
            f"<p>Says something of {part}.</p></details>"
            for part in range(number)
        )
        body = f"<main><h1>Page {number}</h1><p>It has {number} parts.</p>{parts}</main>"
        # the headings of the parts became bold lines
        markdown = f"# Page {number}\n\nIt has {number} parts.\n" + "".join(
            f"\n**Part {part} of {number}**\n\nSays something of {part}.\n"
            for part in range(number)
        )
        result = Fidelity()
        result.add(f"<body>{body}</body>", markdown)
        uri = f"https://docs.example/p{number}.html"
        counters.count_fidelity(SourceDocument(uri, "P", markdown, fidelity=result.counts()))
    counters.judge("https://docs.example/")
    (warning,) = counters.report().warnings
    assert warning.uri == "https://docs.example/"
    assert warning.reason == (
        "71.4% of the headings are missing (6 pages measured; worst: https://docs.example/p5.html, "
        "https://docs.example/p4.html, https://docs.example/p3.html)"
    )
    counters.judge("https://docs.example/")
    assert len(counters.report().warnings) == 1
    lines = dict(BuildReport(INFO, counters.report(), None, None, None, {}).lines())
    assert lines["warning"] == f"poorly read: https://docs.example/: {warning.reason}"


def test_folder_and_file_are_measured(tmp_path: Path) -> None:
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
    with zipfile.ZipFile(tmp_path / "site.zip", "w") as archive:
        archive.writestr("deep/guide.html", PAGE)
    assert fidelity(tmp_path / "site.zip").total.to_dict() == report.total.to_dict()
    with pytest.raises(SourceError, match="no such file or folder"):
        fidelity(tmp_path / "nowhere")
    with pytest.raises(SourceError, match=r"127\.0\.0\.1"):
        fidelity("http://127.0.0.1:1/")


def test_measured_address_obeys_robots_txt(site) -> None:
    site.pages |= {"/robots.txt": "User-agent: *\nDisallow: /no", "/yes": PAGE, "/no": PAGE}
    assert fidelity(f"{site.url}/yes", allow_private=True).total.score == 1
    with pytest.raises(SourceError, match=r"robots\.txt forbids it"):
        fidelity(f"{site.url}/no", allow_private=True)
    assert site.count("/no") == 0


def test_build_report_shows_fidelity(tmp_path: Path) -> None:
    (tmp_path / "guide.html").write_text(PAGE, "utf-8")
    source = MirrorSource(path=str(tmp_path), base_url="https://docs.example/")
    counters = RunCounters()
    for event in read_mirror(source, SourceContext()):
        assert event.document is not None
        counters.count_fidelity(event.document)
    report = counters.report()
    assert (report.fidelity["code"], report.fidelity["pages"]) == ((1, 1), (1, 1))
    assert report.poorly_read == ()
    bad = SourceDocument("https://x.example/", "X", "x", fidelity={"code": (1, 4), "rows": (3, 3)})
    counters.count_fidelity(bad)
    report = counters.report()
    assert report.fidelity["code"] == (2, 5)
    assert [page.reason for page in report.poorly_read] == ["kept of the page: code 1 of 4"]
    assert report.to_dict()["poorly_read"][0]["uri"] == "https://x.example/"
    lines = dict(BuildReport(INFO, report, None, None, None, {}).lines())
    assert lines["read"].startswith(
        "2 pages measured: kept words 100.0 %, headings 100.0 %, code 40.0 %"
    )
    assert lines["poorly read"] == "https://x.example/: kept of the page: code 1 of 4"


def test_shared_links_amid_the_content_may_be_kept_or_dropped() -> None:
    inherited = "<h2>Inherited</h2><p><a href='/k#boil'>boil</a>, <a href='/k#pour'>pour</a></p>"
    pages = [
        f"<h1>{name}</h1><p>A {name}.</p>{inherited}<h2>Own</h2><p>It is a {name}.</p>"
        for name in NAMES
    ]
    template = recurring([survey(page) for page in pages])
    markdown = "# Pot\n\nA Pot.\n\n## Inherited\n\n{}## Own\n\nIt is a Pot.\n"
    links = "[boil](https://docs.example/k#boil), [pour](https://docs.example/k#pour)\n\n"
    for text in (links, ""):
        losses = lost(pages[0], markdown.format(text), template=template)
        assert not {"surplus", "words"} & set(losses)


def test_trail_beside_text_of_all_pages_is_no_content() -> None:
    frame = (
        "<title>{0}</title><body><h1>{0}</h1><p>It is a {0}.</p><div class='navpath'><a href='/d'>"
        "All about {0}</a><p>Made by tools</p></div></body>"
    )
    pages = [frame.format(name) for name in ("Pot", "Cup", "Lid", "Jar", "Pan")]
    template = recurring([survey(html) for html in pages])
    assert lost(pages[0], "# Pot\n\nIt is a Pot.\n", template=template) == {}


def test_malformed_addresses_are_no_links() -> None:
    links = "".join(f"<li><a href='http://[#{name}'>{name}</a></li>" for name in "abc")
    html = f"<base href='http://['><h1 id='a'>Pot</h1><i id=b></i><i id=c></i><ul>{links}</ul>"
    assert lost(html, "# Pot {#a}\n\n-   a\n-   b\n-   c\n") == {}


def test_terms_in_nested_items_are_measured() -> None:
    html = "<ul><li><dl><dt>hot</dt><dd>It boils</dd></dl></li></ul>"
    result = Fidelity()
    result.add(html, "-   -   **hot**: It boils\n")
    assert (result.kept["terms"], result.wanted["terms"]) == (1, 1)


def test_shared_links_are_no_surplus_in_the_main_part_or_alone() -> None:
    menu = "".join(f"<li><a href='/{name}'>{name}</a></li>" for name in NAMES)
    bases = "<ul><li><a href='/Thing'>Thing</a></li></ul>"
    pages = [
        f"<main><h1>{name}</h1><p>A {name} is made of clay.</p><h3>Bases</h3>{bases}"
        f"<p>A {name} breaks.</p></main><div class='side'>{menu}</div>"
        for name in NAMES
    ]
    template = recurring([survey(page) for page in pages])
    thing = "[Thing](https://docs.example/Thing)"
    text = f"# Pot\n\nA Pot is made of clay.\n\n### Bases\n\n-   {thing}\n\n"
    losses = lost(pages[0], f"{text}A Pot breaks.\n", template=template)
    assert not {"surplus", "words"} & set(losses)
    losses = lost(pages[0], f"{text}Cup Jug\n", template=template)
    assert losses["surplus"] == ["cup", "jug"]
    links = "".join(f"-   [{name}](https://docs.example/{name})\n" for name in NAMES)
    losses = lost(f"<h1>All</h1><ul>{menu}</ul>", f"# All\n\n{links}", url="", template=template)
    assert "surplus" not in losses
