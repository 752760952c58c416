"""Snippets: the part of a chunk that shows why it was found."""

from __future__ import annotations

import re
from collections.abc import Collection

from kbkit.text import Analyzer, without_link_targets

_HEADING = re.compile(r"^#{1,6}\s.*$", re.MULTILINE)
_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,}).*$", re.MULTILINE)
_MARKS = re.compile(r"\*\*|__|`+|(?<!\w)\*|\*(?!\w)|\\(?=[^\w\s])")
_WORD = re.compile(r"\S+")


def plain(markdown: str) -> str:
    """Markdown as one line of text: no headings, fences, emphasis marks or link targets."""
    text = _FENCE.sub("", _HEADING.sub("", markdown))
    return " ".join(_MARKS.sub("", without_link_targets(text)).split())


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
    wanted = set(terms)
    found = [
        (match.start(), hit)
        for match in _WORD.finditer(text)
        if (hit := wanted.intersection(analyzer.terms(match[0])))
    ]
    start = _best_start(found, length)
    if start > 0:
        start = text.rfind(" ", 0, max(1, start - length // 6)) + 1
    end = len(text) if start + length >= len(text) else text.rfind(" ", start, start + length)
    if end <= start:
        end = start + length
    return ("… " if start else "") + text[start:end] + (" …" if end < len(text) else "")


def _best_start(found: list[tuple[int, set[str]]], length: int) -> int:
    best, best_start = 0, 0
    for i, (start, _) in enumerate(found):
        held: set[str] = set()
        for other, hit in found[i:]:
            if other - start > length * 2 // 3:
                break
            held |= hit
        if len(held) > best:
            best, best_start = len(held), start
    return best_start
