"""Passages in panels: breadcrumbs, and text as sanitized HTML."""

from __future__ import annotations

from typing import Any

from kbkit.models import Chunk, Hit
from kbkit.panels import render

MAX_LENGTH = 20_000
"""Maximum characters of a passage."""


def heading(hit: Hit) -> dict[str, Any]:
    title = render.plain(hit.title, render.TITLE_LENGTH) or render.place(hit.uri) or "Untitled"
    return {
        "id": hit.chunk.id,
        "title": title,
        "path": path(hit.chunk, title),
        "link": render.web_address(hit.url),
        "place": render.place(hit.uri),
    }


def path(chunk: Chunk, title: str) -> str:
    above = [render.plain(each, render.PATH_LENGTH) for each in chunk.heading_path]
    return render.plain(" › ".join(above[above[:1] == [title] :]), render.PATH_LENGTH)


def html(chunk: Chunk) -> str:
    """The text of a chunk as sanitised HTML without images, its links to the web only."""
    from kbkit.markdown.rendering import render as render_markdown  # not before somebody asks

    cut = len(chunk.text) - MAX_LENGTH
    more = f"\n\n… and {cut:,} characters more" if cut > 0 else ""
    text = render.lines(chunk.text[:MAX_LENGTH], MAX_LENGTH) + more
    return render_markdown(text, lambda _link: None).html
