"""Snippets in the shape that real generators give them, and whole manuals where installed."""

from __future__ import annotations

import json
import random
import re
import tarfile
from collections import Counter
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from kbkit.sources.decode import decode
from kbkit.sources.html import valid_anchor
from kbkit.sources.html.extract import extract
from kbkit.sources.html.fidelity import KINDS, Fidelity, recurring, survey
from kbkit.sources.html.images import kept_image
from kbkit.sources.html.regions import SiteTemplate
from kbkit.sources.html.site_extractor import SiteExtractor
from kbkit.sources.html.tables import grid
from kbkit.text.markdown.rendering import render
from kbkit.text.markdown.writing import code_span, escape, fence, safe_url
from tests.manuals import MANUALS, manual

URL = "https://docs.example/guide/page.html"


def markdown(body: str, head: str = "", regions=()) -> str:
    prose = (
        "<p>" + "This paragraph is here so that the page has some real prose in it. " * 3 + "</p>"
    )
    html = (
        f"<html><head>{head}</head><body><main><h1>T</h1>{prose}{body}{prose}</main></body></html>"
    )
    text = extract(html, URL, regions, alone=False).content
    assert text.startswith("# T\n")
    return text[4:].replace(re.sub("<[^>]+>", "", prose).strip(), "").strip()


def test_headings_keep_level_and_anchor() -> None:
    assert markdown('<h2 id="two">Two</h2>') == "## Two {#two}"
    assert (
        markdown('<section id="s"><h3>Three<a class="headerlink" href="#s">¶</a></h3></section>')
        == "### Three {#s}"
    )
    assert markdown('<h2>Old <code>x_y</code><a name="old"></a></h2>') == "## Old `x_y` {#old}"
    assert markdown('<a name="before"></a><h4>Four</h4>') == "#### Four {#before}"
    assert markdown('<span id="x y"></span><h2>Plain</h2>') == "## Plain {#x%20y}"
    assert (
        markdown('<h2>Node<span><a class="mark" href="#n" id="n">#</a></span></h2>')
        == "## Node {#n}"
    )
    linked = "## [Linked](https://docs.example/x) title"
    assert markdown('<h2><a href="/x">Linked</a> <em>title</em></h2>') == linked
    assert (
        markdown('<h2 id="x"><a href="#x">Itself</a> <a href="">here</a></h2>')
        == "## Itself here {#x}"
    )
    back = '<h2 id="x"><a class="toc-backref" href="#toc-1">Kinds</a></h2>'
    assert markdown(back) == "## Kinds {#x}"


def test_the_types_of_a_signature_are_links() -> None:
    pot = "[`Pot`](https://docs.example/guide/pot.html)"
    assert (
        markdown(
            '<dl class="function"><dt class="sig" id="boil">boil(pot: <a href="pot.html">Pot</a>)'
            '<a class="headerlink" href="#boil">¶</a></dt><dd><p>Boils.</p></dd></dl>'
        )
        == f"## `boil(pot:` {pot}`)` {{#boil}}\n\nBoils."
    )
    assert (
        markdown(
            '<section id="fill"><div>fill(pot: <a href="pot.html">Pot</a>)</div>'
            '<a class="headerlink" href="#fill"></a><p>Fills.</p></section>'
        )
        == f"## `fill(pot:` {pot}`)` {{#fill}}\n\nFills."
    )
    assert (
        markdown('<h3 id="new">fn <a href="#new">new</a>() -&gt; <a href="pot.html">Pot</a></h3>')
        == "### fn new() -> [Pot](https://docs.example/guide/pot.html) {#new}"
    )


def test_the_title_comes_from_the_heading_or_else_from_the_head() -> None:
    head = "<title>Install - The Handbook</title>"
    assert (
        extract(f"<html><head>{head}</head><body><h1>Installing</h1><p>Text of it.</p>", URL).title
        == "Installing"
    )
    page = extract(f"<html><head>{head}</head><body><p>Text of it.</p></body></html>", URL)
    assert page.title == "Install"
    assert page.content.startswith("# Install\n\nText of it.")


@pytest.mark.parametrize(
    "named", ["&lt;no title&gt; - The Handbook", "&lt;no title&gt;", "Untitled", "No title"]
)
def test_a_placeholder_in_the_head_is_no_title(named: str) -> None:
    head = f"<html><head><title>{named}</title></head>"
    assert (
        extract(f"{head}<body><p>Text of it.</p><h2>Notes</h2></body></html>", URL).title == "Notes"
    )
    page = extract(f"{head}<body><p>Text of it.</p></body></html>", URL)
    assert "title" not in page.title.lower()
    assert "title" not in page.content.lower()


def test_a_page_of_several_first_headings_is_called_as_its_head_says() -> None:
    body = (
        "<h1><span>1. </span>Overview</h1><p>Functions that are built in.</p>"
        "<h1><span>2. </span>Details</h1><p>Of each of them.</p>"
    )
    named = "<title>Built-In Functions</title>"
    page = extract(f"<html><head>{named}</head><body>{body}</body></html>", URL)
    assert page.title == "Built-In Functions"
    assert "# 1. Overview" in page.content
    named = "<title>1. Overview of it - The Handbook</title>"
    page = extract(f"<html><head>{named}</head><body>{body}</body></html>", URL)
    assert page.title == "1. Overview"
    assert extract(f"<html><body>{body}</body></html>", URL).title == "1. Overview"


