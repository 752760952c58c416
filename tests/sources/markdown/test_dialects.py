"""What documentation in Markdown uses beyond CommonMark, as kbkit keeps it."""

from pathlib import Path

import pytest

from kbkit.ingest.cutting import chunk
from kbkit.models import DocumentType
from kbkit.recipes import ChunkingSpec, FilesSource
from kbkit.sources import SourceContext, open_reader
from kbkit.sources.formats import parse
from kbkit.sources.markdown import commonmark
from kbkit.text.markdown.rendering import render
from kbkit.text.markdown.sanitizing import prepare
from kbkit.text.markdown.structure import plain_text

CASES = {
    "mkdocs admonition": (
        "!!! warning\n    Mind the **gap**.\n\n    ```py\n    x  # note\n    ```\n\nAfter.",
        "> **Warning**\n>\n> Mind the **gap**.\n>\n> ```py\n> x  # note\n> ```\n\nAfter.",
    ),
    "admonition with a title": ('!!! note "Own title"\n    Text', "> **Own title**\n>\n> Text"),
    "admonition without a title": ('!!! note ""\n    Text', "> Text"),
    "folded admonition": ('??? tip "Open"\n    In', "> **Tip: Open**\n>\n> In"),
    "admonition whose title says what it is": (
        '!!! danger "Warning!"\n    In',
        "> **Warning!**\n>\n> In",
    ),
    "admonition in a list": (
        "- one\n\n    !!! tip inline end\n        In",
        "- one\n\n    > **Tip**\n    >\n    > In",
    ),
    "github alert": ("> [!NOTE]\n> Text", "> **Note**\n>\n> Text"),
    "obsidian alert": ("> [!tip]- Own\n> Text", "> **Tip: Own**\n>\n> Text"),
    "nested alert": ("> > [!tip]\n> > Text", "> > **Tip**\n> >\n> > Text"),
    "myst admonition": (
        "```{seealso}\n:class: wide\nThe {doc}`guide <a/b>`\n```",
        "> **See also**\n>\n> The [guide](a/b.md)",
    ),
    "myst colons": (":::{admonition} Own\nText\n:::", "> **Own**\n>\n> Text"),
    "docusaurus": (
        ":::tip[Own]\nA\n\n:::note\nB\n:::\n\n:::",
        "> **Tip: Own**\n>\n> A\n>\n> > **Note**\n> >\n> > B",
    ),
    "vitepress": ("::: details Click\nHidden\n:::", "> **Click**\n>\n> Hidden"),
    "mkdocs tabs": (
        '=== "pip"\n\n    ``` sh title="shell"\n    pip install x\n    ```\n\n=== "uv"\n\n    uv',
        "**pip**\n\n**shell**\n\n```sh\npip install x\n```\n\n**uv**\n\nuv",
    ),
    "code group": (
        "::: code-group\n```sh [npm]\nnpm i\n```\n```sh [yarn]\nyarn\n```\n:::",
        "**npm**\n\n```sh\nnpm i\n```\n\n**yarn**\n\n```sh\nyarn\n```",
    ),
    "myst tabs": (
        "::::{tab-set}\n:::{tab-item} One\n1\n:::\n:::{tab-item} Two\n2\n:::\n::::",
        "**One**\n\n1\n\n**Two**\n\n2",
    ),
    "details": (
        "<details><summary>More</summary>\n\nInner **text**\n\n</details>\n\nAfter",
        "**More**\n\nInner **text**\n\nAfter",
    ),
    "definitions": (
        "Term\n:   One\n    two\n\n    second\n\n`--all`\n:   Every one",
        "*   **Term**: One\n    two\n\n    second\n\n*   `--all`: Every one",
    ),
    "footnotes": (
        "A[^1] and [^none].\n\n[^1]: Note\n\n    more",
        "A[\\[1\\]](#fn-1) and [^none].\n\n+   \\[1\\]: Note {#fn-1}\n\n    more",
    ),
    "tasks": ("- [ ] open\n- [x] done", "- ☐ open\n- ☑ done"),
    "abbreviations": ("*[HTML]: Hyper Text", "*   **HTML**: Hyper Text"),
    "emoji": (
        ":rocket: 10:30:45 `:rocket:` :no_such: :material-home:{ .lg } x",
        "🚀 10:30:45 `:rocket:` :no_such: x",
    ),
    "icons that are links": ("A [:octicons-file-24:][_x]{: .y } [:material-x:](u) b", "A   b"),
    "icons that begin items": (
        "-   :material-clock:{ .lg } __Soon__\n\n    ---\n\n    [:octicons-x: Go](g.md)",
        "-   __Soon__\n\n    ---\n\n    [Go](g.md)",
    ),
    "definitions, notes and lists": (
        "- one\n\nTerm\n:   What[^1]\n\n- two\n\n[^1]: Note",
        "- one\n\n*   **Term**: What[\\[1\\]](#fn-1)\n\n- two\n\n+   \\[1\\]: Note {#fn-1}",
    ),
    "html blocks": ("/// html | div.result\nText\n///", "Text"),
    "attribute lists": (
        '![A](a.png){ width="3" } [b](c.md){ .md-button }\n{: .x }\n\n# H { data-toc-label="x" }',
        "![A](a.png) [b](c.md)\n\n# H",
    ),
    "anchors": (
        "(my-place)=\n## Title\n\n## Two ## {#two .x}",
        "## Title {#my-place}\n\n## Two {#two}",
    ),
    "inline html": (
        'A<br>b <kbd>Ctrl</kbd> <b>bold</b> <a href="x.md">link</a> H<sub>2</sub>O x<sup>2</sup> '
        "<span onclick=f()>s</span>",
        "A  \nb `Ctrl` **bold** [link](x.md) H2O x^2 s",
    ),
    "placeholders": ("Use <your-name> and `List<b>`.", "Use <your-name> and `List<b>`."),
    "html block": (
        '<h1 align="center"><img src="logo.png" alt="HTTPX"></h1>\n<p align="center">\n'
        '<a href="https://x.example"><img src="a.svg" alt="Build"></a></p>',
        "# HTTPX\n\n[![Build](a.svg)](https://x.example)",
    ),
    "html table": (
        "<table><tr><th>H</th></tr><tr><td>c</td></tr></table>",
        "| H |\n| --- |\n| c |",
    ),
    "formulas": ("\\(a_1 = 2\\) \\(not\\) \\[x^2\\]", "$a_1 = 2$ \\(not\\) $$x^2$$"),
    "roles": ("{py:class}`~a.b.C` {ref}`The place <here>` {math}`x_1`", "`a.b.C` The place $x_1$"),
    "keys and marks": (
        "++ctrl+c++ ==new== a == b and i++ or j++",
        "`Ctrl+c` **new** a == b and i++ or j++",
    ),
    "mkdocstrings": ("::: httpx.Client\n    :members: get\n\nText", "`httpx.Client`\n\nText"),
    "snippets": ('--8<-- "file.md"', '--8<-- "file.md"'),
    "mermaid": ("```mermaid\ngraph TD\n```", "```mermaid\ngraph TD\n```"),
    "directives that say nothing": ("```{contents}\n:depth: 2\n```\n\n[TOC]\n\nText", "Text"),
    "formulas with braces": (
        "$$\n\\sum_{n=0}^\\infty x\n$$ (eq1)\n\nIn $\\sum_{i=0}$ {.x}",
        "$$\n\\sum_{n=0}^\\infty x\n$$\n\nIn $\\sum_{i=0}$",
    ),
    "environments of formulas": (
        "A\n\n\\begin{align}\na &= b\n\\end{align}\nB",
        "A\n\n$$\n\\begin{align}\na &= b\n\\end{align}\n$$\n\nB",
    ),
    "formulas of GitHub": (
        "```math\nx_1\n\ny\n```\n\nIn $`a<b`$ it",
        "$$\nx_1\ny\n$$\n\nIn $a<b$ it",
    ),
    "raised and lowered": ("H~2~O x^2^ ~/a and ~b 2^10 ^^", "H2O x^2 ~/a and ~b 2^10 ^^"),
    "bare addresses": (
        "See https://x.example/a_(b)). `https://y.example` [https://z.example](https://z.example)",
        "See <https://x.example/a_(b)>). `https://y.example` "
        "[https://z.example](https://z.example)",
    ),
    "fences that mark lines": ("```js{1,3-5}\nx\n```", "```js\nx\n```"),
    "admonition of a class": (
        "```{admonition} My own\n:class: tip\nText\n```",
        "> **Tip: My own**\n>\n> Text",
    ),
    "list table": (
        "```{list-table} Caption\n:header-rows: 1\n\n* - A\n  - B | b\n* - `x`\n  - two\n"
        "    lines\n* - alone\n```",
        "**Caption**\n\n| A | B \\| b |\n| --- | --- |\n| `x` | two lines |\n| alone |  |",
    ),
    "glossary": (
        "```{glossary}\nterm\n  A word.\n\nother\n  Another\n  one.\n```",
        "*   **term**: A word.\n\n*   **other**: Another\n    one.",
    ),
    "comments and breaks of MyST": (
        '(top)=\n# T\n\n% no\n\n+++ {"x": 1}\n\n50 % yes',
        "# T {#top}\n\n50 % yes",
    ),
    "rst in MyST": (
        "```{eval-rst}\n.. note:: x\n\n.. py:function:: fill(vat)\n\n   Fills ``it``.\n```\n\nB",
        "> **Note**\n>\n> x\n\n## fill(vat)\n\nFills `it`.\n\nB",
    ),
    "references in MyST": (
        "(vat)=\n## The *vat* [1]\n\nSee {ref}`vat`, {ref}`it <vat>`, {ref}`there <no>`, `{ref}x`.",
        "## The *vat* [1] {#vat}\n\nSee [The *vat* 1](#vat), [it](#vat), there, `{ref}x`.",
    ),
    "markdown in cells": (
        "<table>\n<tr><th>A</th><th>B</th></tr>\n<tr>\n<td>\n\n**bold** `x` :rocket:\n\n</td>\n"
        "<td>\n\n- [one](a.md)\n- two\n\n</td>\n</tr>\n</table>\n\nAfter.",
        "| A | B |\n| --- | --- |\n| **bold** `x` 🚀 | • [one](a.md) • two |\n\nAfter.",
    ),
    "cells that say markdown": (
        '<table><tr><th>A</th></tr><tr><td markdown="span">**bold** `x`</td></tr>'
        "<tr><td markdown>\n  - one\n  - two\n</td></tr></table>",
        "| A |\n| --- |\n| **bold** `x` |\n| • one • two |",
    ),
    "a table that never ends": ("<table><tr><td>\n\n**a**\n\nb", "**a**\n\nb"),
    "page marks": ("<!-- page 2 -->\n\nText <!-- no -->", "<!-- page 2 -->\n\nText "),
}


