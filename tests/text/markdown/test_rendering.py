"""Rendering of Markdown to harmless HTML."""

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.text.markdown.rendering import render
from kbkit.text.markdown.sanitizing import prepare


def html(markdown: str) -> str:
    return render(markdown, {"in.md": "in.html"}.get).html


@pytest.mark.parametrize(
    "markdown",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<iframe src='https://evil.example'></iframe>",
        "[x](javascript:alert(1))",
        "[x](data:text/html,<script>)",
        "![x](https://evil.example/pixel.png)",
        "![x](javascript:alert(1))",
        "[![x](https://evil.example/pixel.png)](https://evil.example)",
        "text {: onclick=alert(1) }",
        "## x {: onmouseover=alert(1) }",
        '## x {#"onmouseover="alert(1)}',
        '[x](https://h "\\" onmouseover=\\"alert(1)")',
        '```x" onclick="alert(1)\n</code></pre><script>alert(1)</script>\n```',
        "```mermaid\ngraph TD\n```",
        '| a |\n|:-:|\n| <b onclick="x"> |',
        "<style>*{display:none}</style>",
        '<form action="https://evil.example"><input></form>',
    ],
)
def test_active_content_is_removed(markdown):
    out = html(markdown)
    tags = re.findall(r"<([a-z0-9]+)((?:\s[^<>]*)?)>", out)
    assert not {name for name, _ in tags} & {"script", "img", "iframe", "style", "form", "input"}
    assert not any(re.search(r"\son\w+\s*=", re.sub(r'"[^"]*"', "", rest)) for _, rest in tags)
    assert not re.search(r'href="(?!https://|#)', out)
    assert 'class="mermaid' not in out


@given(st.text(alphabet="`<>[](){}#\n -|~=*_\\:!abon.1'\"&;/", max_size=100))
def test_html_has_known_tags_only(markdown):
    blocks = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "hr"}
    tables = {"table", "thead", "tbody", "tr", "th", "td"}
    others = {"code", "em", "strong", "s", "br", "a", "div", "span", "nav"}
    tags = set(re.findall(r"</?([a-zA-Z0-9]+)", html(markdown)))
    assert tags <= blocks | tables | others


@pytest.mark.parametrize(
    "bomb",
    [
        "[" * 50_000,
        "](" * 25_000,
        "# x" + " " * 50_000 + "{#a",
        "# " + "[](a" * 12_500,
        "".join("`" * n + " " for n in range(300)),
        ">" * 50_000,
        "![[" * 16_000,
        "**a" * 16_000,
    ],
    ids=lambda bomb: bomb[:4],
)
@pytest.mark.timeout(20)
def test_hostile_text_is_rendered_in_time(bomb):
    html(prepare(bomb, title="t", rewrite=str).text)


def test_links_to_pages_are_resolved_and_external_ones_marked():
    assert 'href="in.html"' in html("[a](in.md)")
    assert "<a href" not in html("[a](unknown.md)").replace('<a href="#', "")
    assert 'rel="noopener nofollow"' in html("[a](https://example.org)")


def test_images_become_links():
    out = html("![A diagram](https://example.org/a.png)")
    assert '<a href="https://example.org/a.png" rel="noopener nofollow">A diagram</a>' in out


def test_anchors_of_headings_are_kept():
    rendered = render("# One {#a.b}\n\n## `Two` {#two}\n\n## Two\n\n## Two", lambda _: None)
    assert re.findall(r'<h\d id="([^"]+)"', rendered.html) == ["a.b", "two", "two_1", "two_2"]
    assert rendered.anchors == {"a.b", "two", "two_1", "two_2"}
    assert [entry["name"] for entry in rendered.toc[0]["children"]] == ["Two"] * 3


@pytest.mark.parametrize("anchor", ["__config", "__search", "__drawer", "__toc"])
def test_anchor_cannot_be_an_id_of_the_theme(anchor):
    assert anchor not in render(f"# x {{#{anchor}}}", lambda _: None).anchors


def test_names_of_methods_are_kept_as_anchors():
    assert render("# x {#__init__}", lambda _: None).anchors == {"__init__"}


def test_code_is_highlighted_in_html_and_plain_for_search():
    rendered = render("```python\nfor x in '</code>': pass\n```", lambda _: None)
    assert '<span class="k">for</span>' in rendered.html
    assert "<span class" not in rendered.plain
    assert 'class="language-python highlight"' in rendered.html
    text = unescape(re.sub(r"<[^>]+>", "", rendered.html))
    assert text.strip() == "for x in '</code>': pass"


