"""Read Markdown: plain text, links, headings with paths and anchors, and page boundaries.

All patterns are bounded: texts are untrusted.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import unescape
from itertools import count
from textwrap import dedent

from kbkit.text.markdown import Block, Kind, blocks, change_blocks, text_anchor

MAX_TITLE_LENGTH = 200

PAGE_MARK = re.compile(r"\s*(<!--[ \t]*page[ \t]+(\d{1,9})[ \t]*-->)", re.IGNORECASE)
"""Comment that marks the start of a page."""
_ATTRIBUTES = re.compile(r"\{:?[ \t]*(?:[^{}#\s]+[ \t]+)*#([^\s{}\"'<>]+)[^{}\n]*\}")
_ANCHOR = re.compile(r"[ \t]*\{[^{}\n]*\}[ \t\r]*$", re.MULTILINE)
_LOGO = re.compile(r"\[?!\[([^\[\]\n]{1,200})\]\([^()\n]*\)(?:\]\([^()\n]*\))?")
_TEXT = re.compile(r"\S")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading, ``content[start:end]``, with its path."""

    start: int
    end: int
    level: int
    path: tuple[str, ...]
    anchor: str


@dataclass(frozen=True, slots=True)
class Outline:
    """The structure of one document.

    Attributes:
        blocks: All blocks except page marks, in order.
        pages: Start and end of each page mark, and the number of the following page, in order.
        anchors: Start and anchor of paragraphs and list items with an anchor, in order.
    """

    blocks: Sequence[Block]
    headings: Sequence[Heading]
    pages: Sequence[tuple[int, int, int]]
    anchors: Sequence[tuple[int, str]]


def outline(content: str) -> Outline:
    parsed: list[Block] = []
    pages: list[tuple[int, int, int]] = []
    for block in blocks(content):
        mark = PAGE_MARK.match(content, block.start) if block.kind is Kind.HTML else None
        if mark:
            pages.append((*mark.span(1), int(mark[2])))
        else:
            parsed.append(block)
    pages = pages or list(_form_feeds(content, parsed))
    text_anchors = [
        (block.start, anchor)
        for block in parsed
        if (anchor := text_anchor(block, content[block.start : block.end])[1])
    ]
    return Outline(parsed, _headings(content, parsed), pages, text_anchors)


def _form_feeds(content: str, parsed: Sequence[Block]) -> Iterator[tuple[int, int, int]]:
    if "\f" not in content:
        return
    yield 0, 0, 1
    number = 1
    for match in re.finditer("\f", content):
        index = bisect_right(parsed, match.start(), key=lambda block: block.start) - 1
        if index < 0 or parsed[index].end <= match.start() or not parsed[index].is_verbatim:
            number += 1
            yield *match.span(), number


def _headings(content: str, parsed: Sequence[Block]) -> list[Heading]:
    heading_blocks = [block for block in parsed if block.kind is Kind.HEADING and block.outermost]
    titles = [split_anchor(block.title) for block in heading_blocks]
    texts = [heading_text(title) for title, _ in titles]
    names = anchors(texts, [anchor for _, anchor in titles])
    stack: list[tuple[int, str]] = []
    headings = []
    for block, text, name in zip(heading_blocks, texts, names, strict=True):
        while stack and stack[-1][0] >= block.level:
            stack.pop()
        stack.append((block.level, text))
        path = tuple(above for _, above in stack if above)
        start = trim(content, block.start, block.end)[0]
        headings.append(Heading(start, block.end, block.level, path, name))
    return headings


def document_title(content: str) -> str:
    """Return the first heading of level 1, else the initial heading or picture text, or ``""``."""
    begin = ""
    for number, block in enumerate(blocks(content)):
        if block.kind is Kind.HEADING and block.outermost and (number == 0 or block.level == 1):
            begin = heading_text(split_anchor(block.title)[0])
            if block.level == 1:
                return begin
        elif number == 0 and (logo := _LOGO.fullmatch(content[block.start : block.end].strip())):
            begin = heading_text(logo[1])
    return begin


def heading_text(title: str) -> str:
    """Convert a heading to one line of plain text of at most `MAX_TITLE_LENGTH` characters."""
    text = inline_text(" ".join(title[: MAX_TITLE_LENGTH * 4].split()), tags=False)
    text = " ".join(text.split())
    return text if len(text) <= MAX_TITLE_LENGTH else text[: MAX_TITLE_LENGTH - 1].rstrip() + "…"


