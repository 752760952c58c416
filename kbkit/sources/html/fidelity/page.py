"""Which text of a page is its content: by landmarks, by links, and by what other pages have too."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import accumulate
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from kbkit.sources.html.fidelity.runs import (
    HEADINGS,
    Run,
    Runs,
    classes,
    code_text,
    read,
    squashed,
    words,
)

Element = Any  # lxml ships no types

_OFTEN, _FEW_PAGES = (
    0.3,
    4,
)  # share of the pages that a text of the template stands on; fewest pages
_LANDMARK = 0.25  # share of a page's own words that its landmark has to hold to be believed
_LINKED, _SAME = 0.6, 0.8  # shares of words that are links, or stand on other pages
_STEPS = 40  # most words of a line that leads to the neighbours of a page
_NAVIGATION_ROLES = frozenset({"navigation", "search", "menu", "menubar", "toolbar", "directory"})
# names count only where nearly all is links, or the same on other pages
_NAVIGATION_NAMES = frozenset(
    str.split("""
        bottomnav breadcrumb breadcrumbs footer global-nav globaltoc localtoc mainmenu menu nav
        navbar nav-bar navigation navfooter navheader nav-path navpath page-footer page-nav pager
        pagination
        prev-next prevnext sidebar sidenav site-footer site-header submenu subnav tablist tabs tabs2
        toc tocnav topbar topnav toptoolbar
        """)
)
_STEP_KEYS = frozenset("nphu")  # that DocBook and Texinfo give to next, previous, home and up
_STEP = re.compile(
    r"\b(?:next|prev|previous|up|top|home|contents|index|back|forward)\b|[«»←→‹›]", re.IGNORECASE
)
_FURNITURE_TABLES = frozenset({"presentation", "none"})
_TOC_LINKS = 3
_LISTS = frozenset({"ul", "ol", "div", "table", "details"})


class _State(IntEnum):
    CONTENT = 0
    NEITHER = 1
    FURNITURE = 2


@dataclass(slots=True)
class Heading:
    """A heading.

    Attributes:
        level: 1 to 6.
        text: Its text, squashed.
        anchors: Every fragment that leads to it.
        anchored: One of them is its own, and not that of a ``div`` that it opens.
    """

    level: int
    text: str
    anchors: frozenset[str]
    anchored: bool


@dataclass(slots=True)
class PageContent:
    """What has to stand in a page's Markdown.

    Attributes:
        words: How often each word stands in the content.
        spare: Words that may stand there: neither content nor furniture.
        headings: In order.
        codes: Code blocks, byte for byte.
        lines: Lines of code blocks that are no preformatted text.
        rows: Cells of each row of data tables, squashed.
        cells: Cells of data tables, squashed.
        links: Text, squashed, and absolute address.
        terms: Terms of definition lists, squashed, with their fragment if they have one.
        names: What the page may be called: its title, its first heading.
        keys: Of all its texts, for `recurring`.
    """

    words: Counter[str] = field(default_factory=Counter)
    spare: Counter[str] = field(default_factory=Counter)
    headings: list[Heading] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    rows: list[tuple[str, ...]] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    links: set[tuple[str, str]] = field(default_factory=set)
    terms: list[tuple[str, str]] = field(default_factory=list)
    names: tuple[str, ...] = ()
    keys: frozenset[int] = frozenset()


def survey(html: str) -> frozenset[int]:
    """Keys of a page's texts, for `recurring`."""
    runs = read(html)
    return frozenset() if runs is None else frozenset(run.key for run in runs.runs)


def recurring(surveys: Collection[frozenset[int]]) -> frozenset[int]:
    """Keys of texts that so many pages of a site have that they belong to its template.

    Args:
        surveys: Of some pages; of fewer than four nothing is said.
    """
    if len(surveys) < _FEW_PAGES:
        return frozenset()
    counts = Counter(key for one in surveys for key in one)
    most = max(3, _OFTEN * len(surveys))
    return frozenset(key for key, count in counts.items() if count >= most)


def content(html: str, url: str, template: Collection[int] = ()) -> PageContent | None:
    """Read a page.

    Args:
        html: The page.
        url: Its address.
        template: What `recurring` says of the site.

    Returns:
        Its content, or ``None`` where it has no text.
    """
    runs = read(html)
    if runs is None or not runs.runs:
        return None
    return _Reading(runs, url, template).content()


