"""What stands where in an HTML tree: parsing, cleaning, links, anchors, code languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import dropwhile
from typing import Any

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

_DROPPED_TAGS = str.split(
    "script style noscript template nav button select textarea iframe frame object embed applet "
    "svg canvas audio video input dialog link meta base title datalist map colgroup"
)
_SITE_LINKS = 3  # links from which a header or footer is that of the site
_NO_TEXT = str.split("script style noscript template button select textarea iframe object svg")
_DROPPED_ROLES = frozenset({"navigation", "search", "banner", "menu", "menubar", "toolbar"})
# class names and ids of page furniture in documentation generators
_FURNITURE = frozenset(
    str.split("""
        headerlink anchorjs-link hash-link header-anchor heading-anchor permalink
        anchor-link copybtn copy-button btn-copy copy-btn clipboard-copy
        zeroclipboard-container linenos linenodiv lineno gutter line-numbers-rows
        blob-num sphinxsidebar related breadcrumb breadcrumbs theme-doc-breadcrumbs
        theme-doc-toc-mobile theme-doc-footer theme-doc-version-badge pagination
        pagination-nav pager prev-next-area prev-next-bottom rst-footer-buttons
        rst-versions md-sidebar md-source-file md-footer md-header md-feedback edit-page
        edit-this-page edit-page-link viewcode-link viewcode-back mw-editsection toc
        tocnav table-of-contents on-this-page local-toc toctitle sr-only visually-hidden
        screen-reader-text skip-link skip-to-content skipto navbar navheader navfooter
        navigation topnav bottomnav subnav sub-nav sidebar site-footer site-header
        page-footer cookie-banner share-buttons social-share printfooter catlinks
        mainmenu submenu searchmenu
        """)
)
_SELF_LINK_TEXTS = frozenset(
    {"", "#", "¶", "§", "🔗", "link", "permalink", "anchor", "\uf0c1", "∞"}
)
_LABEL_WORDS = 3
_HIDDEN_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.I)
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufffe\uffff]")

_MARKED = etree.XPath(
    "descendant::*[not(self::a)][@class or @id or @role or @hidden or @aria-hidden or @style]"
)


def parse(text: str) -> Element | None:
    """Parse a page as leniently as browsers do; ``None`` when nothing can be made of it."""
    data = _CONTROL.sub("", text).encode("utf-8", "replace")
    # not lxml.html: its elements cost a Python call each time one is met
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(data, parser)
    except (etree.LxmlError, ValueError):
        return None
    if root is not None:
        _close_head(root)
    return root


def to_html(root: Element) -> str:
    """A tree as HTML that says where its head ends, for other parsers."""
    return str(etree.tostring(root, encoding="unicode", method="html"))


def _close_head(root: Element) -> None:
    """Move what cannot stand in a head into the body, with what follows it.

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
    """Take an element out of its tree; the text behind it stays."""
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
    """The element's class names."""
    return (element.get("class") or "").split()


def normalized_text(element: Element) -> str:
    """All text of an element, white space folded."""
    return " ".join("".join(element.itertext()).split())


def clean(body: Element) -> None:
    """Remove what is never content: scripts, controls, furniture, hidden parts. In place."""
    doomed = list(body.iter(*_DROPPED_TAGS))
    doomed += (part for part in body.iter("header", "footer") if _leads_elsewhere(part))
    for link in body.iter("a"):
        if _is_self_link(link):
            doomed.append(link)
        elif _names_place(link) and "#" in (link.get("href") or "") and _is_mark(link):
            # it says where the heading is, so it stays, but not its pilcrow
            link.text = None
    verdicts: dict[tuple[Any, ...], bool] = {}
    for element in _MARKED(body):
        key = (element.tag, *element.attrib.values(), *element.attrib)
        furniture = verdicts.get(key)
        if furniture is None:
            furniture = verdicts[key] = _is_furniture(element, element.attrib)
        if furniture:
            doomed.append(element)
    for element in doomed:
        if element is not body and element.getparent() is not None:
            if element.tag == "input" and element.get("type", "").lower() == "checkbox":
                _keep_checkbox(element)
            drop_tree(element)


def _leads_elsewhere(part: Element) -> bool:
    """Whether a header or footer is that of the site, and not that of an article."""
    if sum(1 for _ in part.iter("a")) < _SITE_LINKS:
        return False
    around = part.getparent()
    while around is not None:
        if around.tag in ("main", "article", "section") or around.get("role") == "main":
            return False
        around = around.getparent()
    return True