def test_the_name_of_a_file_is_none_of_a_page() -> None:
    head = "<head><title>pic-20.html</title></head>"
    page = extract(f"<html>{head}<body><h2>20. Larger</h2><p>Words of it.</p></body></html>", URL)
    assert page.title == "20. Larger"
    page = extract(f"<html>{head}<body><p>Only some words.</p></body></html>", URL)
    assert page.title == "pic-20.html"  # rather than nothing


def test_a_heading_ends_at_the_end_tag_of_any_heading() -> None:
    text = markdown("<h2>Lists</h1><ul><li><a href='a.html'>A</a></ul><h3>More</h3><p>Of it.</p>")
    assert "## Lists\n\n-   [A](https://docs.example/guide/a.html)\n\n### More\n\nOf it." in text
    assert markdown("<p>Stray</h4> words.</p>") == "Stray words."


CODE = "def f(x):\n\n    if x < 3 and x > 1:\n        return \"&amp;\"   \n\treturn '``` ```` '"


def test_code_keeps_every_byte_and_its_language() -> None:
    marked = CODE.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    spans = marked.replace("def", '<span class="k">def</span>')
    assert markdown(f'<pre><code class="language-python">{spans}\n</code></pre>') == (
        f"`````python\n{CODE}\n`````"
    )
    sphinx = '<div class="highlight-python3 notranslate"><div class="highlight"><pre><span></span>'
    assert markdown(f"{sphinx}x = 1\n</pre></div></div>") == "```python\nx = 1\n```"
    assert markdown("<pre>\n\n  two\n\n</pre>") == "```\n\n  two\n\n```"
    assert (
        markdown('<div class="language-rust highlight"><pre><code>fn x() {}</code></pre></div>')
        == "```rust\nfn x() {}\n```"
    )
    lines = "".join(f'<div class="token-line"><span>line {n}</span><br></div>' for n in (1, 2))
    assert markdown(f'<pre class="language-js">{lines}</pre>') == "```js\nline 1\nline 2\n```"
    assert markdown("<pre>a<div>b</div>\nc<div>d</div>e</pre>") == "```\nab\nc\nd\ne\n```".replace(
        "ab", "ab"
    ).replace("c\nd", "cd")


def test_line_numbers_and_copy_buttons_go() -> None:
    table = (
        '<table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre>1\n2'
        '</pre></div></td><td class="code"><div class="highlight"><pre>a = 1\nb = 2\n</pre></div>'
        "</td></tr></table>"
    )
    assert markdown(table) == "```\na = 1\nb = 2\n```"
    inline = '<pre><span class="linenos">1</span>a<button class="copybtn">Copy</button></pre>'
    assert markdown(inline) == "```\na\n```"


def test_a_word_that_opens_a_menu_stays_without_the_menu() -> None:
    word = (
        '<span class="dropdown"><a class="dropdown-toggle" href="#">crl-file<span class="caret">'
        '</span></a><ul class="dropdown-menu"><li class="dropdown-header">See also:</li><li>'
        '<a href="#crl">Bind options</a></li></ul></span>'
    )
    assert markdown(f'<pre class="text">Use "{word}" here.\nOr not.</pre>') == (
        '```\nUse "crl-file" here.\nOr not.\n```'
    )
    assert markdown(f"<p>Use {word} here.</p>") == "Use crl-file here."


def test_a_picture_that_repeats_its_cell_goes() -> None:
    cells = (
        '<td>yes<br><img src="check.png" alt="yes"></td><td><img src="no.png" alt="no"></td>'
        '<td>see <img src="chart.png" alt="chart"></td>'
    )
    table = f"<table><tr><th>a</th><th>b</th><th>c</th></tr><tr>{cells}</tr></table>"
    at = "https://docs.example/guide"
    assert markdown(table).splitlines()[-1] == (
        f"| yes | ![no]({at}/no.png) | see ![chart]({at}/chart.png) |"
    )


def test_api_signatures_become_headings_with_their_anchor() -> None:
    api = """<section id="api"><h2>API</h2><dl class="py class"><dt class="sig sig-object py"
    id="asyncio.Task"><em class="property"><span class="pre">class</span><span class="w"> </span>
    </em><span class="sig-name">asyncio.Task</span>(<em class="sig-param">coro</em>, <em>*</em>)<a
    class="headerlink" href="#asyncio.Task">¶</a></dt><dd><p>A task.</p>
    <dl class="py method"><dt class="sig" id="asyncio.Task.done">done()</dt><dd><p>Over?</p></dd>
    </dl></dd></dl><dl class="py function"><dt class="sig" id="asyncio.run">asyncio.run(main)</dt>
    <dd><pre>run()</pre></dd></dl></section>"""
    assert markdown(api) == (
        "## API {#api}\n\n### `class asyncio.Task(coro, *)` {#asyncio.Task}\n\nA task.\n\n"
        "#### done() {#asyncio.Task.done}\n\nOver?\n\n### asyncio.run(main) {#asyncio.run}\n\n"
        "```\nrun()\n```"
    )


def test_definition_lists_keep_terms_and_definitions() -> None:
    glossary = '<dl><dt id="term-x">Term</dt><dd><p>Means.</p></dd></dl>'
    assert markdown(f"<h2>G</h2>{glossary}") == "## G\n\n### Term {#term-x}\n\nMeans."
    plain = (
        "<dl><dt><code>-v</code></dt><dd>Says more.<pre>x -v</pre></dd><dt>b</dt><dd>c</dd></dl>"
    )
    assert markdown(plain) == "-   `-v`: Says more.\n\n    ```\n    x -v\n    ```\n\n-   **b**: c"


