"""Snippets: the part of a chunk that shows why it was found.

Every pattern here is bounded, since what it reads was written by strangers.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from kbkit.text import Analyzer, without_link_targets

_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r"\s{0,3}#{1,6}(?=\s|$)")
_ANCHOR = re.compile(r"\{#[^{}\s]*\}$")
_RULE_MARKS = "|:=*_- \t"
"""What lines are made of that part paragraphs, or underline headings and heads of tables."""
_BLOCK_MARKS = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)])(?=\s|$)\s*|>\s*)*")
_CELL_END = re.compile(r"(?<!\\)\|")

_VERBATIM = re.compile(
    r"\\([!-/:-@\[-`{-~])"  # an escaped mark
    r"|(?<!`)(`+)(?!`)(.+?)(?<!`)\2(?!`)"  # code
)
_KEPT = re.compile(r"\0(\d+)\0")
_AUTOLINK = re.compile(r"<(https?://[^\s<>]*)>")
_EMPHASIS = re.compile(
    r"(\*{1,3})(?=\S)(.{1,300}?)(?<=\S)\1"
    r"|(?<!\w)(_{1,3})(?=\S)(.{1,300}?)(?<=\S)\3(?!\w)"
)
_WORD = re.compile(r"\S+")


def plain(markdown: str) -> str:
    """Markdown as one line of text: no marks and no link targets, code as it stands.

    Headings are left out, since a hit shows its heading path, unless there is nothing else.
    """
    text: list[str] = []
    prose: list[str] = []
    headings: list[str] = []
    fence = ""
    for line in markdown.replace("\0", "").splitlines():
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
            else:
                text.append(line)
        elif mark and "`" not in mark[2]:
            fence = mark[1]
            text.append(_inline(" ".join(prose)))
            prose.clear()
        elif heading := _HEADING.match(line):
            headings.append(_ANCHOR.sub("", line[heading.end() :].strip()))
        elif line.strip(_RULE_MARKS):
            rest = line[_end_of(_BLOCK_MARKS, line) :]
            prose.append(_CELL_END.sub(" ", rest) if rest.startswith("|") else rest)
    text.append(_inline(" ".join(prose)))
    return " ".join(" ".join(text).split()) or " ".join(_inline(" ".join(headings)).split())


def snippet(markdown: str, terms: Collection[str], analyzer: Analyzer, length: int = 240) -> str:
    """The window of a chunk that holds most of the query's distinct terms.

    Args:
        markdown: The chunk.
        terms: Analyzer terms of the query.
        analyzer: What made them.
        length: Most characters, apart from the ellipses.
    """
    text = plain(markdown)
    if len(text) <= length:
        return text
    first, last = _best_window(_found(text, set(terms), analyzer, length // 3), length)
    start = max(0, first - length // 6)
    if start > 0:  # at a word, or inside one that is longer than the room for it
        start = text.find(" ", start, first) + 1 or start
    end = min(len(text), start + length)
    if end < len(text):
        space = text.rfind(" ", max(start + 1, last), end + 1)
        end = space if space > 0 else end
    return ("… " if start else "") + text[start:end] + (" …" if end < len(text) else "")


def _inline(text: str) -> str:
    """Text without links, emphasis and escapes; code spans as they stand."""
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[1] or match[3].strip())
        return f"\0{len(kept) - 1}\0"

    text = _VERBATIM.sub(keep, text)
    for _ in range(2):  # an image in a link, soft in bold
        text = without_link_targets(text)
    text = _AUTOLINK.sub(r"\1", text)
    for _ in range(2):
        text = _EMPHASIS.sub(lambda match: match[2] or match[4], text)
    return _KEPT.sub(lambda match: kept[int(match[1])], text)


def _end_of(pattern: re.Pattern[str], line: str) -> int:
    match = pattern.match(line)
    return match.end() if match else 0


def _found(
    text: str, wanted: set[str], analyzer: Analyzer, long: int
) -> list[tuple[int, set[str]]]:
    """Where words with wanted terms stand; in a long word, where the terms themselves do."""
    found: list[tuple[int, set[str]]] = []
    for match in _WORD.finditer(text):
        hit = wanted.intersection(_terms_of(match[0], analyzer))
        if hit and len(match[0]) > long:
            folded = match[0].casefold()
            found += sorted((match.start() + max(0, folded.find(t)), {t}) for t in hit)
        elif hit:
            found.append((match.start(), hit))
    return found


@lru_cache(maxsize=200_000)
def _terms_of(word: str, analyzer: Analyzer) -> tuple[str, ...]:
    return tuple(analyzer.terms(word))


def _best_window(found: list[tuple[int, set[str]]], length: int) -> tuple[int, int]:
    """Where the first and the last word of the window with most terms begin."""
    best, window = 0, (0, 0)
    for i, (start, _) in enumerate(found):
        held: set[str] = set()
        last = start
        for other, hit in found[i:]:
            if other - start > length * 2 // 3:
                break
            if not hit <= held:
                held |= hit
                last = other
        if len(held) > best:
            best, window = len(held), (start, last)
    return window
