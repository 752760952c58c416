"""Highlight words that match a query."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

from kbkit.text import Analyzer

# A word as the analyzer sees it, and the marks that join its parts.
_WORD = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*|\w(?:\+\+|#)(?!\w)|\w+(?:(?:[.\-'’]|::)\w+)*")
_JOINT = re.compile(r"([._\-'’:]+)")

Segment = tuple[str, bool]
"""A piece of text, and whether it is marked."""


@dataclass(frozen=True, slots=True)
class Highlighter:
    """Marks words as the search compares them: after stemming, and by the parts of identifiers."""

    terms: AbstractSet[str]
    analyzer: Analyzer

    def __call__(self, text: str) -> list[Segment]:
        if not self.terms:
            return [(text, False)]
        segments: list[Segment] = []
        end = 0
        for match in _WORD.finditer(text):
            segments.append((text[end : match.start()], False))
            segments += self._word(match[0])
            end = match.end()
        segments.append((text[end:], False))
        return [
            ("".join(piece for piece, _ in group), marked)
            for marked, group in groupby(filter(itemgetter(0), segments), itemgetter(1))
        ]

    def _word(self, word: str) -> list[Segment]:
        """Mark a word as a whole or in its matching parts."""
        terms = _terms_of(word, self.analyzer)
        if self.terms.isdisjoint(terms):
            return [(word, False)]
        parts = _JOINT.split(word)
        marks = [not self.terms.isdisjoint(_terms_of(part, self.analyzer)) for part in parts]
        if terms[0] in self.terms or not any(marks):
            return [(word, True)]
        return list(zip(parts, marks, strict=True))


@lru_cache(maxsize=20_000)
def _terms_of(word: str, analyzer: Analyzer) -> tuple[str, ...]:
    return tuple(analyzer.terms(word))
