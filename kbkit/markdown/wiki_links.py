"""Convert links by name (``[[Name#Heading|text]]``) to Markdown links."""

from __future__ import annotations

import re
from collections.abc import Callable

from kbkit.markdown.blocks import blocks
from kbkit.markdown.disarming import escape
from kbkit.markdown.links import WIKI_LINK

CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
"""Code within a line, in which nothing is a link."""

Address = Callable[[str, str], str | None]
"""Address of a name and heading (``""`` for none); ``None`` if unknown."""


def resolve_wiki_links(markdown: str, address: Address) -> str:
    """Convert links by name to Markdown links; broken ones become text. Code stays."""
    if "[[" not in markdown:
        return markdown

    def linked(match: re.Match[str]) -> str:
        name, heading = match[1].strip(), (match[2] or "").strip()
        text = escape(match[3] or (f"{name} › {heading}" if heading else name))
        target = address(name, heading)
        return text if target is None else f"[{text}]({target})"

    def prose(text: str) -> str:
        return _LINK.sub(linked, text) if "[[" in text else text

    parts, at = [], 0
    for block in blocks(markdown):
        if block.is_verbatim:
            parts += [
                _outside_code(markdown[at : block.start], prose),
                markdown[block.start : block.end],
            ]
            at = block.end
    return "".join([*parts, _outside_code(markdown[at:], prose)])


_LINK = re.compile("!?" + WIKI_LINK.pattern)


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    parts, at = [], 0
    for span in CODE_SPAN.finditer(text):
        parts += [change(text[at : span.start()]), span[0]]
        at = span.end()
    return "".join([*parts, change(text[at:])])
