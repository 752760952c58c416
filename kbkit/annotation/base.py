"""The annotator interface: passages and known names in, annotations out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from kbkit.models import Annotation, Chunk, Document


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk with its document, whose content may be empty."""

    chunk: Chunk
    document: Document


class Mention(NamedTuple):
    """A known name in a text."""

    start: int
    end: int
    name: str


class Gazetteer(Protocol):
    """The names that are known in a knowledge base."""

    def find(self, text: str) -> Sequence[Mention]:
        """Find the names in a text, the longest match first, without overlaps."""

    def __contains__(self, name: object) -> bool:
        """Whether a name is known in any form."""

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names in their defined form."""


class Annotator(Protocol):
    """Annotates passages."""

    @property
    def fingerprint(self) -> str:
        """Name and version; chunks are annotated again when it changes."""

    def annotate(
        self, passages: Sequence[Passage], gazetteer: Gazetteer
    ) -> Sequence[Sequence[Annotation]]:
        """Annotate passages."""


MARK = "\x01"
"""Separator before and after each word."""

_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0002fa1f\U00030000-\U000323af"
)
_SPACELESS_CHARACTER = re.compile(f"[{_SPACELESS}]")
_WORD = re.compile(rf"[{_SPACELESS}]|[^\W{_SPACELESS}]+")
_WORDS = re.compile(r"(\w+)")
# full-width letters and digits of Chinese and Japanese texts
_WIDE = re.compile("[\uff01-\uff5e\u3000]")


class _Folding(dict[int, str]):
    """Maps characters to lower case and NFKC if the result is one character."""

    def __missing__(self, point: int) -> str:
        low = unicodedata.normalize("NFKC", chr(point)).lower()
        self[point] = low if len(low) == 1 else chr(point)
        return self[point]


_FOLDING = _Folding()


def folded(text: str) -> str:
    low = text.lower()
    if len(low) != len(text) or (not low.isascii() and _WIDE.search(low)):
        low = text.translate(_FOLDING)
    # separate calls are fast: each is a search in C
    for space in ("\n", "\t", "\r", "\f", "\v", "\xa0", MARK):
        if space in low:
            low = low.replace(space, " ")
    return low


def marked(text: str) -> str:
    """Mark words of a folded text; each character of a script without spaces is a word."""
    if text.isascii() or not _SPACELESS_CHARACTER.search(text):
        return MARK.join(_WORDS.split(text))
    return _WORD.sub(lambda word: MARK + word[0] + MARK, text)


def fold_and_mark(text: str) -> str:
    return marked(folded(text))