def test_tables_keep_every_cell_in_its_place() -> None:
    table = (
        "<table><caption>Sizes</caption><thead><tr><th>a|b</th><th colspan=2>c</th></tr></thead>"
        "<tbody><tr><td rowspan=2><code>x|y</code></td><td>1<br>2</td><td><ul><li>p</li><li>q</li>"
        "</ul></td></tr><tr><td></td><td>&lt;b&gt;</td></tr></tbody></table>"
    )
    assert markdown(table) == (
        "**Sizes**\n\n| a\\|b | c |  |\n| --- | --- | --- |\n| `x\\|y` | 1 2 | • p • q |\n"
        "|  |  | &lt;b> |"
    )
    layout = "<table><tr><td><h2>In</h2><pre>a\nb</pre></td></tr></table>"
    assert "```\na\nb\n```" in markdown(layout)


def test_spans_of_a_hostile_table_are_bounded() -> None:
    from kbkit.sources.html import parse

    bomb = (
        "<table><tr>" + '<td colspan="1000000000" rowspan="999999999">x</td>' * 50 + "</tr></table>"
    )
    table = parse(bomb).find(".//table")
    rows = grid(table)
    assert rows is None or len(rows) * len(rows[0]) <= 50_000


def test_lists_keep_their_nesting_and_the_code_in_them() -> None:
    nested = (
        "<ol start=3><li><p>one</p><pre>x\n\n  y</pre></li><li>two<ul><li>a</li><li>b <b>c</b></li>"
        "</ul></li></ol>"
    )
    assert markdown(nested) == (
        "3.  one\n\n    ```\n    x\n\n      y\n    ```\n\n4.  two\n    -   a\n    -   b **c**"
    )
    assert markdown("<ul><li><pre>x</pre></li></ul>") == "-   \xa0\n\n    ```\n    x\n    ```"
    tasks = (
        '<ul><li><input type="checkbox" checked> done</li><li><input type="checkbox"> not</li></ul>'
    )
    assert markdown(tasks) == "-   [x] done\n-   [ ] not"


def test_lists_of_terms_are_told_from_lists_beside_them() -> None:
    page = (
        "<ul><li>a</li></ul><dl><dt>T</dt><dd>x</dd><dt>U</dt><dd>y</dd></dl>"
        "<ul><li>b<dl><dt>In</dt><dd>z</dd></dl></li></ul><dl><dt>V</dt><dd>z</dd></dl>"
    )
    text = markdown(page)
    assert [line[:9] for line in text.split("\n") if line[:1] in {"-", "*"}] == [
        "-   a",
        "*   **T**",
        "*   **U**",
        "-   b",
        "*   **V**",
    ]
    assert render(text, lambda _: None, document=True).plain.count("<dl>") == 3


def test_admonitions_tell_their_kind_beside_a_title_of_their_own() -> None:
    titled = '<div class="admonition %s"><p class="admonition-title">%s</p><p>Mind.</p></div>'
    assert markdown(titled % ("warning", "Mind the gap")).startswith("> **Warning: Mind the gap")
    assert markdown(titled % ("warning", "Achtung")).startswith("> **Achtung**")
    assert markdown(titled % ("note", "Own title")).startswith("> **Own title**")
    assert markdown(titled % ("danger", "Danger of death")).startswith("> **Danger of death**")
    custom = '<div class="tip custom-block"><p class="custom-block-title">Do so</p><p>x</p></div>'
    assert markdown(custom) == "> **Tip: Do so**\n>\n> x"
    term = '<div class="admonition tip"><dl><dt>%s</dt><dd>Mind.</dd></dl></div>'
    assert markdown(term % ("T" * 80)).startswith("> **TTT")
    assert markdown(term % ("T" * 81)).startswith("> -   **TTT")  # no title is so long


@pytest.mark.parametrize(
    ("identity", "anchor"),
    [(" a ", "a"), ("", ""), (" ", ""), ("a" * 200, "a" * 200), ("a" * 201, "")],
)
def test_anchors_have_one_to_two_hundred_signs(identity: str, anchor: str) -> None:
    assert valid_anchor(identity) == anchor


def test_terms_that_letters_of_an_index_lead_to_stay_terms() -> None:
    page = (
        "<dl><dt><a id='A' name='A'>alias</a></dt><dd>One</dd><dt>auth</dt><dd>Two</dd>"
        "<dt>asis</dt><dd>Three</dd><dt><a id='B' name='B'>buffer</a></dt><dd>Four</dd>"
        "<dt>brotli</dt><dd>Five</dd></dl>"
    )
    assert [line for line in markdown(page).split("\n") if line] == [
        f"-   **{term}**: {text}"
        for term, text in zip(
            ("alias", "auth", "asis", "buffer", "brotli"),
            ("One {#A}", "Two", "Three", "Four {#B}", "Five"),
            strict=True,
        )
    ]


def test_terms_of_one_meaning_are_led_to_together() -> None:
    page = (
        "<dl><dt id='c'>-c</dt><dt>--count</dt><dd>Count.</dd>"
        "<dt id='m'>-m</dt><dt>--max</dt><dd>Stop.</dd></dl>"
    )
    assert markdown(page) == "## -c {#c}\n\n## --count\n\nCount.\n\n## -m {#m}\n\n## --max\n\nStop."


