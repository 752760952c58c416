"""Cards: what each document is, in a few lines, so that search can ask for documents as a whole.

A card is the title, what the document says of itself first, and the outline of its headings. It is
made of the document alone, behind the ingest that stored it (`kbkit.ingest.card_vectors`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kbkit.markdown.blocks import Block, Kind
from kbkit.markdown.plain_text import plain_text
from kbkit.markdown.structure import outline

REVISION = 1
"""Of the form of cards: one more with each change of what `card_text` gives, so that those that
are stored are made again."""
LENGTH = 600
"""Most characters of a card; MiniLM reads some more at once, at a cost that grows with them."""
LEAD_LENGTH = 350
"""Most characters of what a document says of itself."""

_TITLE_LENGTH = 200
_LEAD_WORDS = 8
_WIDE_LETTERS = 16
"""Letters of scripts without spaces that say as much as `_LEAD_WORDS` words."""
_READ = 4_000
"""Characters of a paragraph that are looked at."""
_HEADINGS = 400
_NUMBER = re.compile(r"(?:[A-Z]\.)?(?:\d{1,4}\.)+\d*\s+|[A-Z]\.\s+(?=[A-Z])")
_WORD = re.compile(r"\w{2,}")
_WIDE = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_SENTENCE = re.compile(r"[.!?](?=\s)|[\u3002\uff01\uff1f]")
_ASIDE = re.compile(
    r"(?:deprecated|(?:new|added|changed) in|note|warning|see also|source code|last updated"
    r"|availability|copyright)\b",
    re.IGNORECASE,
)
"""How paragraphs begin that say something beside what a document is about."""
_NAME = "name"
_NAMED = re.compile(r"\s[-\u2013\u2014]+\s")


def card_text(title: str, content: str) -> str:
    """What a document is: its title, its lead and the outline of its headings.

    The lead is the line of a manual page's section NAME, or else the first paragraph that is long
    enough to be one and begins like no aside.

    Args:
        title: Of the document.
        content: Its Markdown.

    Returns:
        One line of at most `LENGTH` characters; ``""`` where there is neither title nor text.
    """
    found = outline(content)
    name = _without_number(title)[:_TITLE_LENGTH]
    headings = sorted(found.headings[:_HEADINGS], key=lambda heading: heading.level)
    names = (_without_number(heading.path[-1]) for heading in headings if heading.path)
    parts = dict.fromkeys(each for each in names if each.casefold() != name.casefold())
    lead = _lead(content, found.blocks)
    if not lead and not parts:
        lead = _cut(_first_text(content, found.blocks))
    said = ". ".join(filter(None, (name.rstrip("."), lead)))
    return " ".join(filter(None, (said, "; ".join(parts))))[:LENGTH].rstrip()


def _lead(content: str, blocks: Sequence[Block]) -> str:
    heading, first = "", ""
    for block in blocks:
        if block.kind is Kind.HEADING:
            heading = block.title.strip().casefold()
        is_text = block.kind is Kind.TEXT and block.outermost and not block.item
        if not is_text or (first and heading != _NAME):
            continue
        text = plain_text(content[block.start : min(block.end, block.start + _READ)])
        if heading == _NAME and _NAMED.search(text):
            return _cut(text)
        if not first and _is_prose(text) and not _ASIDE.match(text):
            first = _cut(text)
    return first


def _first_text(content: str, blocks: Sequence[Block]) -> str:
    """What a document begins with that is neither prose nor code: a list, a table, a word."""
    shown = (block for block in blocks if block.kind in (Kind.TEXT, Kind.TABLE))
    texts = (
        plain_text(content[block.start : min(block.end, block.start + _READ)]) for block in shown
    )
    return next(filter(None, texts), "")


def _is_prose(text: str) -> bool:
    wide = len(_WIDE.findall(text))
    return len(_WORD.findall(text)) >= _LEAD_WORDS or wide >= _WIDE_LETTERS


def _without_number(title: str) -> str:
    return _NUMBER.sub("", " ".join(title.split()), count=1) if _NUMBER.match(title) else title


def _cut(text: str) -> str:
    """The first sentences of a paragraph, as far as there is room."""
    if len(text) <= LEAD_LENGTH:
        return text
    ends = [match.end() for match in _SENTENCE.finditer(text, 0, LEAD_LENGTH)]
    if ends and ends[-1] >= LEAD_LENGTH * 0.4:
        return text[: ends[-1]]
    return text[:LEAD_LENGTH].rsplit(" ", 1)[0]
