"""Markup as generators of documentation write it, in small: what of it the Markdown keeps."""

from __future__ import annotations

import pytest

from kbkit.sources.html.extract import extract

URL = "https://docs.example/guide/page.html"
PROSE = "<p>" + "Some prose stands around what is looked at, as in a manual. " * 3 + "</p>"


def markdown(body: str) -> str:
    """The Markdown of what stands between two paragraphs of a manual's page."""
    main = f"<main><h1>T</h1>{PROSE}{body}{PROSE}</main>"
    page = f"<html><head><title>T</title></head><body>{main}</body>"
    content = extract(page, URL, alone=False).content
    prose = PROSE.removeprefix("<p>").removesuffix("</p>").strip()
    start, between, end = content.split(prose)
    assert (start, end) == ("# T\n\n", "\n")
    return between.strip()


LINES = ("int main() {", "    return 0;", "", "}")
CODE = "\n".join(LINES)


def test_code_whose_lines_are_elements() -> None:
    lines = "".join(f'<div class="line">{line}</div>\n' for line in LINES)
    pop_up = '<div class="pop" id="a1"><div>int main()</div></div>'
    assert markdown(f'<div class="fragment">{lines}{pop_up}</div><!-- fragment -->') == (
        f"```\n{CODE}\n```"
    )
    numbered = "".join(
        f'<div class="line"><a id="l{n}"></a><span class="lineno"> {n}</span>&#160;{line}</div>'
        for n, line in enumerate(LINES, 1)
    )
    assert markdown(f'<div class="fragment">{numbered}</div>') == f"```\n{CODE}\n```"
    editor = "".join(f'<div class="view-line"><span>{line}</span></div>' for line in LINES)
    assert markdown(f'<div class="code-editor language-cpp">{editor}</div>') == (
        f"```cpp\n{CODE}\n```"
    )


def test_verses_whose_lines_are_elements_are_no_code() -> None:
    verses = '<div class="line-block"><div class="line">One</div><div class="line">Two</div></div>'
    assert markdown(verses) == "One\n\nTwo"
    assert markdown(f'<div class="highlights">{verses}</div>') == "One\n\nTwo"


def test_code_in_a_table_of_numbered_lines() -> None:
    rows = "".join(
        f'<tr><td>{n}</td><td class="code">{line}</td></tr>' for n, line in enumerate(LINES, 7)
    )
    assert markdown(f'<table class="source">{rows}</table>') == f"```\n{CODE}\n```"
    years = "".join(f"<tr><td>{n}</td><td>Event {n}</td></tr>" for n in (1, 2))
    assert markdown(f"<table>{years}</table>").endswith("| 1 | Event 1 |\n| 2 | Event 2 |")


def test_code_whose_lines_are_broken() -> None:
    assert markdown("<p><code>make<br>make install</code></p>") == "```\nmake\nmake install\n```"
    folded = "<p><code>\n  if <i>x</i>:<br />\n  &nbsp; y\n</code></p>"
    assert markdown(folded) == "```\nif x:\n\xa0 y\n```"
    assert markdown("<p>Say <code>a<br>b</code></p>") == "Say\n\n```\na\nb\n```"


def test_what_pops_up_over_code_is_no_part_of_it() -> None:
    tip = '<span class="code-tooltip">This runs</span>'
    assert markdown(f"<pre><code>{tip}run()</code></pre>") == "```\nrun()\n```"
    assert markdown(f'<div class="highlight"><pre>{tip}run()</pre></div>') == "```\nrun()\n```"


