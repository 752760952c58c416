"""Titles, drawings, tabs and formulas of pages, articles, sites and real manuals."""

import json
import random
import re
import tarfile
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kbkit.sources.decode import decode
from kbkit.sources.html import parse, valid_anchor
from kbkit.sources.html.extract import extract
from kbkit.sources.html.fidelity import KINDS, Fidelity, recurring, survey
from kbkit.sources.html.images import prepare_image
from kbkit.sources.html.site_extractor import SiteTemplate
from kbkit.sources.html.tables import grid
from kbkit.text.markdown.writing import code_span, escape, fence, safe_url
from tests.manuals import MANUALS, manual
from tests.sources.html.generated_pages import read_site

URL = "https://docs.example/guide/page.html"


HEADINGS = "<h1><b>1. </b>Overview</h1><p>Rows.</p><h1><b>2. </b>Notes</h1><p>Of it.</p>"


@pytest.mark.parametrize(
    ("head", "body", "title", "begin"),
    [
        ("Install - The Handbook", "<h1>Installing</h1><p>It.</p>", "Installing", "# Installing"),
        ("Install - The Handbook", "<p>It.</p>", "Install", "# Install\n\nIt."),
        ("pic-20.html", "<h2>20. Larger</h2><p>It.</p>", "20. Larger", "## 20. Larger"),
        ("pic-20.html", "<p>Only some words.</p>", "pic-20.html", "# pic-20.html"),
        ("Functions", HEADINGS, "Functions", "# Functions\n\n# 1. Overview"),
        ("1. Overview of it - The Handbook", HEADINGS, "1. Overview", "# 1. Overview"),
        ("", HEADINGS, "1. Overview", "# 1. Overview"),
    ],
)
def test_titles_come_from_the_head_or_a_heading(
    head: str, body: str, title: str, begin: str
) -> None:
    page = extract(f"<html><head><title>{head}</title></head><body>{body}</body></html>", URL)
    assert page.title == title
    assert page.content.startswith(begin)


@pytest.mark.parametrize(
    "placeholder", ["&lt;no title&gt; - The Handbook", "&lt;no title&gt;", "Untitled", "No title"]
)
def test_placeholders_in_the_head_are_no_titles(placeholder: str) -> None:
    head = f"<html><head><title>{placeholder}</title></head>"
    titled = extract(f"{head}<body><p>Text of it.</p><h2>Notes</h2></body></html>", URL)
    assert titled.title == "Notes"
    page = extract(f"{head}<body><p>Text of it.</p></body></html>", URL)
    assert "title" not in (page.title + page.content).lower()


def test_spans_of_hostile_tables_are_bounded() -> None:
    cell = '<td colspan="1000000000" rowspan="999999999">x</td>'
    rows = grid(parse(f"<table><tr>{cell * 50}</tr></table>").find(".//table"))
    assert rows is None or len(rows) * len(rows[0]) <= 50_000


@pytest.mark.parametrize(
    ("identity", "anchor"),
    [(" a ", "a"), ("", ""), (" ", ""), ("a" * 200, "a" * 200), ("a" * 201, "")],
)
def test_anchors_have_one_to_two_hundred_signs(identity: str, anchor: str) -> None:
    assert valid_anchor(identity) == anchor


def test_headers_of_saved_responses_are_no_text() -> None:
    head = "Content-type: text/html; charset=UTF-8\n\n<!DOCTYPE html>\n"
    page = extract(f"{head}<html><body><h1>TEA</h1><p>Boils: it.</p></body></html>", URL)
    assert page.content == "# TEA\n\nBoils: it.\n"


def test_breadcrumbs_that_end_in_the_page_itself_go() -> None:
    trail = "<ul aria-label='Breadcrumb'><li><a href='' aria-current='page'>brew</a></li></ul>"
    html = f"<html><body>{trail}<h1>Function brew</h1><p>Brews tea for all.</p></body></html>"
    assert extract(html, URL).content == "# Function brew\n\nBrews tea for all.\n"


