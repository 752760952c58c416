"""Reads the structure of Markdown: headings, blocks that must not be cut, and page marks.

Offsets are characters from the start of the content. Only what chunking needs is parsed, by
CommonMark's rules for headings and fences; nothing here fails, whatever the text.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

LONGEST_TITLE = 200
"""Characters of a heading that a heading path keeps."""


class Kind(Enum):
    """What a block is, as far as cutting it goes."""

    HEADING = "heading"
    """Stays with what follows."""
    LINES = "lines"
    """Code, a table or raw HTML: stays whole, or is cut at line ends."""
    LIST = "list"
    """Cut between items first."""
    PROSE = "prose"
    """Cut between sentences."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: ``content[start:end]``, with the titles of those above it and its own."""

    start: int
    end: int
    level: int
    path: tuple[str, ...]
    anchor: str


@dataclass(frozen=True, slots=True)
class Block:
    """A block of text, ``content[start:end]``."""

    start: int
    end: int
    kind: Kind


@dataclass(slots=True)
class Outline:
    """The structure of one document.

    Attributes:
        headings: In order.
        opaque: Ranges of fences, raw HTML and front matter, in order and apart.
        pages: Start and end of each page mark and the number of the page behind it, in order.
    """

    headings: list[Heading] = field(default_factory=list)
    opaque: list[tuple[int, int]] = field(default_factory=list)
    pages: list[tuple[int, int, int]] = field(default_factory=list)


_SPECIAL = re.compile(
    r"""^\f?(?:
    (?P<lead>[ \t]*(?:(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]))[ \t]*)*)
      (?P<fence>`{3,}(?=[^`\n]*$)|~{3,})
    |[ ]{0,3}(?P<hashes>\#{1,6})(?=[ \t\r\n]|\Z)(?P<title>[^\n]*)
    |[ ]{0,3}(?P<under>=+|-{2,})[ \t\r]*$
    |[ ]{0,3}(?P<html><!--|<(?P<tag>pre|script|style|textarea)\b)
    )""",
    re.MULTILINE | re.VERBOSE | re.IGNORECASE,
)
_PAGE_MARK = re.compile(r"<!--[ \t]*page[ \t]+(\d{1,9})[ \t]*-->", re.IGNORECASE)
_FRONT_MATTER = re.compile(
    r"---[ \t]*\r?\n(?=[A-Za-z_][\w -]*:)(?:.*\n)*?(?:---|\.\.\.)[ \t\r]*(?:\n|\Z)"
)
_NO_PARAGRAPH = re.compile(r"[ ]{4}|[ ]{0,3}(?:\t|[>|]|(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$))")
_ANCHOR = re.compile(r"[ \t]*\{:?[ \t]*(?:[^{}#\s]+[ \t]+)*#([^\s{}]+)[^{}\n]*\}[ \t\r]*$")
_CLOSING_HASHES = re.compile(r"(?:^|(?<=[ \t]))#+[ \t\r]*$")
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_TABLE = re.compile(r"^[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+\|?[ \t\r]*$", re.M)
_PIPE_TABLE = re.compile(r"^[ \t>]*\|[ \t]*:?-+:?[ \t]*\|[ \t\r]*$", re.M)
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_ITEM_LINE = re.compile(r"\n(?=[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t])")


def outline(content: str) -> Outline:
    """Find headings, opaque ranges and page marks."""
    return _Scanner(content).scan()