@pytest.mark.parametrize(
    ("block", "name"),
    [
        ('<pre class="play"><code class="language-rust ed">{}</code></pre>', "rust"),
        ('<pre class="brush: java; toolbar: false">{}</pre>', "java"),
        ('<pre class="example source-c">{}</pre>', "c"),
        ('<div class="src-block"><pre class="src src-python">{}</pre></div>', "python"),
        ('<pre><code data-lang="toml">{}</code></pre>', "toml"),
        ('<pre class="rust rust-example-rendered"><code>{}</code></pre>', "rust"),
        ('<pre class="programlisting sql">{}</pre>', "sql"),
        ('<pre class="screen">{}</pre>', ""),
    ],
)
def test_the_language_is_found_in_any_class_on_the_way(block: str, name: str) -> None:
    assert markdown(block.format("x = 1")) == f"```{name}\nx = 1\n```"


def test_blocks_inside_a_summary_are_blocks() -> None:
    method = (
        '<details open><summary><section id="method.len"><h4 class="code-header">fn <a href='
        '"#method.len">'
        "len</a>(&amp;self) -> usize</h4></section></summary>"
        "<div><p>Number of parts.</p><pre>v.len()</pre></div></details>"
    )
    assert markdown(method) == (
        "#### fn len(&self) -> usize {#method.len}\n\nNumber of parts.\n\n```\nv.len()\n```"
    )
    described = "<details><summary><p>What it is.</p><pre>f()</pre></summary><p>More.</p></details>"
    assert markdown(described) == "What it is.\n\n```\nf()\n```\n\nMore."
    assert markdown("<details><summary>Title</summary><p>More.</p></details>") == (
        "**Title**\n\nMore."
    )


@pytest.mark.parametrize(
    "note",
    [
        '<div class="note"><table><tr><td rowspan="2"><img src="n.png" alt="[Note]"></td>'
        "<th>Note</th></tr><tr><td><p>Mind the gap.</p></td></tr></table></div>",
        '<div class="note"><h3>Note</h3><p>Mind the gap.</p></div>',
        '<div class="note"><p><strong>Note:</strong></p><p>Mind the gap.</p></div>',
        '<dl class="note"><dt>Note</dt><dd>Mind the gap.</dd></dl>',
        '<aside class="note"><b>Note</b><p>Mind the gap.</p></aside>',
    ],
)
def test_admonitions_are_known_by_their_class_and_what_stands_first_in_them(note: str) -> None:
    said = (
        markdown(note)
        .replace(":**", "**")
        .replace("### Note", "**Note**")
        .replace("![[Note]](https://docs.example", "")
    )
    assert said.startswith("> **Note**"), said
    assert said.endswith("> Mind the gap.")


def test_a_cell_that_spans_others_is_written_once() -> None:
    table = (
        '<table><tr><th colspan="2">Size</th><th>Use</th></tr>'
        '<tr><td rowspan="2">big</td><td>1</td>'
        "<td>a</td></tr><tr><td>2</td><td>b</td></tr></table>"
    )
    assert markdown(table) == (
        "| Size |  | Use |\n| --- | --- | --- |\n| big | 1 | a |\n|  | 2 | b |"
    )


def test_a_table_is_cut_where_a_cell_does_not_fit() -> None:
    table = (
        "<table><tr><th>Option</th><th>Meaning</th></tr><tr><td>-a</td><td>All.</td></tr>"
        "<tr><td>-b</td><td>Some: <pre>x\n  y</pre></td></tr><tr><td>-c</td><td>None.</td></tr>"
        "<tr><td>-d</td><td>Any.</td></tr></table>"
    )
    assert markdown(table) == (
        "| Option | Meaning |\n| --- | --- |\n| -a | All. |\n| -b | Some: |\n\n```\nx\n  y\n```\n\n"
        "|  |  |\n| --- | --- |\n| -c | None. |\n| -d | Any. |"
    )


def test_the_links_of_a_signature_are_kept() -> None:
    code = '<p><code>val map : <a href="/a#t">t</a> -> (<a href="/b">int</a> -> u)</code></p>'
    assert markdown(code) == (
        "`val map :` [`t`](https://docs.example/a#t) `-> (`[`int`](https://docs.example/b) `-> u)`"
    )
    assert markdown('<p><code><a href="/a">whole</a></code></p>') == (
        "[`whole`](https://docs.example/a)"
    )


