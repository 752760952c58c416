"""Remove scripts, controls, navigation and hidden parts from a page."""

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import unquote_plus

from lxml import etree

from kbkit.sources import html
from kbkit.sources.html import HEADINGS, NAMES, Element, classes, navigation, plain_text
from kbkit.sources.html.inline import NUMBERS, language, numbers_lines

_FOOT = 40  # maximum words of a site's footer with only one link
_PARTS = frozenset({"main", "article", "section", "blockquote", "figure"})
_DROPPED_ROLES = frozenset({"navigation", "search", "banner", "menu", "menubar", "toolbar"})
_CONTROLS = NAMES["controls"]
_RESULTS = frozenset({"search-results", "searchresults", "search-result"})
_NAVIGATION = NAMES["navigation"] | _RESULTS
_DROPPED_NAMES = _CONTROLS | html.SELF_LINKS
_TELLING = _DROPPED_NAMES | _NAVIGATION | NAMES["ambiguous_controls"] | {"topic"}
_LITTLE = 12  # maximum words of navigation without links: its title, a note
_SOURCE_TEXTS = frozenset({"source", "src", "view source", "view on github", "edit"})
_SOURCE = re.compile(r"(?:\b|see)(?:src|source|viewcode)", re.IGNORECASE)
_SHOWS_SOURCE = re.compile(
    r"\W*(?:(?:view|show|expand|see|hide|toggle|unfold)\W+)?(?:the )?source(?: ?code)?\W*",
    re.IGNORECASE,
)
_UNFOLDS = re.compile(r"(?:expand|collapse|unfold|toggle)(?: \w+){0,2}", re.IGNORECASE)
_BUTTON = 40  # maximum characters of a button that shows the source
_TOGGLE = re.compile("toggle|collaps|expand", re.IGNORECASE)
_JUMP = re.compile(r"(?:^|[\s_-])(?:skip|jump)(?:[_-]?(?:link|to|nav)|\s|$)", re.IGNORECASE)
_TOPS = frozenset({"top", "back to top", "to top", "go to top", "return to top", "↑", "▲", "^ top"})
_ARROW = re.compile(r"<-+>?|-+>|[←-⇿«»‹›◀▶]+")
_UNFOLDING_WORDS = 3  # maximum words of a link that unfolds something
_SEPARATOR = re.compile(r"\s*[·|•](?:\s*[·|•])*\s*")  # between the links of a line
_LAST_SEPARATOR = re.compile(r"(?<![\s·|•])\s*[·|•][\s·|•]*\Z")
_HIDDEN_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.I)

_MARKED = etree.XPath(
    "descendant::*[not(self::a)][@class or @id or @role or @hidden or @aria-hidden or @style]"
)


_ICONS = re.compile("[\ue000-\uf8ff]+")  # private use area of icon fonts
_LONG = 60  # minimum characters of an address that carries a program
_CARRIED = 0.9  # share of the code's words in the address of a link that runs it


def clean(body: Element) -> None:
    """Remove scripts, controls, navigation and hidden parts in place."""
    doomed = [*_folded_sources(body), *body.iter(*NAMES["dropped_tags"])]
    doomed += (label for label in body.iter("summary") if _UNFOLDS.fullmatch(plain_text(label)))
    doomed += (part for part in body.iter("header", "footer") if _leads_elsewhere(part))
    for image in body.iter("img"):
        cell, alt = image.getparent(), (image.get("alt") or "").strip()
        doomed += [image] * (cell.tag in ("td", "th") and alt == plain_text(cell) != "")
    for link in body.iter("a"):
        if html.is_self_link(link) or (_is_named(link, _CONTROLS) and not html.names_place(link)):
            doomed.append(link)
        elif html.names_its_place(link) or _opens_menu(link):
            del link.attrib["href"]
        elif _leads_to_source(link):
            doomed.append(_wrapping(link))
        elif (jump := _jump(link)) is not None:
            doomed.append(jump)
        elif _leads_nowhere(link) or _leads_to_top(link) or _runs_code(link):
            doomed.append(link)
        elif html.names_place(link) and "#" in (link.get("href") or "") and html.is_mark(link):
            # the link holds the heading's anchor, so only its pilcrow goes
            link.text = None
    candidates: list[Element] = []
    for element in _MARKED(body):
        is_plain = element.keys() == ["class"] and _is_plain(element.get("class"))
        if not is_plain and (numbers_lines(element) or _is_boilerplate(element)):
            doomed.append(element)
        elif not is_plain and _is_named(element, _NAVIGATION):
            candidates.append(element)
    bars = (part for part in doomed if part.tag == "nav" or part.get("role") in _DROPPED_ROLES)
    parents = [bar.getparent() for bar in bars]
    _drop(doomed, body)
    _drop(filter(navigation.is_rest_of_menu, parents), body)
    menus = _menus_of(candidates, body)
    _drop(navigation.headings_of(menus), body)
    _drop(menus, body)
    for find_elements in (_icons, navigation.steps, navigation.crumb_lists, navigation.contents):
        _drop(find_elements(body), body)
    navigation.drop_step_lines(body)
    _drop(navigation.repeated_links(body), body)
    _drop(_labels_of_code(body), body)
    heads = body.iter("h1", "h2", "h3", "h4")
    last = (head for head in heads if head.getnext() is None and not (head.tail or "").strip())
    _drop([head for head in last if plain_text(head).lower() in navigation.CONTENTS_TITLES], body)


