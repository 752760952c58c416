"""Read Markdown independently of the rest of kbkit, to measure fidelity."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from kbkit.sources.html.fidelity.runs import HEADINGS, Runs, code_text, read, squashed, words
from kbkit.sources.html.fidelity.states import PageStates, State

_FENCE = re.compile(r"^((?:> ?| )*)(`{3,})[\w+#.-]*$")
_HEADING = re.compile(r"^(?:> ?| |-   |\d+\. )*(#{1,6}) (.*)$")
_ANCHOR = re.compile(r" \{#([^}\s]+)\}$")
_RULE = re.compile(r"^[> ]*\|( --- \|)+$")
# possessive: backticks match in two ways, and long lines would backtrack
_LINK = re.compile(r"(!?)\[((?>(?:`[^`]*`|[^\[\]\\`]|\\.|`|\[[^\[\]]*\])*))\]\(([^()\s]*)\)")
_SPAN = re.compile(r"(`+) ?(.+?) ?\1(?!`)")
_NUMBER = re.compile(r"^([> ]*)\d+\.(?= )")
_LISTED = re.compile(r"-   \[.*\]\([^()\s]*\)")
_ENTITY = re.compile(r"&#?\w+;")
_TERM = re.compile(r"^[> ]*(?:-   |\d+\. +)*(?:\*\*|`|\[)")


@dataclass(slots=True)
class MarkdownContent:
    """Content of a Markdown text.

    Attributes:
        headings: Level, squashed text, and anchor or ``""``.
        terms: Squashed lines and cells that may be terms.
    """

    words: Counter[str] = field(default_factory=Counter)
    codes: list[str] = field(default_factory=list)
    spans: set[str] = field(default_factory=set)
    headings: list[tuple[int, str, str]] = field(default_factory=list)
    rows: list[tuple[str, ...]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    links: set[tuple[str, str]] = field(default_factory=set)
    terms: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)


def parsed(markdown: str, *, links_last: bool = False) -> MarkdownContent:
    result = MarkdownContent()
    whole = markdown.rstrip().split("\n")
    while links_last and whole and _LISTED.fullmatch(whole[-1]):
        result.links.update(_links(whole.pop()))
    lines = iter(whole)
    for line in lines:
        if fence := _FENCE.match(line):
            prefix, ticks = fence.groups()
            code = []
            for text in lines:
                if text.strip("> ") == ticks:
                    break
                code.append(text[len(prefix) :] if text.startswith(prefix) else text.lstrip("> "))
            result.codes.append("\n".join(code))
            result.words.update(words(result.codes[-1]))
            result.lines.extend(map(squashed, code))
        elif not _RULE.match(line):
            _read_line(line, result)
    return result


def _read_line(line: str, result: MarkdownContent) -> None:
    if anchor := _ANCHOR.search(line):
        result.anchors.add(unquote(anchor[1]))
        line = line[: anchor.start()]
    if heading := _HEADING.match(line):
        line = heading[2]
    result.links.update(_links(line))
    result.spans.update(span for _, span in _SPAN.findall(line))
    plain = _plain(line if heading else _NUMBER.sub(r"\1", line))
    text = squashed(plain)
    if not text:
        return
    result.words.update(words(plain))
    result.lines.append(text)
    if heading:
        result.headings.append((len(heading[1]), text, unquote(anchor[1]) if anchor else ""))
        result.terms.append(text)
    elif _TERM.match(line):
        result.terms.append(text)
    elif line.lstrip("> ").startswith("|"):
        cells = re.split(r"(?<!\\)\|", line.strip("> "))[1:-1]
        result.rows.append(tuple(squashed(_plain(cell)) for cell in cells))
        result.terms += result.rows[-1]


def _links(line: str) -> Iterator[tuple[str, str]]:
    for _, text, address in _LINK.findall(line):
        yield squashed(_plain(text)), unquote(address)


def _plain(text: str) -> str:
    """Return a line without link addresses, with entities as characters."""
    for _ in range(3):
        bare = _LINK.sub(lambda link: link[2], text)
        if bare == text:
            break
        text = bare
    return _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)


Element = Any  # lxml ships no types

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


def content(html: str, url: str, template: Collection[int] = ()) -> PageContent | None:
    runs = read(html)
    if runs is None or not runs.runs:
        return None
    return _Reading(runs, url, template).content()


class _Reading:
    def __init__(self, runs: Runs, url: str, template: Collection[int]) -> None:
        self._read_runs = runs
        self._runs = runs.runs
        self._base = urljoin(url, runs.base)
        self._judged = PageStates(runs, self._base, template)
        self._fences = set(runs.codes)

    def content(self) -> PageContent:
        page = PageContent()
        for run, state in zip(self._runs, self._judged.states, strict=True):
            if state is not State.BOILERPLATE:
                (page.words if state is State.CONTENT else page.spare).update(words(run.text))
        for text in (*self._read_runs.formulas, self._read_runs.title):
            page.spare.update(words(text))
        for text in self._read_runs.aside:
            page.spare.subtract(words(text))
        page.spare = +page.spare
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
        page.names = tuple(dict.fromkeys((squashed(self._read_runs.title), first)))
        return page

    def _headings(self) -> Iterator[MarkdownHeading]:
        for element in self._read_runs.root.iter(*HEADINGS):
            text = squashed(_own_text(element))
            if text and self._judged.is_content(element):
                own, around = self._anchors(element)
                places = frozenset(map(unquote, own | around))
                yield MarkdownHeading(HEADINGS[element.tag], text, places, bool(own))

    def _anchors(self, heading: Element) -> tuple[frozenset[str], frozenset[str]]:
        own = {heading.get("id")} | {one.get("id") or one.get("name") for one in heading.iter()}
        around: set[str | None] = set()
        node = heading
        for _ in range(3):
            before = node.getprevious()
            while before is not None and (
                self._is_empty(before) or self._judged.is_boilerplate(before)
            ):
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
            if block is not None and self._judged.is_content(block):
                yield element

    def _block(self, around: Iterable[Element]) -> Element | None:
        return next((each for each in around if each in self._read_runs.spans), None)

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for table in self._read_runs.root.iter("table"):
            if (
                table.get("role") in _BOILERPLATE_TABLES
                or next(table.iter("pre"), None) is not None
            ):
                continue
            if next(table.iterdescendants("table"), None) is not None:
                continue
            rows = [list(row.iterchildren("td", "th")) for row in table.iter("tr")]
            if sum(len(row) > 1 for row in rows) < 2:
                continue
            for row in rows:
                shown = [cell for cell in row if self._judged.is_content(cell)]
                texts = (squashed(self._text(cell)) for cell in shown)
                yield tuple(text for text in texts if text)

    def _text(self, element: Element) -> str:
        first, last = self._read_runs.spans[element]
        return " ".join(run.text for run in self._runs[first:last])

    def _links(self) -> Iterator[tuple[str, str]]:
        for link in self._read_runs.root.iter("a"):
            href = (link.get("href") or "").strip()
            text = squashed("".join(link.itertext()))
            if not href or not text or link.get("data-aside"):
                continue
            block = self._block(link.iterancestors())
            if block is None or not self._judged.is_content(block) or self._in_fence(block):
                continue
            address = absolute(href, self._base)
            if address and not self._leads_to_itself(link, address):
                yield text, address

    def _in_fence(self, block: Element) -> bool:
        return any(around in self._fences for around in (block, *block.iterancestors()))

    def _leads_to_itself(self, link: Element, address: str) -> bool:
        titles = (*HEADINGS, "dt")
        if next(link.iter(*HEADINGS), None) is not None:
            return True
        heading = next(link.iterancestors(*titles), None)
        page, _, place = address.partition("#")
        if heading is None or page != unquote(self._base.partition("#")[0]):
            return False
        whole = squashed("".join(link.itertext())) == squashed("".join(heading.itertext()))
        around = {one.get("id") for one in islice(heading.iterancestors(), _AROUND)}
        return not place or whole or place in around.union(*self._anchors(heading))

    def _terms(self) -> Iterator[tuple[str, frozenset[str]]]:
        for term in self._read_runs.root.iter("dt"):
            text = squashed(_own_text(term))
            if text and self._judged.is_content(term):
                inner = (one.get("id") or one.get("name") for one in term.iter("dt", "a", "span"))
                yield text, frozenset(unquote(place) for place in inner if place)


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
        if isinstance(child.tag, str) and not (child.tag == "a" and child.get("data-aside")):
            pieces.append(" " if child.tag == "br" else _own_text(child))
        pieces.append(child.tail or "")
    return "".join(pieces)