def test_headings_across_a_table_part_it() -> None:
    rows = "<tr><td>int</td><td>speed</td></tr>"
    table = (
        '<table><tr class="heading"><td colspan="2"><h2 id="kinds">Kinds</h2></td></tr>'
        f'{rows}{rows}<tr><td colspan="2"><h2>Functions</h2></td></tr>{rows}</table>'
    )
    assert markdown(table) == (
        "## Kinds {#kinds}\n\n|  |  |\n| --- | --- |\n| int | speed |\n| int | speed |\n\n"
        "## Functions\n\n|  |  |\n| --- | --- |\n| int | speed |"
    )
    page = (
        '<table><tr><td><a href="/">Up</a></td><td><h2 id="a">A</h2><p>Text.</p></td></tr></table>'
    )
    assert markdown(page) == "[Up](https://docs.example/)\n\n## A {#a}\n\nText."


def test_a_link_to_the_source_does_not_part_a_heading_from_its_section() -> None:
    method = '<section id="m.len"><span><a href="/src">source</a></span><h4>fn len()</h4></section>'
    assert markdown(method).endswith("#### fn len() {#m.len}")


def test_what_pops_up_over_a_heading_is_no_part_of_it() -> None:
    note = '<div class="traits-tooltip"><h3>Notable</h3><code>impl Read</code></div>'
    assert markdown(f'<h4 id="m">fn bytes(){note}</h4>') == "#### fn bytes() {#m}"


def test_the_links_of_terms_that_nothing_leads_to_are_kept() -> None:
    terms = '<dl><dt><a href="/rfc">RFC 1</a> (<em>old</em>)</dt><dd>A rule.</dd></dl>'
    assert markdown(terms) == "-   **[RFC 1](https://docs.example/rfc) (old)**: A rule."


def test_code_in_the_list_of_a_cell_stays_code() -> None:
    cell = "<ul><li>Write: <pre>x\ny</pre></li></ul>"
    table = f"<table><tr><th>a</th><th>b</th></tr><tr><td>time</td><td>{cell}</td></tr></table>"
    assert markdown(table) == (
        "| a | b |\n| --- | --- |\n| time |  |\n\n-   Write:\n\n    ```\n    x\n    y\n    ```"
    )


def test_the_links_of_a_caption_are_kept() -> None:
    table = (
        '<table><caption>Uses of <a href="/p">p</a></caption><tr><td>a</td><td>b</td></tr></table>'
    )
    assert markdown(table).startswith("**Uses of [p](https://docs.example/p)**\n\n|  |  |\n")


def test_anchors_are_written_as_addresses_write_them() -> None:
    maker = '<h3 id="&lt;init&gt;(int)">Pot</h3><p>Makes one.</p>'
    assert markdown(maker) == "### Pot {#%3Cinit%3E(int)}\n\nMakes one."


def test_the_label_of_code_is_its_language_and_no_text() -> None:
    code = '<div class="language-js"><span class="lang">{}</span><pre><code>x()</code></pre></div>'
    assert markdown(code.format("js")) == "```js\nx()\n```"
    assert markdown(code.format("Then")) == "Then\n\n```js\nx()\n```"


def test_a_table_of_one_column_is_a_list_unless_it_has_a_head() -> None:
    rows = "<tr><td>It may be null.</td></tr><tr><td>It is yours.</td></tr>"
    assert markdown(f"<table>{rows}</table>") == "It may be null.\n\nIt is yours."
    assert markdown(f"<table><tr><th>Notes</th></tr>{rows}</table>").startswith("| Notes |")


def test_the_number_of_a_note_is_no_footnote_of_markdown() -> None:
    note = '<p>So<a href="#n6"><sup>6</sup></a>.</p>'
    assert markdown(note) == r"So[\^6](https://docs.example/guide/page.html#n6)."