def _icons(body: Element) -> list[Element]:
    """Return elements that contain only icon font characters; remove these beside words."""
    icons: list[Element] = []
    for element in body.iter() if _ICONS.search("".join(body.itertext())) else ():
        if element.text and (text := _ICONS.sub("", element.text)) != element.text:
            element.text = text
            if not len(element) and not html.WORD.search(text):
                icons.append(element)
        if element.tail:
            element.tail = _ICONS.sub("", element.tail)
    return icons


def _drop(elements: Iterable[Element], body: Element) -> None:
    for element in elements:
        if element is not body and (parent := element.getparent()) is not None:
            is_checkbox = element.tag == "input" and element.get("type", "").lower() == "checkbox"
            if is_checkbox and parent.tag in ("li", "label", "p") and element.getprevious() is None:
                mark = "[x] " if "checked" in element.attrib else "[ ] "
                element.tail = mark + (element.tail or "")
            if element.tag in ("a", "span", "small", "sup", "b"):
                _drop_signs(element)
            html.drop_tree(element)


def _drop_signs(part: Element) -> None:
    previous = part.getprevious()
    before_text = (part.getparent().text if previous is None else previous.tail) or ""
    after = part.tail or ""
    opening, closing = before_text.rstrip()[-1:], after.lstrip()[:1]
    if opening and f"{opening}{closing}" in ("[]", "()"):
        before_text, after = before_text.rstrip()[:-1], after.lstrip()[1:]
    is_last = part.getnext() is None and not _SEPARATOR.sub("", after).strip()
    if is_last or _SEPARATOR.match(after):
        before_text = _LAST_SEPARATOR.sub("", before_text)
    if is_last or (previous is None and not before_text.strip() and _SEPARATOR.match(after)):
        after = _SEPARATOR.sub("", after, count=1)
    part.tail = after
    if previous is None:
        part.getparent().text = before_text
    else:
        previous.tail = before_text


def _menus_of(candidates: Iterable[Element], body: Element) -> list[Element]:
    menus: list[Element] = []
    page_parts: set[Element] = set()
    for part in candidates:
        if part not in page_parts and _is_navigation(part):
            if navigation.is_all_of_page(part, body):
                page_parts.update(part.iter())
            else:
                menus.append(part)
    return menus


@lru_cache(maxsize=10_000)  # code has thousands of elements with one of a few classes
def _is_plain(class_names: str) -> bool:
    names = class_names.lower().split()
    return _TELLING.isdisjoint(names) and not any(map(NUMBERS.search, names))


def _is_named(element: Element, names: frozenset[str]) -> bool:
    tag = element.tag
    if not names.isdisjoint((element.get("class") or "").lower().split()):
        # reStructuredText's sidebar is part of the text
        return not (tag == "aside" and "sidebar" in element.get("class").lower().split())
    identity = element.get("id")
    return bool(identity) and identity.lower() in names and tag not in (*HEADINGS, "section")


def _is_navigation(element: Element) -> bool:
    has_title = next(element.iter("h1"), None) is not None and not _is_named(element, _RESULTS)
    has_head = element.tag == "table" and next(element.iter("th"), None) is not None
    if element.tag in ("td", "th") or has_title or has_head:
        return False
    is_short = len(plain_text(element).split()) <= _LITTLE
    text = next(element.iter("p", "pre", "dl", "code"), None)
    return html.linked_share(element) >= html.LINKED or (is_short and text is None)


def _folded_sources(body: Element) -> list[Element]:
    elements = []
    boxes = {box.get("id"): box for box in body.iter("input") if box.get("type") == "checkbox"}
    for button in body.iter("summary", "label", "button"):
        if not _SHOWS_SOURCE.fullmatch(plain_text(button)[:_BUTTON]):
            continue
        box = boxes.get(button.get("for"), button)
        candidates = [button.getparent()] if button.tag == "summary" else box.itersiblings()
        for folded in candidates:
            code = sum(len(plain_text(pre).split()) for pre in folded.iter("pre"))
            if code and len(plain_text(folded).split()) - code <= _LITTLE:
                elements += [button, folded]
                break
    return elements


