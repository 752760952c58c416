"""Read the content of a page that its Markdown must keep, apart from the template."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from urllib.parse import unquote, urlsplit

from kbkit.sources.html import HEADINGS, NAMES, Element, places, resolve_link
from kbkit.sources.html.fidelity.runs import (
    LINKED,
    Runs,
    State,
    TextRun,
    classes,
    code_text,
    read,
    squash,
    words,
)

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
_SAME = 0.8  # share of words that are also on other pages
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

    def __init__(self, page: Runs, base: str, template: Collection[int]) -> None:
        self._page = page
        self._fences = set(page.codes)
        self._base = base
        self._page_url = urlsplit(base)._replace(fragment="").geturl()
        for run in page.runs:
            run.shared = run.key in template
        self._main = set(self._landmark())
        for run in page.runs if self._main else ():
            if run not in self._main:
                foreign = run.shared or run.is_linked
                run.state = State.BOILERPLATE if foreign else State.NEITHER
        fragments = set(page.root.xpath("//@id | //a/@name")) - {""}
        for element, runs in page.spans.items():
            if runs and runs[0].state is not State.BOILERPLATE:
                state = self._verdict(element, runs, fragments)
                for run in runs:
                    run.state = max(state, run.state)
        self._mark_repeated()
        texts = {state: [run.text for run in page.runs if run.state is state] for state in State}
        self.words = _count_words(texts[State.CONTENT])
        self.spare = _count_words([*texts[State.NEITHER], *page.formulas, page.title])
        self.headings = list(self._headings())
        code_elements = filter(self.is_content, page.codes)
        codes = [(part.tag, code) for part in code_elements if (code := code_text(part)).strip()]
        self.codes = [code for tag, code in codes if tag != "code"]
        self.lines = [code for tag, code in codes if tag == "code"]
        rows = list(self._rows())
        self.rows = [row for row in rows if len(row) > 1]
        self.cells = [cell for row in rows for cell in row]
        self.links = set(self._links())
        self.terms = list(self._terms())
        first = next((heading.text for heading in self.headings), "")
        self.names = tuple(dict.fromkeys((squash(page.title), first)))
        self.keys = frozenset(run.key for run in page.runs)

    def _verdict(self, element: Element, runs: Sequence[TextRun], fragments: set[str]) -> State:
        tag, role = element.tag, element.get("role") or ""
        crumbs = (element.get("aria-label") or "").lower() == "breadcrumb"
        if tag == "nav" or role in _NAVIGATION_ROLES or crumbs:
            return State.BOILERPLATE
        if tag in HEADINGS or tag in ("html", "body", "main", "td", "th", "dt", "dd", "tr", "pre"):
            return State.CONTENT
        size, linked, _ = _figures(runs)
        has_navigation_name = not _NAVIGATION_NAMES.isdisjoint(classes(element))
        foreign_size = sum(run.size for run in runs if run.shared or run.is_linked)
        foreign = foreign_size >= _SAME * size or linked >= LINKED * size
        frames = has_navigation_name or tag == "footer" or (tag == "header" and linked)
        if role == "contentinfo" or (foreign and frames):
            return State.BOILERPLATE
        name_ends = {name.rpartition("-")[2] for name in classes(element)}
        least = _TOC_LINKS if _NAVIGATION_NAMES.isdisjoint(name_ends) else 1
        if tag in _LISTS and self._is_contents(element, runs, fragments, least):
            return State.BOILERPLATE if has_navigation_name else State.NEITHER
        leads = size <= _STEPS and _leads_away(element, runs, is_named=has_navigation_name)
        return State.BOILERPLATE if leads else State.CONTENT

    def _landmark(self) -> Sequence[TextRun]:
        spans = self._page.spans
        size, _, shared_size = _figures(self._page.runs)
        for xpath in ("//main | //*[@role='main']", "//article"):
            landmarks = [main for main in self._page.root.xpath(xpath) if main in spans]
            inner = {part for main in landmarks for part in main.iterdescendants()}
            outer = [main for main in landmarks if main not in inner]
            if len(outer) == 1:
                inner_size, _, shared_inside = _figures(spans[outer[0]])
                if inner_size - shared_inside >= _LANDMARK * (size - shared_size):
                    return spans[outer[0]]
        return ()

    def _is_contents(
        self, element: Element, runs: Iterable[TextRun], fragments: set[str], least: int
    ) -> bool:
        count = linked = 0
        for link in element.iter("a"):
            href = link.get("href") or ""
            if not href or link.get("data-aside"):
                continue
            page, _, fragment = href.partition("#")
            elsewhere = page and resolve_link(self._base, page) != self._page_url
            if fragment not in fragments or elsewhere:
                return False
            count += 1
            linked += _unnumbered("".join(link.itertext()))
        size = sum(_unnumbered(run.text) for run in runs if not run.level)
        return count >= least and linked >= 0.75 * size

    def _mark_repeated(self) -> None:
        """Mark template texts, and links before all content."""
        runs = self._page.runs
        content = [i for i, run in enumerate(runs) if run.state is State.CONTENT]
        unshared = [i for i in content if not runs[i].shared]
        heads = [i for i in content if runs[i].level]
        top = min([*heads[:1], *(i for i in unshared if not runs[i].is_linked)][:2], default=0)
        texts = [i for i in unshared if not runs[i].level]
        # cannot be decided on a page without other text, such as an index
        end = texts[-1] if texts else len(runs)
        heading = next((i for i in heads if i > end), len(runs))
        boilerplate = set()
        for i in content:
            run = runs[i]
            if run.code or run.level:
                continue
            heads_row = run.shared and self._heads_row(run)
            if run.is_linked and (i < top or run.key in boilerplate) and not heads_row:
                boilerplate.add(run.key)
                run.state = State.BOILERPLATE
            elif run.shared:
                outside = i < top or end < i < heading
                # links in a paragraph, in the main part, or on a page without text of its own
                # are about its subject
                in_text = run.holder.tag == "p" or run in self._main or not texts
                foreign = (outside or (run.is_linked and not in_text)) and not heads_row
                run.state = State.BOILERPLATE if foreign else State.NEITHER
        for i in heads:
            if runs[i].shared and not _leads_content(runs[i], runs[i + 1 :]):
                runs[i].state = State.NEITHER

    def _heads_row(self, run: TextRun) -> bool:
        ancestors = (run.holder, *run.holder.iterancestors())
        cell = next((part for part in ancestors if part.tag == "th"), None)
        if cell is None or cell.getprevious() is not None:
            return False
        cells = (self._page.spans.get(part, ()) for part in cell.itersiblings("td"))
        return any(not inner.shared for runs in cells for inner in runs)

    def is_content(self, element: Element) -> bool:
        """Whether the block around an element is content, judged by its first text."""
        runs = self._page.spans[self._block(element)]
        return bool(runs) and runs[0].state is State.CONTENT

    def _block(self, element: Element) -> Element:
        parts = (element, *element.iterancestors())
        return next(part for part in parts if part in self._page.spans)

    def is_boilerplate(self, element: Element) -> bool:
        """Whether the page's text of an element is boilerplate only."""
        runs = self._page.spans.get(element, ())
        return {run.state for run in runs} == {State.BOILERPLATE}

    def _headings(self) -> Iterator[MarkdownHeading]:
        for element in self._page.root.iter(*HEADINGS):
            text = squash(_own_text(element))
            # names of authors on title pages are no headings
            if text and self.is_content(element) and "author" not in classes(element):
                ids, section_ids = self._anchors(element)
                fragments = frozenset(map(unquote, ids | section_ids))
                yield MarkdownHeading(HEADINGS[element.tag], text, fragments, bool(ids))

    def _anchors(self, heading: Element) -> tuple[frozenset[str], frozenset[str]]:
        ids = places(heading)
        section_ids: set[str | None] = set()
        node = heading
        for _ in range(3):
            before = node.getprevious()
            while before is not None and (self._is_empty(before) or self.is_boilerplate(before)):
                if self._is_empty(before):
                    ids |= places(before)
                before = before.getprevious()
            node = node.getparent()
            if node is None or before is not None or node.tag in ("body", "td", "li"):
                break
            (ids if node.tag == "section" else section_ids).add(node.get("id"))
        return frozenset(filter(None, ids)), frozenset(filter(None, section_ids))

    @staticmethod
    def _is_empty(element: Element) -> bool:
        text = "".join(element.itertext()) + (element.tail or "")
        return element.tag in ("a", "span", "p", "i", "br") and not text.strip()

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for table in self._page.root.iter("table"):
            parts = table.iterdescendants()
            has_blocks = any(part.tag == "table" or part in self._fences for part in parts)
            rows = [list(row.iterchildren("td", "th")) for row in table.iter("tr")]
            is_data = sum(len(row) > 1 for row in rows) > 1 and not has_blocks
            if not is_data or table.get("role") in ("presentation", "none"):
                continue
            for row in rows:
                cells = (self._page.spans.get(cell, ()) for cell in row if self.is_content(cell))
                texts = (squash(" ".join(run.text for run in runs)) for runs in cells)
                yield tuple(filter(None, texts))

    def _links(self) -> Iterator[tuple[str, str]]:
        for link in self._page.root.iter("a"):
            href = (link.get("href") or "").strip()
            # Markdown has no links around blocks: the first is linked
            runs = next(filter(None, map(self._page.spans.get, link.iterdescendants())), None)
            text = squash(runs[0].text if runs else "".join(link.itertext()))
            if not href or not text or link.get("data-aside") or not self.is_content(link):
                continue
            block = self._block(link)
            address = absolute(href, self._base)
            in_code = not self._fences.isdisjoint((block, *block.iterancestors()))
            if address and not in_code and not self._leads_to_itself(link, address):
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
        for term in self._page.root.iter("dt"):
            text = squash(_own_text(term))
            if text and self.is_content(term):
                yield text, frozenset(map(unquote, places(term)))


