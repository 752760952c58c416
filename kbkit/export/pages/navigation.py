"""The navigation of an export: the lists, and the largest sections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kbkit.export.pages.outline import ABOUT, BROWSE, HOME, Outline
from kbkit.export.pages.sections import Section
from kbkit.models.plain import plain

MOST_SECTIONS = 20
"""Most sections that the navigation names. The theme renders it anew in every page: 20 more cost
1,900 pages 2 seconds and 13 MB. The home page has them all."""
MOST_DOCUMENTS = 30
"""Most documents of a knowledge base whose documents the navigation names."""


def navigation(outline: Outline) -> Iterator[dict[str, Any]]:
    """The navigation: the lists, the documents of a short manual, and the largest sections."""
    short = outline.root.size <= MOST_DOCUMENTS
    sections = outline.root.sections
    chosen = _largest(sections, MOST_SECTIONS)
    inner = _largest(
        [inner for section in sections for inner in section.sections], MOST_SECTIONS - len(chosen)
    )
    yield {"title": "Home", "path": HOME}
    yield {"title": "By type and tag", "path": BROWSE}
    yield {"title": "Where this comes from", "path": ABOUT}
    if short:
        yield from _document_entries(outline, outline.root)
    for section in sections:
        if section.folders in chosen:
            entry = _section_entry(outline, section)
            below = [part for part in section.sections if part.folders in inner]
            children = list(_document_entries(outline, section)) if short else []
            children += [_section_entry(outline, part) for part in below]
            yield {**entry, "children": children} if children else entry


def _largest(sections: list[Section], number: int) -> set[tuple[str, ...]]:
    """The folders of the largest sections."""
    ranked = sorted(sections, key=lambda section: -section.size)
    return {section.folders for section in ranked[:number]}


def _document_entries(outline: Outline, section: Section) -> Iterator[dict[str, Any]]:
    for uri in section.documents:
        yield {"title": outline.entries[uri].title, "path": outline.paths[uri]}


def _section_entry(outline: Outline, section: Section) -> dict[str, Any]:
    path = outline.section_paths[section.folders]
    return {"title": plain(section.label), "path": path}