MDX = {
    "modules": (
        "import T from 't';\n\nexport const H = ({c}) => (\n  <span>\n\n{c}</span>\n);\n\n# T",
        "# T",
    ),
    "tabs": (
        '<Tabs>\n  <TabItem value="a" label="Apple">\n    An *apple*\n  </TabItem>\n'
        '  <TabItem label="Pear">\n\n    ```js title="x.js"\n    const a = {\n    };\n    ```\n\n'
        "  </TabItem>\n</Tabs>",
        "**Apple**\n\nAn *apple*\n\n**Pear**\n\n**x.js**\n\n```js\nconst a = {\n};\n```",
    ),
    "admonitions": (
        '<Warning>\n  Take care\n</Warning>\n\n<Aside type="caution" title="Own">\nText\n</Aside>',
        "> **Warning**\n>\n> Take care\n\n> **Caution: Own**\n>\n> Text",
    ),
    "steps": (
        '<Steps>\n<Step title="First">\n1\n</Step>\n<Step title="Second">\n2\n</Step>\n</Steps>',
        "**First**\n\n1\n\n**Second**\n\n2",
    ),
    "components that are not closed": ("<Tabs>\n\nText", "Text"),
    "expressions": ("A{' '}b {/* no */} {x}", "A b  {x}"),
    "pictures": (
        "<img src={require('./a.png').default} alt=\"A\" /> <img src={useBaseUrl('/b.png')} />",
        "![A](./a.png) ![](/b.png)",
    ),
}


