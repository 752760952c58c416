"""Read the content of a page that its Markdown must keep, apart from the template."""

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
# minimum share and number of pages with a text of the template
_OFTEN, _FEW_PAGES = 0.3, 4


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
    return frozenset() if runs is None else frozenset(text_run.key for text_run in runs.runs)


def recurring(surveys: Collection[frozenset[int]]) -> frozenset[int]:
    if len(surveys) < _FEW_PAGES:
        return frozenset()
    counts = Counter(key for survey in surveys for key in survey)
    least = max(3, _OFTEN * len(surveys))
    return frozenset(key for key, count in counts.items() if count >= least)


_LANDMARK = 0.25  # minimum share of the page's own words in a trusted landmark
_LINKED, _SAME = 0.6, 0.8  # shares of words that are links, or also on other pages
_NAMES = 4  # maximum unlinked words beside links to translations
_STEPS = 40  # maximum words of a line of links to neighbours
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
        self._page_url = urlsplit(self._base)._replace(fragment="").geturl()
        self.states = [State.CONTENT] * len(self._runs)
        self._shared = [run.key in template for run in self._runs]
        counts = ((run.size, run.linked, run.size * (run.key in template)) for run in self._runs)
        zeros = [(0, 0, 0)]
        self._sums = [list(accumulate(column)) for column in zip(*zeros, *counts, strict=True)]
        self._main = (0, 0)
        self._classify()

    def _classify(self) -> None:
        main = self._landmark()
        if main is not None:
            self._main = self._read_runs.spans[main]
            for index in range(len(self._runs)):
                if not self._main[0] <= index < self._main[1]:
                    is_boilerplate = self._shared[index] or self._is_linked(index)
                    self.states[index] = State.BOILERPLATE if is_boilerplate else State.NEITHER
        fragments = set(self._read_runs.root.xpath("//@id | //a/@name")) - {""}
        for element, (first, last) in self._read_runs.spans.items():
            if first == last or self.states[first] is State.BOILERPLATE:
                continue
            state = self._verdict(element, first, last, fragments)
            if state is not State.CONTENT:
                self.states[first:last] = [max(state, prior) for prior in self.states[first:last]]
        self._mark_repeated()

    def _verdict(self, element: Element, first: int, last: int, fragments: set[str]) -> State:
        tag, role = element.tag, element.get("role") or ""
        size, linked, shared = self._figures(first, last)
        crumbs = (element.get("aria-label") or "").lower() == "breadcrumb"
        if tag == "nav" or role in _NAVIGATION_ROLES or crumbs:
            return State.BOILERPLATE
        if tag in HEADINGS or tag in ("html", "body", "main", "td", "th", "dt", "dd", "tr", "pre"):
            return State.CONTENT
        has_navigation_name = not _NAVIGATION_NAMES.isdisjoint(classes(element))
        if tag == "aside" and has_navigation_name and linked >= _LINKED * size:
            return State.BOILERPLATE  # a menu below the site's name
        foreign = shared >= _SAME * size or linked >= _LINKED * size
        frames = has_navigation_name or tag == "footer" or (tag == "header" and linked)
        if role == "contentinfo" or (foreign and frames):
            return State.BOILERPLATE
        name_ends = {name.rpartition("-")[2] for name in classes(element)}
        least = _TOC_LINKS if _NAVIGATION_NAMES.isdisjoint(name_ends) else 1
        if tag in _LISTS and self._is_contents(element, fragments, least):
            return State.BOILERPLATE if has_navigation_name else State.NEITHER
        leads = size <= _STEPS and (
            self._translates(element, size, linked)
            or self._is_line_of_steps(element, first, last, is_named=has_navigation_name)
        )
        return State.BOILERPLATE if leads else State.CONTENT

    def _landmark(self) -> Element | None:
        root = self._read_runs.root
        size, _, shared_size = self._figures(0, len(self._runs))
        for xpath in ("//main | //*[@role='main']", "//article"):
            landmarks = [main for main in root.xpath(xpath) if main in self._read_runs.spans]
            inner = {part for main in landmarks for part in main.iterdescendants()}
            outer = [main for main in landmarks if main not in inner]
            if len(outer) == 1:
                inner_size, _, shared_inside = self._figures(*self._read_runs.spans[outer[0]])
                if inner_size - shared_inside >= _LANDMARK * (size - shared_size):
                    return outer[0]
        return None

    def _is_contents(self, element: Element, fragments: set[str], least: int) -> bool:
        count = linked = 0
        first, last = self._read_runs.spans[element]
        size = sum(run.size for run in self._runs[first:last] if not _level(run))
        for link in element.iter("a"):
            href = link.get("href") or ""
            if not href or link.get("data-aside"):
                continue
            page, _, fragment = href.partition("#")
            if fragment not in fragments or (
                page and resolve_link(self._base, page) != self._page_url
            ):
                return False
            count += 1
            linked += len(words("".join(link.itertext())))
        return count >= least and linked >= 0.75 * size

    @staticmethod
    def _translates(element: Element, size: int, linked: int) -> bool:
        if linked == 0:
            return False
        links = [link for link in element.iter("a") if link.get("href")]
        translations = sum(1 for link in links if link.get("hreflang"))
        return len(links) > 1 and translations >= len(links) - 1 and size - linked <= _NAMES

    def _is_line_of_steps(self, element: Element, first: int, last: int, *, is_named: bool) -> bool:
        """Whether an element is a line of previous and next links; if `is_named`, one is enough."""
        links = [a for a in element.iter("a") if a.get("href")]
        if len(links) < 2 or any(run.code for run in self._runs[first:last]):
            return False
        text = " ".join(run.text for run in self._runs[first:last])
        remaining, linked = len(words(_STEP.sub(" ", text))), self._figures(first, last)[1]
        related = [
            a.get("rel") in ("next", "prev", "up", "start") or a.get("accesskey") in _STEP_KEYS
            for a in links
        ]
        marked = len(_STEP.findall(text))
        return sum(related) > 1 or (marked >= (1 if is_named else 2) and linked >= 0.9 * remaining)

    def _mark_repeated(self) -> None:
        """Mark template texts, and links before all content."""
        content = [i for i, state in enumerate(self.states) if state is State.CONTENT]
        unshared = [i for i in content if not self._shared[i]]
        heads = [i for i in content if _level(self._runs[i])]
        top = min([*heads[:1], *(i for i in unshared if not self._is_linked(i))][:2], default=0)
        texts = [i for i in unshared if i not in heads]
        # cannot be decided on a page without other text, such as an index
        end = texts[-1] if texts else len(self._runs)
        heading = next((i for i in heads if i > end), len(self._runs))
        boilerplate = set()
        for i, run in enumerate(self._runs):
            if self.states[i] is not State.CONTENT or run.code or i in heads:
                continue
            heads_row = self._shared[i] and self._heads_row(i)
            if self._is_linked(i) and (i < top or run.key in boilerplate) and not heads_row:
                boilerplate.add(run.key)
                self.states[i] = State.BOILERPLATE
            elif self._shared[i]:
                outside = i < top or end < i < heading
                # links in a paragraph, in the main part, or on a page without text of its own
                # are about its subject
                in_text = run.holder.tag == "p" or self._main[0] <= i < self._main[1] or not texts
                foreign = outside or (self._is_linked(i) and not in_text)
                foreign = foreign and not heads_row
                self.states[i] = State.BOILERPLATE if foreign else State.NEITHER
        for i in heads:
            if self._shared[i] and not self._leads_content(i):
                self.states[i] = State.NEITHER

    def _heads_row(self, index: int) -> bool:
        holder = self._runs[index].holder
        cell = next((part for part in (holder, *holder.iterancestors()) if part.tag == "th"), None)
        if cell is None or cell.getprevious() is not None:
            return False
        cells = (self._read_runs.spans.get(part, (0, 0)) for part in cell.itersiblings("td"))
        return any(not self._shared[i] for first, last in cells for i in range(first, last))

    def _is_linked(self, index: int) -> bool:
        return self._runs[index].linked >= _LINKED * self._runs[index].size

    def _leads_content(self, index: int) -> bool:
        level = _level(self._runs[index])
        next_states = self.states[index + 1 : index + 2]
        if next_states and next_states[0] is not State.CONTENT and self._is_linked(index + 1):
            return False  # the heading of a menu
        for i in range(index + 1, len(self._runs)):
            if 0 < _level(self._runs[i]) <= level:
                return False
            if self.states[i] is State.CONTENT and not self._shared[i]:
                return True
        return False

    def _figures(self, first: int, last: int) -> tuple[int, ...]:
        return tuple(counts[last] - counts[first] for counts in self._sums)

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
        first = next((heading.text for heading in page.headings), "")
        page.names = tuple(dict.fromkeys((squash(self._read_runs.title), first)))
        return page

    def _headings(self) -> Iterator[MarkdownHeading]:
        for element in self._read_runs.root.iter(*HEADINGS):
            text = squash(_own_text(element))
            # names of authors on title pages are no headings
            if text and self.is_content(element) and "author" not in classes(element):
                ids, section_ids = self._anchors(element)
                fragments = frozenset(map(unquote, ids | section_ids))
                yield MarkdownHeading(HEADINGS[element.tag], text, fragments, bool(ids))

    def _anchors(self, heading: Element) -> tuple[frozenset[str], frozenset[str]]:
        ids = {part.get("id") or part.get("name") for part in heading.iter()}
        section_ids: set[str | None] = set()
        node = heading
        for _ in range(3):
            before = node.getprevious()
            while before is not None and (self._is_empty(before) or self.is_boilerplate(before)):
                if self._is_empty(before):
                    ids |= {part.get("id") or part.get("name") for part in before.iter()}
                before = before.getprevious()
            node = node.getparent()
            if node is None or before is not None or node.tag in ("body", "td", "li"):
                break
            (ids if node.tag == "section" else section_ids).add(node.get("id"))
        return frozenset(filter(None, ids)), frozenset(filter(None, section_ids))

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

    def _block(self, ancestors: Iterable[Element]) -> Element | None:
        return next((element for element in ancestors if element in self._read_runs.spans), None)

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for table in self._read_runs.root.iter("table"):
            inner = next(table.iterdescendants("pre", "table"), None)
            if table.get("role") in ("presentation", "none") or inner is not None:
                continue
            rows = [list(row.iterchildren("td", "th")) for row in table.iter("tr")]
            if sum(len(row) > 1 for row in rows) < 2:
                continue
            for row in rows:
                texts = (squash(self._text(cell)) for cell in row if self.is_content(cell))
                yield tuple(filter(None, texts))

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
        page, _, fragment = address.partition("#")
        if heading is None or page != unquote(self._base.partition("#")[0]):
            return False
        is_whole = squash("".join(link.itertext())) == squash("".join(heading.itertext()))
        section_ids = {ancestor.get("id") for ancestor in islice(heading.iterancestors(), _AROUND)}
        return not fragment or is_whole or fragment in section_ids.union(*self._anchors(heading))

    def _terms(self) -> Iterator[tuple[str, frozenset[str]]]:
        for term in self._read_runs.root.iter("dt"):
            text = squash(_own_text(term))
            if text and self.is_content(term):
                ids = (part.get("id") or part.get("name") for part in term.iter("dt", "a", "span"))
                yield text, frozenset(unquote(name) for name in ids if name)


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


def _level(run: TextRun) -> int:
    ancestors = islice((run.holder, *run.holder.iterancestors()), 4)
    return next((HEADINGS[element.tag] for element in ancestors if element.tag in HEADINGS), 0)