def test_terms_among_many_keep_their_anchors() -> None:
    page = (
        "<dl><dt>one</dt><dd>1</dd><dt>two</dt><dd>2</dd><dt id='a'>a</dt><dt id='b'>b</dt>"
        "<dd>is {x}</dd><dt id='c'>c</dt><dd><pre>3</pre></dd><dt>d</dt><dd>4</dd>"
        "<dt>e</dt><dd>5</dd></dl>"
    )
    assert markdown(page).split("\n\n") == [
        "-   **one**: 1",
        "-   **two**: 2",
        "-   **a** {#a}",
        "-   **b** {#b}",
        "    is {x}",
        "-   **c** {#c}",
        "    ```\n    3\n    ```",
        "-   **d**: 4",
        "-   **e**: 5",
    ]


def test_terms_that_stand_in_no_list_are_terms() -> None:
    page = "<div><h3>E</h3><dt><a name='e'></a>east</dt><dd>Left.</dd><p>End.</p></div>"
    assert markdown(page) == "### E\n\n#### east {#e}\n\nLeft.\n\nEnd."


def test_what_kind_of_term_it_is_stands_behind_a_colon() -> None:
    page = "<dl><dt>width<span class='classifier'>length</span></dt><dd>How wide.</dd></dl>"
    assert markdown(page) == "-   **width : length**: How wide."


def test_code_of_nested_items_is_code() -> None:
    page = (
        "<code><button>-</button>{<ul><li><div><b>'id'</b>: <i>0</i>,</div></li><li><div>'of': {"
        "<ul><li>'a': 1</li></ul>}</div></li></ul>}</code>"
    )
    assert markdown(page) == "```\n{\n  'id': 0,\n  'of': {\n    'a': 1\n  }\n}\n```"
    linked = "<code><ul><li><a href='/a'>a</a></li></ul></code>"
    assert markdown(linked) == "-   [a](https://docs.example/a)"


def test_links_that_run_the_code_beside_them_go_and_others_stay() -> None:
    code = 'fn main() { println!("tea {}", 1 + 2); } // boil it'
    pre = f"<pre>{code}</pre>"
    run = f"<a href='https://play.example/?code={quote(code)}'>Run</a>"
    about = f"<a href='https://docs.example/{'why%20' * 20}'>Why</a>"
    assert "Run" not in markdown(f"<div>{pre}{run}</div>")
    assert "[Why](" in markdown(f"<div>{pre}{about}</div>")
    assert "[Run](" in markdown(f"<div><pre>other words of code here</pre>{run}</div>")


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("1.0 · {} · <a href='#' class='toggle'>[-]</a>", "1.0"),
        ("1.0 · {}", "1.0"),
        (" · {}", ""),
        ("1.0 [{}]", "1.0"),
        ("1.0 · 2.0", "1.0 · 2.0"),
    ],
)
def test_signs_beside_links_to_sources_go_with_them(line: str, kept: str) -> None:
    link = "<a class='srclink' href='/src/a.rs.html'>source</a>"
    page = f"<h1>Tea</h1><div><span>{line.format(link)}</span></div><p>Text.</p>"
    assert markdown(page) == f"# Tea\n\n{kept}\n\nText.".replace("\n\n\n", "\n")


def test_the_languages_of_a_page_go_also_with_its_own() -> None:
    other = "<a href='/{0}/a.html' hreflang='{0}' rel='alternate'>{0}</a>"
    own = "<a href='/en/a.html'>en</a>"
    others = f"{other.format('fr')} | {other.format('ja')}"
    line = f"<div><p>Available Languages: {own} | {others}</p></div>"
    assert markdown(f"<h1>Tea</h1>{line}<p>Text.</p>") == "# Tea\n\nText."
    guide = "<a href='/g'>guide</a>"
    said = f"<p>There is also a longer {guide} to it, and this in {other.format('fr')}.</p>"
    assert "guide" in markdown(f"<h1>Tea</h1>{said}<p>Text.</p>")


def test_headings_over_nothing_but_a_menu_go_with_it() -> None:
    menu = "<ul class='toc'><li><a href='#a'>A</a></li><li><a href='#b'>B</a></li></ul>"
    page = (
        "<h1>Tea</h1><div><h3>Parts</h3>{}<h3>News</h3><ul><li><a href='/n'>1</a></li></ul></div>"
        "<h2 id='a'>A</h2><p>x</p><h2 id='b'>B</h2><p>y</p>"
    )
    assert "### Parts" not in markdown(page.format(menu))
    assert "### Parts" in markdown(page.format(f"{menu}<p>Told below.</p>"))


def test_what_is_left_beside_a_menu_is_part_of_it() -> None:
    menu = "<div><ul role='menu'><li>Boil</li></ul><div><a href='/m'>Made by a tool</a></div></div>"
    page = "<h1>Tea</h1><p>Everything about tea.</p>"
    assert markdown(f"{menu}{page}") == "# Tea\n\nEverything about tea."
    text = "<div><ul role='menu'><li>Boil</li></ul><p>Read <a href='/m'>this</a> first.</p></div>"
    assert "first" in markdown(f"{text}{page}")


def test_the_head_of_a_saved_answer_is_no_text() -> None:
    head = "Content-type: text/html; charset=UTF-8\n\n<!DOCTYPE html>\n"
    page = extract(
        f"{head}<html><body><h1>TEA</h1><p>Boils: it.</p></body></html>", "https://d.example"
    )
    assert page.content == "# TEA\n\nBoils: it.\n"


