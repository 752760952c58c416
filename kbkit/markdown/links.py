"""Find links in Markdown."""

from __future__ import annotations

import re

SAFE_SCHEMES = frozenset({"http", "https", "mailto"})
"""Schemes that a link of a page may have."""

DESTINATION = re.compile(
    r"\]\(\s*(?:<([^<>\n]*)>|(?!<)((?:\\.|\((?:\\.|[^\s()\\])*\)|[^\s()\\])*))(?=[\s)])"
)
"""Address after a link's text, in angle brackets (1) or bare (2)."""

WIKI_LINK = re.compile(
    r"\[\[([^\[\]\n|#^]{1,500})(?:[#^]([^\[\]\n|]{0,500}))?(?:\|([^\[\]\n]{0,500}))?\]\]"
)
"""A link by name, as notes have it (``[[Name#Heading|text]]``): name, heading and text."""

_LINK = re.compile(
    r"!?\[((?:[^\[\]\n]|\[[^\[\]\n]{0,400}\]){0,400})\]"  # text, with one level of brackets in it
    r"\((?:<[^<>\n]*>|[^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'))?\s*\)"
)


def destinations(markdown: str) -> list[str]:
    return [found[1] or found[2] or "" for found in DESTINATION.finditer(markdown)]


def links(markdown: str) -> list[re.Match[str]]:
    """Find all links and images; group 1 is the label, at most 400 characters."""
    return list(_LINK.finditer(markdown)) if "](" in markdown else []


def link_texts(markdown: str) -> list[str]:
    """Return the labels of links and images, except those beyond 400 characters."""
    return [found[1] for found in links(markdown)]


def without_link_targets(markdown: str) -> str:
    """Markdown whose links and images are only their text, unless that is beyond 400 characters.

    The bound keeps text that is made of brackets from taking long.
    """
    return _LINK.sub(r"\1", markdown) if "](" in markdown else markdown
