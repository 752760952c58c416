"""What stands where in an HTML tree: parsing, cleaning, links, anchors, code languages."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import dropwhile
from typing import Any
from urllib.parse import quote

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
_DROPPED_ROLES = frozenset({"navigation", "search", "banner", "menu", "menubar", "toolbar"})
# class names and ids of controls, which are never content
_CONTROLS = frozenset(
    str.split("""
        headerlink anchorjs-link hash-link header-anchor heading-anchor permalink
        anchor-link copybtn copy-button btn-copy copy-btn clipboard-copy
        zeroclipboard-container linenos linenodiv lineno gutter line-numbers-rows
        blob-num sr-only visually-hidden screen-reader-text skip-link skip-to-content skipto
        mw-editsection viewcode-link viewcode-back edit-page edit-this-page edit-page-link
        md-feedback md-source-file theme-doc-version-badge rst-versions cookie-banner
        share-buttons social-share printfooter source_code method-source-code method-click-advice
        """)
)
# those of navigation, as far as it is nothing but links
_NAVIGATION = frozenset(
    str.split("""
        sphinxsidebar related breadcrumb breadcrumbs theme-doc-breadcrumbs
        theme-doc-toc-mobile theme-doc-footer pagination pagination-nav pager prev-next-area
        prev-next-bottom rst-footer-buttons md-sidebar md-footer md-header toc tocnav
        table-of-contents on-this-page local-toc toctitle navbar navheader navfooter nav-path
        navpath navigation topnav bottomnav subnav sub-nav sidebar site-footer site-header
        page-footer catlinks mainmenu submenu searchmenu search-results tablist menu
        """)
)
_LINKED = 0.5  # share of the words of navigation that are links
_LITTLE = 12  # words that navigation has without any link: its title, a note
_STEP_RELATIONS = frozenset({"next", "prev", "previous", "up", "contents", "index", "start"})
_NEIGHBOURS = frozenset({"next", "prev", "previous", "up"})
_STEP_KEYS = frozenset("nput")
_STEP_LINKED = 0.4  # share of the words of a line of steps that are links
_STEP_WORDS, _STEP_LINKS = 40, 8  # most words and links of a line of steps
_SOURCE_TEXTS = frozenset({"source", "src", "view source", "view on github"})
_SOURCE = re.compile(r"\b(?:src|source|viewcode)", re.IGNORECASE)
_LISTS_TITLES = frozenset({"menu", "table of contents", "contents", "on this page"})
_SELF_LINK_TEXTS = frozenset(
    {"", "#", "¶", "§", "🔗", "link", "permalink", "anchor", "\uf0c1", "∞"}
)
_LABEL_WORDS = 3
_HIDDEN_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.I)
_NOT_IN_ANCHORS = re.compile("[{}<>\"'`]")
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
    """Remove what is never content: scripts, controls, navigation, hidden parts. In place."""
    doomed = list(body.iter(*_DROPPED_TAGS))
    doomed += (part for part in body.iter("header", "footer") if _leads_elsewhere(part))
    for link in body.iter("a"):
        if _is_self_link(link):
            doomed.append(link)
        elif _leads_to_source(link):
            doomed.append(_wrapping(link))
        elif _leads_nowhere(link):
            doomed.append(link)
        elif _names_place(link) and "#" in (link.get("href") or "") and _is_mark(link):
            # it says where the heading is, so it stays, but not its pilcrow
            link.text = None
    verdicts: dict[tuple[Any, ...], bool] = {}
    navigation: list[Element] = []
    for element in _MARKED(body):
        key = (element.tag, *element.attrib.values(), *element.attrib)
        furniture = verdicts.get(key)
        if furniture is None:
            furniture = verdicts[key] = _is_furniture(element, element.attrib)
        if furniture:
            doomed.append(element)
        elif _is_named(element, _NAVIGATION):
            navigation.append(element)
    _drop(doomed, body)
    _drop((part for part in navigation if _is_navigation(part)), body)
    _drop(_steps(body), body)
    _drop([head for head in body.iter("h1", "h2", "h3", "h4") if _heads_links(head)], body)


def _drop(elements: Iterable[Element], body: Element) -> None:
    for element in elements:
        if element is not body and element.getparent() is not None:
            if element.tag == "input" and element.get("type", "").lower() == "checkbox":
                _keep_checkbox(element)
            drop_tree(element)


def linked_share(element: Element) -> float:
    """Share of the words of an element that are links, from 0 to 1; 1 where it has no words."""
    total = len(normalized_text(element).split())
    linked = sum(len(normalized_text(link).split()) for link in element.iter("a"))
    return linked / total if total else 1.0


def _is_named(element: Element, names: frozenset[str]) -> bool:
    """Whether an element has one of some names as its class or id."""
    tag = element.tag
    if not names.isdisjoint((element.get("class") or "").lower().split()):
        # reStructuredText's sidebar is part of the text
        return not (tag == "aside" and "sidebar" in element.get("class").lower().split())
    identity = element.get("id")
    return bool(identity) and identity.lower() in names and tag not in (*HEADINGS, "section")


def _is_navigation(element: Element) -> bool:
    """Whether an element that is named like navigation is that: mostly links, or hardly a word."""
    if next(element.iter("h1"), None) is not None or element.tag in ("td", "th"):
        return False
    if element.tag == "table" and next(element.iter("th"), None) is not None:
        return False
    words = len(normalized_text(element).split())
    return linked_share(element) >= _LINKED or (
        words <= _LITTLE and next(element.iter("p", "pre", "dl", "code"), None) is None
    )


def _steps(body: Element) -> list[Element]:
    """Lines of links to the pages around a page: its next, the one above, its translations."""
    page = body.getparent() if body.getparent() is not None else body
    around_page = {
        link.get("href") for link in page.iter("a", "link")
        if not _NEIGHBOURS.isdisjoint((link.get("rel") or "").lower().split())
        or (link.tag == "a" and link.get("accesskey") in _STEP_KEYS)
    }  # fmt: skip
    found: list[Element] = []
    for link in body.iter("a"):
        if _is_step(link) or _is_translation(link) or link.get("href") in around_page:
            line = link.getparent()
            while line is not None and line.tag not in BLOCKS:
                line = line.getparent()
            around = line
            while around is not None and around is not body:
                if not _is_line_of_steps(around, around_page):
                    break
                line, around = around, around.getparent()
            if line is not None and line is not around:
                found.append(line)
    return found


def _is_translation(link: Element) -> bool:
    """Whether a link leads to the page in another language, or to itself in this one."""
    return bool(link.get("hreflang")) and "alternate" in (link.get("rel") or "").lower().split()


def _is_step(link: Element) -> bool:
    relations = (link.get("rel") or "").lower().split()
    return not _STEP_RELATIONS.isdisjoint(relations) or link.get("accesskey") in _STEP_KEYS


def _is_line_of_steps(element: Element, neighbours: Collection[str | None]) -> bool:
    """Whether an element is such a line.

    Args:
        element: Any block.
        neighbours: Addresses that the page calls its next, its last, or the one above.
    """
    links = [link for link in element.iter("a") if link.get("href")]
    if links and all(map(_is_translation, links)):
        return len(normalized_text(element).split()) <= _STEP_WORDS + 2 * len(links)
    # without a word of it, one link to a neighbour is a link like others
    known = {link.get("href") for link in links} & set(neighbours)
    steps = sum(_is_step(link) or (len(known) > 1 and link.get("href") in known) for link in links)
    if steps == 0 or len(links) > _STEP_LINKS or 2 * steps < len(links):
        return False
    if next(element.iter(*HEADINGS), None) is not None:
        return False
    words = len(normalized_text(element).split())
    return words <= _STEP_WORDS and linked_share(element) >= _STEP_LINKED


def _leads_to_source(link: Element) -> bool:
    """A link to the source of what is described, beside its name or at the end of its line."""
    text = "".join(link.itertext()).strip(" \t\r\n\xa0[]()").lower()
    if text not in _SOURCE_TEXTS or (link.tail or "").strip(" \t\r\n\xa0[]()|·"):
        return False
    return bool(_SOURCE.search(f"{link.get('class') or ''} {link.get('href') or ''}"))


def _leads_nowhere(link: Element) -> bool:
    """A link for a script to unfold what stands before it, or back to the top of the page."""
    if link.get("href") != "#" or _names_place(link) or (link.tail or "").strip():
        return False
    before = link.getprevious()
    words = normalized_text(link).split()
    return before is not None and before.tag in BLOCKS and len(words) <= _LABEL_WORDS


def _wrapping(link: Element) -> Element:
    """The outermost element of a line that holds nothing but a link."""
    parent = link.getparent()
    while (
        parent.tag in ("span", "small", "sup", "b")
        and len(parent) == 1
        and not (parent.text or "").strip(" \t\r\n\xa0[]()")
        and not parent.get("id")
    ):
        link, parent = parent, parent.getparent()
    return link


def _heads_links(heading: Element) -> bool:
    """Whether a heading names a list of what stands below or beside the page."""
    if normalized_text(heading).lower() not in _LISTS_TITLES:
        return False
    following = heading.getnext()
    return following is None and not (heading.tail or "").strip()


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


def _is_furniture(element: Element, attributes: Any) -> bool:
    if _is_named(element, _CONTROLS):
        return True
    names = (attributes.get("class") or "").split()
    if "contents" in names and "topic" in names:
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
    if names & _CONTROLS or link.get("aria-hidden") == "true":
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
    """An id as it stands in ``{#...}`` and in addresses, or ``""``."""
    identity = identity.strip()
    bad = not identity or len(identity) > 200 or re.search(r"\s", identity)
    return "" if bad else _NOT_IN_ANCHORS.sub(lambda sign: quote(sign[0]), identity)


def links(root: Element) -> Iterator[str]:
    """Addresses that the page links to, as written."""
    for element in root.iter("a", "area", "frame", "iframe"):
        href = element.get("href") if element.tag in ("a", "area") else element.get("src")
        if href and "nofollow" not in (element.get("rel") or "").lower().split():
            yield href