def test_parts_of_a_name_that_a_style_sheet_parts_are_parted() -> None:
    name = '<h2><a href="/g">Lib</a><span class="sep"></span>Pot<span></span>s</h2>'
    assert markdown(name) == "## [Lib](https://docs.example/g) Pots"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (
            '<h2 id="use"><a class="header-anchor" href="#use"><span>Use</span></a></h2>',
            "## Use {#use}",
        ),
        ('<h2><a class="permalink" href="#use">Use</a></h2>', "## Use {#use}"),
        (
            '<h2 id="use">Use <a class="header-anchor" href="#use">Direct link</a></h2>',
            "## Use {#use}",
        ),
        (
            '<p>It fails with <a class="permalink" href="#E"><i id="E">E</i></a> then.</p>',
            "It fails with *E* then.",
        ),
        (
            '<dl><dt id="b"><a class="permalink" href="#b"><tt>-b</tt></a></dt><dd>A</dd></dl>',
            "## `-b` {#b}\n\nA",
        ),
    ],
)
def test_links_to_themselves_that_are_the_text_stay_as_text(html: str, text: str) -> None:
    assert markdown(html) == text


def test_lines_of_code_that_are_empty_blocks() -> None:
    lines = ("<i>a</i> = 1", "\n", "\n", "b = 2")
    html = "".join(f'<div class="row"><div class="code">{line}</div></div>' for line in lines)
    assert markdown(f"<pre><code>{html}</code></pre>") == "```\na = 1\n\n\nb = 2\n```"


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("<tr><td>&nbsp;</td><td><pre>a | b</pre></td></tr>", "```\na | b\n```"),
        (
            "<tr><td colspan=2>Raises</td></tr><tr><td colspan=2><ul><li>It</li></ul></td></tr>",
            "Raises\n\n-   It",
        ),
        ("<tr><th>a</th><td></td></tr>", "| a |  |\n| --- | --- |"),
        ("<tr><td>a</td><td></td></tr><tr><td>b</td><td>c</td></tr>", None),
        ("<tr><td>a</td><td><img src='/p.png' alt=''></td></tr>", None),
    ],
)
def test_a_table_whose_rows_show_one_cell_is_none(table: str, text: str | None) -> None:
    found = markdown(f"<table>{table}</table>")
    assert found == text if text else "\n| a |" in found


def test_the_first_row_names_columns_only_where_it_says_so() -> None:
    row = "<tr><td>a</td><td>b</td></tr>"
    named = "<tr><th>x</th><th>y</th></tr>"
    bold = "<tr><td><b>x</b></td><td><strong>y</strong></td></tr>"
    body = "\n| --- | --- |\n| a | b |"
    assert markdown(f"<table>{named}{row}</table>") == f"| x | y |{body}"
    assert markdown(f"<table>{bold}{row}</table>") == f"| **x** | **y** |{body}"
    head = "<thead><tr><td>x</td><td>y</td></tr></thead>"
    assert markdown(f"<table>{head}{row}</table>") == f"| x | y |{body}"
    sides = "<tr><th>Size</th><td>b</td></tr><tr><th>Color</th><td>c</td></tr>"
    assert markdown(f"<table>{sides}</table>") == (
        "|  |  |\n| --- | --- |\n| Size | b |\n| Color | c |"
    )
    ruled = f"<table>{named}<tr><td colspan=2><hr></td></tr>{row}</table>"
    assert "---\n" not in markdown(ruled).replace("| --- | --- |\n", "")


def test_a_list_in_columns_is_a_list() -> None:
    columns = "<td><ul><li>a</li><li>b</li></ul></td><td><ul><li>c</li></ul></td>"
    assert markdown(f"<table><tr>{columns}</tr></table>") == "-   a\n-   b\n\n-   c"