def test_code_blocks_keep_their_order():
    markdown = "```python\none = 1\n```\n\n    indented = 2\n\n```unknown-language\nthree\n```\n"
    text = re.sub(r"<[^>]+>", "", html(markdown))
    assert re.findall(r"one = 1|indented = 2|three", text) == ["one = 1", "indented = 2", "three"]


def test_nested_lists_tables_and_strikethrough_are_rendered():
    out = html(
        "1. one\n   - nested\n\n     ```\n     code\n     ```\n2. two\n\n"
        "| a | b |\n|--:|---|\n| 1 | ~~x~~ |\n"
    )
    assert out.index("<ol>") < out.index("<ul>") < out.index("<pre>") < out.index("two")
    assert '<th style="text-align:right">a</th>' in out
    assert "<s>x</s>" in out


def test_source_of_a_page_is_excluded_from_search():
    rendered = render("# T\n\nsource\n\ntext", lambda _: None, document=True)
    assert 'data-search-exclude="1">source' in rendered.plain
    assert "<p>text</p>" in rendered.plain


def test_lists_of_terms_become_definition_lists_with_anchors():
    text = """# T

meta

## commit

-   **--no-commit**, **-n**: Perform the merge.

    Second paragraph

    -   **inner** x
-   **`code`**: See

text

* plain
* **a**: b

text

- **commit**:
- **__config**: <b onclick=alert(1)>
"""
    rendered = render(text, lambda _: None, document=True)
    page = re.sub(r'<a class="headerlink" href="#([^"]+)"[^>]*>¶</a>', r"¶\1", rendered.html)
    first = page.split("</h2>\n")[1].split("<p>text")[0]
    assert first == (
        '<dl>\n<dt id="-no-commit-n">--no-commit, -n¶-no-commit-n</dt>\n<dd>\n'
        "<p>Perform the merge.</p>\n<p>Second paragraph</p>\n<ul>\n"
        "<li><strong>inner</strong> x</li>\n</ul>\n</dd>\n"
        '<dt id="code"><code>code</code>¶code</dt>\n<dd>\n<p>See</p>\n</dd>\n</dl>\n'
    )
    assert "<li><strong>a</strong>: b</li>" in page
    assert '<dt id="commit_2">commit¶commit_2</dt>\n<dd></dd>' in page
    assert '<dt id="anchor-config">' in page
    assert "<b onclick" not in page
    assert {"commit", "-no-commit-n", "code", "commit_2", "anchor-config"} <= rendered.anchors
    assert "<dl" not in render(text, lambda _: None).html


def test_quotations_with_a_title_become_callouts() -> None:
    text = "> **Caution**\n>\n> Mind it.\n>\n> > **Own *x***\n> >\n> > In\n\n> **Bold** text\n"
    page = html(text)
    for kind, title in (("warning", "Caution"), ("note", "Own <em>x</em>")):
        start = f'<div class="admonition {kind}">\n<p class="admonition-title"><strong>{title}'
        assert start in page
    assert page.count("<blockquote>") == page.count("</blockquote>") == 1
    assert page.count("<div") == page.count("</div>") == 2


def test_formulas_become_mathml_and_stay_text_for_search() -> None:
    page = render("In $a_1 *b* \\le c$, and $$\\frac{x}{2} &lt; y$$", lambda _: None)
    assert "$a_1 *b* \\le c$" in page.plain
    assert "<math><msub><mi>a</mi><mn>1</mn></msub><mo>*</mo>" in page.html
    assert '<math display="block"><mfrac><mi>x</mi><mn>2</mn></mfrac><mo>&lt;</mo>' in page.html
    assert "$" not in page.html


@pytest.mark.parametrize("environment", ["align", "align*", "gather", "equation", "eqnarray*"])
def test_environments_of_formulas_become_mathml(environment: str) -> None:
    tex = f"\\begin{{{environment}}}\na &= b \\label{{x}} \\\\\nc\n\\end{{{environment}}}"
    page = html(f"$$\n{tex if environment != 'equation' else tex.replace('&', '')}\n$$")
    assert '<math display="block">' in page
    assert "begin" not in page


