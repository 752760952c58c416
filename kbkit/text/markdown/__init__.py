"""Scan and convert Markdown; here the scanner of blocks: headings, code, raw HTML, tables, text.

The result equals that of markdown-it (CommonMark), which is slow and therefore parses only lines
with an ambiguous start; regular expressions recognize most others. Beyond CommonMark there are:

* front matter at the beginning, as a block;
* form feeds at the beginning of a line, which separate pages and count as line feeds;
* tables, with any number of cells in a row.

`kbkit.sources.html.fidelity` has its own reader, since it checks the output of `writing`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from functools import cache, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


class Kind(Enum):
    """Type of block."""

    HEADING = "heading"
    FENCE = "fence"
    CODE = "code"  # indented
    HTML = "html"  # also comments
    TABLE = "table"
    TEXT = "text"  # a paragraph, also in a list item or quote
    RULE = "rule"
    FRONT_MATTER = "front matter"


class Block(NamedTuple):
    """Whole lines, ``content[start:end]``, without the last line feed.

    Attributes:
        level: Heading level, from 1.
        markup: Opening or underline of a heading, or of a fence.
        item: Whether it is the first block of a list item.
    """

    kind: Kind
    start: int
    end: int
    level: int = 0
    title: str = ""
    markup: str = ""
    item: bool = False
    outermost: bool = True

    @property
    def is_verbatim(self) -> bool:
        return self.kind in _VERBATIM


_VERBATIM = frozenset({Kind.FENCE, Kind.CODE, Kind.HTML, Kind.FRONT_MATTER})

# Repeated groups are atomic, not possessive: before Python 3.11.5 a possessive group keeps the
# match of a failed repetition.
# Starts of text only: marks without another meaning, numbers that are no list markers, emphasis,
# code, addresses, and brackets that define no link
_LETTER = (
    r"(?:[^\s\d\#`~+*_=>|:\[<-]|\d(?!\d*[.)](?:\s|$))|`(?!``)|\*\*?(?=[^\s*])|_(?=[^\s_])"
    r"|\[(?>(?:\\[^\n]|[^\[\]\\\n])*)(?:\[|\](?!:))|<(?=https?:|mailto:))"
)
_MARKER = r"(?:[-*+]|\d{1,9}[.)])"
_ITEM = rf"{_MARKER}[ ]{{1,4}}{_LETTER}"
_HASHES = r"\#{1,6}(?=[ \t]|$)"
_TICKS = r"`{3,}(?=[^`\n]*$)|~{3,}"
_RAW = r"(?i:<(?:!--|\?|!\[CDATA\[|![a-z]|(?:pre|script|style|textarea)(?=[\s>])))"
_END_OF_TEXT = rf"[ \t]*+(?:\n|\Z)|{_HASHES}|{_TICKS}|{_RAW}|[-*+][ ]{{1,4}}[^\s]"
_BLOCK = re.compile(
    rf"""
      (?P<blank>(?>(?:[ \t]*+\n)+)|[ \t]++\Z)
    | (?P<text>(?>(?:{_LETTER}[^\n]*+(?:\n|\Z))+))
      (?={_END_OF_TEXT})
    | (?P<hashes>{_HASHES})(?P<title>[^\n]*+)
    | (?P<item>{_ITEM}[^\n]*+(?>(?:\n[ ]*+{_LETTER}[^\n]*+)*))
      (?=\n(?:{_MARKER}[ \t]|{_HASHES}|{_TICKS}|(?>(?:[ \t]*+\n)+)[^ \t\n])|[ \t\n]*+\Z)
    | [ ]{{0,3}}(?P<fence>{_TICKS})[^\n]*+
    | (?P<table>(?>(?:\|[^\n]*+(?:\n|\Z))+))(?=[ \t]*+(?:\n|\Z))
    """,
    re.MULTILINE | re.VERBOSE,
)
_MARGIN = re.compile(
    rf"\n(?:(?>(?:[ \t]*+\n)+)(?=\#|{_ITEM}|{_LETTER})|(?=[-*+][ ]{{1,4}}{_LETTER}))", re.MULTILINE
)
_RAW_START = re.compile(rf"[ ]{{0,3}}({_RAW})", re.MULTILINE)
_FRONT_MATTER = re.compile(
    r"---[ \t]*\n(?=[A-Za-z_][\w -]*:)(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?=\n|\Z)"
)
_BREAKS = re.compile(r"\r\n|\r|^\f+", re.MULTILINE)
_TEXT_ANCHOR = re.compile(r"(?<=\S)[ \t]+\{#([^\s{}\"'<>`]{1,200})\}[ \t\r\n]*\Z")
_BLANK_LINE = re.compile(r"\n[ \t]*(?=\n|\Z)")
_DASHES = re.compile(r"\n[ ]{0,3}[|:-][ \t|:-]*$", re.MULTILINE)
_FULL_DASHES = re.compile(r"\|(?: *:?-+:? *\|)+$", re.MULTILINE)
_RAW_ENDS = {
    "<!--": re.compile("-->"),
    "<?": re.compile(r"\?>"),
    "<![": re.compile(r"\]\]>"),
    "<!": re.compile(">"),
    "<": re.compile(r"</(?:pre|script|style|textarea)>", re.IGNORECASE),
}


def blocks(content: str) -> Iterator[Block]:
    """Iterate over the blocks of a text, parsed lazily."""
    text = same_breaks(content)
    at = 0
    if front := _FRONT_MATTER.match(text):
        at = front.end()
        yield Block(Kind.FRONT_MATTER, 0, at)
    while at < len(text):
        match = _BLOCK.match(text, at)
        if match and match.lastgroup == "blank":
            at = match.end()
        elif match and (block := _simple(match, text, at)):
            yield block
            at = block.end + 1
        else:
            parsed, end = _parse_blocks(text, at)
            yield from parsed
            at = max(end, parsed[-1].end + 1 if parsed else 0)


def change_blocks(text: str, parsed: Iterable[Block], change: Callable[[Block, str], str]) -> str:
    """Return a text with blocks changed; what is between them stays."""
    parts, at = [], 0
    for block in parsed:
        parts += [text[at : block.start], change(block, text[block.start : block.end])]
        at = block.end
    return "".join((*parts, text[at:]))


def same_breaks(content: str) -> str:
    """Normalize line breaks and form feeds to line feeds; the length stays."""
    if "\r" in content or "\f" in content:
        return _BREAKS.sub(
            lambda match: " \n" if match[0] == "\r\n" else "\n" * len(match[0]), content
        )
    return content


def is_closed(fence: Block, content: str) -> bool:
    last_line = content.rfind("\n", fence.start, fence.end) + 1
    return last_line > fence.start and bool(_fence_end(fence.markup).match(content, last_line - 1))


def _simple(match: re.Match[str], text: str, at: int) -> Block | None:
    kind = match.lastgroup
    end = match.end()
    if kind == "text":
        return Block(Kind.TEXT, at, end - (text[end - 1] == "\n"))
    if kind == "item":
        return Block(Kind.TEXT, at, end, item=True, outermost=False)
    if kind == "title":
        if "|" in match["title"] and _DASHES.match(text, end):
            return None  # the head of a table
        title = match["title"].strip(" \t")
        trimmed = title.rstrip("#")
        title = (trimmed if not trimmed or trimmed[-1] in " \t" else title).strip()
        return Block(Kind.HEADING, at, end, len(match["hashes"]), title, match["hashes"])
    if kind == "fence":
        if "|" in match[0] and _DASHES.match(text, end):
            return None
        return _reaching(Block(Kind.FENCE, at, end, markup=match["fence"]), text)
    return Block(Kind.TABLE, at, end - (text[end - 1] == "\n")) if _is_table(match[0]) else None


def _is_table(rows: str) -> bool:
    head, _, remaining = rows.partition("\n")
    head = head.rstrip(" \t")
    dashes = _FULL_DASHES.match(remaining)
    return (
        dashes is not None
        and head[-1] == "|"
        and "\\" not in head
        and head.count("|") == dashes[0].count("|")
    )


def _reaching(block: Block, text: str) -> Block:
    if block.kind is Kind.FENCE:
        close = _fence_end(block.markup).search(text, block.start)
        return block._replace(end=close.end() if close else _last(text))
    start = _RAW_START.match(text, block.start)
    if start is None:  # HTML of other tags ends before a blank line
        blank = _BLANK_LINE.search(text, block.start)
        return block._replace(end=blank.start() if blank else _last(text))
    ending = next(end for mark, end in _RAW_ENDS.items() if start[1].startswith(mark))
    close = ending.search(text, block.start)
    line = text.find("\n", close.end()) if close else -1
    return block._replace(end=line if line >= 0 else _last(text))


@lru_cache(maxsize=64)
def _fence_end(markup: str) -> re.Pattern[str]:
    return re.compile(rf"\n[ ]{{0,3}}{markup}{markup[0]}*[ \t]*(?=\n|\Z)")


def _last(text: str) -> int:
    return len(text) - text.endswith("\n")


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # most texts need none

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


_LEAVES = {
    "fence": Kind.FENCE,
    "code_block": Kind.CODE,
    "html_block": Kind.HTML,
    "table_open": Kind.TABLE,
    "heading_open": Kind.HEADING,
    "paragraph_open": Kind.TEXT,
    "hr": Kind.RULE,
}


def _parse_blocks(text: str, start: int) -> tuple[list[Block], int]:
    """Return the blocks up to the next safe boundary, and the boundary; the last may exceed it."""
    margin = _MARGIN.search(text, start)
    end = margin.end() if margin else len(text)
    source = text[start:end]
    tokens = _parser().parse(source)
    lines = list(accumulate((len(line) + 1 for line in source.split("\n")), initial=start))
    parsed = []
    item = -1
    for number, token in enumerate(tokens):
        kind = _LEAVES.get(token.type)
        if token.type == "list_item_open" and token.map:
            item = token.map[0]
        if kind is None or token.map is None:
            continue
        first, after = token.map
        is_heading = kind is Kind.HEADING
        level, title = (int(token.tag[1]), tokens[number + 1].content) if is_heading else (0, "")
        markup = token.markup if is_heading or kind is Kind.FENCE else ""
        bounds = lines[first], lines[after] - 1
        parsed.append(Block(kind, *bounds, level, title, markup, first == item, not token.level))
        item = -1
    if parsed and parsed[-1].outermost and parsed[-1].kind in {Kind.FENCE, Kind.HTML}:
        parsed[-1] = _reaching(parsed[-1], text)
    return parsed, end


def text_anchor(block: Block, text: str) -> tuple[str, str]:
    return without_text_anchor(text) if block.kind is Kind.TEXT else (text, "")


def without_text_anchor(text: str) -> tuple[str, str]:
    match = _TEXT_ANCHOR.search(text) if "{#" in text else None
    return (text[: match.start()], match[1]) if match else (text, "")
