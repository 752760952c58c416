"""Find a page's place in its site: breadcrumbs, parents, next page; find menus in its content.

For its place, any of three is enough: a link to the next page (``rel="next"``), breadcrumbs, or a
list of the site's pages that contains the page.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import dropwhile, islice, takewhile

from kbkit.models.documents import Navigation
from kbkit.sources import html
from kbkit.sources.html import BLOCKS, HEADINGS, Element, classes, plain_text

_NEXT = re.compile(r"(?:^|[-_])next(?:$|[-_])")
_LISTS = ("ul", "ol", "menu")
_LABELS = frozenset({"a", "span", "p", "summary", "label", "button", "div", "strong"})
_MAX_LINKS = 20_000  # maximum links read
_MIN = 2  # minimum other pages in a list of the site's pages


def page_navigation(root: Element, base: str, url: str) -> Navigation:
    page_url = _page(url)
    breadcrumbs, following = _in_list(root, base, page_url)
    crumbs = _breadcrumbs(root, base, page_url)
    if crumbs is not None and (breadcrumbs is None or len(crumbs) > len(breadcrumbs)):
        breadcrumbs = crumbs
    return Navigation.of_values(breadcrumbs, _next(root, base, page_url) or following)


def _next(root: Element, base: str, page_url: str) -> str:
    for element in root.iter("link", "a"):
        if "next" in (element.get("rel") or "").lower().split():
            target = _resolve(base, element.get("href"))
            return target if _page(target) != page_url else ""
    next_links = (
        _resolve(base, link.get("href"))
        for link in root.iter("a")
        if any(map(_NEXT.search, map(str.lower, classes(link))))
    )
    candidates = (url for url in next_links if _page(url) != page_url and _same_site(url, page_url))
    return next(candidates, "")


def _breadcrumbs(root: Element, base: str, page_url: str) -> list[tuple[str, str]] | None:
    for element in root.iter("nav", "div", "ul", "ol", "p"):
        attributes = (*classes(element), *map(element.get, ("id", "aria-label")))
        names = {name.lower() for name in attributes if name}
        has_name = any("breadcrumb" in name and "aside" not in name for name in names)
        if has_name or element.get("id") == "path":  # in Apache's manual
            links: list[Element] = list(element.iter("a"))
        elif "related" in names:  # Sphinx
            links = element.xpath(".//li[contains(@class, 'nav-item-')]//a")
        else:
            continue
        crumbs = [
            (plain_text(link), _resolve(base, link.get("href")))
            for link in links
            if not any("aside" in name for up in (link, link.getparent()) for name in classes(up))
        ]
        if crumbs := [(text, target) for text, target in crumbs if target]:
            return [(text, target) for text, target in crumbs if _page(target) != page_url]
    return None


def _in_list(root: Element, base: str, page_url: str) -> tuple[list[tuple[str, str]] | None, str]:
    candidates: list[tuple[tuple[int, int], Element, Element]] = []
    name = page_url.rpartition("/")[2]
    pages: dict[Element, list[tuple[Element, str]]] = {}
    for link in islice(root.iter("a"), _MAX_LINKS):
        path, _, fragment = (link.get("href") or "").partition("#")
        if path and name not in path and not path.endswith(("/", ".", "index.html")):
            continue  # avoids slow URL resolution
        if fragment or _page(_resolve(base, link.get("href"))) != page_url:
            continue
        lists = list(link.iterancestors(*_LISTS))
        if not lists or not _is_navigation(outer := lists[-1]):
            continue
        if outer not in pages:
            pages[outer] = [(a, _resolve(base, a.get("href"))) for a in outer.iter("a")]
        count = len({_page(target) for _, target in pages[outer]} - {page_url, ""})
        rank = len(_items_above(link, outer)), count
        if count >= _MIN or _caption(outer) is not None:
            candidates.append((rank, outer, link))
    if not candidates:
        return None, ""
    _, outer, link = max(candidates, key=lambda pair: pair[0])
    steps = (_label(item, base) for item in _items_above(link, outer))
    breadcrumbs = [step for step in (_caption(outer), *steps) if step]
    after = dropwhile(lambda pair: pair[0] is not link, pages[outer])
    following = next((target for _, target in after if target and _page(target) != page_url), "")
    return breadcrumbs, following if _same_site(following, page_url) else ""


def _items_above(link: Element, outer: Element) -> list[Element]:
    ancestors = takewhile(lambda ancestor: ancestor is not outer, link.iterancestors())
    return [ancestor for ancestor in ancestors if ancestor.tag == "li"][:0:-1]


def _label(item: Element, base: str) -> tuple[str, str] | None:
    links = (part for part in _own_elements(item) if part.tag == "a" and plain_text(part))
    link = next(links, None)
    if link is not None:
        return plain_text(link), _resolve(base, (link.get("href") or "").partition("#")[0])
    texts = (plain_text(part) for part in _own_elements(item) if part.tag in _LABELS)
    if text := (item.text or "").strip() or next(filter(None, texts), ""):
        return " ".join(text.split()), ""
    previous = item.getprevious()  # mdBook nests children in the item after their parent
    return _label(previous, base) if previous is not None and previous.tag == "li" else None


def _caption(outer: Element) -> tuple[str, str] | None:
    previous = outer.getprevious()
    has_caption = previous is not None and "caption" in classes(previous)
    return (plain_text(previous), "") if has_caption else None


def _own_elements(item: Element) -> Iterator[Element]:
    for child in item:
        if child.tag not in _LISTS and child.tag != "nav":
            yield child
            yield from _own_elements(child)


def _is_navigation(outer: Element) -> bool:
    for ancestor in (outer, *outer.iterancestors()):
        if ancestor.tag in ("nav", "aside") or ancestor.get("role") == "navigation":
            return True
        if ancestor.tag in ("main", "article", "body"):
            break
        names = " ".join((*classes(ancestor), ancestor.get("id") or "")).lower()
        if re.search(r"sidebar|toctree|globaltoc|navbar|menu", names):
            return True
    return False


def _same_site(target: str, page_url: str) -> bool:
    return target.split("/")[2:3] == page_url.split("/")[2:3]


def _page(url: str) -> str:
    path = url.partition("#")[0].partition("?")[0]
    return path.removesuffix("index.html").removesuffix(".html").rstrip("/")


def _resolve(base: str, href: str | None) -> str:
    return html.web_address(base, href).partition("#")[0]


_ALL_LINKED = 0.95  # share of linked words in a table of contents
_TRAIL = 8  # maximum items of a breadcrumb list
_STEP_RELATIONS = frozenset({"next", "prev", "previous", "up", "contents", "index", "start"})
_STEP_NAMES = html.NAMES["steps"]
_NEIGHBOURS = frozenset({"next", "prev", "previous", "up"})
_STEP_KEYS = frozenset("nput")
_STEP_LINKED = 0.4  # share of linked words in a line of steps
_FEW_WORDS = 12  # maximum words around a menu that goes with it
_FOOT_WORDS = 40  # maximum words beside the contents that make up a page
_OWN_LANGUAGE = 4  # maximum words beside links to translations, if one names the current language
_STEP_WORDS, _STEP_LINKS = 40, 8  # maximum words and links of a line of steps
CONTENTS_TITLES = frozenset(
    str.split(
        "menu|table of contents|short table of contents|contents|on this page|subsections", "|"
    )
)


def steps(body: Element) -> list[Element]:
    page = body.getparent() if body.getparent() is not None else body
    around_page = {
        href
        for link in page.iter("a", "link")
        if (href := link.get("href") or "#")[0] != "#"  # links within the page
        and (
            not _NEIGHBOURS.isdisjoint((link.get("rel") or "").lower().split())
            or (link.tag == "a" and link.get("accesskey") in _STEP_KEYS)
        )
    }
    lines: list[Element] = []
    for link in body.iter("a"):
        if _is_step(link) or _is_translation(link) or link.get("href") in around_page:
            block = line = next((up for up in link.iterancestors() if up.tag in BLOCKS), None)
            while block not in (None, body) and _is_line_of_steps(block, around_page):
                line, block = block, block.getparent()
            if line is not None and line is not block:
                lines.append(line)
    return lines


def drop_step_lines(body: Element) -> None:
    """Remove lines of steps that are loose between blocks, in place."""
    for parent in [body, *body.iter("div", "center", "form")]:
        line: list[Element] = []
        border: Element | None = None  # the block before the line
        for child in [*parent, None]:
            if child is not None and child.tag not in BLOCKS:
                line.append(child)
                continue
            text_before = parent.text if border is None else border.tail
            if line and _is_bare_line_of_steps(text_before or "", line):
                for part in line:
                    part.tail = None
                    parent.remove(part)
                if border is None:
                    parent.text = None
                else:
                    border.tail = None
            line, border = [], child


def _is_bare_line_of_steps(text_before: str, line: Collection[Element]) -> bool:
    links = [link for part in line for link in part.iter("a") if link.get("href")]
    text = [text_before, *("".join(part.itertext()) + (part.tail or "") for part in line)]
    words = html.WORD.findall(" ".join(text).lower())
    linked = html.WORD.findall(" ".join(plain_text(link) for link in links).lower())
    unlinked = Counter(words) - Counter(linked)
    alts = [(image.get("alt") or "").lower() for link in links for image in link.iter("img")]
    marks = unlinked.total() + sum(alt in _STEP_NAMES for alt in alts)
    return (
        len(links) > 1
        and len(words) <= _STEP_WORDS + _STEP_LINKS * len(links)
        and marks > 1
        and _STEP_NAMES.issuperset([*unlinked, *alts])
    )


def crumb_lists(body: Element) -> list[Element]:
    """Return lists before a page's heading that link to its parents and name the page."""
    heading = next(body.iter("h1"), None)
    if heading is None or not (name := plain_text(heading)):
        return []
    elements = []
    for element in takewhile(lambda part: part is not heading, body.iter("h1", "ul", "ol")):
        # the last breadcrumb may lead to this page
        away = "descendant-or-self::a[string(@href) and not(@aria-current='page')]"
        unlinked = [text for item in element if not item.xpath(away) and (text := plain_text(item))]
        is_named = any(f" {text} " in f" {name} " for text in unlinked)
        if is_named and (len(unlinked) < len(element) <= _TRAIL or len(element) == 1):
            elements.append(element)
    return elements