def test_contents_with_bars_before_the_first_heading_go() -> None:
    links = " | ".join(f"<a href='#{name}'>{name}</a>" for name in "abc")
    parts = "".join(f"<h2 id='{name}'>{name}</h2><p>Of {name}.</p>" for name in "abc")
    html = f"<html><body><div>{links}</div><h1>Tea</h1>{parts}</body></html>"
    assert extract(html, URL).content.startswith("# Tea\n\n## a {#a}")


@pytest.mark.parametrize(
    ("heading", "title", "begin"),
    [
        ("5. Kettle", "5. Kettle", "## 5. Kettle {#k}"),
        ("3 Kettle", "Kettle", "## 3 Kettle {#k}"),
        ("4.2 Kettle", "Section 4.2", "## 4.2 Kettle {#k}"),
        ("5.2 Kettle", "Section 4.2", "# Section 4.2\n\n## 5.2 Kettle"),
        ("Class<br>Kettle", "Class Kettle", "## Class Kettle {#k}"),
        ("Class Kettle", "Kettle", "## Class Kettle {#k}"),
        ("Boiling", "Kettle", "# Kettle\n\n## Boiling {#k}"),
        ("Everything that one has to know of a Kettle", "Kettle", "# Kettle\n\n## Everything"),
    ],
)
def test_title_that_the_page_begins_with_is_written_once(
    heading: str, title: str, begin: str
) -> None:
    page = f"<title>{title}</title><body><h2 id='k'>{heading}</h2><p>Boils water.</p></body>"
    read = extract(f"<html>{page}</html>", "https://d.example")
    assert read.content.startswith(begin)
    assert read.content.count("Kettle") == begin.count("Kettle") + ("Everything" in begin)


def as_site(page: str) -> str:
    """The Markdown of a page read with others of its site, which have another word for ``@``."""
    pages = {
        f"https://d.example/{word}.html": page.replace("@", word)
        .replace("#more#", f"{word} says more of it. " * 8)
        .encode()
        for word in ("Amber", "Basalt", "Coral", "Delta", "Ember")
    }
    return read_site(pages)["https://d.example/Coral.html"].content


def test_lines_of_steps_between_blocks_go() -> None:
    # early LaTeX2HTML wrote no blocks for them
    page = (
        "<html><head><title>The @</title></head><body>"
        "<a href='c.html'><img alt='next' src='n.png'></a> <a href='t.html'><img alt='up'></a><br>"
        "<b> Next:</b> <a href='c.html'>Cups</a> <b> Up:</b> <a href='t.html'>All of tea</a>"
        "<b> <a href='i.html'>Contents</a></b><br><br>"
        "<a name='CHILD'><strong>Subsections</strong></a><ul><li><a href='@.html#s'>Water</a></ul>"
        "<hr><h1><a name='@'></a>The @</h1><p>Boil it. #more#<h2><a name='s'>Water</a></h2><p>Cold,"
        " see<a href='u.html'>Up</a>.<hr><a href='c.html'><img alt='next'></a> <b> Next:</b> "
        "<a href='c.html'>Cups</a></body></html>"
    )
    content = as_site(page)
    assert content.startswith("# The Coral {#Coral}\n\nBoil it.")
    assert content.endswith("## Water {#s}\n\nCold, see[Up](https://d.example/u.html).\n")


def test_lines_that_jump_or_name_the_site_go() -> None:
    page = (
        "<html><head><title>@ - Tea wiki</title></head><body><div id='content'><h1>@</h1><div>"
        "<div id='sub'>From Tea wiki</div><div id='jump-to-nav' class='mw-jump'>Jump to: "
        "<a href='#nav'>navigation</a>, <a href='#s'>search</a></div><div><p>Stability: stable</p>"
        "<p>It is @. #more#</p></div></div></div></body></html>"
    )
    assert as_site(page).startswith("# Coral {#content}\n\nStability: stable\n\nIt is Coral.")


