"""Markdown links, read as a person reads them: by their text."""

from __future__ import annotations

import re

SAFE_SCHEMES = frozenset({"http", "https", "mailto"})
"""Schemes that a link of a page may have."""

_LINK = re.compile(
    r"!?\[((?:[^\[\]\n]|\[[^\[\]\n]{0,400}\]){0,400})\]"  # text, with one level of brackets in it
    r"\((?:<[^<>\n]*>|[^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'))?\s*\)"
)


def without_link_targets(markdown: str) -> str:
    """Markdown whose links and images are only their text, unless that is beyond 400 characters.

    The bound keeps text that is made of brackets from taking long.
    """
    return _LINK.sub(r"\1", markdown) if "](" in markdown else markdown
