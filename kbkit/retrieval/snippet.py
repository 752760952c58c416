"""Snippets: the part of a chunk that shows why it was found.

Every pattern here is bounded, since what it reads was written by strangers.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from html import unescape

from kbkit.markdown.links import without_link_targets
from kbkit.text import Analyzer, analyzer

_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r"\s{0,3}#{1,6}(?=\s|$)")
_ANCHOR = re.compile(r"\{#[^{}\s]*\}$")
_RULE_MARKS = "|:=*_- \t"
"""What lines are made of that part paragraphs, or underline headings and heads of tables."""
_BLOCK_STARTS = frozenset("|:=*_-+>0123456789")
"""What lines may begin with that are more than a paragraph's."""
_BLOCK_MARKS = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)])(?=\s|$)\s*|>\s*)*")
_CELL_END = re.compile(r"(?<!\\)\|")

_VERBATIM = re.compile(
    r"\\([!-/:-@\[-`{-~])"  # an escaped mark
    r"|(?<!`)(`+)(?!`)(.+?)(?<!`)\2(?!`)"  # code
)
_KEPT = re.compile(r"\0(\d+)\0")
_AUTOLINK = re.compile(r"<(https?://[^\s<>]*)>")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]\w{1,30});")
_EMPHASIS = re.compile(
    r"(\*{1,3})(?=\S)(.{1,300}?)(?<=\S)\1"
    r"|(?<!\w)(_{1,3})(?=\S)(.{1,300}?)(?<=\S)\3(?!\w)"
)


@lru_cache(maxsize=4_096)
def plain_text(markdown: str) -> str:
    """Markdown as one line of text: no marks and no link targets, code as it stands.

    Headings are left out, since a hit shows its heading path, unless there is nothing else.
    """
    text: list[str] = []
    prose: list[str] = []
    headings: list[str] = []
    fence = ""
    for line in markdown.replace("\0", "").splitlines():
        # most lines begin with a letter and are none of these
        first = line.lstrip()[:1]
        if fence or first in ("`", "~"):
            mark = _FENCE.match(line)
            if fence and mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
                continue
            if fence:
                text.append(line)
                continue
            if mark and "`" not in mark[2]:
                fence = mark[1]
                text.append(_inline(" ".join(prose)))
                prose.clear()
                continue
        if first == "#" and (heading := _HEADING.match(line)):
            headings.append(_ANCHOR.sub("", line[heading.end() :].strip()))
        elif first not in _BLOCK_STARTS:
            prose.append(line)
        elif line.strip(_RULE_MARKS):
            rest = line[_end_of(_BLOCK_MARKS, line) :]
            prose.append(_CELL_END.sub(" ", rest) if rest.startswith("|") else rest)
    text.append(_inline(" ".join(prose)))
    return " ".join(" ".join(text).split()) or " ".join(_inline(" ".join(headings)).split())


_BEGINNING = 3
"""Letters of a term that words with it hold, but for rare forms such as "lie" and "lying"."""
_SIGNS = "-@#$._"
"""What terms may begin with that words write otherwise."""


class TermMatcher(dict[str, frozenset[str]]):
    """The terms of a query that each word holds, found out once for all hits of the query.

    Args:
        terms: Analyzer terms of the query.
        analyzer: What made them.

    Attributes:
        signs: Finds what a word with one of them holds: its first letters, which stemming leaves.
            Words without are not looked at.
    """

    def __init__(self, terms: Collection[str], analyzer: Analyzer) -> None:
        super().__init__()
        self._terms = frozenset(terms)
        beginnings = sorted({re.escape(term.lstrip(_SIGNS)[:_BEGINNING]) for term in terms})
        self.signs = re.compile("|".join(beginnings) if beginnings else "(?!)", re.IGNORECASE)
        self._analyzer = analyzer

    def __missing__(self, word: str) -> frozenset[str]:
        found = self[word] = self._terms.intersection(_terms_of(word, self._analyzer))
        return found


