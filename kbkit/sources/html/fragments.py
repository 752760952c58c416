"""Pieces of HTML that stand in other texts -> Markdown."""

from __future__ import annotations

from kbkit.sources.html.anchors import self_links
from kbkit.sources.html.cleaning import clean
from kbkit.sources.html.dom import parse
from kbkit.sources.html.writer import MarkdownWriter


def markdown_of(html: str, *, relative: bool = False) -> str:
    """A piece of HTML that holds content only, as Markdown.

    Args:
        html: The piece.
        relative: Keep links and pictures whose addresses are relative.
    """
    root = parse(html)
    body = root.find("body") if root is not None else None
    if body is None:
        return ""
    own = self_links(body)
    clean(body)
    return MarkdownWriter("", own, relative=relative).write(body).strip()