def content(html: str, url: str, template: Collection[int] = ()) -> PageContent | None:
    runs = read(html)
    if runs is None or not runs.runs:
        return None
    return PageContent(runs, resolve_link(url, runs.base) or url, template)


def absolute(href: str, base: str) -> str:
    """Return a link's absolute address; ``""`` if it leads nowhere."""
    url = resolve_link(base, href)
    return unquote(url) if re.match("(?i)https?:|mailto:", url) else ""


def _own_text(element: Element) -> str:
    """Return the text of a heading or term, without links to its source."""
    pieces = [element.text or ""]
    for child in element:
        if child.tag != "a" or not child.get("data-aside"):
            pieces.append(" " if child.tag == "br" else _own_text(child))
        pieces.append(child.tail or "")
    return "".join(pieces)


def _unnumbered(text: str) -> int:
    # contents may have numbers beside the links
    return sum(not word.isdecimal() for word in words(text))


def _count_words(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in words(text))


def _figures(runs: Iterable[TextRun]) -> tuple[int, int, int]:
    """Count words: all, linked, and those of the template."""
    counts = [(run.size, run.linked, run.size * run.shared) for run in runs]
    size, linked, shared = map(sum, zip((0, 0, 0), *counts, strict=True))
    return size, linked, shared


def _leads_away(element: Element, runs: Sequence[TextRun], *, is_named: bool) -> bool:
    """Whether a line leads to translations or neighbours; if `is_named`, to one neighbour."""
    links = [link for link in element.iter("a") if link.get("href")]
    if len(links) < 2:
        return False
    size, linked, _ = _figures(runs)
    translations = sum(1 for link in links if link.get("hreflang"))
    if linked and translations >= len(links) - 1 and size - linked <= _NAMES:
        return True
    text = " ".join(run.text for run in runs)
    marked = len(_STEP.findall(text))
    related = sum(
        link.get("rel") in ("next", "prev", "up", "start") or link.get("accesskey") in _STEP_KEYS
        for link in links
    )
    is_marked = marked >= (1 if is_named else 2)
    leads = related > 1 or (is_marked and linked >= 0.9 * len(words(_STEP.sub(" ", text))))
    return leads and not any(run.code for run in runs)


def _leads_content(heading: TextRun, following: Sequence[TextRun]) -> bool:
    if following and following[0].state is not State.CONTENT and following[0].is_linked:
        return False  # the heading of a menu
    section = takewhile(lambda run: not 0 < run.level <= heading.level, following)
    return any(run.state is State.CONTENT and not run.shared for run in section)
