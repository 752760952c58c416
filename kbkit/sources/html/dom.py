"""Parse HTML, and query the tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import dropwhile
from typing import Any
from urllib.parse import urljoin

from lxml import etree

Element = Any  # lxml ships no types

BLOCKS = frozenset(
    str.split("""
        address article aside blockquote body caption center dd details dir div dl dt
        fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html
        legend li listing main menu nav ol p plaintext pre section summary table tbody
        td tfoot th thead tr ul xmp
        """)
)
HEADINGS = {f"h{level}": level for level in range(1, 7)}
_IN_HEAD = frozenset(
    {"base", "basefont", "bgsound", "link", "meta", "noframes", "noscript", "script", "style"}
    | {"template", "title"}
)
PREFORMATTED = frozenset({"pre", "listing", "xmp", "plaintext"})

_HEADING = re.compile(r"<(/?)h([1-6])(?=[\s/>])", re.IGNORECASE)
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufffe\uffff]")


def parse(text: str) -> Element | None:
    """Parse a page as leniently as browsers do; ``None`` if it is not HTML."""
    data = _closed_headings(_CONTROL.sub("", text)).encode("utf-8", "replace")
    # not lxml.html: its elements cost a Python call each time one is met
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(data, parser)
    except (etree.LxmlError, ValueError):
        return None
    if root is not None:
        _close_head(root)
    return root


def _closed_headings(text: str) -> str:
    """A page whose headings end where any heading's end tag stands, as HTML has it.

    libxml2 takes the end tag of another level for none, and all that follows for the heading.
    """
    level = ""

    def closed(tag: re.Match[str]) -> str:
        nonlocal level
        if not tag[1]:
            level = tag[2]
            return tag[0]
        opened, level = level, ""
        return f"</h{opened or tag[2]}"

    return _HEADING.sub(closed, text)


def to_html(root: Element) -> str:
    return str(etree.tostring(root, encoding="unicode", method="html"))


def _close_head(root: Element) -> None:
    """Move elements that a head cannot hold, and all after them, into the body.

    A head without end ends there, says HTML. libxml2 knows that of old elements only, and leaves
    ``main`` and ``article`` in the head.
    """
    head = root.find("head")
    strays = [] if head is None else list(dropwhile(lambda part: part.tag in _IN_HEAD, head))
    if not strays:
        return
    body = root.find("body")
    if body is None:
        body = etree.SubElement(root, "body")
    strays[-1].tail = (strays[-1].tail or "") + (body.text or "")
    body.text = None
    for place, stray in enumerate(strays):
        body.insert(place, stray)


def drop_tree(element: Element) -> None:
    """Remove an element from its tree; its tail stays."""
    parent = element.getparent()
    if parent is None:
        return
    if element.tail:
        previous = element.getprevious()
        if previous is None:
            parent.text = (parent.text or "") + element.tail
        else:
            previous.tail = (previous.tail or "") + element.tail
        element.tail = None
    parent.remove(element)


def classes(element: Element) -> list[str]:
    return (element.get("class") or "").split()


def normalized_text(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())


def linked_share(element: Element) -> float:
    """Return the share of an element's words in links, 0 to 1; 1 if it has no words."""
    total = len(normalized_text(element).split())
    linked = sum(len(normalized_text(link).split()) for link in element.iter("a"))
    return linked / total if total else 1.0


def links(root: Element) -> Iterator[str]:
    for element in root.iter("a", "area", "frame", "iframe"):
        href = element.get("href") if element.tag in ("a", "area") else element.get("src")
        if href and "nofollow" not in (element.get("rel") or "").lower().split():
            yield href


@lru_cache(maxsize=20_000)
def joined(base: str, href: str) -> str:
    """Resolve a page's link, cached; ``""`` if it is malformed."""
    try:
        return urljoin(base, href)
    except ValueError:
        return ""
