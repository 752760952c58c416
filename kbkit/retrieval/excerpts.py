"""Excerpts: hits without what they repeat, chunks that lie together as one text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import takewhile

from kbkit.models import Chunk, Hit

_NEW_SHARE = 0.2
"""Share of the phrases of a hit that those before it must not have, lest it be a repeat."""
_PHRASE = 4
"""Words of a phrase."""
_GAP = 2
"""Characters between chunks that lie together: line ends that chunking leaves out."""
# scripts without spaces have a word a character here
_WORD = re.compile(r"[^\W\u2e80-\U0003ffff]+|[\u2e80-\U0003ffff]")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text of a document: of one chunk, or of several that lie together.

    Attributes:
        hit: The best hit in it.
        chunks: What it is made of, in the order of the document.
    """

    hit: Hit
    chunks: tuple[Chunk, ...]

    @property
    def text(self) -> str:
        """What the document says there."""
        text, end = self.chunks[0].text, self.chunks[0].end
        for chunk in self.chunks[1:]:
            gap = "\n" * max(0, chunk.start - end)
            text += gap + chunk.text[max(0, end - chunk.start) :]
            end = max(end, chunk.end)
        return text

    @property
    def heading_path(self) -> tuple[str, ...]:
        """The headings above all of it."""
        levels = zip(*(chunk.heading_path for chunk in self.chunks), strict=False)
        return tuple(level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels))

    def joins(self, other: Excerpt) -> bool:
        """Whether another one overlaps it, or follows at once."""
        same = (self.hit.kb, self.chunks[0].document_id) == (
            other.hit.kb,
            other.chunks[0].document_id,
        )
        return same and self._start <= other._end + _GAP and other._start <= self._end + _GAP

    def joined(self, other: Excerpt) -> Excerpt:
        """Both as one; the best hit stays."""
        by_id = {chunk.id: chunk for chunk in (*self.chunks, *other.chunks)}
        chunks = sorted(by_id.values(), key=lambda chunk: (chunk.start, -chunk.end))
        return replace(self, chunks=tuple(chunks))

    @property
    def _start(self) -> int:
        return min(chunk.start for chunk in self.chunks)

    @property
    def _end(self) -> int:
        return max(chunk.end for chunk in self.chunks)


def excerpts(hits: Iterable[Hit], limit: int) -> list[Excerpt]:
    """Excerpts of hits, in their order.

    A hit that says little which those before it do not say is left out, wherever it is from; hits
    of a document that overlap, or follow each other at once, become one.

    Args:
        hits: Best first.
        limit: Most excerpts to give.
    """
    found: list[Excerpt] = []
    said: set[tuple[str, ...]] = set()
    for hit in hits:
        phrases = _phrases(hit.chunk.text)
        if len(phrases - said) < _NEW_SHARE * len(phrases):
            continue
        excerpt = Excerpt(hit, (hit.chunk,))
        near = [i for i, other in enumerate(found) if other.joins(excerpt)]
        if near:  # it may be what lay between two
            first, *others = near
            for i in others:
                excerpt = excerpt.joined(found[i])
            found[first] = found[first].joined(excerpt)
            found = [other for i, other in enumerate(found) if i not in others]
        elif len(found) == limit:
            break
        else:
            found.append(excerpt)
        said |= phrases
    return found


def _phrases(text: str) -> set[tuple[str, ...]]:
    text = text.casefold()
    # where no script is without spaces, in a tenth of the time
    words = text.split() if text.isascii() else _WORD.findall(text)
    length = min(_PHRASE, len(words))
    return set(zip(*(words[i:] for i in range(length)), strict=False))