def contents(body: Element) -> list[Element]:
    """Return lists of links within the page: before its first heading, or below "Contents".

    The heading "Contents" is returned too.
    """
    lists: list[Element] = []
    ids: set[str] = set()
    heading: Element | None = None
    below_title = False
    for element in body.iter("ul", "ol", "div", *HEADINGS):
        if element.tag in HEADINGS:
            heading, below_title = element, _is_title(element)
            continue
        if heading is not None and not below_title:
            continue
        if any("#" not in (link.get("href") or "") for link in element.iter("a")):
            continue
        targets = html.targets(element)
        previous = element.getprevious()
        label = previous is not None and _is_title(previous) and not (previous.tail or "").strip()
        least = 1 if label else html.SITE_LINKS
        if len(targets) < least or "" in targets:
            continue
        ids = ids or html.places(body)
        if not targets <= ids or any(outer in lists for outer in element.iterancestors()):
            continue
        if _is_all_linked(element):  # the slowest condition comes last
            if below_title:
                lists += [element, heading]
            else:
                lists += [element, previous] if label else [_with_name(element)]
    return lists


def _is_all_linked(element: Element) -> bool:
    linked = html.WORD.findall(" ".join(map(plain_text, element.iter("a"))))
    return len(linked) >= _ALL_LINKED * len(html.WORD.findall(plain_text(element)))


