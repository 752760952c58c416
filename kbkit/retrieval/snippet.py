"""Snippets: the part of a chunk that matches."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from kbkit.markdown.plain_text import plain_text
from kbkit.text import Analyzer, analyzer

_BEGINNING = 3
"""Letters of a term that words with it hold, but for rare forms such as "lie" and "lying"."""
_SIGNS = "-@#$._"
"""Signs at the beginning of terms that words write differently."""


class TermMatcher(dict[str, frozenset[str]]):
    """The terms of a query that each word holds, found out once for all hits of the query.

    Attributes:
        signs: Finds the first letters of such words, which stemming keeps; other words are skipped.
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
    lines = plain_text(markdown, lines=True)
    if len(lines) <= length:
        return lines
    text = lines.replace("\n", " ")
    first, last = _best_window(_found(text, matches, length // 3), length)
    start = max(0, first - length // 6)
    if start > 0:  # at a word, or inside one that is longer than the room for it
        start = text.find(" ", start, first) + 1 or start
    end = min(len(text), start + length)
    if end < len(text):
        space = text.rfind(" ", max(start + 1, last), end + 1)
        end = space if space > 0 else end
    shown = lines[start:end].strip() if start else lines[start:end].rstrip()
    return ("… " if start else "") + shown + (" …" if end < len(text) else "")


@dataclass(frozen=True, slots=True)
class LazySnippet:
    """A snippet that is cut when it is asked for."""

    markdown: str
    terms: tuple[str, ...]
    language: str

    def __call__(self) -> str:
        return snippet(self.markdown, _matches(self.terms, self.language))


@lru_cache(maxsize=64)
def _matches(terms: tuple[str, ...], language: str) -> TermMatcher:
    return TermMatcher(terms, analyzer(language))


def _found(text: str, matches: TermMatcher, long: int) -> list[tuple[int, frozenset[str]]]:
    """Locate words with wanted terms; within long words, the terms themselves."""
    found: list[tuple[int, frozenset[str]]] = []
    end = 0
    for sign in matches.signs.finditer(text):
        if sign.start() < end:
            continue
        start = text.rfind(" ", 0, sign.start()) + 1
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
