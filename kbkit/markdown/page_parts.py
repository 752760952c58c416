"""Breadcrumbs, origin and next page around a document."""

from __future__ import annotations

import html
from itertools import pairwise

from markdown_it.token import Token

_DAY = '<span class="kb-fetched"></span>'
_ONWARDS = '<nav class="kb-onwards" aria-label="Related passages and neighbours"%s>\n'
_UNSEARCHED = ' data-search-exclude="1"'
_BREADCRUMBS = f'<nav class="kb-breadcrumbs" aria-label="Breadcrumbs"{_UNSEARCHED}>'
PREVIOUS, NEXT = "Previous: ", "Next: "
"""Beginnings of the paragraphs with the previous and next page."""
_STEPS = {PREVIOUS: "prev", NEXT: "next"}


def mark_breadcrumbs(tokens: list[Token]) -> None:
    """Put the paragraph before the title into an element."""
    kinds = [token.type for token in tokens[:4]]
    if kinds == ["paragraph_open", "inline", "paragraph_close", "heading_open"]:
        tokens[0] = Token("html_block", "", 0, content=_BREADCRUMBS)
        tokens[2] = Token("html_block", "", 0, content="</nav>\n")


def mark_meta_line(tokens: list[Token]) -> None:
    title = next((n for n, token in enumerate(tokens) if token.type == "heading_open"), 0)
    for number, token in enumerate(tokens[title:], title):
        if token.type == "paragraph_open":
            token.attrSet("class", "kb-meta")
            token.attrSet("data-search-exclude", "1")
            if (children := tokens[number + 1].children) is not None:
                children.append(Token("html_inline", "", 0, content=_DAY))
            return


def dated(page: str, day: str) -> str:
    """The HTML of a document's page, with a badge that says when it was fetched last.

    It is no part of what `render` makes, since each refresh moves the day of every page.
    """
    badge = f' · <span class="kb-badge">fetched {html.escape(day)}</span>' if day else ""
    return page.replace(_DAY, badge, 1)


def mark_onwards(tokens: list[Token]) -> None:
    """Put everything after the last rule into an element, in place of the rule."""
    rules = [n for n, token in enumerate(tokens) if token.type == "hr" and token.level == 0]
    if rules:
        for opened, inline in pairwise(tokens[rules[-1] :]):
            step = _STEPS.get((inline.children or [inline])[0].content)
            if opened.type == "paragraph_open" and step:
                opened.attrSet("class", f"kb-{step}")
                for link in inline.children or []:
                    if link.type == "link_open":
                        link.attrSet("rel", step)
        begin = Token("html_block", "", 0, content=_ONWARDS % _UNSEARCHED)
        tokens[rules[-1]] = begin
        tokens.append(Token("html_block", "", 0, content="</nav>\n"))