class _Reading:
    """The runs of one page and what each is."""

    def __init__(self, found: Runs, url: str, template: Collection[int]) -> None:
        self._found = found
        self._runs = found.runs
        self._base = urljoin(url, found.base)
        self._own = urlsplit(self._base)._replace(fragment="").geturl()
        self._states = [_State.CONTENT] * len(self._runs)
        self._same = [run.key in template for run in self._runs]
        sizes = [run.size for run in self._runs]
        linked = [run.linked for run in self._runs]
        same = [run.size if old else 0 for run, old in zip(self._runs, self._same, strict=True)]
        self._sums = [list(accumulate(part, initial=0)) for part in (sizes, linked, same)]
        self._fences = set(found.codes)
        self._main = (0, 0)
        self._classify()

    # -- what is content ---------------------------------------------------------------------

    def _classify(self) -> None:
        main = self._landmark()
        if main is not None:
            self._main = self._found.spans[main]
            self._leave(main)
        fragments = self._fragments()
        for element, (first, last) in self._found.spans.items():
            if first == last or self._states[first] is _State.FURNITURE:
                continue
            state = self._verdict(element, first, last, fragments)
            if state is not _State.CONTENT:
                self._mark(first, last, state)
        self._repeated()

    def _verdict(self, element: Element, first: int, last: int, fragments: set[str]) -> _State:
        tag, role = element.tag, element.get("role") or ""
        size, linked, same = self._figures(first, last)
        if tag == "nav" or role in _NAVIGATION_ROLES:
            return _State.FURNITURE
        if tag in HEADINGS or tag in ("html", "body", "main", "td", "th", "dt", "dd", "tr", "pre"):
            return _State.CONTENT
        named = not _NAVIGATION_NAMES.isdisjoint(classes(element))
        headed = next(element.iter("h1"), None) is not None
        if headed:
            return _State.CONTENT
        if tag == "footer" or role == "contentinfo" or (tag == "header" and linked):
            foreign = same >= _SAME * size or linked >= _LINKED * size
            if foreign or role == "contentinfo":
                return _State.FURNITURE
        if named and (linked >= _LINKED * size or same >= _SAME * size):
            return _State.FURNITURE
        least = 1 if _ends_named(element) else _TOC_LINKS
        if tag in _LISTS and self._is_contents(element, fragments, least):
            return _State.FURNITURE if named else _State.NEITHER
        if size <= _STEPS and self._leads_on(element, first, last):
            return _State.FURNITURE
        return _State.CONTENT

    def _landmark(self) -> Element | None:
        root = self._found.root
        size, _, same = self._figures(0, len(self._runs))
        for xpath in ("//main | //*[@role='main']", "//article"):
            found = [one for one in root.xpath(xpath) if one in self._found.spans]
            outer = [one for one in found if not any(up in found for up in one.iterancestors())]
            if len(outer) != 1:
                continue
            inside, _, again = self._figures(*self._found.spans[outer[0]])
            if inside - again >= _LANDMARK * (size - same):
                return outer[0]
        return None

    def _leave(self, main: Element) -> None:
        """Tell what stands outside of a landmark: the template, or what cannot be told."""
        first, last = self._found.spans[main]
        title = squashed(self._found.title)
        headed = next(main.iter("h1"), None) is not None
        for place, run in enumerate(self._runs):
            if first <= place < last:
                continue
            names = run.holder.tag == "h1" and not headed and squashed(run.text) in title
            if names:
                continue
            foreign = self._same[place] or run.linked >= _LINKED * run.size
            self._states[place] = _State.FURNITURE if foreign else _State.NEITHER

    def _is_contents(self, element: Element, fragments: set[str], least: int) -> bool:
        """Whether an element is, its heading aside, nothing but links to places of the page."""
        count = inside = 0
        first, last = self._found.spans[element]
        size = sum(run.size for run in self._runs[first:last] if not _level(run))
        for link in element.iter("a"):
            href = link.get("href") or ""
            if not href or link.get("data-aside"):
                continue
            page, _, place = href.partition("#")
            if place not in fragments or (page and urljoin(self._base, page) != self._own):
                return False
            count += 1
            inside += len(words("".join(link.itertext())))
        return count >= least and inside >= 0.75 * size

    def _fragments(self) -> set[str]:
        found = {one.get("id") for one in self._found.root.iter() if one.get("id")}
        return found | {one.get("name") for one in self._found.root.iter("a") if one.get("name")}

    def _leads_on(self, element: Element, first: int, last: int) -> bool:
        """Whether an element is a line of steps to the neighbours of a page."""
        links = [one for one in element.iter("a") if one.get("href")]
        if len(links) < 2 or any(run.code for run in self._runs[first:last]):
            return False
        rest = linked = steps = 0
        for run in self._runs[first:last]:
            bare = _STEP.sub(" ", run.text)
            steps += bare != run.text
            rest += len(words(bare))
            linked += run.linked
        by_relation = (
            sum(
                one.get("rel") in ("next", "prev", "up", "start")
                or one.get("accesskey") in _STEP_KEYS
                for one in links
            )
            > 1
        )
        marked = len(_STEP.findall(" ".join(run.text for run in self._runs[first:last])))
        return by_relation or (marked >= 2 and linked >= 0.9 * rest and steps > 0)

    def _repeated(self) -> None:
        """Tell the texts of the template, and the links that stand before all content."""
        own = [place for place, state in enumerate(self._states)
               if state is _State.CONTENT and not self._same[place]]  # fmt: skip
        heads = [place for place, run in enumerate(self._runs) if _level(run)
                 and self._states[place] is _State.CONTENT]  # fmt: skip
        low = min([*heads[:1], *(place for place in own if not self._is_linked(place))][:2],
                  default=0)  # fmt: skip
        texts = [place for place in own if place not in heads]
        # of a page that says nothing else, such as a list of all others, it cannot be told
        high = texts[-1] if texts else len(self._runs)
        led = next((place for place in heads if place > high), len(self._runs))
        furniture = set()
        for place, run in enumerate(self._runs):
            if self._states[place] is not _State.CONTENT or run.code or place in heads:
                continue
            if self._is_linked(place) and (place < low or run.key in furniture):
                furniture.add(run.key)
                self._states[place] = _State.FURNITURE
            elif self._same[place]:
                outside = place < low or high < place < led
                # links amid the page's own text, in a paragraph or what the page calls its main
                # part, say something of its subject
                amid = run.holder.tag == "p" or self._main[0] <= place < self._main[1] or not texts
                foreign = outside or (self._is_linked(place) and not amid)
                self._states[place] = _State.FURNITURE if foreign else _State.NEITHER
        for place in heads:
            if self._same[place] and not self._leads_content(place):
                self._states[place] = _State.NEITHER

    def _is_linked(self, place: int) -> bool:
        return self._runs[place].linked >= _LINKED * self._runs[place].size

    def _leads_content(self, place: int) -> bool:
        """Whether something of the page's own stands under a heading."""
        level = _level(self._runs[place])
        after = self._states[place + 1 : place + 2]
        if after and after[0] is not _State.CONTENT and self._is_linked(place + 1):
            return False  # it names a menu
        if level == 1 and after == [_State.FURNITURE]:
            return False  # the name of the site above its menu
        for other in range(place + 1, len(self._runs)):
            if 0 < _level(self._runs[other]) <= level:
                return False
            if self._states[other] is _State.CONTENT and not self._same[other]:
                return True
        return False

    def _mark(self, first: int, last: int, state: _State) -> None:
        for place in range(first, last):
            self._states[place] = max(state, self._states[place])

    def _figures(self, first: int, last: int) -> tuple[int, int, int]:
        """Words, words of links, and words of the template from one run to another."""
        size, linked, same = (part[last] - part[first] for part in self._sums)
        return size, linked, same

    def _is_content(self, element: Element) -> bool:
        """Whether a block is content, by the first of its texts."""
        first, last = self._found.spans.get(element, (0, 0))
        return first < last and self._states[first] is _State.CONTENT

    # -- what content there is ---------------------------------------------------------------

    def content(self) -> PageContent:
        found = PageContent()
        for run, state in zip(self._runs, self._states, strict=True):
            if state is not _State.FURNITURE:
                (found.words if state is _State.CONTENT else found.spare).update(words(run.text))
        for text in (*self._found.formulas, self._found.title):
            found.spare.update(words(text))
        for text in self._found.aside:  # taken for furniture, wherever it stands
            found.words.subtract(words(text))
        found.words = +found.words
        found.headings = list(self._headings())
        for element in self._codes():
            if (code := code_text(element)).strip():
                (found.lines if element.tag == "code" else found.codes).append(code)
        for row in self._rows():
            if len(row) > 1:
                found.rows.append(row)
            found.cells.extend(row)
        found.links = set(self._links())
        found.terms = list(self._terms())
        found.keys = frozenset(run.key for run in self._runs)
        first = next((one.text for one in found.headings), "")
        found.names = tuple(dict.fromkeys((squashed(self._found.title), first)))
        return found

    def _headings(self) -> Iterator[Heading]:
        for element in self._found.root.iter(*HEADINGS):
            text = squashed(_own_text(element))
            if text and self._is_content(element):
                own, around = self._anchors(element)
                places = frozenset(map(unquote, own | around))
                yield Heading(HEADINGS[element.tag], text, places, bool(own))

    def _anchors(self, heading: Element) -> tuple[frozenset[str], frozenset[str]]:
        """Ids of a heading: its own, inside it, right before it; and those of what it opens."""
        own = {heading.get("id")} | {one.get("id") or one.get("name") for one in heading.iter()}
        around: set[str | None] = set()
        node = heading
        for _ in range(3):
            before = node.getprevious()
            while before is not None and (self._is_empty(before) or self._is_furniture(before)):
                if self._is_empty(before):
                    own |= {one.get("id") or one.get("name") for one in before.iter()}
                before = before.getprevious()
            node = node.getparent()
            if node is None or before is not None or node.tag in ("body", "td", "li"):
                break
            (own if node.tag == "section" else around).add(node.get("id"))
        return frozenset(filter(None, own)), frozenset(filter(None, around))

    @staticmethod
    def _is_empty(element: Element) -> bool:
        return (
            element.tag in ("a", "span", "p", "i", "br")
            and not "".join(element.itertext()).strip()
            and not (element.tail or "").strip()
        )

    def _is_furniture(self, element: Element) -> bool:
        first, last = self._found.spans.get(element, (0, 0))
        return first < last and set(self._states[first:last]) == {_State.FURNITURE}

    def _codes(self) -> Iterator[Element]:
        for element in self._found.codes:
            block = element
            while block is not None and block not in self._found.spans:
                block = block.getparent()
            if block is not None and self._is_content(block):
                yield element

    def _rows(self) -> Iterator[tuple[str, ...]]:
        """Cells of the rows of data tables; those that only arrange other blocks have none."""
        for table in self._found.root.iter("table"):
            if table.get("role") in _FURNITURE_TABLES or next(table.iter("pre"), None) is not None:
                continue
            if next(table.iterdescendants("table"), None) is not None:
                continue
            rows = [list(row.iterchildren("td", "th")) for row in table.iter("tr")]
            if sum(len(row) > 1 for row in rows) < 2:
                continue
            for row in rows:
                shown = [cell for cell in row if self._is_content(cell)]
                texts = (squashed(self._text(cell)) for cell in shown)
                yield tuple(text for text in texts if text)

    def _text(self, element: Element) -> str:
        first, last = self._found.spans[element]
        return " ".join(run.text for run in self._runs[first:last])

    def _links(self) -> Iterator[tuple[str, str]]:
        for link in self._found.root.iter("a"):
            href = (link.get("href") or "").strip()
            text = squashed("".join(link.itertext()))
            if not href or not text or link.get("data-aside"):
                continue
            if next(link.iter(*HEADINGS), None) is not None:
                continue  # a heading that leads to itself
            block = link.getparent()
            while block is not None and block not in self._found.spans:
                block = block.getparent()
            if block is None or not self._is_content(block) or self._holds_no_links(block):
                continue
            if address := absolute(href, self._base):
                yield text, address

    def _holds_no_links(self, block: Element) -> bool:
        """Whether a block is in a fence or a heading, which have none in Markdown."""
        return any(
            around.tag in HEADINGS
            or (around.tag == "dt" and around.get("id"))
            or around in self._fences
            for around in (block, *block.iterancestors())
        )

    def _terms(self) -> Iterator[tuple[str, str]]:
        for term in self._found.root.iter("dt"):
            text = squashed(_own_text(term))
            if text and self._is_content(term):
                yield text, unquote(term.get("id") or "")


def _ends_named(element: Element) -> bool:
    """Whether a class or the id of an element is a name of navigation, or ends with one."""
    ends = {name.rpartition("-")[2] for name in classes(element)}
    return not _NAVIGATION_NAMES.isdisjoint(ends)


def absolute(href: str, base: str) -> str:
    """An address that a link can lead to, in one form; ``""`` where it leads nowhere."""
    try:
        url = urljoin(base, href)
        scheme = urlsplit(url).scheme.lower()
    except ValueError:
        return ""
    return unquote(url) if scheme in ("http", "https", "mailto") else ""


def _level(run: Run) -> int:
    """The level of the heading that a text stands in, 0 where it stands in none."""
    element = run.holder
    for _ in range(3):
        if element is None or element.tag in HEADINGS:
            break
        element = element.getparent()
    return HEADINGS.get(element.tag, 0) if element is not None else 0


def _own_text(element: Element) -> str:
    """The text of a heading or term, without links to its source."""
    pieces = [element.text or ""]
    for child in element:
        if isinstance(child.tag, str) and not (child.tag == "a" and child.get("data-aside")):
            pieces.append(" " if child.tag == "br" else _own_text(child))
        pieces.append(child.tail or "")
    return "".join(pieces)
