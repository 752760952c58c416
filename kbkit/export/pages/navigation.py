"""The navigation of an export."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kbkit.export.pages.home_page import MAX_DOCUMENTS
from kbkit.export.pages.outline import ABOUT, BROWSE, FIGURES, GRAPH, HOME, Outline
from kbkit.export.pages.sections import Section
from kbkit.models.values import plain


def navigation(outline: Outline) -> Iterator[dict[str, Any]]:
    """Iterate over the pages in the source's order."""
    home = {"title": "Home", "path": HOME}
    if len(outline.root.documents) > MAX_DOCUMENTS:
        home["list"] = outline.section_paths[outline.root.key]
    yield home
    yield from _items(outline, outline.root)
    yield {"title": "By type and tag", "path": BROWSE}
    if outline.facts.graph is not None:
        yield {"title": "Knowledge graph", "path": GRAPH}
    yield {"title": "Figures", "path": FIGURES}
    yield {"title": "Where this comes from", "path": ABOUT}


def _items(outline: Outline, section: Section) -> Iterator[dict[str, Any]]:
    for item in section.items:
        if isinstance(item, str):
            yield {"title": outline.entries[item].title, "path": outline.paths[item]}
        else:
            path = outline.page_of(item)
            entry = {"title": plain(item.label), "path": path}
            listed = outline.section_paths.get(item.key, path)
            about = {"list": listed} if listed != path else {}
            yield {**entry, **about, "children": list(_items(outline, item))}
