"""Passages as the panels for judging and evaluating show them: without score or rank."""

from __future__ import annotations

from typing import Any

from kbkit.markdown.rendering import render as rendered
from kbkit.models import Hit
from kbkit.panels import render

LONGEST = 20_000
"""Most characters of a passage that are shown."""


def passage(hit: Hit) -> dict[str, Any]:
    """A passage to read: where it stands, and its text as sanitised HTML."""
    text = hit.chunk.text
    cut = "" if len(text) <= LONGEST else f"\n\n… and {len(text) - LONGEST:,} characters more"
    return heading(hit) | {"html": rendered(text[:LONGEST] + cut, lambda _link: None).plain}


def line(hit: Hit) -> dict[str, Any]:
    """A passage in a list: where it stands, and a line or two of it."""
    return heading(hit) | {"snippet": render.plain(hit.snippet, render.SNIPPET_LENGTH // 2)}


def heading(hit: Hit) -> dict[str, Any]:
    """What stands above a passage: title, headings, and the address of a link or ``""``."""
    title = render.plain(hit.title, render.TITLE_LENGTH) or render.place(hit.uri) or "Untitled"
    above = [render.plain(one, render.PATH_LENGTH) for one in hit.chunk.heading_path]
    if above and above[0] == title:
        del above[0]  # a page's first heading is its title
    return {
        "id": hit.chunk.id,
        "title": title,
        "path": render.plain(" › ".join(above), render.PATH_LENGTH),
        "link": render.web_address(hit.url),
        "place": render.place(hit.uri),
    }
