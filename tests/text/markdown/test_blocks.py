"""Blocks of Markdown against those of the parser, and the agreement of all readers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kbkit.ingest.cutting import chunk
from kbkit.models import DocumentType
from kbkit.recipes import ChunkingSpec
from kbkit.sources.parts import with_front_matter
from kbkit.text import markdown as module
from kbkit.text.markdown import Block, Kind, blocks, is_closed, same_breaks
from kbkit.text.markdown.sanitizing import prepare
from kbkit.text.markdown.structure import outline
from tests.growth import grows_with

GUIDES = sorted((Path(__file__).parents[3] / "site").glob("*.md"))
PIECES = [
    *("\n", "\n\n", "a", "b c", "# ", "## x", "```", "~~~", "- ", "-   ", "* ", "+ ", "1. ", "2) "),
    *("> ", ">", "    ", "  ", " ", "\t", "|", "a | b", "\n---\n", "\n===\n", "* * *", "\n  "),
    *("| a | b |\n|---|:-:|\n", "[x]: /u", "[x](u)", "[TOC]", "`", "**", "*", "_", "<b>", "\\"),
    *("#", "---", "(", ":", "=", "é", "12", "\u00a0", "\x0c", "\u2028", "<!--", "-->", "<pre>"),
    *("</pre>", "<div>", "<?", "?>", "<!X", "<https://x>", "\r\n", "\r", "[y", "]", " #"),
    *("- x\n\n  ", "> - "),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
NASTY = {
    "a comment before an underline": "<!-- c\n-->\n===",
    "a comment before code": "<!-- c\n-->\n    code",
    "a comment before a definition": "<!-- c\n-->\n[x]: /u\n    - deep",
    "headings in a comment": "# A\n\n<!--\n# B\n\n## C\n-->\n\n## D\n\ntext",
    "a comment left open": "# A\n\ntext\n<!-- b\n\n# C",
    "headings in raw HTML": "<div>\n# A\n</div>\n\n# B\n\n<pre>\n# C\n\n    # D\n</pre>\n# E",
    "headings in fences": "```\n# A\n```\n# B\n~~~md\n# C\n```\n# D\n~~~\n# E",
    "a fence left open": "# A\n\n```py\n# B\n\n## C\n",
    "fences in lists": "# A\n\n- x\n\n  ```\n  # B\n\n  # C\n  ```\n\n- ~~~\n  # D\n\n# E",
    "a fence left open in a list": "- ```\n  # A\n\n# B",
    "fences in quotes": "> ```\n> # A\n\n# B\n\n> ~~~\n> # C\n# D",
    "headings in lists and quotes": "- # A\n\n> ## B\n\n# C\n\n1. x\n\n   # D\n\nE\n=\n",
    "underlined headings": "A\n=\n\nB *b*\nb\n---\n\n- c\n---\n\n> d\n---\n\n---\ne\n==\n",
    "indented code": "    # A\n\n    # B\n\n# C\n\n\t# D\n\n1. x\n\n       # E\n\n   # F",
    "definitions": "[a]: /u\n# A\n[b]:\n/v 'x\ny'\n\nB\n===\n[c]: /w\n---\n",
    "line ends": "# A\r\n\r\n```\r\n# B\r\n```\r\n\r\nC\r\n===\r\n\r\n- x\r\n\r\n  # D\r\n# E\r# F",
    "tabs": "#\tA\n\n-\t# B\n\n\t# C\n\n>\t# D\n\n1.\tx\n\n\t```\n\t# E\n\t```\n\n# F",
    "closing hashes": "# A #\n## B ##\n### C#\n#\n# #\n## \\#",
    "tables": "| # A | b |\n|---|---|\n| ``` | c |\n\n# D | e\n|---|---|\n| f | g |\n\n# H",
}

_ODD = re.compile(
    r"^[ >\t]*(?:[-*+]|\d{1,9}[.)])[^\n]*\|[^\n]*\n[ >\t]*[|:-][-|: \t]*$|\A---[ \t]*\n\w", re.M
)
"""Front matter, and rows of tables that look like list items, which the parser reads unevenly."""


def parsed(text: str) -> list[Block]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MARGIN", re.compile("(?!)"))
        patch.setattr(module, "_reaching", lambda block, _: block)
        return module._parse_blocks(same_breaks(text), 0)[0]


def assert_same(text: str) -> None:
    def trimmed(block: Block) -> Block:
        return block._replace(end=block.start + len(text[block.start : block.end].rstrip()))

    assert [trimmed(each) for each in blocks(text)] == [trimmed(each) for each in parsed(text)]


@given(TEXTS)
@settings(suppress_health_check=[HealthCheck.filter_too_much])
def test_blocks_of_any_text_are_those_of_the_parser(text):
    assume(not _ODD.search(same_breaks(text)))
    assert_same(text)


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_blocks_of_guides_are_those_of_the_parser(path):
    assert_same(path.read_text())


@pytest.mark.parametrize(
    "text",
    [
        *("# a | b\n|---|---|", "```a | b\n|-|-|\n```", "- a\n\n  ```\n\nx\n  ```", "- a\nb"),
        *("> q\n```\n\nx\n```\n\n# y", "| a |\n|---|\n| b |\nc\n", "- a\n- b\n\n    code"),
        *("- a\n- b\n    - c\n- d\n\n    e\n- f", "> q\n```\n- x\n```\ny", "| a |\n|---|\n- b"),
        *("[a]:\n- b", "a\n---", "    code\n\n```\nleft open", "a\n<div>\n- b\n</div>\nc\n\nd"),
        *("- a\n2. b\n3) c", "  * * *\n* *\n"),
        *NASTY.values(),
    ],
)
def test_blocks_of_odd_texts_are_those_of_the_parser(text):
    assert_same(text)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("# H {#h} ##", [Kind.HEADING]),
        ("a\n**b**\n[c](d)", [Kind.TEXT]),
        ("```py\n- z\n```", [Kind.FENCE]),
        ("- x\n- `y`\n\nz", [Kind.TEXT, Kind.TEXT, Kind.TEXT]),
        ("| a |\n|---|\n| b |", [Kind.TABLE]),
    ],
)
def test_simple_blocks_are_read_without_the_parser(text, kinds, monkeypatch):
    monkeypatch.setattr(module, "_parser", None)
    assert [block.kind for block in blocks(text)] == kinds


def test_front_matter_is_not_a_heading():
    first, second = blocks("---\ntitle: x\n---\n# A")
    assert (first.kind, first.end, second.title) == (Kind.FRONT_MATTER, 16, "A")


def test_closed_and_open_fences():
    for text, ends in [("```\na\n```", True), ("```\na", False), ("~~~\na\n~~~~ ", True)]:
        assert is_closed(next(blocks(text)), text) is ends


def tokens(text: str) -> tuple[list[tuple[int, int]], list[str]]:
    """Line and level of headings, and all code, in CommonMark."""
    parsed = MarkdownIt("commonmark").enable("table").parse(text)
    headings = [one for one in parsed if one.type == "heading_open" and not one.level]
    return (
        [(one.map[0], int(one.tag[1])) for one in headings],
        [one.content.rstrip() for one in parsed if one.type in {"fence", "code_block"}],
    )


def readers_agree(text: str) -> None:
    """Chunking, export and front matter see the headings and code of CommonMark."""
    headings, code = tokens(text)
    structure = outline(text)
    at = [(text.count("\n", 0, one.start), one.level) for one in structure.headings]
    assert at == headings
    verbatim = [one for one in structure.blocks if one.kind in {Kind.FENCE, Kind.CODE}]
    assert len(verbatim) == len(code)
    assert all(
        line.strip() in text[block.start : block.end]
        for block, content in zip(verbatim, code, strict=True)
        for line in content.split("\n")
    )

    chunks = chunk(text, DocumentType.MANUAL, ChunkingSpec(strategy="headings", size=4_000))
    starts = {one.start for one in chunks}
    for before, one in zip([None, *structure.headings], structure.headings, strict=False):
        follows = before and not text[before.end : one.start].strip()
        assert one.start in starts or (follows and before.level < one.level)
    assert {one.heading_path for one in chunks} <= {one.path for one in structure.headings} | {()}

    shown, exported_code = tokens(prepare(text, title="-", rewrite=str).text)
    down = any(level == 1 for _, level in headings)
    assert [level for _, level in shown] == [min(6, level + down) for _, level in headings]
    assert exported_code == code

    begins = structure.headings[:1] if structure.blocks[:1] and headings[:1] else []
    begins = [one for one in begins if not MarkdownIt("commonmark").render(text[: one.start])]
    tops = [one for one in structure.headings if one.level == 1]
    first = next(("".join(one.path[-1:]) for one in [*tops, *begins]), "")
    assert with_front_matter(text, "name.md").title == (first or "name")


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
def test_all_readers_see_the_same(text):
    readers_agree(text.replace("\r\n", "\n").replace("\r", "\n"))
    other_ends = text.replace("\r\n", "\n")
    paths = [one.path for one in outline(text).headings]
    assert paths == [one.path for one in outline(other_ends).headings]


LINE = st.sampled_from(
    [
        *("# A", "## B c", "text", "more *text*", "", "", "```", "~~~", "    code", "- item"),
        *("  more", "    - deep", "1. one", "> quote", "> # Q", "- # L", "===", "---", "<!-- c"),
        *("-->", "<div>", "| a | b |", "|---|---|", "[x]: /u", "\tcode", "  ```", "> ```"),
        *("- ```", "&amp; <b>x</b>"),
    ]
)
LINES = st.lists(LINE, max_size=14).map("\n".join)


@given(LINES)
@settings(suppress_health_check=[HealthCheck.filter_too_much], deadline=None)
def test_all_readers_see_the_same_in_any_text(text):
    assume(not _ODD.search(text) and text.strip())
    readers_agree(text)


@pytest.mark.parametrize(
    "unit",
    [
        *("# a\n", "# a ##\n\n", "a\n=\n\n", "a\n-\n", "- # a\n", "- a\n\n  b\n\n"),
        *("> a\n> - b\n\n", "<!--\n", "<div>\n\n", "a\n<!--\n\nb -->\n", "> q\n```\n\nx\n```\n"),
        *("- ", "> ", "| a |\n|---|\n", "[a]:\n", "1. a\n   - b\n\n", "\t- a\n", "<"),
        *("```a | b\n", "a\n  b\n", "{#a}\n"),
    ],
)
def test_outline_takes_linear_time(unit):
    grows_with(lambda number: outline(unit * number), 2_500)
    assert unit != "# a\n" or len(outline(unit * 50_000).headings) == 50_000