def split_anchor(title: str) -> tuple[str, str]:
    """Split ``{#anchor}`` or ``{: #anchor .class }`` from a heading; the anchor may be ``""``."""
    title = title.rstrip(" \t\r")
    start = title.rfind("{") if title.endswith("}") else -1
    match = _ATTRIBUTES.fullmatch(title, start) if start >= 0 else None
    if match is None:
        return title, ""
    text = title[:start].rstrip(" \t")
    # MkDocs treats backslashes in addresses as path separators
    return text or title, match[1].replace("\\", "")


def without_anchors(text: str) -> str:
    def bare(block: Block, source: str) -> str:
        if block.kind is Kind.HEADING and split_anchor(block.title)[1]:
            return _ANCHOR.sub("", source, count=1)
        return text_anchor(block, source)[0]

    return change_blocks(text, blocks(text), bare) if "#" in text and "}" in text else text


def anchors(texts: Sequence[str], given: Sequence[str]) -> list[str]:
    used = set(given)
    numbers: dict[str, int] = {}
    return [
        anchor or _unique(slug(text), used, numbers)
        for text, anchor in zip(texts, given, strict=True)
    ]


def slug(text: str) -> str:
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_text).strip().lower())


def _unique(anchor: str, used: set[str], numbers: dict[str, int]) -> str:
    if not anchor or anchor in used:
        match = re.fullmatch(r"(.+)_(\d{1,9})", anchor)
        stem, number = (match[1], int(match[2])) if match else (anchor, 0)
        number = max(number, numbers.get(stem, 0)) + 1
        while f"{stem}_{number}" in used:
            number += 1
        numbers[stem] = number
        anchor = f"{stem}_{number}"
    used.add(anchor)
    return anchor


def trim(content: str, start: int, end: int) -> tuple[int, int]:
    """Return the range without white space at both ends; empty if there is no text."""
    match = _TEXT.search(content, start, end)
    if match is None:
        return start, start
    while content[end - 1].isspace():
        end -= 1
    return match.start(), end


_END = 48  # characters of a start or end, as in `assets/snippet.js`
MAX_LENGTH = 80
NEAR = 400
"""Characters after an anchor that a reader sees without scrolling."""
_MIN_WORDS = 3  # fewer may occur several times in a page
_MAX_CHARACTERS = 4_000  # read of a passage
_MARKS = re.compile(r"^(?:\s*(?:(?:[-*+]|\d{1,9}[.)])(?=\s|$)|>|\[[ xX]\]))*\s*")
_TERM = re.compile(r"^(?:\*\*(?:[^*\n]|\*(?!\*)){1,300}\*\*|`[^`\n]{1,300}`): ")
"""A term and the colon before its definition: two HTML blocks."""
_BREAK = re.compile(r"\\\n| {2,}\n|[ \t]*\n[ \t]*(?=(?:[-*+>|]|\d{1,9}[.)])\s)")
_UNSEEN = re.compile(r"!\[|<br|\$")
"""Syntax without visible text."""
_OPENING_MARKS = re.compile(r"[\s*_`(\[]+$")
_MARKED = re.compile(r"`[^`\n]+`|\*\*[^*\n]+\*\*|\]\(")
_SPACE = re.compile(r"[ \t\n\r\f\v]+")  # not `\s`: browsers search for thin spaces, too
_CELL_END = re.compile(r"(?<!\\)\|")
_PAUSE = re.compile(r"(?<=[。！？、，；：])")


def passage_ends(markdown: str) -> str:
    """Return the first and last words of a passage; must match ``ends`` in the scripts."""
    text = plain_text(markdown)
    parts = [text]
    if len(text) > 2 * _END:
        parts = [re.sub(r"\s\S*$", "", text[:_END]), re.sub(r"^\S*\s", "", text[-_END:])]
    return "…".join(re.sub(r"[…\s\ud800-\udfff]", " ", part) for part in parts)


@lru_cache(maxsize=4_096)
def opening_words(markdown: str, *, from_top: bool = False) -> str:
    """Return the first line with enough words, else the first line or the heading."""
    text = markdown[:_MAX_CHARACTERS].replace("\0", "")
    first_line, heading = "", ""
    for block in blocks(text):
        if block.kind is Kind.HEADING and not first_line:
            title, anchor = split_anchor(block.title)
            if anchor or (from_top and not heading):
                return ""
            heading = heading or _shorten(inline_text(title))
            continue
        source, anchor = text_anchor(block, text[block.start : block.end])
        if anchor and not first_line and not heading:
            return ""
        for line in _lines(block, source):
            words = _shorten(line)
            if len(words.split()) >= _MIN_WORDS or len(words) > MAX_LENGTH // 2:
                return words
            first_line = first_line or words
    return first_line or heading