def _leads_to_source(link: Element) -> bool:
    text = "".join(link.itertext()).strip(" \t\r\n\xa0[]()").lower()
    if text not in _SOURCE_TEXTS or (link.tail or "").strip(" \t\r\n\xa0[]()|·"):
        return False
    if next(link.iterancestors(*HEADINGS), None) is not None:
        return True
    return bool(_SOURCE.search(f"{link.get('class') or ''} {link.get('href') or ''}"))


def _leads_nowhere(link: Element) -> bool:
    """Whether a link folds a block or leads back to the top."""
    if (link.get("href") or "").lower().startswith("javascript:"):
        return not any(char.isalnum() for char in plain_text(link))
    if link.get("href") != "#" or html.names_place(link) or (link.tail or "").strip():
        return False
    words = plain_text(link).split()
    if len(words) > _UNFOLDING_WORDS:
        return False
    previous = link.getprevious()
    follows_block = previous is not None and previous.tag in html.BLOCKS
    # in a heading, the link may be the documented name
    return follows_block or bool(_TOGGLE.search(link.get("class") or ""))


def _opens_menu(link: Element) -> bool:
    """Whether a link is a word of the text that opens a menu."""
    menu = link.getnext() if link.get("href") == "#" else None
    return menu is not None and "dropdown-menu" in classes(menu) and link.getparent().tag == "span"


def _jump(link: Element) -> Element | None:
    """Return a link that skips a part of the page, or its line."""
    if not (link.get("href") or "").startswith("#"):
        return None
    line = link.getparent()
    names = f"{line.get('class') or ''} {line.get('id') or ''}"
    is_line = line.tag in ("div", "p", "span")
    if is_line and _JUMP.search(names) and len(plain_text(line).split()) <= _LITTLE:
        return line
    return link if _JUMP.search(link.get("class") or "") else None


def _leads_to_top(link: Element) -> bool:
    text = plain_text(link) or next((image.get("alt") or "" for image in link.iter("img")), "")
    text = text.strip(" []()").lower()
    is_back_link = (link.get("href") or "").startswith("#") and text in _TOPS
    is_logo = text.endswith("logo") and not plain_text(link)
    if not is_back_link and not is_logo and not _ARROW.fullmatch(text):
        return False
    parent = link.getparent()
    return not ((parent.text or "") + (link.tail or "")).strip(" \t\r\n\xa0[]()|·")


def _wrapping(link: Element) -> Element:
    parent = link.getparent()
    while (
        parent.tag in ("span", "small", "sup", "b")
        and len(parent) == 1
        and not (parent.text or "").strip(" \t\r\n\xa0[]()")
        and not parent.get("id")
    ):
        link, parent = parent, parent.getparent()
    return link


def _leads_elsewhere(part: Element) -> bool:
    links = len(part.findall(".//a"))
    is_short = part.tag == "footer" and len(plain_text(part).split()) <= _FOOT
    if links < (1 if is_short else html.SITE_LINKS):
        return False
    if next(part.iter("h1"), None) is not None and html.linked_share(part) < html.LINKED:
        return False  # introduces the page
    ancestors = part.iterancestors()
    return not any(up.tag in _PARTS or up.get("role") == "main" for up in ancestors)


def _is_boilerplate(element: Element) -> bool:
    role = element.get("role")
    is_ambiguous = _is_named(element, NAMES["ambiguous_controls"])
    if is_ambiguous and next(element.iter(*HEADINGS), None) is not None:
        return False
    return (
        _is_named(element, _DROPPED_NAMES)
        or {"contents", "topic"} <= {*classes(element)}
        or role in _DROPPED_ROLES
        or ("hidden" in element.attrib and role != "tabpanel")
        or element.get("aria-hidden") == "true"
        or (bool(_HIDDEN_STYLE.search(element.get("style") or "")) and not _unfolds(element))
    )


def _unfolds(row: Element) -> bool:
    table = next(row.iterancestors("table"), None) if row.tag == "tr" else None
    return table is not None and any(part.get("onclick") for part in table.iter("a", "span", "td"))


def _labels_of_code(body: Element) -> list[Element]:
    return [
        label
        for pre in body.iter("pre")
        for label in (pre.getprevious(), pre.getnext())
        if label is not None
        and label.tag in ("span", "div", "small", "em")
        and plain_text(label).lower() == language(pre) != ""
        and not (label.tail or "").strip()
    ]


def _runs_code(link: Element) -> bool:
    href = link.get("href") or ""
    if len(href) < _LONG or "%" not in href:
        return False
    code = next(link.getparent().iterchildren("pre"), None)
    words = html.WORD.findall(plain_text(code)) if code is not None else []
    words_in_link = set(html.WORD.findall(unquote_plus(href)))
    return bool(words) and sum(word in words_in_link for word in words) >= _CARRIED * len(words)