class _Scanner:
    def __init__(self, content: str) -> None:
        self._content = content
        self._found = Outline()
        self._raw: list[tuple[int, int, int, str]] = []
        self._floor = 0  # start of the line behind the last special thing
        self._never: dict[str, int] = {}  # what is known not to be closed any more

    def scan(self) -> Outline:
        content = self._content
        front = _FRONT_MATTER.match(content)
        if front:
            self._opaque(0, front.end())
        while match := _SPECIAL.search(content, self._floor):
            before = self._floor
            if match["fence"]:
                self._fence(match)
            elif match["hashes"]:
                self._heading(match.start("hashes"), match.end(), len(match["hashes"]),
                              match["title"])  # fmt: skip
            elif match["under"]:
                self._underline(match)
            else:
                self._html(match)
            if self._floor <= before:
                self._floor = self._line_behind(match.end())
        self._form_feeds()
        self._name_headings()
        return self._found

    def _line_behind(self, offset: int) -> int:
        newline = self._content.find("\n", offset)
        return len(self._content) if newline < 0 else newline + 1

    def _opaque(self, start: int, end: int) -> None:
        self._found.opaque.append((start, end))
        self._floor = max(self._line_behind(max(end - 1, start)), self._floor)

    def _fence(self, match: re.Match[str]) -> None:
        mark, count = match["fence"][0], len(match["fence"])
        nested = bool(match["lead"].strip(" ")) or len(match["lead"]) >= 4
        start = match.start("fence") if match["lead"].strip() else match.start("lead")
        if count < self._never.get(mark, count + 1):
            close = re.compile(rf"^[ \t>]*{mark}{{{count},}}[ \t\r]*$", re.MULTILINE)
            found = close.search(self._content, match.end())
            if found:
                self._opaque(start, found.end())
                return
            self._never[mark] = count
        # Unclosed, it runs to the end; inside a list or quotation the end is not known, and
        # rather than swallow the document it counts as text.
        if not nested:
            self._opaque(start, len(self._content))

    def _html(self, match: re.Match[str]) -> None:
        start = match.start("html")
        page = _PAGE_MARK.match(self._content, start)
        if page:
            self._found.pages.append((start, page.end(), int(page[1])))
            return
        tag = (match["tag"] or "").lower()
        close = re.compile(rf"</{tag}\s*>", re.IGNORECASE) if tag else re.compile("-->")
        if tag in self._never:
            return
        found = close.search(self._content, match.end())
        if found:
            self._opaque(start, found.end())
        else:
            self._never[tag] = 0

    def _underline(self, match: re.Match[str]) -> None:
        """A heading whose paragraph is underlined; without a paragraph it is a rule."""
        content = self._content
        start = match.start()
        while start > self._floor:
            line = content.rfind("\n", self._floor, start - 1) + 1 or self._floor
            if not content[line : start - 1].strip():
                break
            start = line
        paragraph = content[start : match.start()]
        if paragraph.strip() and not _NO_PARAGRAPH.match(paragraph):
            start += len(paragraph) - len(paragraph.lstrip())
            title = paragraph[: LONGEST_TITLE * 4].strip()
            self._heading(start, match.end(), 1 if match["under"][0] == "=" else 2, title)

    def _heading(self, start: int, end: int, level: int, title: str) -> None:
        self._raw.append((start, end, level, title))
        self._floor = self._line_behind(end)

    def _form_feeds(self) -> None:
        if self._found.pages or "\f" not in self._content:
            return
        starts = [start for start, _ in self._found.opaque]
        number = 1
        self._found.pages.append((0, 0, 1))
        for match in re.finditer("\f", self._content):
            inside = bisect_right(starts, match.start()) - 1
            if inside < 0 or self._found.opaque[inside][1] <= match.start():
                number += 1
                self._found.pages.append((match.start(), match.end(), number))

    def _name_headings(self) -> None:
        """Give every heading its path and anchor."""
        split = [split_anchor(title) for _, _, _, title in self._raw]
        used = {anchor for _, anchor in split if anchor}
        stack: list[tuple[int, str]] = []
        numbers: dict[str, int] = {}
        for (start, end, level, _), (title, anchor) in zip(self._raw, split, strict=True):
            text = plain(title)
            while stack and stack[-1][0] >= level:
                stack.pop()
            stack.append((level, text))
            path = tuple(above for _, above in stack if above)
            name = anchor or _unique(slug(text), used, numbers)
            self._found.headings.append(Heading(start, end, level, path, name))


def split_anchor(title: str) -> tuple[str, str]:
    """A heading's text without marks of its end, and the anchor it carries or ``""``."""
    title = _CLOSING_HASHES.sub("", title[: LONGEST_TITLE * 4].strip()).rstrip()
    found = _ANCHOR.search(title)
    if not found:
        return title, ""
    text = _CLOSING_HASHES.sub("", title[: found.start()]).rstrip()
    return text or title, found[1]


_MARKUP = re.compile(r"[`*_\[\\<&]")
_CODE = re.compile(r"(?<![`\\])(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\])")
_AUTOLINK = re.compile(r"<((?:https?|ftp|mailto):[^\s<>]+)>")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<!--.*?-->", re.DOTALL)
_EMPHASIS = re.compile(r"(\*{1,3}|(?<!\w)_{1,3})(?=\S)(.+?)(?<=\S)\1(?!(?<=_)\w)", re.DOTALL)
_HIDDEN = 0xF0000  # a private area, where escaped characters wait
_HIDE = {code: _HIDDEN + code for code in range(0x80)}
_SHOWN = {hidden: code for code, hidden in _HIDE.items()}