def squeezed(text: str) -> str:
    """Without blank lines beyond one, which mean nothing outside of code."""
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text.strip("\n")


@pytest.mark.parametrize(("source", "kept"), CASES.values(), ids=CASES)
def test_dialects_become_commonmark(source: str, kept: str) -> None:
    assert squeezed(commonmark(source)) == kept


@pytest.mark.parametrize(("source", "kept"), MDX.values(), ids=MDX)
def test_components_are_replaced_by_their_content(source: str, kept: str) -> None:
    assert squeezed(commonmark(source, components=True)).strip() == kept


@pytest.mark.parametrize("kept", [kept for _, kept in CASES.values()], ids=CASES)
def test_kept_markdown_is_stable(kept: str) -> None:
    assert squeezed(commonmark(kept)) == kept


PLAIN = """# Title

Text with *emphasis*, `code <b>`, [a link](x.md#y "t") and <https://x.example>.

- one
    - two

1. a
2. b

```python title
!!! note


    x = "<b>"   # :rocket: {: .x }
```

| a | b |
| --- | --- |
| 1 | 2 |

> A quotation.

    <b>indented</b>
"""


def test_plain_markdown_is_unchanged() -> None:
    assert commonmark(PLAIN) == PLAIN


def test_chunks_and_search_contain_no_markup() -> None:
    source = "\n\n".join(source for source, _ in CASES.values())
    (part,) = parse("all.md", f"# All\n\n{source}\n".encode())
    spans = chunk(part.content, DocumentType.MANUAL, ChunkingSpec(size=300))
    texts = [part.content[span.start : span.end] for span in spans]
    assert len(texts) > 3
    read = " ".join(plain_text(text) for text in texts)
    marks = ("!!!", "???", ":::", "[!NOTE", "{note}", "<p ", "<details", "{ .", "onclick", "[^1]")
    assert [mark for mark in marks if mark in read] == []
    assert "Mind the gap" in read


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('<h1 align="center"><img src="l.png" alt="HTTPX"></h1>\n\n## Features\n', "HTTPX"),
        (
            '<p align="center"><a href="/"><img src="l.png" alt="FastAPI"></a></p>\n\n## Use',
            "FastAPI",
        ),
        ("Text first.\n\n# Late but level one\n", "Late but level one"),
        ("Text first.\n\n## Never a later one\n", "the file"),
        ("## The first thing\n\nText", "The first thing"),
        ("---\ntitle: Front\n---\n# Heading\n", "Front"),
    ],
)
def test_titles_of_markdown_pages(text: str, title: str) -> None:
    assert parse("docs/the-file.md", text.encode())[0].title == title