@pytest.mark.parametrize(
    ("heading", "title", "begin"),
    [
        ("5. Kettle", "5. Kettle", "## 5. Kettle {#k}"),
        ("3 Kettle", "Kettle", "## 3 Kettle {#k}"),
        ("Class<br>Kettle", "Class Kettle", "## Class Kettle {#k}"),
        ("Class Kettle", "Kettle", "## Class Kettle {#k}"),
        ("Boiling", "Kettle", "# Kettle\n\n## Boiling {#k}"),
        ("Everything that one has to know of a Kettle", "Kettle", "# Kettle\n\n## Everything"),
    ],
)
def test_a_title_that_the_page_begins_with_stands_once(
    heading: str, title: str, begin: str
) -> None:
    page = f"<title>{title}</title><body><h2 id='k'>{heading}</h2><p>Boils water.</p></body>"
    read = extract(f"<html>{page}</html>", "https://d.example")
    assert read.content.startswith(begin)
    assert read.content.count("Kettle") == begin.count("Kettle") + ("Everything" in begin)


def as_site(page: str) -> str:
    """The Markdown of a page read with others of its site, which have another word for ``@``."""
    reader = SiteExtractor(processes=1)
    for word in ("Amber", "Basalt", "Coral", "Delta", "Ember"):
        html = page.replace("@", word).replace("#more#", f"{word} says more of it. " * 8)
        reader.submit(word, f"https://d.example/{word}.html", html.encode(), "utf-8")
    found = {}
    while reader.pending:
        if not reader.busy:
            reader.settle()
        read = reader.poll(1)
        if read and read.final:
            found[read.key] = read.page.content
    return found["Coral"]