def test_contents_stay_on_a_page_without_other_text() -> None:
    contents = "".join(f"<li><a href='p{n}.html'>Part {n}</a></li>" for n in range(5))
    html = (
        "<html><head><title>Tea: Contents</title></head><body><h1>Table of Contents</h1>"
        f"<div class='contents'><ul class='toc'>{contents}</ul></div>{{}}<p>Made today.</p></body>"
    )
    content = extract(html.format(""), "https://d.example/toc.html").content
    assert content.count("](https://d.example/p") == 5
    text = f"<p>{'Tea is a drink of leaves and water. ' * 9}</p>"
    assert "Part 3" not in extract(html.format(text), "https://d.example/toc.html").content


def test_page_with_several_first_headings_is_named_by_its_head() -> None:
    page = (
        "<html><head><title>SELECT</title></head><body><main>"
        "<div class='fancy_toc'><a onclick='x()'><span>\u25ba</span> Table Of Contents</a>"
        "<div id='sub'><div><a href='#a'>1. Overview</a></div><div><a href='#b'>2. Simple Select"
        " Processing</a></div><div><a href='#c'>3. Notes</a></div></div></div>"
        "<h1 id='a'>1. Overview</h1><p>The statement reads rows of tables, which it names.</p>"
        "<h1 id='b'>2. Simple Select Processing</h1><p>What a simple one does is told here.</p>"
        "<h1 id='c'>3. Notes</h1><p>Some of them are longer.</p></main></body></html>"
    ).replace("</p>", " It is told at length, so that this is a page of some text.</p>")
    read = extract(page, "https://d.example/select.html")
    assert read.title == "SELECT"
    assert read.content.startswith("# SELECT\n\n# 1. Overview {#a}\n\nThe statement")
    assert "Contents" not in read.content
    assert "# 2. Simple Select Processing {#b}" in read.content


def test_urls_of_scripts_and_quotes_are_harmless() -> None:
    assert safe_url("vbscript:x", URL) == ""
    assert safe_url('/"onmouseover="x', URL) == "https://docs.example/%22onmouseover=%22x"


def test_links_are_relative_to_the_base() -> None:
    page = extract('<base href="/other/"><p><a href="x">x</a> and some more text</p>', URL)
    assert page.links == ("https://docs.example/other/x",)


def test_code_spans_fences_and_escapes_keep_any_signs() -> None:
    assert escape("C:\\dir \\* \\") == "C:\\dir \\\\\\* \\\\"
    assert code_span("a `b` c") == "`` a `b` c ``"
    assert fence("```\nx\n````").startswith("`````\n")


def test_pages_without_content_give_a_reason() -> None:
    assert extract("", URL).reason == extract("   ", URL).reason == "empty page"
    assert extract("<html><body><script>x()</script></body></html>", URL).reason == "no text"
    deep = extract("<b>" * 50_000 + "text", URL)
    assert deep.reason or deep.content


def test_random_markup_is_read_without_errors() -> None:
    chance = random.Random(7)
    tags = ("table", "tr", "td rowspan=9", "pre", "/pre", "dl", "dt id=x", "dd", "ul", "li", "h1")
    links = ("a href='http://[::1'", "base href='http://['", "p", "code")
    pieces = [f"<{tag}>" for tag in tags + links]
    pieces += ["</", "<!--", "]]>", "&#x110000;", "&lt", "\x00", "`" * 9, "\u202e", "text "]
    for _ in range(150):
        extract("".join(chance.choices(pieces, k=60)), URL)


def test_site_template_is_the_region_that_pages_share() -> None:
    template = SiteTemplate()
    frame = (
        "<html><body class='page-{n}'><div class='top'>Menu Home About</div><div id='wrap'>"
        "<div class='content'><div class='section' id='s{n}'><h1>Page {n}</h1>{text}</div></div>"
        "<div class='side'>News of the day</div></div></body></html>"
    )
    text = "<p>" + "A sentence that carries the content of this page, plainly. " * 5 + "</p>"
    for number in range(8):
        template.vote(extract(frame.format(n=number, text=text), URL).ballot)
    template.count()
    assert template.settled
    assert [region.signature for region in template.regions] == [("div", "", "content", "")]
    short = extract(frame.format(n=99, text="<pre>x = 1</pre>"), URL, template.regions)
    assert short.content == "# Page 99 {#s99}\n\n```\nx = 1\n```\n"
    article = f"<html><body><article><h1>Other</h1>{text}</article>"
    other = extract(article, URL, template.regions)
    assert other.ballot
    assert "carries the content" in other.content