def test_a_list_of_terms_in_an_item_in_a_cell_has_one_bullet() -> None:
    items = "<ul><li><dl><dt>hot</dt><dd>if it boils</dd></dl></li><li>cold</li></ul>"
    assert "| b | • **hot**: if it boils • cold |" in markdown(
        f"<table><tr><th>a</th><th>Raises</th></tr><tr><td>b</td><td>{items}</td></tr></table>"
    )


def test_a_block_with_a_link_to_itself_names_what_follows_it() -> None:
    link = '<a class="headerLink" href="#boil">¶</a>'
    name = f'<div class="name"><i>def</i> boil(cups=[]){link}</div>'
    body = '<div class="body"><p>Boils.</p></div>'
    place = '<a name="kettle.boil"> </a>'
    assert markdown(f"<h2>Kettle</h2><div>{place}{name}{body}</div><h3>More</h3>") == (
        "## Kettle\n\n### `def boil(cups=[])` {#boil}\n\nBoils.\n\n### More"
    )
    caption = f'<div class="code-caption">kettle.py{link}</div>'
    assert markdown(f"<div>{caption}{body}</div>") == "kettle.py\n\nBoils."
    assert markdown(f"<div><p>First.</p>{name}{body}</div>").startswith("First.\n\n*def* boil")


def test_a_list_of_the_parts_of_a_page_is_whole_where_they_lead_to_each_other() -> None:
    parts = ("One", "Two", "Three")
    steps = "".join(
        f"<div><p>Next: <a href='#{after}' rel='next'>{after}</a>, "
        f"Up: <a href='#Top' rel='up'>Top</a></p></div><h2 id='{part}'>{part}</h2><p>Text.</p>"
        for part, after in zip(parts, (*parts[1:], parts[0]), strict=True)
    )
    one, two, three = (f"<a href='#{part}'>{part}</a>" for part in parts)
    contents = f"<ul><li>{one}<ul><li>{two}</li><li>{three}</li></ul></li></ul>"
    found = markdown(f"{contents}{steps}")
    assert [found.count(f"[{part}](") for part in parts] == [1, 1, 1]
    assert "Next:" not in found


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<b>void pour(CUP *</b><i>cup</i><b>);</b>", "void pour(CUP \\**cup*);"),
        ("<b>pour</b> <i>cup</i> and <b>sip</b>", "**pour** *cup* and **sip**"),
        ("<b>pour</b>, <i>cup</i>", "**pour**, *cup*"),
    ],
)
def test_emphasis_that_touches_other_emphasis_has_no_marks(html: str, text: str) -> None:
    assert markdown(f"<p>{html}</p>") == text


@pytest.mark.parametrize("page", ["", "page.html"])
def test_contents_of_a_page_before_its_first_heading_are_none_of_its_text(page: str) -> None:
    parts = ("One", "Two", "Three")
    links = "".join(f"<li><a href='{page}#{part}'>{part}</a></li>" for part in parts)
    text = "".join(f"<h2 id='{part}'>{part}</h2><p>Text.</p>" for part in parts)
    html = f"<title>T</title><body><main><ul>{links}</ul><h1>T</h1>{PROSE}{text}</main></body>"
    assert extract(html, URL, alone=False).content.startswith("# T\n\nSome prose")
    other = html.replace(f"{page}#Two", "other.html#Five")
    assert "other.html#Five" in extract(other, URL, alone=False).content


def test_methods_that_a_block_names_are_headings() -> None:
    method = (
        '<h3>Methods</h3><div id="m-boil" class="method-detail"><div class="method-header"><div '
        'class="method-heading"><span>boil</span><span>(water, minutes = 3)</span></div></div>'
        '<div class="method-description"><p>Boils.</p></div></div>'
    )
    assert markdown(method) == ("### Methods\n\n#### boil(water, minutes = 3) {#m-boil}\n\nBoils.")
    card = '<div id="card"><div class="card-heading">Tea</div></div><p>Text.</p>'
    assert markdown(card) == "Tea\n\nText."
    defined = (
        '<h2>Pots</h2><div class="top"><p class="src"><a id="v:boil" class="def">boil</a> :: '
        '<a href="pot.html">Pot</a> -&gt; Tea</p><div class="doc"><p>Boils.</p></div></div>'
    )
    assert markdown(defined) == (
        "## Pots\n\n### `boil ::` [`Pot`](https://docs.example/guide/pot.html) `-> Tea` {#v:boil}"
        "\n\nBoils."
    )