def test_lines_of_steps_between_blocks_go() -> None:
    # as LaTeX2HTML wrote them before it had blocks for them
    page = (
        "<html><head><title>The @</title></head><body>"
        "<a href='c.html'><img alt='next' src='n.png'></a> <a href='t.html'><img alt='up'></a><br>"
        "<b> Next:</b> <a href='c.html'>Cups</a> <b> Up:</b> <a href='t.html'>All of tea</a>"
        "<b> <a href='i.html'>Contents</a></b><br><br>"
        "<a name='CHILD'><strong>Subsections</strong></a><ul><li><a href='@.html#s'>Water</a></ul>"
        "<hr>"
        "<h1><a name='@'></a>The @</h1><p>Boil it. #more#<h2><a name='s'>Water</a></h2><p>Cold, see"
        "<a href='u.html'>Up</a>.<hr><a href='c.html'><img alt='next'></a> <b> Next:</b> "
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


def test_the_contents_that_a_page_is_made_of_stay() -> None:
    contents = "".join(f"<li><a href='p{n}.html'>Part {n}</a></li>" for n in range(5))
    page = f"<h1>Table of Contents</h1><div class='contents'><ul class='toc'>{contents}</ul></div>"
    head = "<head><title>Tea: Contents</title></head>"
    html = f"<html>{head}<body>{page}<p>Made today.</p></body></html>"
    content = extract(html, "https://d.example/toc.html").content
    assert content.count("](https://d.example/p") == 5
    long = f"<p>{'Tea is a drink of leaves and water. ' * 9}</p>"
    content = extract(
        html.replace("<p>Made", f"{long}<p>Made"), "https://d.example/toc.html"
    ).content
    assert "Part 3" not in content


def test_the_body_of_an_admonition_is_no_admonition() -> None:
    page = (
        "<div class='note'><div class='admonition_header'><p><strong>Restart</strong></p></div>"
        "<div class='admonition'><div>It has to be restarted.</div></div></div>"
    )
    assert markdown(page) == "> **Restart**\n>\n> It has to be restarted."


def test_the_anchor_of_a_heading_may_stand_around_its_block() -> None:
    page = (
        "<div class='section' id='install'><div class='titlepage'><div><div><h2>Install</h2></div>"
        "</div></div><p>x</p></div><div><a name='tea.Pot'></a><div class='titlepage'></div>"
        "<div class='names'><h2>Pot</h2><p>y</p></div></div>"
    )
    assert markdown(page) == "## Install {#install}\n\nx\n\n## Pot {#tea.Pot}\n\ny"


def test_an_empty_block_before_the_block_of_a_heading_is_no_anchor_of_it() -> None:
    page = (
        "<div><div id='results'><div></div></div><div><div><h2>Pot</h2></div><p>y</p></div></div>"
    )
    assert markdown(page) == "## Pot\n\ny"


def test_the_last_step_of_a_trail_may_lead_to_the_page_itself() -> None:
    trail = "<ul aria-label='Breadcrumb'><li><a href='' aria-current='page'>brew</a></li></ul>"
    html = f"<html><body>{trail}<h1>Function brew</h1><p>Brews tea for all.</p></body></html>"
    assert extract(html, URL).content == "# Function brew\n\nBrews tea for all.\n"


def test_contents_before_the_first_heading_may_have_bars_between_them() -> None:
    links = " | ".join(f"<a href='#{name}'>{name}</a>" for name in "abc")
    parts = "".join(f"<h2 id='{name}'>{name}</h2><p>Of {name}.</p>" for name in "abc")
    html = f"<html><body><div>{links}</div><h1>Tea</h1>{parts}</body></html>"
    assert extract(html, URL).content.startswith("# Tea\n\n## a {#a}")


def test_all_that_is_said_of_a_term_stands_in_its_item() -> None:
    page = "<dl><dt>Parameters:</dt><dd>a</dd><dd>b</dd><dt>Since:</dt><dd>1.0</dd></dl>"
    assert markdown(page) == "-   **Parameters**: a\n\n    b\n\n-   **Since**: 1.0"


def test_parts_that_are_named_like_controls_stay_where_they_have_headings() -> None:
    part = "<div class='edit-page'>{}<p>Write it anew.</p></div>"
    assert "## Edit\n\nWrite it anew." in markdown(part.format("<h2>Edit</h2>"))
    assert "Write it anew." not in markdown(part.format(""))


def test_signs_of_icon_fonts_are_no_text() -> None:
    page = (
        "<p>Run <i class='fa'>\uf17c</i> this \uf17a:</p><label>\uf17c/\uf179</label><pre>x</pre>"
    )
    assert markdown(page) == "Run this :\n\n```\nx\n```"


def test_a_page_of_several_headings_is_called_what_its_head_says() -> None:
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


def test_admonitions_survive() -> None:
    note = '<div class="admonition note"><p class="admonition-title">Note</p><p>Mind.</p></div>'
    assert markdown(note) == "> **Note**\n>\n> Mind."


def test_links_and_images_become_absolute_and_harmless() -> None:
    assert markdown('<p><a href="../x y(1).html#p">t [1]</a></p>') == (
        "[t \\[1\\]](https://docs.example/x%20y%281%29.html#p)"
    )
    assert markdown('<p><a href="javascript:alert(1)">bad</a></p>') == "bad"
    assert markdown('<p><a href=" jAvA\nscript:alert(1)">bad</a></p>') == "bad"
    assert markdown('<p><a href="data:text/html,x">bad</a></p>') == "bad"
    assert markdown('<p><img src="i.png" alt="A plot"></p>') == (
        "![A plot](https://docs.example/guide/i.png)"
    )
    assert markdown('<p><img src="data:image/png;base64,AAAA" alt="A plot"></p>') == "A plot"
    assert markdown('<p><a href="/f"><code>f()</code></a></p>') == "[`f()`](https://docs.example/f)"
    assert safe_url("vbscript:x", URL) == ""
    assert safe_url('/"onmouseover="x', URL) == "https://docs.example/%22onmouseover=%22x"


def test_links_start_from_the_base() -> None:
    page = extract('<base href="/other/"><p><a href="x">x</a> and some more text</p>', URL)
    assert page.links == ("https://docs.example/other/x",)


def test_text_that_looks_like_markup_stays_text() -> None:
    assert (
        markdown("<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>")
        == "&lt;script>alert(1)&lt;/script>"
    )
    assert markdown("<p># not a heading</p>") == "\\# not a heading"
    assert markdown("<p>1. not a list<br>- nor this</p>") == "1\\. not a list  \n\\- nor this"
    assert markdown("<p>2*3*4 = 24, a < b, snake_case, _x_</p>") == (
        "2\\*3\\*4 = 24, a < b, snake_case, \\_x\\_"
    )
    assert markdown("<p>[x](javascript:alert(1))</p>") == "[x\\](javascript:alert(1))"
    assert markdown("<p>[x]<b></b>(javascript:alert(1))</p>").count("\\]") == 1
    assert markdown("<p>text {: onclick=x }</p>") == "text \\{: onclick=x }"
    assert markdown("<p>&amp;lt;b&amp;gt; &amp; c</p>") == "&amp;lt;b&amp;gt; & c"
    assert escape("C:\\dir \\* \\") == "C:\\dir \\\\\\* \\\\"


def test_a_hostile_page_comes_out_harmless() -> None:
    hostile = (
        "<script>alert(1)</script><style>x</style><iframe src=//evil></iframe><svg onload=x>s</svg>"
        '<p onclick="x">kept<img src=x onerror=alert(1) alt="&lt;img src=x onerror=1&gt;"></p>'
        "<h2>&lt;img src=x&gt;</h2><form action=//evil><input value=secret><textarea>t</textarea>"
        "<p>in a form</p></form><object data=x>o</object><math><mi>&lt;script&gt;</mi></math>"
        "<div style='display:none'>hidden</div><div hidden>hidden</div><noscript>n</noscript>"
        "<table><tr><td>&lt;script&gt;</td><td>|x|</td></tr><tr><td>a</td></tr></table>"
        "<pre>```\n&lt;script&gt;\n````</pre><code>` &lt;script&gt; ``</code>"
    )
    text = markdown(hostile)
    outside = re.sub(r"(`{3,})[^`].*?\n\1|(`+).*?\2", "", text, flags=re.DOTALL)
    assert not re.search(r"<[A-Za-z/!?]", outside), outside
    assert "kept" in text
    assert "in a form" in text
    for gone in ("alert(1)", "onload", "onerror=alert", "secret", "hidden", "evil"):
        assert gone not in text, gone


def test_code_spans_and_fences_hold_any_backticks() -> None:
    assert code_span("a `b` c") == "`` a `b` c ``"
    assert fence("```\nx\n````").startswith("`````\n")


def test_navigation_goes() -> None:
    boilerplate = (
        "<nav><a href=/x>Next</a></nav><div class='toc'><ul><li>On this page</li></ul></div>"
        "<div class='breadcrumbs'>Home » Guide</div><a class='headerlink' href='#x'>¶</a>"
        "<div role='navigation'>Previous</div><div class='contents topic'>Contents</div>"
    )
    assert markdown(boilerplate) == ""


def test_pages_without_content_say_so() -> None:
    assert extract("", URL).reason == "empty page"
    assert extract("   ", URL).reason == "empty page"
    assert extract("<html><body><script>x()</script></body></html>", URL).reason == "no text"
    deep = extract("<b>" * 50_000 + "text", URL)
    assert deep.reason or deep.content


def test_any_bytes_come_to_an_end() -> None:
    dice = random.Random(7)
    pieces = [
        "<table>",
        "<tr>",
        "<td rowspan=9>",
        "<pre>",
        "</pre>",
        "<dl>",
        "<dt id=x>",
        "<dd>",
        "<ul>",
        "<li>",
        "<h1>",
        "</",
        "<!--",
        "]]>",
        "&#x110000;",
        "&lt",
        "\x00",
        "`" * 9,
        "<a href='http://[::1'>",
        "<base href='http://['>",
        "<p>",
        "<code>",
        "\u202e",
        "text ",
    ]
    for _ in range(150):
        extract("".join(dice.choices(pieces, k=60)), URL)


def test_the_template_is_what_the_pages_of_a_site_share() -> None:
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
    other = extract(
        "<html><body><article><h1>Other</h1>" + text + "</article>", URL, template.regions
    )
    assert other.ballot
    assert "carries the content" in other.content


ARTICLE = """<html><head><title>Snow and dogs | The Paper</title></head><body>
<div class="teasers"><a href="/a">Cats in winter</a> <a href="/b">The new stadium</a></div>
<article><h1>Snow and dogs</h1>{text}<div class="box"><p><a href="/c">Read also: ten tips for the
garden</a></p></div>{text2}<ul><li>Take <a href="/boots">boots</a> with you when it is cold.</li>
<li>Dry the dog well after every walk in the snow.</li></ul>
<form><p>Your mail address for our letter</p><button>Go</button></form></article>
<div class="related"><h3>More from us</h3><p>Stadium opens on Sunday</p></div></body></html>"""


def test_articles_keep_what_trafilatura_kept_and_their_links_at_the_end() -> None:
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
    for gone in ("Stadium", "stadium", "mail address", "Cats in winter", "More from us"):
        assert gone not in page.content, gone


def test_sites_of_articles_teach_no_template() -> None:
    template = SiteTemplate()
    for _ in range(16):
        template.vote((), article=True)
    template.count()
    assert template.settled
    assert template.regions == ()


def fold(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.soak
def test_articles_lose_nothing_against_plain_trafilatura() -> None:
    folder = Path(__file__).parents[4] / "shared/eval/articles"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here")
    trafilatura = pytest.importorskip("trafilatura")
    expected = json.loads((folder / "expected.json").read_text("utf-8"))[:60]
    right: dict[str, Counter[str]] = {"kbkit": Counter(), "plain": Counter()}
    with tarfile.open(folder / "pages.tar.gz") as pages:
        for page in expected:
            html = decode(pages.extractfile(page["file"]).read(), "")
            plain = trafilatura.extract(html, output_format="markdown", include_comments=False)
            texts = {"kbkit": extract(html, page["url"]).content, "plain": plain or ""}
            for name, text in texts.items():
                found = fold(text)
                for kind in ("with", "without"):
                    held = sum(fold(segment) in found for segment in page[kind])
                    right[name][kind] += held
                    right[name]["of " + kind] += len(page[kind])
    score = {
        name: 2 * n["with"] / (n["with"] + n["without"] + n["of with"]) for name, n in right.items()
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
def test_a_page_without_a_body_is_read_from_where_its_head_ends(html: str) -> None:
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
def test_what_real_manuals_keep(package: str) -> None:
    folder = manual(package)
    pages = [path for path in sorted(folder.rglob("*.html")) if path.stat().st_size < 200_000]
    random.Random(3).shuffle(pages)
    pages = pages[:15]
    template = recurring([survey(path.read_text("utf-8", "replace")) for path in pages])
    fidelity = Fidelity()
    reader = SiteExtractor(processes=1)
    for path in pages:
        url = f"https://docs.example/{path.relative_to(folder).as_posix()}"
        reader.submit(path, url, path.read_bytes(), "")
    while reader.pending:
        if not reader.busy:
            reader.settle()
        reading = reader.poll(1)
        if reading and reading.final and reading.page.content:
            url = f"https://docs.example/{reading.key.relative_to(folder).as_posix()}"
            html = reading.key.read_text("utf-8", "replace")
            fidelity.add(html, reading.page.content, url=url, template=template)
    assert fidelity.wanted["code"] > 5
    for kind in KINDS:
        assert fidelity.kept[kind] >= 0.97 * fidelity.wanted[kind], (
            str(fidelity),
            fidelity.lost[kind][:5],
        )


def test_anchors_of_paragraphs_items_and_definitions_are_kept() -> None:
    text = markdown(
        "<p id='first'>It is a pan.</p>"
        "<ul><li id='one'>One item.</li><li><a name='two'></a>Two of them.</li>"
        "<li><p id='three'>Three.</p><p>More.</p></li><li id='deep'><ul><li>In it.</li></ul></li>"
        "</ul><dl><dt>--apple</dt><dd><p id='apple'>Stirs.</p></dd></dl>"
        "<table><tr><th>a</th><td><p id='cell'>b</p></td></tr></table>"
        "<p id='not one'>Bad.</p><p>Literal {#nothing}</p>"
    )
    assert "It is a pan. {#first}\n" in text
    assert "-   One item. {#one}\n" in text
    assert "-   Two of them. {#two}\n" in text
    assert "-   Three. {#three}\n\n    More.\n" in text
    assert "*   **--apple**: Stirs. {#apple}\n" in text
    assert text.count("{#") == 7  # none in the table, none for a list
    assert "Bad. {#not%20one}\n" in text
    assert "Literal \\{#nothing}" in text


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


def test_drawings_become_pictures_where_they_are_wanted():
    url = "https://x.example/trains"
    page = extract(DRAWN, url, drawings=True)
    (address,) = page.drawings
    assert f"![Diagram: engine, wagon]({address})" in page.content
    assert urlsplit(address).fragment == "drawing-1.svg"
    image = kept_image(page.drawings[address])
    assert image is not None
    kept = image.data.decode()
    assert 'viewBox="0 0 120 40"' in kept
    assert 'width="120" height="40"' in kept
    assert "linearGradient" in kept
    assert kept.count("<text") == 3
    assert not {"script", "javascript", "onload", "alert"} & set(re.findall(r"\w+", kept))
    unwanted = extract(DRAWN, url)
    assert not unwanted.drawings
    for word in ("engine", "wagon", "Diagram", "icon", "hidden"):
        assert word not in unwanted.content.replace("wagons", "")


def test_a_drawing_is_called_what_it_says_it_is():
    html = DRAWN.replace('class="d"', 'aria-label="A [train] of three"')
    assert (
        "![A \\[train\\] of three](" in extract(html, "https://x.example/", drawings=True).content
    )


def test_what_holds_the_content_is_no_title():
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
def test_each_panel_of_tabs_stands_below_its_label(kind: str, alone: bool) -> None:
    text = "<p>This is how to install it on the systems that many people use.</p>"
    html = f'<body><main id="main"><h1 id="x">Install</h1>{text}{SETS[kind]}{text}</main></body>'
    content = extract(html, "https://h/x", alone=alone).content
    assert "\n\n**Debian**\n\napt\n\n**Fedora**\n\ndnf\n\n" in content


@pytest.mark.parametrize("kind", SETS)
def test_panels_of_tabs_in_an_article_keep_their_labels(kind: str) -> None:
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


def test_radio_buttons_of_a_form_are_no_tabs() -> None:
    form = "".join(f'<input type="radio" id="{n}"><label for="{n}">{n}</label>' for n in "ab")
    html = (
        f"<body><main><h1>Ask</h1><p>Choose one of these answers, please.</p>{form}</main></body>"
    )
    assert "**" not in extract(html, "https://h/x", alone=False).content


def test_a_name_alone_in_a_cell_does_not_break_the_table() -> None:
    rows = "".join(
        f'<tr><td><dl class="c macro"><dt id="c.{name}"><span>{name}</span></dt><dd></dd></dl></td>'
        "<td><p>yes</p></td></tr>"
        for name in ("NDIM", "SIMPLE")
    )
    table = f"<table><thead><tr><th>Request</th><th>shape</th></tr></thead>{rows}</table>"
    html = (
        f"<body><main><h1>Flags</h1><p>These are the flags of a request.</p>{table}</main></body>"
    )
    content = extract(html, "https://h/x", alone=False).content
    assert "| Request | shape |\n| --- | --- |\n| `NDIM` | yes |\n| `SIMPLE` | yes |" in content


def mi(name: str) -> str:
    return f"<mi>{name}</mi>"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<ruby>東京<rt>とうきょう</rt></ruby>", "東京(とうきょう)"),
        ("<ruby>東京<rp>(</rp><rt>とうきょう</rt><rp>)</rp></ruby>", "東京(とうきょう)"),
        (
            f"<math><mfrac>{mi('a')}<mrow>{mi('b')}{mi('c')}</mrow></mfrac></math>",
            r"$\frac{a}{bc}$",
        ),
        (f"<math><msubsup>{mi('x')}{mi('i')}{mi('n')}</msubsup></math>", "${x}_{i}^{n}$"),
        (f"<math><mroot>{mi('x')}<mn>3</mn></mroot></math>", r"$\sqrt[3]{x}$"),
        (f"<math><msqrt>{mi('x')}<mo>%</mo></msqrt></math>", r"$\sqrt{x\%}$"),
        (f"<math>{mi('x')}<mo>+</mo>{mi('y')}</math>", "x+y"),
        (
            f"<math><msup>{mi('x')}<mtext>the <b>end</b> of</mtext></msup></math>",
            r"${x}^{\text{the end of}}$",
        ),
    ],
)
def test_readings_and_formulas_are_told_from_what_they_stand_on(html: str, text: str) -> None:
    words = "<p>These words are enough to be read.</p>"
    page = f"<body><main><h1>Head</h1>{words}<p>Is {html}.</p></main></body>"
    assert f"\n\nIs {text}.\n" in extract(page, "https://h/x", alone=False).content


def test_formulas_made_of_mathml_are_drawn_again() -> None:
    from kbkit.text.markdown.rendering import render

    sum_ = "<munderover><mo>∑</mo><mi>i</mi><mo>∞</mo></munderover>"
    html = f"<math>{sum_}<msup><mi>α</mi><mrow><mo>−</mo><mn>2</mn></mrow></msup></math>"
    page = f"<body><main><h1>Head</h1><p>These words are enough.</p><p>Is {html}.</p></main></body>"
    content = extract(page, "https://h/x", alone=False).content
    assert r"${\sum }_{i}^{\infty }{\alpha }^{-2}$" in content
    assert "<msubsup>" in render(content, lambda _: None).html