def snippet_line(markdown: str, text: str) -> str:
    """Return the first line of a snippet that has enough words and is far below its heading."""
    snippet = _SPACE.sub(" ", text)
    return next((words for words in _far_lines(markdown) if words in snippet), "")


@lru_cache(maxsize=4_096)
def _far_lines(markdown: str) -> tuple[str, ...]:
    text, far, above = markdown[:_MAX_CHARACTERS].replace("\0", ""), list[str](), 0
    for block in blocks(text):
        if block.kind is Kind.HEADING:
            continue
        for line in _lines(block, text[block.start : block.end]):
            if above > NEAR and len((words := _shorten(line)).split()) >= _MIN_WORDS:
                far.append(words)
            above += len(line)
    return tuple(far)


def _lines(block: Block, text: str) -> Iterator[str]:
    if block.kind is Kind.TEXT:
        text = _TERM.sub("", _MARKS.sub("", text, count=1), count=1)
        for line in _BREAK.split(text):
            visible, *hidden = _UNSEEN.split(line, maxsplit=1)
            yield _plain(_OPENING_MARKS.sub("", visible) if hidden else visible)
    elif block.kind is Kind.TABLE:
        for row in text.split("\n"):
            yield from (inline_text(cell.strip()) for cell in _CELL_END.split(row.strip(" >|")))
    elif block.kind is Kind.FENCE:
        yield from text.split("\n")[1:]
    elif block.kind is Kind.CODE:  # may be text of a list that starts before the passage
        yield from (_plain(line) if _MARKED.search(line) else line for line in text.split("\n"))


def _plain(line: str) -> str:
    return inline_text(_MARKS.sub("", line, count=1))


def _shorten(text: str) -> str:
    """Cut a text to `MAX_LENGTH` characters, at the end of a word if possible."""
    text = _SPACE.sub(" ", text).strip()
    if len(text) <= MAX_LENGTH:
        return text
    end = text.rfind(" ", 0, MAX_LENGTH + 1)
    if end > 0:
        return text[:end]
    end = max((pause.end() for pause in _PAUSE.finditer(text[:MAX_LENGTH])), default=MAX_LENGTH)
    return text[:end]


SAFE_SCHEMES = frozenset({"http", "https", "mailto"})

RELATIVE = re.compile(r"(?!//)[\w./%~+-][\w./%~+#?&=-]*")
"""An address within a site, without special characters of Markdown."""

DESTINATION = re.compile(
    r"\]\(\s*(?:<([^<>\n]*)>|(?!<)((?:\\.|\((?:\\.|[^\s()\\])*\)|[^\s()\\])*))(?=[\s)])"
)
"""Address after a link's text, in angle brackets (1) or bare (2)."""

CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)

WIKI_LINK = re.compile(
    r"\[\[([^\[\]\n|#^]{1,500})(?:[#^]([^\[\]\n|]{0,500}))?(?:\|([^\[\]\n]{0,500}))?\]\]"
)
"""A link by name (``[[Name#Heading|text]]``): name, heading and text."""

_LINK = re.compile(
    r"!?\[((?:[^\[\]\n]|\[[^\[\]\n]{0,400}\]){0,400})\]"  # text, with one level of nested brackets
    r"\((?:<[^<>\n]*>|[^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'))?\s*\)"
)


def links(markdown: str) -> list[re.Match[str]]:
    """Find links and images with labels of at most 400 characters (group 1)."""
    return list(_LINK.finditer(markdown)) if "](" in markdown else []


def without_link_targets(markdown: str) -> str:
    """Replace links and images by their labels, if those have at most 400 characters."""
    return _LINK.sub(r"\1", markdown) if "](" in markdown else markdown


