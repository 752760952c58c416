"""Sanitizing of Markdown for pages."""

from unicodedata import category

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kbkit.text.markdown.sanitizing import escape, prepare

CLOSED = "```\na\n````  "
LOGO, BADGE = "![Logo](a.png)", "[![B](b.svg)](https://b.example)"


def rewrite(href: str) -> str | None:
    if href.startswith(("javascript:", "ftp:")):
        return None
    return {"other.html": "other.md", "https://h/in": "in.md"}.get(href, href)


def text(content: str, title: str = "Title") -> str:
    return prepare(content, title=title, rewrite=rewrite).text


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[a](other.html)", "[a](other.md)"),
        ('[a](other.html "t")', '[a](other.md "t")'),
        ("[a](<other.html>)", "[a](other.md)"),
        ("[a]( other.html )", "[a](other.md )"),
        ("<https://h/in>", "[https://h/in](in.md)"),
        ("<https://h/out>", "<https://h/out>"),
        ("[a][r]\n\n[r]: other.html", "[a][r]\n\n[r]: other.md"),
        ("[a](javascript:alert(1))", "[a]()"),
        ("[a](javascript:<b>alert(1)</b>)", "[a]()"),
        ("[a](java&#115;cript:alert(1))", "[a]()"),
        ("[r]: javascript:x", "\\[r]: javascript:x"),
        ("[r]: ftp://x\n\n[r]", "[r]: <>\n\n[r]"),
        ("| a |\n|---|\n| [x](other.html) |", "| a |\n|---|\n| [x](other.md) |"),
        ("> - [x](other.html)", "> - [x](other.md)"),
    ],
)
def test_links_are_rewritten(content, expected):
    assert text(content) == expected


@pytest.mark.parametrize(
    "code",
    [
        "`[a](other.html) <b> {{ x }}`",
        "``a ` [a](other.html)``",
        "```\n[a](other.html) <script> {{ x }} {: .x }\n--8<-- 'f'\n```",
        "~~~md\n[a](other.html)\n```\n~~~",
        "    [a](other.html) <b>",
        "- item\n\n      [a](other.html)",
        "> ```\n> <script>\n> ```",
    ],
)
def test_code_is_not_changed(code):
    assert text(code) == code


@pytest.mark.parametrize(
    ("code", "end"),
    [("```\na <x>", "\n```"), ("~~~~\na\n~~~", "\n~~~~"), ("text\n\n```", "\n```"), (CLOSED, "")],
)
def test_open_fence_is_closed(code, end):
    # otherwise it would contain the rest of the page
    assert text(code) == code + end


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a <img src=x onerror=alert(1)>", "a &lt;img src=x onerror=alert(1)>"),
        ("<!-- comment -->", "&lt;!-- comment --&gt;"),
        ("--8<-- '/etc/passwd'", "--8&lt;-- '/etc/passwd'"),
        ("text{: onclick=alert(1) }", "text&#123;: onclick=alert(1) }"),
        ("{{ config }} {% raw %}", "&#123;&#123; config }} &#123;% raw %}"),
        ("## Head {#ok}", "## Head {#ok}"),
        ("## Head {#ok onclick=x}", "## Head {#ok}"),
        ("## Head {: #ok onclick=x}", "## Head {#ok}"),
        ("[TOC]", "\\[TOC]"),
        (r"\<b> \{x} \[y]", r"&lt;b> &#123;x} \[y]"),
        ("| `x | <script> y` |\n|---|---|", "| `x | &lt;script> y` |\n|---|---|"),
        ("a ` b <i>", "a ` b &lt;i>"),
    ],
)
def test_html_templates_and_attributes_are_escaped(content, expected):
    assert text(content) == expected


@pytest.mark.parametrize(
    ("content", "expected", "anchor"),
    [
        ("# Title {#t}\n\nx", "x", "t"),
        ("# `Title`\n\nx", "x", ""),
        ("Title\n=====\n\nx", "x", ""),
        ("# TITLE\n\n## Sub\n\n# More", "### Sub\n\n## More", ""),
        ("# Other {#o}\n\n## Sub {#s}", "## Other {#o}\n\n### Sub {#s}", ""),
        ("# Other\n\n###### Deep", "## Other\n\n###### Deep", ""),
        ("Other\n=====\n\nSub\n---\n", "## Other\n\n### Sub", ""),
        ("About C #\n---", "## About C \\#", ""),
        ("intro\n\n# Title", "intro\n\n## Title", ""),
        (f"{LOGO}\n\n# Title {{#t}}\n\n{BADGE}", f"{LOGO}\n\n\n\n{BADGE}", "t"),
        ("## Sub\n\n```\n# Title\n```", "## Sub\n\n```\n# Title\n```", ""),
    ],
)
def test_title_is_the_only_heading_of_level_1(content, expected, anchor):
    prepared = prepare(content, title="Title", rewrite=rewrite)
    assert (prepared.text, prepared.anchor) == (expected, anchor)


@given(st.text())
@example("\ufeff")
@example("a\u202eb\u2066c\u200bd")
def test_escaped_text_is_shown_as_it_is(value):
    """Except for control characters and invisible ones."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = parser.parse(f"# x {escape(value)} y")
    inline = tokens[1].children or []
    assert {token.type for token in inline} <= {"text"}
    invisible = "\u200b\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    visible = value.translate(dict.fromkeys(map(ord, invisible)))
    words = "".join(" " if category(char) == "Cc" else char for char in visible).split()
    assert "".join(token.content for token in inline).split() == ["x", *words, "y"]


@given(st.text(alphabet="`<>[](){}#\n -|~=*_\\:!ab.1", max_size=80))
def test_raw_html_is_escaped(content):
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    for token in parser.parse(text(content, title="zzz")):
        assert token.type != "html_block"
        assert all(child.type != "html_inline" for child in token.children or [])


def test_first_heading_that_repeats_the_title_is_removed() -> None:
    prepared = prepare("### 5. Tea {#tea}\n\nText.", title="5. Tea", rewrite=rewrite)
    assert (prepared.text, prepared.anchor) == ("Text.", "tea")
    assert prepare("Hm.\n\n### Tea", title="Tea", rewrite=rewrite).text == "Hm.\n\n### Tea"