def _is_title(element: Element) -> bool:
    return plain_text(element).lower().rstrip(":") in CONTENTS_TITLES


def _with_name(element: Element) -> Element:
    """Return a table of contents, or the block around it that adds only its title."""
    parent = element.getparent()
    words = html.WORD.findall(plain_text(parent).lower())
    title = words[: len(words) - len(html.WORD.findall(plain_text(element)))]
    return parent if " ".join(title) in CONTENTS_TITLES else element


def repeated_links(body: Element) -> list[Element]:
    """Return one-row tables of links that occur more than once."""
    rows: dict[str, list[Element]] = {}
    for table in body.iter("table"):
        links, text = list(table.iter("a")), plain_text(table)
        is_row = len(links) >= html.SITE_LINKS and len(list(table.iter("tr"))) == 1
        if is_row and html.WORD.findall(text) == html.WORD.findall(
            " ".join(map(plain_text, links))
        ):
            rows.setdefault(text, []).append(table)
    return [table for tables in rows.values() if len(tables) > 1 for table in tables]


def _is_translation(link: Element) -> bool:
    return bool(link.get("hreflang")) and "alternate" in (link.get("rel") or "").lower().split()


def _is_step(link: Element) -> bool:
    relations = (link.get("rel") or "").lower().split()
    return not _STEP_RELATIONS.isdisjoint(relations) or link.get("accesskey") in _STEP_KEYS