def plain(markup: str) -> str:
    """A heading's Markdown as plain text on one line, at most `LONGEST_TITLE` characters."""
    if not _MARKUP.search(markup):
        return _shorten(markup)
    parts: list[str] = []
    position = 0
    for code in _CODE.finditer(markup):
        parts.append(_plain_text(markup[position : code.start()]))
        parts.append(code[2].strip().translate(_HIDE))
        position = code.end()
    parts.append(_plain_text(markup[position:]))
    text = "".join(parts)
    for _ in range(3):  # emphasis may span code, and nest
        text = _EMPHASIS.sub(r"\2", _LINK.sub(r"\1", text))
    return _shorten(text.translate(_SHOWN))


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_TITLE else text[: LONGEST_TITLE - 1].rstrip() + "…"


def _plain_text(markup: str) -> str:
    text = _ESCAPE.sub(lambda escape: chr(_HIDDEN + ord(escape[1])), markup)
    return html.unescape(_TAG.sub("", _AUTOLINK.sub(r"\1", text)))


def slug(text: str) -> str:
    """The anchor that MkDocs gives a heading without one of its own."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    words = re.sub(r"[^\w\s-]", "", ascii_text).strip().lower()
    return re.sub(r"[-\s]+", "-", words)


def _unique(anchor: str, used: set[str], numbers: dict[str, int]) -> str:
    """The anchor, numbered as MkDocs does when it is taken or empty."""
    if not anchor or anchor in used:
        counted = re.fullmatch(r"(.+)_(\d{1,9})", anchor)
        stem, number = (counted[1], int(counted[2])) if counted else (anchor, 0)
        number = max(number, numbers.get(stem, 0)) + 1
        while f"{stem}_{number}" in used:
            number += 1
        numbers[stem] = number
        anchor = f"{stem}_{number}"
    used.add(anchor)
    return anchor


def blocks(content: str, start: int, end: int, structure: Outline) -> Iterator[Block]:
    """The blocks of ``content[start:end]`` in order; only white space lies between them."""
    solid = [
        Block(*trim(content, low, min(high, end)), kind)
        for kind, ranges in (
            (Kind.HEADING, [(heading.start, heading.end) for heading in structure.headings]),
            (Kind.LINES, structure.opaque),
        )
        for low, high in _within(ranges, start, end)
    ]
    solid.sort(key=lambda block: block.start)
    position = start
    for block in solid:
        yield from _loose_blocks(content, position, block.start)
        yield block
        position = block.end
    yield from _loose_blocks(content, position, end)


def _within(ranges: list[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    return ranges[bisect_left(ranges, (start, 0)) : bisect_left(ranges, (end, 0))]


def _loose_blocks(content: str, start: int, end: int) -> Iterator[Block]:
    """Paragraphs, lists and tables of a range without headings and opaque parts."""
    position = start
    while position < end:
        blank = _BLANK_LINES.search(content, position, end)
        low, high = trim(content, position, blank.start() if blank else end)
        if low < high:
            yield Block(low, high, _kind(content, low, high))
        position = blank.end() if blank else end


def _kind(content: str, start: int, end: int) -> Kind:
    if _ITEM.match(content, start, end):
        return Kind.LIST
    if content.find("|", start, end) >= 0 and (
        _TABLE.search(content, start, end) or _PIPE_TABLE.search(content, start, end)
    ):
        return Kind.LINES
    line = content.rfind("\n", 0, start) + 1
    indented = start - line >= 4 or "\t" in content[line:start]
    return Kind.LINES if indented else Kind.PROSE


def items(content: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The items of a list, each with its continuation lines."""
    position = start
    for match in _ITEM_LINE.finditer(content, start, end):
        yield position, match.start()
        position = match.end()
    yield position, end


_TEXT = re.compile(r"\S")


def trim(content: str, start: int, end: int) -> tuple[int, int]:
    """The range without white space at both ends; empty when there is nothing else."""
    first = _TEXT.search(content, start, end)
    if first is None:
        return start, start
    while content[end - 1].isspace():
        end -= 1
    return first.start(), end