def test_code_that_says_that_its_lines_are_numbered_is_kept() -> None:
    code = '<pre class="line-number"><code class="prettyprint linenums">x = 1\ny</code></pre>'
    assert markdown(code) == "```\nx = 1\ny\n```"
    numbered = '<div class="code"><pre class="lineno">1\n2</pre><pre>x = 1\ny</pre></div>'
    assert markdown(numbered) == "```\nx = 1\ny\n```"


def test_footnotes_stand_behind_their_sign() -> None:
    note = (
        '<aside class="footnote brackets" id="id5" role="doc-footnote"><span class="label"><span>['
        '</span><a role="doc-backlink" href="#id1">1</a><span>]</span></span><p>A note.</p></aside>'
    )
    back = "[1](https://docs.example/guide/page.html#id1)"
    assert markdown(note) == f"[{back}] A note. {{#id5}}"


def test_a_picture_that_leads_to_itself_is_a_picture() -> None:
    picture = '<p><a href="/big.png"><img alt="A pot" src="/small.png"></a></p>'
    assert markdown(picture) == "![A pot](https://docs.example/small.png)"
    linked = '<p><a href="/pots"><img alt="A pot" src="/small.png"></a></p>'
    assert markdown(linked) == "[A pot](https://docs.example/pots)"


def test_the_way_back_of_a_link_is_no_anchor() -> None:
    items = '<li><a id="toc-1" href="/pots">Pots</a></li><li><a id="cups">Cups</a> hold tea.</li>'
    assert (
        markdown(f"<ul>{items}</ul>")
        == "-   [Pots](https://docs.example/pots)\n-   Cups hold tea. {#cups}"
    )


def test_rows_that_unfold_are_kept() -> None:
    rows = (
        '<tr><td><span onclick="toggle()">+</span>Pots</td><td>All</td></tr>'
        '<tr style="display:none;"><td>Kettle</td><td>Boils</td></tr>'
    )
    assert "| Kettle | Boils |" in markdown(f"<table>{rows}</table>")
    assert "Kettle" not in markdown(f"<table>{rows.replace('onclick', 'title')}</table>")


TEXT = "It takes a while until the water boils, and a while longer until the tea is ready. "
ITEMS = "".join(f"<li><a href='#{one}'>{one.upper()}</a></li>" for one in "abc")


@pytest.mark.parametrize(
    "boilerplate",
    [
        "<div class='top'><a href='#head'><img alt='top' src='/up.gif'></a></div>",
        "<div class='up'><a href='/'><img alt='<-' src='/left.gif'></a></div>",
        f"<h2>Table of Contents</h2><div><ul>{ITEMS}</ul></div>",
        "<div class='search-results'><h1 class='title'>3 results matching</h1><ul></ul></div>",
        "<div class='onlyprint'><h1>Kettle</h1></div>",
        "<p><a href='/'><img alt='Kettle logo' src='/logo.png'></a></p>",
        "<p><a href='javascript:void(0)'>[-]</a></p>",
        "<details open><summary><span>Expand description</span></summary></details>",
    ],
)
def test_boilerplate_amid_the_content_goes(boilerplate: str) -> None:
    parts = "".join(f"<h3 id='{one}'>Part {one}</h3><p>{TEXT}</p>" for one in "abc")
    html = "<main><h1>Kettle</h1><p>{}</p>{}{}</main>"
    with_it = extract(html.format(TEXT, boilerplate, parts), "https://docs.example/x", alone=False)
    without = extract(html.format(TEXT, "", parts), "https://docs.example/x", alone=False)
    assert with_it.content == without.content


