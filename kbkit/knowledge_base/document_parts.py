"""A part of a document's text: a section, or a range of its characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from kbkit.errors import NotFoundError
from kbkit.markdown.structure import Heading, outline
from kbkit.models import Document, DocumentPart
from kbkit.models.plain import plain
from kbkit.validation import check_integer, check_text

_NAMED = 10
"""Sections that an error names."""


def part_of(
    kb: str, document: Document, section: str = "", start: int = 0, end: int | None = None
) -> DocumentPart:
    """A part of a document; see `DocumentCollection.part`.

    Args:
        kb: Name of its knowledge base.
        document: It.
        section: Heading, or anchor of one, of the part that is wanted; ``""`` for all.
        start: Characters of that which are left out at its begin.
        end: How many of its characters are told, with those left out.

    Raises:
        ConfigError: A number is wrong.
        NotFoundError: There is no such section; the message names some that there are.
    """
    begin, behind = section_span(document, section)
    first = begin + check_integer("start", start, 0)
    last = behind if end is None else min(behind, begin + check_integer("end", end, 0))
    first = min(first, behind)
    last = max(first, last)
    return DocumentPart(
        kb=kb,
        document=replace(document, content=document.content[first:last]),
        section=section,
        start=first,
        end=last,
        length=len(document.content),
    )


def section_span(document: Document, section: str) -> tuple[int, int]:
    """Where a section begins and ends, in characters; all of the document without one.

    Raises:
        NotFoundError: It has no such section.
    """
    sought = check_text("section", section).strip().lstrip("#").strip().casefold()
    if not sought:
        return 0, len(document.content)
    headings = outline(document.content).headings
    for at, heading in enumerate(headings):
        if sought in _names(document.title, heading):
            return _span(document, headings[at:])
    raise NotFoundError(_no_section(document.uri, section, headings))


def anchor_span(document: Document, anchor: str) -> tuple[int, int]:
    """Where the part begins and ends that an anchor leads to: a section, or the page of a PDF.

    All of the document where it leads to none.
    """
    content = document.content
    found = outline(content)
    for at, (_, begin, number) in enumerate(found.pages):
        if anchor == f"page={number}":
            return begin, next((start for start, _, _ in found.pages[at + 1 :]), len(content))
    places = {known: start for start, known in found.anchors}
    places |= {heading.anchor: heading.start for heading in reversed(found.headings)}
    if not anchor or anchor not in places:
        return 0, len(content)
    above = [at for at, heading in enumerate(found.headings) if heading.start <= places[anchor]]
    return _span(document, found.headings[above[-1] :]) if above else (0, len(content))


def _span(document: Document, headings: Sequence[Heading]) -> tuple[int, int]:
    """Where the first of the headings begins, and what is below it ends."""
    first, *others = headings
    below = (other.start for other in others if other.level <= first.level)
    return first.start, next(below, len(document.content))


def _names(title: str, heading: Heading) -> set[str]:
    """What a section can be called: its anchor, or its heading, below those above it or without."""
    path = heading.path if heading.path[0] == title else (title, *heading.path)
    names = {" > ".join(path[at:]) for at in range(len(path))}
    return {name.casefold() for name in names | {heading.anchor}}


def _no_section(uri: str, section: str, headings: Sequence[Heading]) -> str:
    names = [plain(heading.path[-1])[:80] for heading in headings]
    near = get_close_matches(section, names, 5, 0.4) or names[:_NAMED]
    listed = ", ".join(repr(name) for name in near)
    return f"{uri[:200]}: has no section {section[:80]!r}" + (f"; it has {listed}" if near else "")