_MARKUP = re.compile(r"[`*_\[\\<&]")
_LINE_MARKS = re.compile(r"^(?:\s*(?:(?:[-*+]|\d{1,9}[.)])(?=\s|$)|>))*\s*")
_DASHES = re.compile(r"[\s>|:-]*")
_ROW = re.compile(r"^[ >]*\|[^\n]*[^\\\n]\|[ ]*$", re.MULTILINE)
_TITLE_ANCHOR = re.compile(r"\{#[^{}\s]*\}$")
_VERBATIM = re.compile(
    r"\\([!-/:-@\[-`{-~])"  # an escaped mark
    r"|(?<!`)(`+)(?!`)(.+?)(?<!`)\2(?!`)"  # code
)
_PLACEHOLDER = re.compile(r"\0(\d+)\0")
_AUTOLINK = re.compile(r"<((?:https?|ftp|mailto):[^\s<>]*)>")
_TAG = re.compile(
    r"</?(?:abbr|b|big|br|BR|center|cite|code|del|div|em|font|h[1-6]|i|img|IMG|ins|kbd|mark|p|picture|"
    r"q|s|samp|small|source|span|strong|sub|sup|svg|tt|u|var|wbr)(?:\s[^<>]*)?/?>|"
    r"<a\s[^<>]*>|</a>|<!--.*?-->"
)
"""HTML tags; other names in angle brackets may be types (``List<String>``) or named elements."""
_REFERENCE = re.compile(r"(?<![\w\]])!?\[([^\[\]]{0,400})\]\[[^\[\]]{0,400}\]")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]\w{1,30});")
_EMPHASIS = re.compile(
    r"(\*{1,3})(?=\S)(.{1,300}?)(?<=\S)\1"
    r"|(?<!\w)(_{1,3})(?=\S)(.{1,300}?)(?<=\S)\3(?!\w)"
)


@lru_cache(maxsize=4_096)
def plain_text(markdown: str, *, lines: bool = False) -> str:
    """Remove Markdown's marks and link targets; code stays unchanged.

    Headings are left out, since a hit shows its heading path, unless there is no other text.
    """
    markdown = markdown.replace("\0", "")
    text: list[str] = []
    headings: list[str] = []
    for block in blocks(markdown):
        piece = markdown[block.start : block.end]
        if block.kind is Kind.HEADING:
            headings.append(inline_text(_TITLE_ANCHOR.sub("", block.title)))
        elif block.kind is Kind.FENCE:
            code = piece.splitlines()
            closed = len(code) > 1 and code[-1].lstrip(" \t>").startswith(block.markup)
            text += _dedent(code[1 : -1 if closed else None])
        elif block.kind is Kind.TABLE:
            head, _, *rows = piece.splitlines()
            text += map(_row, (head, *rows))
        elif block.kind is Kind.TEXT and _ROW.search(piece):  # table rows without their head
            text += map(_row, piece.splitlines())
        elif block.kind is Kind.TEXT:
            if block.item or not block.outermost:
                piece = " ".join(_LINE_MARKS.sub("", line) for line in piece.splitlines())
            piece = text_anchor(block, piece)[0]
            text.append(_one_line(inline_text(" ".join(piece.splitlines()))))
        elif block.kind is not Kind.RULE:
            text += _dedent(piece.splitlines())
    text = text or headings
    return "\n".join(filter(None, text)) if lines else _one_line(" ".join(text))


def _row(row: str) -> str:
    return _one_line(inline_text(_CELL_END.sub(" ", row.lstrip(" >"))))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _dedent(code: list[str]) -> list[str]:
    text = dedent("\n".join(line.expandtabs(4).rstrip() for line in code))
    return text.replace("\r", " ").split("\n")


def inline_text(markup: str, *, tags: bool = True) -> str:
    """Remove links, emphasis, escapes and entities from a line of Markdown; code stays."""
    if not _MARKUP.search(markup):
        return markup
    verbatim = [match[1] or match[3].strip() for match in _VERBATIM.finditer(markup)]
    numbers = count()
    text = _AUTOLINK.sub(r"\1", _VERBATIM.sub(lambda _: f"\0{next(numbers)}\0", markup))
    text = text if tags else _TAG.sub("", text)
    for _ in range(2):  # an image in a link
        text = without_link_targets(text)
    if "][" in text:
        text = _REFERENCE.sub(r"\1", text)
    for _ in range(3 if "*" in text or "_" in text else 0):  # emphasis may nest
        text = _EMPHASIS.sub(lambda match: match[2] or match[4], text)
    text = _ENTITY.sub(lambda match: unescape(match[0]), text)
    return _PLACEHOLDER.sub(lambda match: verbatim[int(match[1])], text)
