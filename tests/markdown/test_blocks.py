"""What is told by the first letters of lines is what the parser says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.markdown import blocks as module
from kbkit.markdown.blocks import blocks, closes

GUIDES = sorted((Path(__file__).parents[2] / "site").glob("*.md"))
PIECES = [
    "\n", "\n\n", "a", "b c", "# ", "## x", "```", "~~~", "- ", "-   ", "* ", "+ ", "1. ", "2) ",
    "> ", "    ", "  ", " ", "\t", "|", "a | b", "\n---\n", "\n===\n", "| a | b |\n|---|:-:|\n",
    "[x]: /u", "[x](u)", "[TOC]", "`", "**", "*", "_", "<b>", "\\", "#", "---", "(", ":", "=", "é",
    "12", "\u00a0", "\x0c", "\u2028",
]  # fmt: skip


def same_as_parsed(text: str) -> bool:
    lines = text.split("\n")
    found = [
        {(b.kind, b.first, b.end, b.level, b.markup, b.outermost) for b in each}
        for each in (blocks(lines), module._parsed(lines, 0, len(lines)))
    ]
    return found[0] == found[1]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_any_text(text):
    assert same_as_parsed(text)


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_real_texts(path):
    assert same_as_parsed(path.read_text())


@pytest.mark.parametrize(
    "text",
    [
        "# a | b\n|---|---|",
        "```a | b\n|-|-|\n```",
        "- a\n\n  ```\n\nx\n  ```",
        "> q\n```\n\nx\n```\n\n# y",
        "| a |\n|---|\n| b |\nc\n",
        "- a\n- b\n\n    code",
        "- a\nb",
        "- a\n- b\n    - c\n- d\n\n    e\n- f",
        "> q\n```\n- x\n```\ny",
        "| a |\n|---|\n- b",
        "[a]:\n- b",
        "a\n---",
        "    code\n\n```\nleft open",
    ],
)
def test_what_only_looks_simple(text):
    assert same_as_parsed(text)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("# H {#h}", ["heading"]),
        ("a\n**b**\n[c](d)", ["text"]),
        ("```py\n- z\n```", ["code"]),
        ("- x\n- `y`\n\nz", ["text", "text"]),
        ("| a |\n|---|\n| b |", ["cells", "dashes", "cells"]),
    ],
)
def test_what_needs_no_parser(text, kinds):
    assert [block.kind for block in module._simple(text.split("\n"), 0)] == kinds


def test_what_ends_a_fence():
    for text, ends in [("```\na\n```", True), ("```\na", False), ("~~~\na\n~~~~ ", True)]:
        lines = text.split("\n")
        assert closes(next(blocks(lines)), lines) is ends
