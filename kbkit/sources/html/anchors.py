"""Anchors of headings and paragraphs: ids and permalinks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

from kbkit.sources.html.dom import BLOCKS, HEADINGS, Element, classes, normalized_text

SELF_LINKS = frozenset(
    str.split("""
        headerlink anchorjs-link hash-link header-anchor heading-anchor permalink anchor-link
        """)
)
"""Class names of links that a heading or term carries to itself."""
_SELF_LINK_TEXTS = frozenset(
    {"", "#", "¶", "§", "🔗", "link", "permalink", "anchor", "\uf0c1", "∞", "^", "↑", "↩"}
)
_LABEL_WORDS = 3  # of a mark beside a heading
_LEVELS = 5  # of blocks around a heading that may be what it opens
_NAME_WORDS = 60  # most words of a signature
_SIGNATURE = 400  # likewise of one that carries a link to itself
_AROUND = frozenset({"section", "div", "article", "header", "hgroup", "main", "ul", "li"})
_DEFINES = frozenset({"def", "definition", "defn"})
_NAME = re.compile(r"(?:^|[-_])(?:heading|signature)(?:$|[-_])", re.IGNORECASE)
"""Class names of block titles."""
_NOT_IN_ANCHORS = re.compile("[{}<>\"'`\\s]")


def is_self_link(link: Element) -> bool:
    """A link that a heading or term carries to itself (pilcrow, hash, chain)."""
    if _is_called_so(link) or link.get("aria-hidden") == "true":
        return not names_place(link) and not says_its_place(link)
    href = link.get("href")
    if not href or "#" not in href or names_place(link):
        return False
    return is_mark(link)


def _is_called_so(link: Element) -> bool:
    return not SELF_LINKS.isdisjoint(name.lower() for name in classes(link))


def says_its_place(link: Element) -> bool:
    """Whether a link to its own place is text, and not a permalink sign.

    It is all that its heading or term says, or the place that it leads to is in it.
    """
    if is_mark(link) or not _is_called_so(link):
        return False
    place = (link.get("href") or "").partition("#")[2]
    if place and any(inner.get("id") == place for inner in link.iterdescendants()):
        return True
    holder = link.getparent()
    while holder is not None and holder.tag in ("span", "div", "code", "b", "strong"):
        holder = holder.getparent()
    if holder is None or (holder.tag not in HEADINGS and holder.tag != "dt"):
        return False
    return normalized_text(holder) == normalized_text(link) != ""


def is_mark(link: Element) -> bool:
    text = (link.text or "").strip(" \t\r\n\xa0\ufe0e\ufe0f")
    return len(link) == 0 and text.lower() in _SELF_LINK_TEXTS


def names_place(link: Element) -> bool:
    return bool(link.get("id") or link.get("name"))


def self_links(body: Element) -> dict[Element, str]:
    """Anchors that headings and terms name through their own link; asked before cleaning."""
    anchors: dict[Element, str] = {}
    for link in body.iter("a"):
        href = link.get("href")
        if not href or not href.startswith("#") or len(href) == 1:
            continue
        if is_self_link(link) or _is_called_so(link):
            holder = block = link.getparent()
            while holder is not None and holder.tag in ("span", "div", "a", "code"):
                block = holder if holder.tag == "div" and block.tag != "div" else block
                holder = holder.getparent()
            if holder is not None and (holder.tag in HEADINGS or holder.tag == "dt"):
                anchors.setdefault(holder, href[1:])
            elif block.tag == "div" and _introduces(block):
                anchors.setdefault(block, href[1:])
            elif block.get("id") == href[1:] and is_mark(link):
                # behind what the block begins with, and names it
                named = link.getprevious()
                if named is not None and named.tag == "div" and _is_short(named, _SIGNATURE):
                    anchors.setdefault(named, href[1:])
    for block, place in _named_blocks(body):
        anchors.setdefault(block, place)
    return anchors


def _named_blocks(body: Element) -> Iterator[tuple[Element, str]]:
    for block in body.iter("div"):
        if not any(map(_NAME.search, classes(block))) or not _is_short(block):
            continue
        outer, alone = block, True
        while outer.getprevious() is None and (around := outer.getparent()) is not None:
            if (around.text or "").strip() or around.tag not in ("div", "section", "article"):
                break
            alone = alone and outer.getnext() is None
            if around.get("id"):
                if not alone:
                    yield block, around.get("id")
                break
            outer = around
    for link in body.iter("a", "dfn", "span"):
        block = link.getparent()
        if block.tag in ("p", "div") and link.get("id") and _DEFINES & set(classes(link)):
            first = link.getprevious() is None or not normalized_text(link.getprevious())
            if _is_short(block) and (first or not block.text):
                yield block, link.get("id")


def _introduces(block: Element) -> bool:
    if any("caption" in name.lower() for name in classes(block)):
        return False
    before, behind = block.getprevious(), block.getnext()
    while before is not None and _is_empty_anchor(before):
        before = before.getprevious()
    if before is not None or behind is None:
        return False
    in_cell = next(block.iterancestors("td", "th", "li", "dd"), None) is not None
    return not in_cell and _is_short(block)


def _is_short(block: Element, most: int = _NAME_WORDS) -> bool:
    if next(block.iterdescendants(*BLOCKS), None) is not None:
        return False
    return len(normalized_text(block).split()) <= most


def anchor(element: Element, own: dict[Element, str]) -> str:
    """The fragment that leads to a heading or term, or ``""``.

    Its own id; the id of an element inside it; the target of its own link; an empty anchor
    right before it; the id of the section that it opens.
    """
    found = element.get("id") or own.get(element, "")
    if not found:
        for inner in element.iter("a", "span"):
            found = inner.get("id") or (inner.get("name") if inner.tag == "a" else "") or ""
            if found:
                break
    return valid_anchor(found) or _around(element)


def opening_anchor(element: Element) -> str:
    """The fragment that leads to a paragraph or an item of a list, or ``""``.

    Its own id, or that of an element that it opens with.
    """
    found = valid_anchor(element.get("id") or "")
    inner = element
    while not found and not (inner.text or "").strip() and len(inner):
        inner = inner[0]
        if inner.tag not in ("a", "span", "p", "dfn", "b", "strong", "code"):
            break
        target = inner.get("href") or ""
        if target and target != f"#{inner.get('id')}":
            break  # what leads elsewhere has an id for the way back
        name = inner.get("name") if inner.tag == "a" else ""
        found = valid_anchor(inner.get("id") or name or "")
    return found


def _around(element: Element) -> str:
    nearest = ""
    for level in range(_LEVELS):
        previous = element.getprevious()
        while previous is not None and (_is_empty(previous) or _is_label(previous)):
            # before what a heading stands in, an empty block may be there for a script
            marks = not _is_label(previous) and (level == 0 or previous.tag in ("a", "span"))
            nearest = nearest or (_place(previous) if marks else "")
            previous = previous.getprevious()
        parent = element.getparent()
        if previous is not None or parent is None or (parent.text or "").strip():
            return nearest
        if parent.tag not in _AROUND:
            return nearest
        identity = valid_anchor(parent.get("id") or "")
        if identity:
            return identity
        element = parent
    return nearest


def _is_empty_anchor(element: Element) -> bool:
    return _is_empty(element) and bool(_place(element))


def _is_empty(element: Element) -> bool:
    return (
        element.tag in ("a", "span", "p", "div", "i")
        and not (element.tail or "").strip()
        and not "".join(element.itertext()).strip()
        and next(element.iter("img", "table", "hr"), None) is None
    )


def _is_label(element: Element) -> bool:
    """Whether an element before a heading is a label, such as a source link."""
    words = normalized_text(element).split() if element.tag in ("a", "span", "button") else []
    return 0 < len(words) <= _LABEL_WORDS and not (element.tail or "").strip()


def _place(element: Element) -> str:
    for inner in element.iter():
        found = valid_anchor(inner.get("id") or inner.get("name") or "")
        if found:
            return found
    return ""


def valid_anchor(identity: str) -> str:
    identity = identity.strip()
    bad = not identity or len(identity) > 200
    return "" if bad else _NOT_IN_ANCHORS.sub(lambda sign: quote(sign[0]), identity)
