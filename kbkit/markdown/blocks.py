"""The blocks of a Markdown text: which of its lines are text, and which are code.

CommonMark says so, and markdown-it knows. But asking it took a third of the time of an export, and
most lines of documentation are paragraphs, headings, fenced code, tables and short list items that
begin at the margin. Their first letters tell those; the parser is asked about the rest only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple

from markdown_it import MarkdownIt

Kind = Literal["text", "cells", "heading", "code", "dashes"]


class Block(NamedTuple):
    """Some lines of a text that are of one kind; lines of no block hold nothing that is shown.

    Attributes:
        kind: ``cells`` are a row of a table, ``dashes`` the line below its head; rules are
            ``code``, since nothing in them is text.
        first: Its first line, counted from 0.
        end: The line after its last.
        content: Its text without marks; of code it is empty.
        level: Of headings, from 1.
        markup: What begins a heading or underlines it, or begins a fence.
        outermost: Of headings and code: it is part of no list or quote.
    """

    kind: Kind
    first: int
    end: int
    content: str = ""
    level: int = 0
    markup: str = ""
    outermost: bool = True

    @property
    def is_fence(self) -> bool:
        """Whether it is fenced code."""
        return self.kind == "code" and self.markup[:1] in {"`", "~"}


# What can begin nothing but text: any mark of no other meaning, numbers that count no list,
# emphasis, code, and brackets that define no link and are no [TOC]
_PLAIN = (
    r"(?:[^\s\d#`~+*_=>|:\[-]|\d(?!\d*[.)](?:\s|$))|`(?!``)|\*\*?(?=[^\s*])|_(?=[^\s_])"
    r"|\[(?!toc\])[^\[\]\\]*\](?!:))"
)
_TEXT = re.compile(_PLAIN, re.IGNORECASE)
_ITEM = re.compile(rf"[-*+] {{1,4}}{_PLAIN}", re.IGNORECASE)
_HEADING = re.compile(r"(#{1,6})(?:[ \t]+([^\n]*[^#\s])[ \t]*)?$")
_FENCE = re.compile(r"(`{3,}(?=[^`]*$)|~{3,})")
_DASHES = re.compile(r"\|(?: *:?-+:? *\|)+")
_CELLS = 60_000
"""The parser completes rows that are too short up to about so many cells of a table."""
_BLANK = " \t"


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.disable("html_block")  # it finds none, but looks at every line
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def blocks(lines: Sequence[str]) -> Iterator[Block]:
    """The blocks of a text, in order.

    Args:
        lines: The text, divided at its line feeds; there are no carriage returns in it.
    """
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip(_BLANK):
            at += 1
            continue
        found = _simple(lines, at)
        if found:
            yield from found
            at = found[-1].end
        else:
            end = _next_margin(lines, at)
            parsed = list(_parsed(lines, at, end))
            if end < len(lines) and _left_open(parsed, lines, end):
                parsed, end = list(_parsed(lines, at, len(lines))), len(lines)
            yield from parsed
            at = end


def closes(fence: Block, lines: Sequence[str]) -> bool:
    """Whether the last line of a fence ends it."""
    end = rf" {{0,3}}{re.escape(fence.markup)}+[ \t]*"
    return fence.end - fence.first > 1 and bool(re.fullmatch(end, lines[fence.end - 1]))


def _simple(lines: Sequence[str], at: int) -> list[Block]:
    """The blocks that begin at a line, where its beginning says all; else none."""
    line = lines[at]
    if line[0] == "|":
        return _table(lines, at)
    if line[0] in "#`~" and "|" in line:
        return []  # may be the head of a table
    if line[0] == "#":
        heading = _HEADING.match(line)
        if heading is None:
            return []
        marks, content = heading[1], heading[2] or ""
        return [Block("heading", at, at + 1, content, len(marks), marks)]
    if fence := _FENCE.match(line):
        return _fenced(lines, at, fence[1])
    if _TEXT.match(line):
        return _paragraph(lines, at)
    return _items(lines, at) if _ITEM.match(line) else []


def _fenced(lines: Sequence[str], at: int, markup: str) -> list[Block]:
    end = re.compile(rf" {{0,3}}{re.escape(markup)}+[ \t]*")
    for number in range(at + 1, len(lines)):
        if end.fullmatch(lines[number]):
            return [Block("code", at, number + 1, markup=markup)]
    return []


def _paragraph(lines: Sequence[str], at: int) -> list[Block]:
    end = at + 1
    while end < len(lines) and _TEXT.match(lines[end]):
        end += 1
    return [Block("text", at, end)] if _ends_text(lines, end) else []


def _ends_text(lines: Sequence[str], at: int) -> bool:
    """Whether a paragraph cannot go on at a line."""
    return (
        at == len(lines)
        or not lines[at].strip(_BLANK)
        or bool(_HEADING.match(lines[at]) or _FENCE.match(lines[at]))
    )


def _table(lines: Sequence[str], at: int) -> list[Block]:
    """A table whose rows all begin with a bar, if it is one beyond doubt."""
    head, dashes = lines[at].rstrip(_BLANK), lines[at + 1] if at + 1 < len(lines) else ""
    columns = dashes.count("|")
    sure = head[-1] == "|" and r"\|" not in head and head.count("|") == columns > 1
    if not sure or not _DASHES.fullmatch(dashes):
        return []
    end = at + 2
    while end < len(lines) and lines[end][:1] == "|":
        end += 1
    if (end < len(lines) and lines[end].strip(_BLANK)) or (end - at) * columns > _CELLS:
        return []
    rows = (Block("cells", number, number + 1) for number in range(at + 2, end))
    return [Block("cells", at, at + 1), Block("dashes", at + 1, at + 2), *rows]


def _items(lines: Sequence[str], at: int) -> list[Block]:
    """List items of one paragraph each, as many as are beyond doubt."""
    found: list[Block] = []
    number = at
    while number < len(lines):
        line = lines[number]
        if _ITEM.match(line):
            first = number
            while number + 1 < len(lines) and _TEXT.match(lines[number + 1].lstrip(" ")):
                number += 1  # it goes on, however far it is indented
            found.append(Block("text", first, number + 1))
        elif line.strip(_BLANK):
            margin = line[0] not in _BLANK
            # what else is in the last item only the parser knows
            return found if margin and not lines[number - 1].strip(_BLANK) else found[:-1]
        number += 1
    return found


def _next_margin(lines: Sequence[str], at: int) -> int:
    """Where the next block begins that is in no list, quote or table which begins at a line."""
    for number in range(at + 1, len(lines)):
        line = lines[number]
        if _ITEM.match(line):
            return number
        if (line[:1] == "#" or _TEXT.match(line)) and not lines[number - 1].strip(_BLANK):
            return number
    return len(lines)


def _left_open(parsed: Sequence[Block], lines: Sequence[str], end: int) -> bool:
    """Whether a fence may go on behind the lines that were parsed."""
    last = parsed[-1] if parsed else None
    return last is not None and last.is_fence and last.outermost and not closes(last, lines)


def _parsed(lines: Sequence[str], start: int, end: int) -> Iterator[Block]:
    """The blocks of some lines, by the parser."""
    behind = "\n" if end < len(lines) else ""
    tokens = _parser().parse("\n".join(lines[start:end]) + behind)
    in_table = False
    for number, token in enumerate(tokens):
        if token.type in {"table_open", "table_close"}:
            in_table = token.type == "table_open"
        if token.map is None:
            continue
        first, after = token.map[0] + start, token.map[1] + start
        outermost = token.level == 0
        if token.type == "table_open":
            yield Block("dashes", first + 1, first + 2)
        elif token.type == "heading_open":
            text, level = tokens[number + 1].content, int(token.tag[1])
            yield Block("heading", first, after, text, level, token.markup, outermost)
        elif token.type in {"fence", "code_block", "hr"}:
            markup = token.markup if token.type == "fence" else ""
            yield Block("code", first, after, markup=markup, outermost=outermost)
        elif token.type == "inline" and tokens[number - 1].type != "heading_open":
            kind: Kind = "cells" if in_table else "text"
            yield Block(kind, first, after, token.content)
