"""A part of a document's text: a section, or a range of its characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from kbkit.errors import NotFoundError
from kbkit.markdown.structure import Heading, outline
from kbkit.models import Document, DocumentPart
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
        if sought in (heading.anchor.casefold(), heading.path[-1].casefold()):
            below = (other.start for other in headings[at + 1 :] if other.level <= heading.level)
            return heading.start, next(below, len(document.content))
    raise NotFoundError(_no_section(document.uri, section, headings))


def _no_section(uri: str, section: str, headings: Sequence[Heading]) -> str:
    names = [heading.path[-1] for heading in headings]
    near = get_close_matches(section, names, 5, 0.4) or names[:_NAMED]
    listed = ", ".join(repr(name) for name in near)
    return f"{uri}: has no section {section[:80]!r}" + (f"; it has {listed}" if near else "")