def _is_line_of_steps(element: Element, neighbours: Collection[str | None]) -> bool:
    links = [link for link in element.iter("a") if link.get("href")]
    own_links = [link for link in links if not _is_translation(link)]
    words = len(plain_text(element).split())
    if len(own_links) < min(2, len(links)):
        linked = sum(len(plain_text(link).split()) for link in links)
        # the link of the current language may lead to the page itself
        limit = _STEP_WORDS if not own_links else _OWN_LANGUAGE
        return words - linked <= limit + len(links)
    # a single link to a neighbour proves nothing without a relation
    targets = {link.get("href") for link in links} & set(neighbours)
    steps = sum(
        _is_step(link) or (len(targets) > 1 and link.get("href") in targets) for link in links
    )
    if steps == 0 or len(links) > _STEP_LINKS or 2 * steps < len(links):
        return False
    has_heading = next(element.iter(*HEADINGS), None) is not None
    return not has_heading and words <= _STEP_WORDS and html.linked_share(element) >= _STEP_LINKED


def is_all_of_page(part: Element, body: Element) -> bool:
    outer = part
    while outer is not None and outer.getprevious() is None:
        outer = outer.getparent()
    head = outer.getprevious() if outer is not None else None
    if head is None or part.tag not in ("ul", "ol", "dl", "div"):
        return False
    if next(head.iter("h1"), None) is None:
        return False
    links = [link.get("href") or "#" for link in part.iter("a")]
    words = len(plain_text(body).split()) - len(plain_text(part).split())
    return words <= _FOOT_WORDS and sum(href[0] != "#" for href in links) >= html.SITE_LINKS


def is_rest_of_menu(around: Element) -> bool:
    """Whether an element around a menu holds only a few more links, such as credits."""
    has_text = next(around.iter(*HEADINGS, "p", "pre"), None) is not None
    if around.tag not in ("div", "aside", "section", "header") or has_text:
        return False
    return 0 < len(plain_text(around).split()) <= _FEW_WORDS and html.linked_share(around) == 1


def headings_of(menus: Iterable[Element]) -> list[Element]:
    heads = []
    for menu in menus:
        head, following = menu.getprevious(), menu.getnext()
        if head is not None and head.tag in HEADINGS:
            ends_section = following is None or HEADINGS.get(following.tag, 9) <= HEADINGS[head.tag]
            if ends_section and not ((head.tail or "") + (menu.tail or "")).strip():
                heads.append(head)
    return heads