@pytest.mark.parametrize("sign", ["\f", "&#12;", "&#1;", "&#x1F", "\x1b"])
def test_control_characters_beside_scripts_are_left_out(sign: str) -> None:
    html = f"<title>T</title><p>a<script></script>{sign} b &#13;&#120;</p>"
    assert extract(html, URL).content == "# T\n\na b x\n"


ARTICLE = """<html><head><title>Snow and dogs | The Paper</title></head><body>
<div class="teasers"><a href="/a">Cats in winter</a> <a href="/b">The new stadium</a></div>
<article><h1>Snow and dogs</h1>{text}<div class="box"><p><a href="/c">Read also: ten tips for the
garden</a></p></div>{text2}<ul><li>Take <a href="/boots">boots</a> with you when it is cold.</li>
<li>Dry the dog well after every walk in the snow.</li></ul>
<form><p>Your mail address for our letter</p><button>Go</button></form></article>
<div class="related"><h3>More from us</h3><p>Stadium opens on Sunday</p></div></body></html>"""


def test_articles_keep_their_text_and_end_with_their_links() -> None:
    text = "".join(
        f"<p>Walk number {n} through deep snow was a joy for the old dog, said <a href='/x{n}'>its "
        f"owner {n}</a>, who had come along with the <b>whole</b> family.</p>"
        for n in range(6)
    )
    second = text.replace("Walk", "Later, walk").replace("joy", "burden")
    page = extract(ARTICLE.format(text=text, text2=second), "https://paper.example/dogs")
    assert page.article
    assert page.title == "Snow and dogs"
    assert page.content.startswith("# Snow and dogs\n\nWalk number 0 through deep snow was a joy")
    assert "said its owner 3, who had come along with the whole family." in page.content
    assert "[its owner 3](https://paper.example/x3)" in page.content
    assert "Dry the dog well after every walk in the snow." in page.content
    for word in ("Stadium", "stadium", "mail address", "Cats in winter", "More from us"):
        assert word not in page.content, word


def test_articles_keep_the_lead_between_title_and_text() -> None:
    lead = "Old dogs love the snow as much as young ones, a survey of their owners says."
    text = "".join(
        f"<p>Walk number {n} through deep snow was a joy for the old dog and its owner.</p>"
        for n in range(8)
    )
    html = (
        "<html><head><title>Snow and dogs</title><meta property='og:type' content='article'></head>"
        "<body><nav><p>All that our paper says of dogs and cats and birds and more</p></nav>"
        f"<header><h1>Snow and dogs</h1><div class='teaser'><p>{lead}</p></div>"
        "<p>By Ann Lee, 3 May 2026, 10:15</p><figure><p>A dog that looks at the snow in the garden"
        " of its owner</p></figure><p><a href='/x'>Read on here about ten of the best dogs in all"
        f" of the town</a></p></header><div class='entry-content'>{text}</div></body></html>"
    )
    page = extract(html, "https://paper.example/dogs")
    assert page.article
    assert page.content.startswith(f"# Snow and dogs\n\n{lead}\n\nWalk number 0 ")


def test_sites_of_articles_have_no_template() -> None:
    template = SiteTemplate()
    for _ in range(16):
        template.vote((), article=True)
    template.count()
    assert template.settled
    assert template.regions == ()


