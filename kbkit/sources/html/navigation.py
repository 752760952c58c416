"""Find a page's place in its site: breadcrumbs, parents, next page.

Generators of documentation say so in three ways, each of which is enough: links to what follows
(``rel="next"``), breadcrumbs, and a list of the site's pages that the page itself is in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kbkit.models.documents import Navigation
from kbkit.sources.html.dom import Element, classes, joined, normalized_text

_NEXT = re.compile(r"(?:^|[-_])next(?:$|[-_])")
_LISTS = ("ul", "ol", "menu")
_LABELS = frozenset({"a", "span", "p", "summary", "label", "button", "div", "strong"})
_MAX_LINKS = 20_000
"""Maximum links read of a page."""
_MIN = 2
"""Other pages that a list of a site's pages names at least."""


def page_navigation(root: Element, base: str, url: str) -> Navigation:
    own = _page(url)
    trail, following = _in_list(root, base, own)
    crumbs = _breadcrumbs(root, base, own)
    if crumbs is not None and (trail is None or len(crumbs) > len(trail)):
        trail = crumbs
    return Navigation.stated(trail, _next(root, base, own) or following)


def _next(root: Element, base: str, own: str) -> str:
    for element in root.iter("link", "a"):
        if "next" in (element.get("rel") or "").lower().split():
            target = _joined(base, element.get("href"))
            return target if _page(target) != own else ""
    for element in root.iter("a"):
        if any(map(_NEXT.search, (name.lower() for name in classes(element)))):
            target = _joined(base, element.get("href"))
            if target and _page(target) != own and _same_site(target, own):
                return target
    return ""


def _breadcrumbs(root: Element, base: str, own: str) -> list[tuple[str, str]] | None:
    """Return the breadcrumb links of a page; ``None`` if it has none."""
    for element in root.iter("nav", "div", "ul", "ol", "p"):
        names = {name.lower() for name in (*classes(element), element.get("id") or "")}
        names.add((element.get("aria-label") or "").lower())
        if element.get("id") == "path":  # the manual of Apache
            names.add("breadcrumb")
        if any("breadcrumb" in name and "aside" not in name for name in names):
            links: list[Element] = list(element.iter("a"))
        elif "related" in names:  # Sphinx
            links = [
                link
                for item in element.iter("li")
                for link in item.iter("a")
                if any(re.fullmatch(r"nav-item-\d+", name) for name in classes(item))
            ]
        else:
            continue
        found = [
            (normalized_text(link), _joined(base, link.get("href")))
            for link in links
            if not any("aside" in name for up in (link, link.getparent()) for name in classes(up))
        ]
        if found := [(text, target) for text, target in found if target]:
            return [(text, target) for text, target in found if _page(target) != own]
    return None


def _in_list(root: Element, base: str, own: str) -> tuple[list[tuple[str, str]] | None, str]:
    best: tuple[tuple[int, int], Element, Element] | None = None
    name = own.rpartition("/")[2]
    pages: dict[Element, list[tuple[Element, str]]] = {}
    for number, link in enumerate(root.iter("a")):
        href = link.get("href")
        if number > _MAX_LINKS or not href:
            continue
        bare, _, place = href.partition("#")
        if place:
            continue  # a part of the page
        if bare and name not in bare and not bare.endswith(("/", ".", "index.html")):
            continue  # joining addresses is what takes the time
        if _page(_joined(base, href)) != own:
            continue
        outer = next(reversed([up for up in link.iterancestors() if up.tag in _LISTS]), None)
        if outer is None or not _is_navigation(outer):
            continue
        if outer not in pages:
            pages[outer] = [(one, _joined(base, one.get("href"))) for one in outer.iter("a")]
        others = len({_page(target) for _, target in pages[outer]} - {own, ""})
        worth = len(_items_above(link, outer)), others
        if others >= _MIN and (best is None or worth > best[0]):
            best = worth, outer, link
    if best is None:
        return None, ""
    _, outer, link = best
    trail = [step for item in _items_above(link, outer) if (step := _label(item, base))]
    seen = False
    for one, target in pages[outer]:
        seen = seen or one is link
        if seen and target and _page(target) != own:
            return trail, target if _same_site(target, own) else ""
    return trail, ""


def _items_above(link: Element, outer: Element) -> list[Element]:
    found = []
    for up in link.iterancestors():
        if up is outer:
            break
        if up.tag == "li":
            found.append(up)
    return found[:0:-1]


def _label(item: Element, base: str) -> tuple[str, str] | None:
    link = next((one for one in _own(item) if one.tag == "a" and normalized_text(one)), None)
    if link is None:
        texts = (normalized_text(one) for one in _own(item) if one.tag in _LABELS)
        text = (item.text or "").strip() or next(filter(None, texts), "")
        if text:
            return " ".join(text.split()), ""
        before = item.getprevious()  # mdBook puts what is below an item into the one behind it
        return _label(before, base) if before is not None and before.tag == "li" else None
    href = link.get("href") or ""
    return normalized_text(link), "" if href.startswith("#") else _joined(base, href)


def _own(item: Element) -> Iterator[Element]:
    for child in item:
        if child.tag in _LISTS or child.tag == "nav" or not isinstance(child.tag, str):
            continue
        yield child
        yield from _own(child)


def _is_navigation(outer: Element) -> bool:
    for up in (outer, *outer.iterancestors()):
        if up.tag in ("nav", "aside") or up.get("role") == "navigation":
            return True
        if up.tag in ("main", "article", "body"):
            break
        names = " ".join((*classes(up), up.get("id") or "")).lower()
        if re.search(r"sidebar|toctree|globaltoc|navbar|menu", names):
            return True
    return False


def _same_site(target: str, own: str) -> bool:
    return target.split("/")[2:3] == own.split("/")[2:3]


def _page(url: str) -> str:
    bare = url.partition("#")[0].partition("?")[0]
    return bare.removesuffix("index.html").removesuffix(".html").rstrip("/")


def _joined(base: str, href: str | None) -> str:
    url = joined(base, href) if href is not None else ""
    return url.partition("#")[0] if url.startswith(("http://", "https://")) else ""