def strip_scripts(body: Element) -> None:
    """Remove only what is no text at all: scripts, styles, controls. In place."""
    for element in list(body.iter(*_NO_TEXT)):
        drop_tree(element)


def _is_furniture(element: Element, attributes: Any) -> bool:
    tag = element.tag
    names = attributes.get("class")
    if names:
        for name in names.split():
            if name.lower() in _FURNITURE:
                # reStructuredText's sidebar is part of the text
                return not (name == "sidebar" and tag == "aside")
        if "contents" in names.split() and "topic" in names.split():
            return True
    identity = attributes.get("id")
    if identity and identity.lower() in _FURNITURE and tag not in HEADINGS and tag != "section":
        return True
    role = attributes.get("role")
    if role and role in _DROPPED_ROLES:
        return True
    if "hidden" in attributes and role != "tabpanel":
        return True
    if attributes.get("aria-hidden") == "true":
        return True
    style = attributes.get("style")
    return bool(style and _HIDDEN_STYLE.search(style))


def _keep_checkbox(element: Element) -> None:
    parent = element.getparent()
    if parent.tag in ("li", "label", "p") and element.getprevious() is None:
        element.tail = ("[x] " if "checked" in element.attrib else "[ ] ") + (element.tail or "")


def _is_self_link(link: Element) -> bool:
    """A link that a heading or term carries to itself (pilcrow, hash, chain)."""
    names = {name.lower() for name in classes(link)}
    if names & _FURNITURE or link.get("aria-hidden") == "true":
        return not _names_place(link)
    href = link.get("href")
    if not href or "#" not in href or _names_place(link):
        return False
    return _is_mark(link)


def _is_mark(link: Element) -> bool:
    return len(link) == 0 and (link.text or "").strip().lower() in _SELF_LINK_TEXTS


def _names_place(link: Element) -> bool:
    return bool(link.get("id") or link.get("name"))


def self_links(body: Element) -> dict[Element, str]:
    """Anchors that headings and terms name through their own link; asked before cleaning."""
    anchors: dict[Element, str] = {}
    for link in body.iter("a"):
        href = link.get("href")
        if href and href.startswith("#") and len(href) > 1 and _is_self_link(link):
            holder = link.getparent()
            while holder is not None and holder.tag in ("span", "div", "a", "code"):
                holder = holder.getparent()
            if holder is not None and (holder.tag in HEADINGS or holder.tag == "dt"):
                anchors.setdefault(holder, href[1:])
    return anchors


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


def _around(element: Element) -> str:
    nearest = ""
    for _ in range(3):
        previous = element.getprevious()
        while previous is not None and (_is_empty_anchor(previous) or _is_label(previous)):
            nearest = nearest or ("" if _is_label(previous) else _place(previous))
            previous = previous.getprevious()
        parent = element.getparent()
        if previous is not None or parent is None or (parent.text or "").strip():
            return nearest
        if parent.tag not in ("section", "div", "article", "header", "hgroup", "main"):
            return nearest
        identity = valid_anchor(parent.get("id") or "")
        if identity:
            return identity
        element = parent
    return nearest


def _is_empty_anchor(element: Element) -> bool:
    return (
        element.tag in ("a", "span", "p", "div", "i")
        and not (element.tail or "").strip()
        and bool(_place(element))
        and not "".join(element.itertext()).strip()
        and next(element.iter("img", "table", "hr"), None) is None
    )


def _is_label(element: Element) -> bool:
    """Whether something before a heading is a mark beside it, as a link to the source is."""
    words = normalized_text(element).split() if element.tag in ("a", "span", "button") else []
    return 0 < len(words) <= _LABEL_WORDS and not (element.tail or "").strip()


def _place(element: Element) -> str:
    for inner in element.iter():
        found = valid_anchor(inner.get("id") or inner.get("name") or "")
        if found:
            return found
    return ""


def valid_anchor(identity: str) -> str:
    """An id that can stand in ``{#...}``, or ``""``."""
    identity = identity.strip()
    bad = not identity or len(identity) > 200 or re.search(r"[\s{}<>\"'`]", identity)
    return "" if bad else identity


def links(root: Element) -> Iterator[str]:
    """Addresses that the page links to, as written."""
    for element in root.iter("a", "area", "frame", "iframe"):
        href = element.get("href") if element.tag in ("a", "area") else element.get("src")
        if href and "nofollow" not in (element.get("rel") or "").lower().split():
            yield href