def test_navigation_of_mkdocs_names_untitled_pages(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("Just text.\n")
    (tmp_path / "docs/a.md").write_text("# Own\n")
    (tmp_path / "mkdocs.yml").write_text(
        "site_name: X\nx: !ENV [A, b]\nnav:\n  - Welcome: index.md\n  - Part:\n    - Nav: a.md\n"
        "markdown_extensions:\n  - x: !!python/name:os.system\n"
    )
    reader = open_reader(FilesSource(path="docs"))
    documents = [event.document for event in reader.events(SourceContext(base=tmp_path))]
    titles = {document.uri: document.title for document in documents if document}
    assert titles == {"docs/index.md": "Welcome", "docs/a.md": "Own"}


HOSTILE = """<script>alert(1)</script>

<p onclick="x()"><a href="javascript:alert(1)">bad</a><img src=x onerror=alert(1)></p>

!!! note "<img src=x onerror=alert(2)>"
    <iframe src="https://evil.example"></iframe> <svg onload=alert(3)><script>x</script></svg>

Text <a href="JaVaScRiPt:alert(4)">one</a> <a href="data:text/html,x">two</a> [three](javascript:x)
<img src="file:///etc/passwd" onerror="x"> {: onclick=alert(5) }
"""


def test_hostile_markdown_is_harmless() -> None:
    kept = commonmark(HOSTILE)
    page = render(prepare(kept, title="-", rewrite=lambda href: href).text, lambda href: href).html
    tags = ("<script", "onclick=", "onerror=", "onload=", "<iframe", "<svg", "<img")
    for mark in (*tags, 'href="javascript', 'href="data', "file:"):
        assert mark not in page.lower(), page


REPEATED = [
    *("```\n", "!!! note\n", ":::note\n", ":::note\nx\n:::\n", "<b>", '<a href="', "<", "{", "[^"),
    *("x\n:   y\n\n", ":a", "==", "++a", "[^1]: x\n", "\\(", "{a}`", "x{.a ", '<b a="', "<!--"),
    *('=== "x"\n', "<table>", "(a)=\n", "*[a]: b\n", "> [!NOTE]\n"),
]


@pytest.mark.parametrize("text", REPEATED)
@pytest.mark.timeout(60)
def test_hostile_repetition_is_read_in_time(text: str) -> None:
    assert isinstance(commonmark(text * 5_000), str)