@pytest.mark.soak
def test_articles_lose_nothing_against_plain_trafilatura() -> None:
    folder = Path(__file__).parents[4] / "shared/eval/articles"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here")
    trafilatura = pytest.importorskip("trafilatura")
    expected = json.loads((folder / "expected.json").read_text("utf-8"))[:60]
    counts: dict[str, Counter[str]] = {"kbkit": Counter(), "plain": Counter()}
    with tarfile.open(folder / "pages.tar.gz") as pages:
        for page in expected:
            html = decode(pages.extractfile(page["file"]).read(), "")
            plain = trafilatura.extract(html, output_format="markdown", include_comments=False)
            texts = {"kbkit": extract(html, page["url"]).content, "plain": plain or ""}
            for name, text in texts.items():
                words = " ".join(text.split())
                for kind in ("with", "without"):
                    segments = [" ".join(segment.split()) for segment in page[kind]]
                    counts[name][kind] += sum(segment in words for segment in segments)
                    counts[name]["of " + kind] += len(segments)
    score = {
        name: 2 * n["with"] / (n["with"] + n["without"] + n["of with"])
        for name, n in counts.items()
    }
    assert score["kbkit"] >= score["plain"] - 0.01, score


@pytest.mark.parametrize(
    "html",
    [
        "<!doctype html><title>T</title><main><h1>A</h1><p>First words.</p></main><p>Last words.",
        "<meta charset=utf-8><title>T</title><article><h1>A</h1>First words.</article> Last words.",
        "<head><title>T</title><style></style><main><h1>A</h1>First words.</main>Last words.",
        "<title>T</title><main><h1>A</h1>First words.</main><div>Last words.</div>",
    ],
)
def test_page_without_a_body_is_read_after_its_head(html: str) -> None:
    content = extract(html, "https://x.org/").content
    assert content.startswith("# A\n")
    assert re.search(r"First words\.\s+Last words\.\s*$", content)


@pytest.mark.parametrize(
    "package",
    [
        pytest.param(name, marks=[] if name == "python-django-doc" else pytest.mark.slow)
        for name in MANUALS
    ],
)
def test_real_manuals_keep_their_content(package: str) -> None:
    folder = manual(package)
    paths = [path for path in sorted(folder.rglob("*.html")) if path.stat().st_size < 200_000]
    random.Random(3).shuffle(paths)
    pages = {
        f"https://docs.example/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in paths[:15]
    }
    texts = {url: html.decode("utf-8", "replace") for url, html in pages.items()}
    template = recurring([survey(text) for text in texts.values()])
    fidelity = Fidelity()
    for url, page in read_site(pages).items():
        if page.content:
            fidelity.add(texts[url], page.content, url=url, template=template)
    assert fidelity.wanted["code"] > 5
    for kind in KINDS:
        kept = fidelity.kept[kind] >= 0.97 * fidelity.wanted[kind]
        assert kept, (fidelity.counts(), fidelity.lost[kind][:5])


DRAWN = """<html><head><title>Trains</title></head><body><main><h1>Trains
  <svg viewBox="0 0 9 9"><text>icon</text></svg></h1><p>How wagons follow each other in a train.</p>
  <a href="#x"><svg viewBox="0 0 9 9"><text>link</text></svg></a>
  <svg aria-hidden="true" viewBox="0 0 9 9"><text>hidden</text></svg>
  <svg viewBox="0 0 16 16"><path d="M1 1L9 9"/></svg>
  <div><svg class="d" viewBox="0 0 120 40" onload="alert(1)"><script>alert(2)</script>
  <linearGradient id="g"><stop offset="1"/></linearGradient><a xlink:href="javascript:x()">
  <text x="1">engine</text></a><text>wagon</text><text>wagon</text></svg></div>
  <p>They end with a lamp.</p><div style="display:none"><svg><text>folded</text></svg></div>
  </main></body></html>"""


