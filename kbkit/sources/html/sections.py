"""The levels of headings in an HTML tree, by which members stand below what they are members of."""

from __future__ import annotations

from kbkit.sources.html.dom import Element, normalized_text

_DEEPEST = 6


class Sections:
    """The levels of the headings that were met, each with what lies in its section."""

    def __init__(self) -> None:
        self._levels: dict[Element, int] = {}
        self.last = 0
        """Of the last heading, 0 before the first."""

    def begin(self, heading: Element, text: str, level: int) -> None:
        """Take a heading, which stands above all in its parent, and around it if that is its own.

        Args:
            heading: The heading.
            text: What it says.
            level: 1 to 6.
        """
        self.last = level
        around = heading.getparent()
        while around is not None and around.getparent() is not None:
            self._levels[around] = level
            if around.tag not in ("header", "hgroup") and normalized_text(around) != text:
                break
            around = around.getparent()

    def member(self, name: Element) -> int:
        """The level of the name of a member, below the innermost section that it lies in."""
        around = (self._levels[one] for one in name.iterancestors() if one in self._levels)
        level = min(_DEEPEST, next(around, max(self.last, 1)) + 1)
        parent = name.getparent()
        if parent is not None and parent[0] is name:
            self._levels[parent] = level
        return level
