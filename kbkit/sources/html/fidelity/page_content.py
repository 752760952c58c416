"""Read the content of a page that its Markdown must keep, apart from the template."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import accumulate, islice
from urllib.parse import unquote, urljoin, urlsplit

from kbkit.sources.html import HEADINGS, NAMES, Element, resolve_link
from kbkit.sources.html.fidelity.runs import Runs, TextRun, classes, code_text, read, squash, words

_AROUND = 3  # ancestors of a heading whose ids name it
# least share and number of pages with a text of the template
_OFTEN, _FEW_PAGES = 0.3, 4
_BOILERPLATE_TABLES = frozenset({"presentation", "none"})


@dataclass(slots=True)
class MarkdownHeading:
    """A heading; `anchored` if it has a fragment besides the id of a ``div`` that it opens."""

    level: int
    text: str
    anchors: frozenset[str]
    anchored: bool


@dataclass(slots=True)
class PageContent:
    """Content that a page's Markdown must keep.

    Attributes:
        words: Counts of words in the content.
        spare: Words that may be written: neither content nor template.
        codes: Code blocks, byte for byte.
        lines: Code blocks that are not preformatted text.
        rows: Cells of each row of data tables, squashed.
        cells: Cells of data tables, squashed.
        links: Text, squashed, and absolute address.
        terms: Terms of definition lists, squashed, with the fragments that lead to them.
        names: Possible titles: its title and its first heading.
        keys: Keys of all texts, for `recurring`.
    """

    words: Counter[str] = field(default_factory=Counter)
    spare: Counter[str] = field(default_factory=Counter)
    headings: list[MarkdownHeading] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    rows: list[tuple[str, ...]] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    links: set[tuple[str, str]] = field(default_factory=set)
    terms: list[tuple[str, frozenset[str]]] = field(default_factory=list)
    names: tuple[str, ...] = ()
    keys: frozenset[int] = frozenset()


def survey(html: str) -> frozenset[int]:
    runs = read(html)
    return frozenset() if runs is None else frozenset(run.key for run in runs.runs)


def recurring(surveys: Collection[frozenset[int]]) -> frozenset[int]:
    if len(surveys) < _FEW_PAGES:
        return frozenset()
    counts = Counter(key for one in surveys for key in one)
    most = max(3, _OFTEN * len(surveys))
    return frozenset(key for key, count in counts.items() if count >= most)


_LANDMARK = 0.25  # least share of the page's own words in a trusted landmark
_LINKED, _SAME = 0.6, 0.8  # shares of words that are links, or also on other pages
_NAMES = 4  # most unlinked words beside links to translations
_STEPS = 40  # most words of a line of links to neighbours
_NAVIGATION_ROLES = frozenset({"navigation", "search", "menu", "menubar", "toolbar", "directory"})
_NAVIGATION_NAMES = NAMES["menus"]
_STEP_KEYS = frozenset("nphu")  # next, previous, home and up in DocBook and Texinfo
_STEP = re.compile(
    r"\b(?:next|prev|previous|up|top|home|contents|index|back|forward)\b|[«»←→‹›]", re.IGNORECASE
)
_TOC_LINKS = 3
_LISTS = frozenset({"ul", "ol", "div", "table", "details"})


class State(IntEnum):
    """State of a text; of two states, the higher counts."""

    CONTENT = 0
    NEITHER = 1
    BOILERPLATE = 2


class PageStates:
    """Texts of a page, their states, and the content."""

    def __init__(self, runs: Runs, base: str, template: Collection[int]) -> None:
        self._read_runs = runs
        self._runs = runs.runs
        self._fences = set(runs.codes)
        self._base = base
        self._own = urlsplit(self._base)._replace(fragment="").geturl()
        self.states = [State.CONTENT] * len(self._runs)
        self._same = [run.key in template for run in self._runs]
        sizes = [run.size for run in self._runs]
        linked = [run.linked for run in self._runs]
        same = [run.size if old else 0 for run, old in zip(self._runs, self._same, strict=True)]
        self._sums = [list(accumulate(part, initial=0)) for part in (sizes, linked, same)]
        self._main = (0, 0)
        self._classify()

    def _classify(self) -> None:
        main = self._landmark()
        if main is not None:
            self._main = self._read_runs.spans[main]
            self._mark_outside(main)
        fragments = self._fragments()
        for element, (first, last) in self._read_runs.spans.items():
            if first == last or self.states[first] is State.BOILERPLATE:
                continue
            state = self._verdict(element, first, last, fragments)
            if state is not State.CONTENT:
                self.states[first:last] = [max(state, old) for old in self.states[first:last]]
        self._mark_repeated()

    def _verdict(self, element: Element, first: int, last: int, fragments: set[str]) -> State:
        tag, role = element.tag, element.get("role") or ""
        size, linked, same = self._figures(first, last)
        crumbs = (element.get("aria-label") or "").lower() == "breadcrumb"
        if tag == "nav" or role in _NAVIGATION_ROLES or crumbs:
            return State.BOILERPLATE
        if tag in HEADINGS or tag in ("html", "body", "main", "td", "th", "dt", "dd", "tr", "pre"):
            return State.CONTENT
        named = not _NAVIGATION_NAMES.isdisjoint(classes(element))
        if tag == "aside" and named and linked >= _LINKED * size:
            return State.BOILERPLATE  # a menu below the site's name
        foreign = same >= _SAME * size or linked >= _LINKED * size
        frames = named or tag == "footer" or (tag == "header" and linked)
        if role == "contentinfo" or (foreign and frames):
            return State.BOILERPLATE
        least = 1 if _ends_named(element) else _TOC_LINKS
        if tag in _LISTS and self._is_contents(element, fragments, least):
            return State.BOILERPLATE if named else State.NEITHER
        leads = size <= _STEPS and (
            self._translates(element, size, linked)
            or self._is_line_of_steps(element, first, last, named=named)
        )
        return State.BOILERPLATE if leads else State.CONTENT

    def _landmark(self) -> Element | None:
        root = self._read_runs.root
        size, _, same = self._figures(0, len(self._runs))
        for xpath in ("//main | //*[@role='main']", "//article"):
            landmarks = [one for one in root.xpath(xpath) if one in self._read_runs.spans]
            outer = [
                one for one in landmarks if not any(up in landmarks for up in one.iterancestors())
            ]
            if len(outer) != 1:
                continue
            inside, _, shared = self._figures(*self._read_runs.spans[outer[0]])
            if inside - shared >= _LANDMARK * (size - same):
                return outer[0]
        return None

    def _mark_outside(self, main: Element) -> None:
        first, last = self._read_runs.spans[main]
        for place, run in enumerate(self._runs):
            if first <= place < last:
                continue
            foreign = self._same[place] or run.linked >= _LINKED * run.size
            self.states[place] = State.BOILERPLATE if foreign else State.NEITHER

    def _is_contents(self, element: Element, fragments: set[str], least: int) -> bool:
        count = inside = 0
        first, last = self._read_runs.spans[element]
        size = sum(run.size for run in self._runs[first:last] if not _level(run))
        for link in element.iter("a"):
            href = link.get("href") or ""
            if not href or link.get("data-aside"):
                continue
            page, _, place = href.partition("#")
            if place not in fragments or (page and resolve_link(self._base, page) != self._own):
                return False
            count += 1
            inside += len(words("".join(link.itertext())))
        return count >= least and inside >= 0.75 * size

    def _fragments(self) -> set[str]:
        return set(self._read_runs.root.xpath("//@id | //a/@name")) - {""}

    @staticmethod
    def _translates(element: Element, size: int, linked: int) -> bool:
        if linked == 0:
            return False
        links = [one for one in element.iter("a") if one.get("href")]
        translations = sum(1 for one in links if one.get("hreflang"))
        return len(links) > 1 and translations >= len(links) - 1 and size - linked <= _NAMES

    def _is_line_of_steps(self, element: Element, first: int, last: int, *, named: bool) -> bool:
        """Whether an element is a line of previous and next links; a `named` one needs one step."""
        links = [one for one in element.iter("a") if one.get("href")]
        if len(links) < 2 or any(run.code for run in self._runs[first:last]):
            return False
        text = " ".join(run.text for run in self._runs[first:last])
        rest, linked = len(words(_STEP.sub(" ", text))), self._figures(first, last)[1]
        related = [
            one.get("rel") in ("next", "prev", "up", "start") or one.get("accesskey") in _STEP_KEYS
            for one in links
        ]
        marked = len(_STEP.findall(text))
        return sum(related) > 1 or (marked >= (1 if named else 2) and linked >= 0.9 * rest)

    def _mark_repeated(self) -> None:
        """Mark template texts, and links before all content."""
        content = [place for place, state in enumerate(self.states) if state is State.CONTENT]
        own = [place for place in content if not self._same[place]]
        heads = [place for place in content if _level(self._runs[place])]
        top = min(
            [*heads[:1], *(place for place in own if not self._is_linked(place))][:2], default=0
        )
        texts = [place for place in own if place not in heads]
        # on a page without other text, such as an index, this cannot be told
        end = texts[-1] if texts else len(self._runs)
        heading = next((place for place in heads if place > end), len(self._runs))
        boilerplate = set()
        for place, run in enumerate(self._runs):
            if self.states[place] is not State.CONTENT or run.code or place in heads:
                continue
            heads_row = self._same[place] and self._heads_row(place)
            if self._is_linked(place) and (place < top or run.key in boilerplate) and not heads_row:
                boilerplate.add(run.key)
                self.states[place] = State.BOILERPLATE
            elif self._same[place]:
                outside = place < top or end < place < heading
                # links in a paragraph, in the main part, or on a page without text of its own
                # are about its subject
                in_text = (
                    run.holder.tag == "p" or self._main[0] <= place < self._main[1] or not texts
                )
                foreign = outside or (self._is_linked(place) and not in_text)
                foreign = foreign and not heads_row
                self.states[place] = State.BOILERPLATE if foreign else State.NEITHER
        for place in heads:
            if self._same[place] and not self._leads_content(place):
                self.states[place] = State.NEITHER

    def _heads_row(self, place: int) -> bool:
        holder = self._runs[place].holder
        cell = next((one for one in (holder, *holder.iterancestors()) if one.tag == "th"), None)
        if cell is None or cell.getprevious() is not None:
            return False
        cells = (self._read_runs.spans.get(one, (0, 0)) for one in cell.itersiblings("td"))
        return any(not self._same[other] for first, last in cells for other in range(first, last))

    def _is_linked(self, place: int) -> bool:
        return self._runs[place].linked >= _LINKED * self._runs[place].size

    def _leads_content(self, place: int) -> bool:
        level = _level(self._runs[place])
        after = self.states[place + 1 : place + 2]
        if after and after[0] is not State.CONTENT and self._is_linked(place + 1):
            return False  # names a menu
        for other in range(place + 1, len(self._runs)):
            if 0 < _level(self._runs[other]) <= level:
                return False
            if self.states[other] is State.CONTENT and not self._same[other]:
                return True
        return False

    def _figures(self, first: int, last: int) -> tuple[int, ...]:
        return tuple(part[last] - part[first] for part in self._sums)

    def is_content(self, element: Element) -> bool:
        """Whether a block is content, judged by its first text."""
        first, last = self._read_runs.spans.get(element, (0, 0))
        return first < last and self.states[first] is State.CONTENT

    def is_boilerplate(self, element: Element) -> bool:
        first, last = self._read_runs.spans.get(element, (0, 0))
        return first < last and set(self.states[first:last]) == {State.BOILERPLATE}

    def content(self) -> PageContent:
        page = PageContent()
        for run, state in zip(self._runs, self.states, strict=True):
            if state is not State.BOILERPLATE:
                (page.words if state is State.CONTENT else page.spare).update(words(run.text))
        for text in (*self._read_runs.formulas, self._read_runs.title):
            page.spare.update(words(text))
        page.headings = list(self._headings())
        for element in self._codes():
            if (code := code_text(element)).strip():
                (page.lines if element.tag == "code" else page.codes).append(code)
        for row in self._rows():
            if len(row) > 1:
                page.rows.append(row)
            page.cells.extend(row)
        page.links = set(self._links())
        page.terms = list(self._terms())
        page.keys = frozenset(run.key for run in self._runs)
        first = next((one.text for one in page.headings), "")
        page.names = tuple(dict.fromkeys((squash(self._read_runs.title), first)))
        return page

    def _headings(self) -> Iterator[MarkdownHeading]:
        for element in self._read_runs.root.iter(*HEADINGS):
            text = squash(_own_text(element))
            if text and self.is_content(element):
                own, around = self._anchors(element)
                places = frozenset(map(unquote, own | around))
                yield MarkdownHeading(HEADINGS[element.tag], text, places, bool(own))

    def _anchors(self, heading: Element) -> tuple[frozenset[str], frozenset[str]]:
        own = {one.get("id") or one.get("name") for one in heading.iter()}
        around: set[str | None] = set()
        node = heading
        for _ in range(3):
            before = node.getprevious()
            while before is not None and (self._is_empty(before) or self.is_boilerplate(before)):
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

    def _codes(self) -> Iterator[Element]:
        for element in self._read_runs.codes:
            block = self._block((element, *element.iterancestors()))
            if block is not None and self.is_content(block):
                yield element

    def _block(self, around: Iterable[Element]) -> Element | None:
        return next((each for each in around if each in self._read_runs.spans), None)

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for table in self._read_runs.root.iter("table"):
            inner = next(table.iterdescendants("pre", "table"), None)
            if table.get("role") in _BOILERPLATE_TABLES or inner is not None:
                continue
            rows = [list(row.iterchildren("td", "th")) for row in table.iter("tr")]
            if sum(len(row) > 1 for row in rows) < 2:
                continue
            for row in rows:
                shown = [cell for cell in row if self.is_content(cell)]
                texts = (squash(self._text(cell)) for cell in shown)
                yield tuple(text for text in texts if text)

    def _text(self, element: Element) -> str:
        first, last = self._read_runs.spans[element]
        return " ".join(run.text for run in self._runs[first:last])

    def _links(self) -> Iterator[tuple[str, str]]:
        for link in self._read_runs.root.iter("a"):
            href = (link.get("href") or "").strip()
            text = squash("".join(link.itertext()))
            if not href or not text or link.get("data-aside"):
                continue
            block = self._block(link.iterancestors())
            if block is None or not self.is_content(block):
                continue
            if not self._fences.isdisjoint((block, *block.iterancestors())):
                continue
            address = absolute(href, self._base)
            if address and not self._leads_to_itself(link, address):
                yield text, address

    def _leads_to_itself(self, link: Element, address: str) -> bool:
        heading = next(link.iterancestors(*HEADINGS, "dt"), None)
        page, _, place = address.partition("#")
        if heading is None or page != unquote(self._base.partition("#")[0]):
            return False
        whole = squash("".join(link.itertext())) == squash("".join(heading.itertext()))
        around = {one.get("id") for one in islice(heading.iterancestors(), _AROUND)}
        return not place or whole or place in around.union(*self._anchors(heading))

    def _terms(self) -> Iterator[tuple[str, frozenset[str]]]:
        for term in self._read_runs.root.iter("dt"):
            text = squash(_own_text(term))
            if text and self.is_content(term):
                inner = (one.get("id") or one.get("name") for one in term.iter("dt", "a", "span"))
                yield text, frozenset(unquote(place) for place in inner if place)


def content(html: str, url: str, template: Collection[int] = ()) -> PageContent | None:
    runs = read(html)
    if runs is None or not runs.runs:
        return None
    return PageStates(runs, resolve_link(url, runs.base) or url, template).content()


def absolute(href: str, base: str) -> str:
    """Return a link's absolute address; ``""`` if it leads nowhere."""
    try:
        url = urljoin(base, href)
        scheme = urlsplit(url).scheme.lower()
    except ValueError:
        return ""
    return unquote(url) if scheme in ("http", "https", "mailto") else ""


def _own_text(element: Element) -> str:
    """Return the text of a heading or term, without links to its source."""
    pieces = [element.text or ""]
    for child in element:
        if child.tag != "a" or not child.get("data-aside"):
            pieces.append(" " if child.tag == "br" else _own_text(child))
        pieces.append(child.tail or "")
    return "".join(pieces)


def _ends_named(element: Element) -> bool:
    ends = {name.rpartition("-")[2] for name in classes(element)}
    return not _NAVIGATION_NAMES.isdisjoint(ends)


def _level(run: TextRun) -> int:
    around = islice((run.holder, *run.holder.iterancestors()), 4)
    return next((HEADINGS[each.tag] for each in around if each.tag in HEADINGS), 0)