@pytest.mark.parametrize(
    "text",
    [
        *("*$5* and $6", "$FOO_BAR/$BAZ", "$HOME/$", "from $5 to 6$", "US$x and A$"),
        *("$\\nosuchcommand{x}$", "$" + "{" * 300 + "}" * 300 + "^2$"),
    ],
)
def test_other_dollar_signs_are_text(text: str) -> None:
    page = html(text)
    assert "<math" not in page
    assert page.count("$") == text.count("$")


def test_formulas_have_no_active_content() -> None:
    page = html("$\\text{<script>alert(1)</script>}$ and $\\href{javascript:alert(1)}{x}$")
    assert "<script" not in page
    assert "href" not in page.replace("\\href", "")


def test_options_in_code_become_terms_of_a_definition_list() -> None:
    options = "# T\n\n-   `-d root`: Set it.\n-   `-h`, `--help`: Says `more`: this.\n"
    page = render(options, lambda _: None, document=True)
    assert re.findall(r"<dt id=\"([^\"]*)\">(.*?)<a", page.html) == [
        ("-d-root", "<code>-d root</code>"),
        ("-h-help", "<code>-h</code>, <code>--help</code>"),
    ]
    assert "Says <code>more</code>: this." in page.html
    plain = render("# T\n\n-   `a` and `b`\n-   `c`: x\n", lambda _: None, document=True)
    assert "<dl>" not in plain.html


@pytest.mark.parametrize(
    ("heading", "is_signature"),
    [
        ("list.append(x)", True),
        ("`list.pop([i])`", True),
        ("f(x) → int", True),
        ("class argparse.Action(a=None, *b)", True),
        ("How to call f(x)", False),
        ("Introduction (part 1)", False),
        ("Files (and folders)", False),
    ],
)
def test_headings_of_signatures_are_marked(heading: str, is_signature: bool) -> None:
    assert ('class="kb-signature"' in html(f"### {heading}")) is is_signature


def test_footnotes_are_linked_both_ways() -> None:
    text = (
        "# T\n\nOne[\\[1\\]](#fn-1), again[\\[1\\]](#fn-1) and [\\[a\\]](#fn-none).\n\n"
        "-   \\[1\\]: Note {#fn-1}\n\n    more\n-   \\[2\\]: Alone {#fn-2}"
    )
    page = render(text, lambda _: None, document=True)
    assert 'One<a class="kb-note" href="#fn-1" id="fn-1-ref-1">[1]</a>' in page.html.replace(
        '<a href="#fn-1" id="fn-1-ref-1" class="kb-note">',
        '<a class="kb-note" href="#fn-1" id="fn-1-ref-1">',
    )
    assert page.html.count('id="fn-1-ref-2"') == 1
    assert {"fn-1", "fn-2", "fn-1-ref-1", "fn-1-ref-2"} <= page.anchors
    back = re.search(r"<p>more(.*?)</p>", page.html)
    assert back is not None
    assert re.findall(r'href="(#[^"]*)"', back[1]) == ["#fn-1-ref-1", "#fn-1-ref-2"]
    assert "Alone</" in page.html


def test_anchors_have_no_backslashes() -> None:
    page = render("## 6.0 Notes {: #\\6.0}\n", lambda _: None)
    assert page.anchors == {"6.0"}
    assert 'href="#6.0"' in page.html


def test_anchors_of_paragraphs_and_items_become_ids() -> None:
    text = (
        "# Pan {#pan}\n\nSaid. {#said}\n\n-   One {#one}\n-   Two\n\n> Quoted {#quoted}\n\n"
        "In the way {#pan}\n\nNot `{#it}`\n\nTheirs {#__x}\n\n1.  **--all**: Each. {#all}\n"
    )
    shown = html(text)
    assert '<p id="said">Said.</p>' in shown
    assert '<li id="one">One</li>' in shown
    assert "<li>Two</li>" in shown
    assert '<p id="quoted">Quoted</p>' in shown
    assert '<p id="pan_2">In the way</p>' in shown
    assert "<p>Not <code>{#it}</code></p>" in shown
    assert '<p id="anchor-x">Theirs</p>' in shown
    assert '<li id="all">' in shown
    listed = render("# Pan\n\nMeta\n\n-   **--all**: Each. {#each}\n", str, document=True)
    assert '<dd id="each">Each.</dd>' in listed.html
    assert "each" in listed.anchors


def test_anchors_of_text_are_kept_when_prepared() -> None:
    prepared = prepare("# T\n\nSaid *so* {#said}\n\nNot {# it}", title="T", rewrite=lambda x: x)
    assert prepared.text == "Said *so* {#said}\n\nNot &#123;# it}"