def test_drawings_become_pictures_on_request() -> None:
    url = "https://x.example/trains"
    page = extract(DRAWN, url, drawings=True)
    (address,) = page.drawings
    assert f"![Diagram: engine, wagon]({address})" in page.content
    assert urlsplit(address).fragment == "drawing-1.svg"
    image = prepare_image(page.drawings[address])
    assert image is not None
    svg = image.data.decode()
    for part in ('viewBox="0 0 120 40"', 'width="120" height="40"', "linearGradient"):
        assert part in svg
    assert svg.count("<text") == 3
    assert not {"script", "javascript", "onload", "alert"} & set(re.findall(r"\w+", svg))
    without = extract(DRAWN, url)
    assert not without.drawings
    for word in ("engine", "wagon", "Diagram", "icon", "hidden"):
        assert word not in without.content.replace("wagons", "")


def test_drawing_is_named_by_its_label() -> None:
    html = DRAWN.replace('class="d"', 'aria-label="A [train] of three"')
    content = extract(html, "https://x.example/", drawings=True).content
    assert "![A \\[train\\] of three](" in content


def test_title_class_around_the_content_is_no_title() -> None:
    words = "Some words of a sentence that says something, and goes on for a while. "
    text = f"<p>{words * 3}</p><h2>More</h2><p>{words}</p>"
    html = f"<title>Tea</title><body><a class=title>Tea<ul><li><main>{text}"
    assert "## More" in extract(html, "https://h/").content


SETS = {
    "roles": '<div role="tablist"><button role="tab" aria-controls="p1" id="b1">Debian</button>'
    '<button role="tab" aria-controls="p2" id="b2">Fedora</button></div><div id="p1" '
    'role="tabpanel"><p>apt</p></div><div id="p2" role="tabpanel" hidden><p>dnf</p></div>',
    "an accordion": '<div role="tablist"><div><a role="tab" href="#c1">Debian</a><div id="c1" '
    'role="tabpanel"><p>apt</p></div></div><div><a role="tab" href="#c2">Fedora</a><div id="c2" '
    'role="tabpanel"><p>dnf</p></div></div></div>',
    "places": '<div><ul role="tablist"><li role="tab">Debian</li><li role="tab">Fedora</li></ul>'
    '<div><div role="tabpanel"><p>apt</p></div><div role="tabpanel" hidden><p>dnf</p></div></div>'
    "</div>",
    "links": '<ul role="tablist"><li><a role="tab" href="#d">Debian</a></li><li><a role="tab" '
    'href="#f">Fedora</a></li></ul><div id="d"><p>apt</p></div><div id="f"><p>dnf</p></div>',
    "buttons before": '<div><input type="radio" id="a"><input type="radio" id="b"><div>'
    '<label for="a">Debian</label><label for="b">Fedora</label></div><div><div><p>apt</p></div>'
    "<div><p>dnf</p></div></div></div>",
    "in turn": '<div><input type="radio" id="a"><label for="a">Debian</label><div><p>apt</p></div>'
    '<input type="radio" id="b"><label for="b">Fedora</label><div><p>dnf</p></div></div>',
}


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("alone", [True, False])
def test_tab_panels_are_below_their_labels(kind: str, alone: bool) -> None:
    text = "<p>This is how to install it on the systems that many people use.</p>"
    html = f'<body><main id="main"><h1 id="x">Install</h1>{text}{SETS[kind]}{text}</main></body>'
    content = extract(html, "https://h/x", alone=alone).content
    assert "\n\n**Debian**\n\napt\n\n**Fedora**\n\ndnf\n\n" in content


@pytest.mark.parametrize("kind", SETS)
def test_tab_panels_in_articles_keep_their_labels(kind: str) -> None:
    text = "<p>This is how we install it on the systems that many people use today.</p>"
    tabs = SETS[kind]
    for name in ("apt", "dnf"):
        tabs = tabs.replace(f"<p>{name}", f"<p>The program {name} comes with the whole system.")
    head = '<head><meta property="og:type" content="article"></head>'
    html = f"{head}<body><article><h1>Install</h1>{text * 6}{tabs}{text * 6}</article></body>"
    page = extract(html, "https://h/x")
    assert page.article
    assert "\n\n**Debian**\n\nThe program apt" in page.content
    assert "\n\n**Fedora**\n\nThe program dnf" in page.content