def test_the_icon_of_a_note_says_nothing_that_its_title_does_not() -> None:
    note = (
        '<div class="note"><table><tr><td rowspan="2"><img alt="[Note]" src="/n.png"></td><th>Note'
        "</th></tr><tr><td><p>It is hot.</p></td></tr></table></div>"
    )
    assert markdown(note) == "> **Note**\n>\n> It is hot."


def test_a_link_to_the_source_ends_no_heading() -> None:
    heading = '<h3 id="boil">boil() <span><a href="kettle.js.html#line7">source</a></span></h3>'
    assert markdown(heading) == "### boil() {#boil}"


def test_contents_before_the_first_heading_go_with_what_names_them() -> None:
    parts = "".join(f"<h2 id='{one}'>Part {one}</h2><p>{TEXT}</p>" for one in "abc")
    label = f"<a id='below'><strong>Subsections</strong></a><ul>{ITEMS}</ul>"
    html = f"<main>{label}<h1>Kettle</h1><p>{TEXT}</p>{parts}</main>"
    assert extract(html, URL, alone=False).content.startswith("# Kettle")


def test_sections_that_are_laid_out_as_a_list_are_sections() -> None:
    sections = (
        '<ul class="blockList"><li><h3>Methods</h3><ul><li><h4 id="boil">boil</h4><p>Boils.</p>'
        "<ul><li>It</li></ul></li></ul></li></ul>"
    )
    assert markdown(sections) == "### Methods\n\n#### boil {#boil}\n\nBoils.\n\n-   It"
    detail = '<ul><li><a id="m(int)"></a><ul><li><h4>m</h4><p>Boils.</p></li></ul></li></ul>'
    assert markdown(detail) == "#### m {#m(int)}\n\nBoils."
    assert markdown("<ul><li><hr><p>Boils.</p></li></ul>") == "---\n\nBoils."
    steps = "<ol><li><h3>Fill</h3><p>With water.</p></li></ol>"
    assert "### Fill" in markdown(steps)
    assert markdown(steps).startswith("1.")


def test_members_stand_below_what_they_are_members_of() -> None:
    member = '<div id="{0}"><div>{0}()</div><a class="headerlink" href="#{0}"></a>{1}</div>'
    doc = "<div><h6>Arguments</h6><p>None.</p></div>"
    pot = member.format(
        "Pot", doc + member.format("Pot.boil", doc) + member.format("Pot.pour", doc)
    )
    found = markdown(f"<section><h2>Classes</h2>{pot}{member.format('Cup', doc)}</section>")
    headings = [line for line in found.split("\n") if line.startswith("#") and "(" in line]
    assert headings == [
        "### Pot() {#Pot}",
        "#### Pot.boil() {#Pot.boil}",
        "#### Pot.pour() {#Pot.pour}",
        "### Cup() {#Cup}",
    ]


def test_rules_and_trails_around_what_a_page_says_go() -> None:
    html = f"<body><ul><li>Pot</li></ul><hr><h1>Class Pot</h1><hr><p>{TEXT}</p><hr></body>"
    content = extract(html, URL, alone=False).content
    assert content == f"# Class Pot\n\n---\n\n{TEXT.strip()}\n"


def test_a_cell_of_no_height_spans_the_rows_that_are_left() -> None:
    table = (
        '<table><tr><th>Size</th><th>Use</th></tr><tr><td rowspan="0">big</td><td>a</td></tr>'
        "<tr><td>b</td></tr><tr><td>c</td></tr></table>"
    )
    assert markdown(table) == "| Size | Use |\n| --- | --- |\n| big | a |\n|  | b |\n|  | c |"


def test_a_bold_word_that_a_sentence_begins_with_is_no_title() -> None:
    note = '<div class="note"><p><strong>Never</strong> mix the two.</p></div>'
    assert "**Never** mix the two." in markdown(note)
