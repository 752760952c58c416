"""Removes from a page what is never content: scripts, controls, navigation, hidden parts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from lxml import etree

from kbkit.sources.html.anchors import (
    SELF_LINKS,
    is_mark,
    is_self_link,
    names_place,
    says_its_place,
)
from kbkit.sources.html.code import language
from kbkit.sources.html.dom import (
    BLOCKS,
    HEADINGS,
    Element,
    drop_tree,
    linked_share,
    normalized_text,
)

_DROPPED_TAGS = str.split(
    "script style noscript template nav button select textarea iframe frame object embed applet "
    "svg canvas audio video input dialog link meta base title datalist map colgroup"
)
_SITE_LINKS = 3  # links from which a header or footer is that of the site
_FOOT = 40  # words up to which a footer with a link is that of the site
_PARTS = frozenset({"main", "article", "section", "blockquote", "figure"})
_DROPPED_ROLES = frozenset({"navigation", "search", "banner", "menu", "menubar", "toolbar"})
# class names and ids of controls, which are never content
_CONTROLS = frozenset(
    str.split("""
        copybtn copy-button btn-copy copy-btn clipboard-copy
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
        noprint no-print d-print-none hidden-print
        """)
)
_ALL_LINKED = 0.95  # share of the words of a list of contents that are links
_LINKED = 0.5  # share of the words of navigation that are links
_LITTLE = 12  # words that navigation has without any link: its title, a note
_WORD = re.compile(r"\w+")
_TRAIL = 8  # most steps of a list that leads to a page from above
_STEP_RELATIONS = frozenset({"next", "prev", "previous", "up", "contents", "index", "start"})
_NEIGHBOURS = frozenset({"next", "prev", "previous", "up"})
_STEP_KEYS = frozenset("nput")
_STEP_LINKED = 0.4  # share of the words of a line of steps that are links
_STEP_WORDS, _STEP_LINKS = 40, 8  # most words and links of a line of steps
_SOURCE_TEXTS = frozenset({"source", "src", "view source", "view on github"})
_SOURCE = re.compile(r"\b(?:src|source|viewcode)", re.IGNORECASE)
_SHOWS_SOURCE = re.compile(
    r"\W*(?:(?:view|show|expand|see|hide|toggle|unfold)\W+)?(?:the )?source(?: ?code)?\W*",
    re.IGNORECASE,
)
_BUTTON = 40  # characters of a button that unfolds the source
_TOGGLE = re.compile("toggle|collaps|expand", re.IGNORECASE)
_JUMP = re.compile(r"(?:^|[\s_-])(?:skip|jump)(?:[_-]?(?:link|to|nav)|\s|$)", re.IGNORECASE)
_LISTS_TITLES = frozenset({"menu", "table of contents", "contents", "on this page"})
_UNFOLDING_WORDS = 3  # most words of a link that unfolds something
_HIDDEN_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.I)

_MARKED = etree.XPath(
    "descendant::*[not(self::a)][@class or @id or @role or @hidden or @aria-hidden or @style]"
)


def clean(body: Element) -> None:
    """Remove what is never content: scripts, controls, navigation, hidden parts. In place."""
    doomed = [*_folded_sources(body), *body.iter(*_DROPPED_TAGS)]
    doomed += (part for part in body.iter("header", "footer") if _leads_elsewhere(part))
    for link in body.iter("a"):
        if is_self_link(link) or (_is_named(link, _CONTROLS) and not names_place(link)):
            doomed.append(link)
        elif says_its_place(link):
            del link.attrib["href"]
        elif _leads_to_source(link):
            doomed.append(_wrapping(link))
        elif _leads_nowhere(link) or _jumps(link):
            doomed.append(link)
        elif names_place(link) and "#" in (link.get("href") or "") and is_mark(link):
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
    _drop(_trails(body), body)
    _drop(_leading_contents(body), body)
    _drop(_repeated_links(body), body)
    _drop(_labels_of_code(body), body)
    _drop([head for head in body.iter("h1", "h2", "h3", "h4") if _heads_links(head)], body)


def _drop(elements: Iterable[Element], body: Element) -> None:
    for element in elements:
        if element is not body and element.getparent() is not None:
            if element.tag == "input" and element.get("type", "").lower() == "checkbox":
                _keep_checkbox(element)
            drop_tree(element)


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
        href for link in page.iter("a", "link")
        if (href := link.get("href") or "#")[0] != "#"  # which is next to a part of the page
        and (not _NEIGHBOURS.isdisjoint((link.get("rel") or "").lower().split())
        or (link.tag == "a" and link.get("accesskey") in _STEP_KEYS))
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


def _trails(body: Element) -> list[Element]:
    """Lists before the heading of a page that lead to it from above, and name it themselves."""
    heading = next(body.iter("h1"), None)
    if heading is None or not (name := normalized_text(heading)):
        return []
    found = []
    for element in body.iter("h1", "ul", "ol"):
        if element is heading:
            break
        items = [normalized_text(item) for item in element]
        bare = [text for item, text in zip(element, items, strict=True)
                if text and next(item.iter("a"), None) is None]  # fmt: skip
        if name in bare and len(bare) < len(items) <= _TRAIL:
            found.append(element)
    return found


def _leading_contents(body: Element) -> list[Element]:
    """Lists before the first heading of a page that lead to nothing but places of the page."""
    found: list[Element] = []
    places: set[str] = set()
    for element in body.iter("ul", "ol", *HEADINGS):
        if element.tag in HEADINGS:
            break
        targets = {(link.get("href") or "").partition("#")[2] for link in element.iter("a")}
        if len(targets) < _SITE_LINKS or linked_share(element) < _ALL_LINKED:
            continue
        places = places or {part.get("id") or part.get("name") or "" for part in body.iter()} - {""}
        if targets <= places and not any(outer in found for outer in element.iterancestors()):
            found.append(element)
    return found


def _repeated_links(body: Element) -> list[Element]:
    """Tables of one row of nothing but links that stand on a page more than once."""
    rows: dict[str, list[Element]] = {}
    for table in body.iter("table"):
        links = list(table.iter("a"))
        if len(links) < _SITE_LINKS or sum(1 for _ in table.iter("tr")) != 1:
            continue
        said = " ".join("".join(link.itertext()) for link in links)
        text = normalized_text(table)
        if _WORD.findall(text) == _WORD.findall(said):
            rows.setdefault(text, []).append(table)
    return [table for same in rows.values() if len(same) > 1 for table in same]


def _folded_sources(body: Element) -> list[Element]:
    """Sources of what is described that are folded behind a button, and the button."""
    found = []
    boxes = {box.get("id"): box for box in body.iter("input") if box.get("type") == "checkbox"}
    for button in body.iter("summary", "label", "button"):
        text = normalized_text(button)
        if len(text) > _BUTTON or not _SHOWS_SOURCE.fullmatch(text):
            continue
        box = boxes.get(button.get("for"), button)
        beside = [button.getparent()] if button.tag == "summary" else box.itersiblings()
        for folded in beside:
            code = sum(len(normalized_text(pre).split()) for pre in folded.iter("pre"))
            if code and len(normalized_text(folded).split()) - code <= _LITTLE:
                found += [button, folded]
                break
    return found


def _labels_of_code(body: Element) -> list[Element]:
    """What names the language of code beside it, as the code's class does."""
    found = []
    for pre in body.iter("pre"):
        for beside in (pre.getprevious(), pre.getnext()):
            if beside is None or beside.tag not in ("span", "div", "small", "em"):
                continue
            text = normalized_text(beside).lower()
            if text and text == language(pre) and not (beside.tail or "").strip():
                found.append(beside)
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
    """A link for a script to unfold what stands before or below it, or back to the top."""
    if link.get("href") != "#" or names_place(link) or (link.tail or "").strip():
        return False
    words = normalized_text(link).split()
    if len(words) > _UNFOLDING_WORDS:
        return False
    before = link.getprevious()
    if before is not None and before.tag in BLOCKS:
        return True
    # in a heading, it may as well be the name of what is described
    return bool(_TOGGLE.search(link.get("class") or ""))


def _jumps(link: Element) -> bool:
    """A link for keyboards to another part of the page, over its menus."""
    if not (link.get("href") or "").startswith("#"):
        return False
    return bool(_JUMP.search(link.get("class") or ""))


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
    links = sum(1 for _ in part.iter("a"))
    short = part.tag == "footer" and len(normalized_text(part).split()) <= _FOOT
    if links < (1 if short else _SITE_LINKS):
        return False
    around = part.getparent()
    while around is not None:
        if around.tag in _PARTS or around.get("role") == "main":
            return False
        around = around.getparent()
    return True


def _is_furniture(element: Element, attributes: Any) -> bool:
    if _is_named(element, _CONTROLS | SELF_LINKS):
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
