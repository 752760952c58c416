"""Cards: what each document is, in a few lines, so that search can ask for documents as a whole.

A card is the title, the description (`kbkit.ingest.descriptions`) and the outline of the headings.
It is made of the document alone, behind the ingest that stored it (`kbkit.ingest.card_vectors`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kbkit.ingest.descriptions import LENGTH as DESCRIPTION_LENGTH
from kbkit.ingest.ids import digest
from kbkit.markdown.blocks import Block, Kind
from kbkit.markdown.plain_text import plain_text
from kbkit.markdown.structure import Outline, outline

REVISION = 2
"""Of the form of cards: one more with each change of what `card_text` gives, so that those that
are stored are made again."""
LENGTH = 600
"""Most characters of a card; MiniLM reads some more at once, at a cost that grows with them."""

_TITLE_LENGTH = 200
_READ = 4_000
"""Characters of a list or table that are looked at."""
_HEADINGS = 400
_NUMBER = re.compile(r"(?:[A-Z]\.)?(?:\d{1,4}\.)+\d*\s+|[A-Z]\.\s+(?=[A-Z])")


def card_text(
    title: str, content: str, description: str, *, structure: Outline | None = None
) -> str:
    """What a document is: its title, its description and the outline of its headings.

    Args:
        title: Of the document.
        content: Its Markdown.
        description: What `kbkit.ingest.descriptions.describe` says of it.
        structure: The outline of the content, where it is known already.

    Returns:
        One line of at most `LENGTH` characters; ``""`` where there is neither title nor text.
    """
    found = structure or outline(content)
    name = _without_number(title)[:_TITLE_LENGTH]
    headings = sorted(found.headings[:_HEADINGS], key=lambda heading: heading.level)
    names = (_without_number(heading.path[-1]) for heading in headings if heading.path)
    parts = dict.fromkeys(each for each in names if each.casefold() != name.casefold())
    if not description and not parts:
        description = _first_text(content, found.blocks)[:DESCRIPTION_LENGTH]
    said = ". ".join(filter(None, (name.rstrip("."), description)))
    return " ".join(filter(None, (said, "; ".join(parts))))[:LENGTH].rstrip()


def expanded_text(title: str, card: str, questions: Sequence[str]) -> str:
    """The card of a document that a language model wrote about (`kbkit.ingest.expansion`).

    Args:
        title: Of the document.
        card: What the model says that it is.
        questions: What the model says that it answers.

    Returns:
        One line of at most `LENGTH` characters: the title, the card, and the questions that there
        is room for.
    """
    text = ". ".join(filter(None, (_without_number(title)[:_TITLE_LENGTH].rstrip("."), card)))
    for question in questions:
        if len(text) + 1 + len(question) <= LENGTH:
            text = f"{text} {question}"
    return text[:LENGTH].rstrip()


def text_hash(title: str, content: str) -> str:
    """Hash of what a card is made of."""
    return digest(f"{title}\0{content}")


def _first_text(content: str, blocks: Sequence[Block]) -> str:
    """What a document begins with that is neither prose nor code: a list, a table, a word."""
    shown = (block for block in blocks if block.kind in (Kind.TEXT, Kind.TABLE))
    texts = (
        plain_text(content[block.start : min(block.end, block.start + _READ)]) for block in shown
    )
    return next(filter(None, texts), "")


def _without_number(title: str) -> str:
    return _NUMBER.sub("", " ".join(title.split()), count=1) if _NUMBER.match(title) else title