@lru_cache(maxsize=200_000)
def _terms_of(word: str, analyzer: Analyzer) -> tuple[str, ...]:
    return tuple(analyzer.terms(word))


def snippet(markdown: str, matches: TermMatcher, length: int = 240) -> str:
    """The window of a chunk that holds most of the query's distinct terms.

    Args:
        markdown: The chunk.
        matches: Tells which words hold them.
        length: Most characters, apart from the ellipses.
    """
    text = plain_text(markdown)
    if len(text) <= length:
        return text
    first, last = _best_window(_found(text, matches, length // 3), length)
    start = max(0, first - length // 6)
    if start > 0:  # at a word, or inside one that is longer than the room for it
        start = text.find(" ", start, first) + 1 or start
    end = min(len(text), start + length)
    if end < len(text):
        space = text.rfind(" ", max(start + 1, last), end + 1)
        end = space if space > 0 else end
    return ("… " if start else "") + text[start:end] + (" …" if end < len(text) else "")


@dataclass(frozen=True, slots=True)
class LazySnippet:
    """A snippet that is cut when it is asked for.

    Attributes:
        markdown: The chunk.
        terms: Analyzer terms of the query.
        language: Of the analyzer.
    """

    markdown: str
    terms: tuple[str, ...]
    language: str

    def __call__(self) -> str:
        """The snippet."""
        return snippet(self.markdown, _matches(self.terms, self.language))


@lru_cache(maxsize=64)
def _matches(terms: tuple[str, ...], language: str) -> TermMatcher:
    return TermMatcher(terms, analyzer(language))


def _inline(text: str) -> str:
    """Text without links, emphasis, escapes and entities; code spans as they stand."""
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[1] or match[3].strip())
        return f"\0{len(kept) - 1}\0"

    if "`" in text or "\\" in text:
        text = _VERBATIM.sub(keep, text)
    if "](" in text:
        for _ in range(2):  # an image in a link
            text = without_link_targets(text)
    if "<http" in text:
        text = _AUTOLINK.sub(r"\1", text)
    for _ in range(2):  # soft in bold
        if "*" not in text and "_" not in text:
            break
        text, count = _EMPHASIS.subn(lambda match: match[2] or match[4], text)
        if not count:
            break
    if "&" in text:
        text = _ENTITY.sub(lambda match: unescape(match[0]), text)
    return _KEPT.sub(lambda match: kept[int(match[1])], text) if kept else text


def _end_of(pattern: re.Pattern[str], line: str) -> int:
    match = pattern.match(line)
    return match.end() if match else 0


def _found(text: str, matches: TermMatcher, long: int) -> list[tuple[int, frozenset[str]]]:
    """Where words with wanted terms stand; in a long word, where the terms themselves do."""
    found: list[tuple[int, frozenset[str]]] = []
    end = 0
    for sign in matches.signs.finditer(text):
        if sign.start() < end:
            continue
        start = text.rfind(" ", 0, sign.start()) + 1  # `plain_text` leaves single spaces
        end = text.find(" ", sign.end())
        end = end if end >= 0 else len(text)
        word = text[start:end]
        hit = matches[word]
        if hit and len(word) > long:
            folded = word.casefold()
            found += sorted((start + max(0, folded.find(t)), frozenset({t})) for t in hit)
        elif hit:
            found.append((start, hit))
    return found


def _best_window(found: list[tuple[int, frozenset[str]]], length: int) -> tuple[int, int]:
    """Where the first and the last word of the window with most terms begin."""
    best, window = 0, (0, 0)
    for i, (start, _) in enumerate(found):
        held = frozenset[str]()
        last = start
        for other, hit in found[i:]:
            if other - start > length * 2 // 3:
                break
            if not hit <= held:
                held = held | hit
                last = other
        if len(held) > best:
            best, window = len(held), (start, last)
    return window
