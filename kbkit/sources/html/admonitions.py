"""Admonitions in an HTML tree: notes, warnings and tips that stand beside the text."""

from __future__ import annotations

from kbkit.markdown.admonitions import KINDS
from kbkit.sources.html.dom import HEADINGS, Element, classes, drop_tree, normalized_text

ADMONITIONS = frozenset(
    str.split("""
        admonition admonitionblock theme-admonition alert callout note warning tip hint
        caution important danger error attention seealso custom-block
        """)
)
"""Class names of admonitions."""

_TITLES = frozenset(
    f"{name}title" for name in ("admonition-", "admonition", "alert-", "callout-", "custom-block-")
)
_GENERAL = frozenset({"admonition", "callout", "aside"})
_LONGEST_TITLE = 80
_FRAMES = frozenset({"table", "tbody", "thead", "tr", "td", "div", "p", "dl"})


def admonition_title(element: Element) -> Element | None:
    """What names an admonition: a part whose class says so, or what stands first in bold.

    That is a heading, a ``th`` beside an icon, a ``dt``, or a bold word that begins its first
    paragraph and ends in a colon or its line.
    """
    for child in element:
        if not isinstance(child.tag, str):
            continue
        names = {name.lower() for name in classes(child)}
        if names & _TITLES or any("admonitionheading" in name for name in names):
            return child
    first = _first(element)
    if first is None or len(normalized_text(first)) > _LONGEST_TITLE:
        return None
    return first


def is_body(element: Element) -> bool:
    """Whether something called an admonition is all that the admonition around it says."""
    around = element.getparent()
    if around is None or ADMONITIONS.isdisjoint(classes(around)):
        return False
    return normalized_text(around) == normalized_text(element)


def admonition_kind(element: Element) -> str:
    """What kind of admonition the classes of an element say it is, or ``""``."""
    words = " ".join(classes(element)).lower().replace("-", " ").split()
    return next((word for word in words if word in KINDS and word not in _GENERAL), "")


def only_child(element: Element, tag: str) -> Element | None:
    """The only child of an element, if it has that tag and no text beside it."""
    children = [child for child in element if isinstance(child.tag, str)]
    beside = (element.text or "") + "".join(child.tail or "" for child in children)
    alone = len(children) == 1 and children[0].tag == tag and not beside.strip()
    return children[0] if alone else None


def _first(element: Element) -> Element | None:
    """The first part with text, if it is one that titles are written in."""
    for part in element.iterdescendants():
        tag = part.tag
        if not isinstance(tag, str):
            continue
        if tag in HEADINGS or tag in ("th", "dt"):
            return part
        if tag in ("b", "strong"):
            text, behind = normalized_text(part), (part.tail or "").strip()
            ends = text.endswith(":") or behind.startswith(":") or not behind
            return part if ends and text else None
        if tag not in _FRAMES and normalized_text(part):
            return None
        if (part.text or "").strip():
            return None
    return None


def drop_icons(element: Element, title: str) -> None:
    """Take pictures that say no more than its title out of an admonition; in place."""
    said = title.strip(": ").lower()
    for icon in list(element.iter("img")):
        if (icon.get("alt") or "").strip("[] ").lower() == said:
            drop_tree(icon)
