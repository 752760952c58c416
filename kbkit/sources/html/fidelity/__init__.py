"""Measure how much of a page its Markdown keeps.

Independent of the extractor, except for parsing HTML, so that neither hides the other's mistakes.
Shared text of a site's pages, landmarks, links and headings identify the content. `runs` and
`page_content` read pages; here Markdown is read, and compared with them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import unquote

from kbkit.models.ingest_report import fidelity_score
from kbkit.sources.html.fidelity.page_content import PageContent, content, recurring, survey
from kbkit.sources.html.fidelity.runs import squash, words

__all__ = ["KINDS", "Fidelity", "recurring", "survey"]


KINDS = ("words", "headings", "anchors", "terms", "code", "rows", "cells", "links", "surplus")
_MIN = 3  # characters from which a row is searched for in whole lines


@dataclass(slots=True)
class Fidelity:
    """Share of pages' content that their Markdown keeps, and the surplus.

    The kinds: ``words`` of the content, ``headings`` with level and text, ``anchors`` of headings,
    ``terms`` of definition lists with their anchors, ``code`` blocks byte for byte, ``rows`` of
    tables with all cells in order, ``cells``, ``links`` with text and address. ``surplus`` are
    written words that are not content.

    wanted: Items on the pages, by kind; written words for ``surplus``.
    kept: Items found in the Markdown, by kind; content words for ``surplus``.
    lost: The other items, by kind.
    """

    wanted: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    lost: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))

    def share(self, kind: str) -> float:
        """Return the kept share of a kind, 0 to 1; 1 if the pages have none.

        For ``surplus``, the share of the written words that is not content; 0 if there are none.
        """
        share = self.kept[kind] / self.wanted[kind] if self.wanted[kind] else 1.0
        return 1 - share if kind == "surplus" else share

    @property
    def score(self) -> float:
        """The worst of words, surplus, and code, headings and rows together, 0 to 1."""
        return fidelity_score(self.counts())

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return kept and wanted items, by kind."""
        return {kind: (self.kept[kind], self.wanted[kind]) for kind in KINDS}

    def include(self, other: Fidelity) -> None:
        """Add the measurements of other pages."""
        self.wanted.update(other.wanted)
        self.kept.update(other.kept)
        for kind, things in other.lost.items():
            self.lost[kind] += things

    def to_dict(self) -> dict[str, Any]:
        """Return shares (0 to 1) and counts of kept and wanted items, by kind, as JSON values."""
        return {
            kind: {"share": round(self.share(kind), 4), "kept": kept, "wanted": wanted}
            for kind, (kept, wanted) in self.counts().items()
        }

    def add(
        self,
        html: str,
        markdown: str,
        *,
        url: str = "",
        template: Collection[int] = (),
        article: bool = False,
    ) -> PageContent | None:
        """Measure one more page.

        Args:
            html: The page.
            markdown: Its Markdown.
            url: Its address, the base of its links.
            template: Keys of texts outside the content, from `recurring`.
            article: Read as an ordinary article, with links at the end.

        Returns:
            Expected content; ``None`` if the page has no text.
        """
        page = content(html, url, template)
        if page is None:
            return None
        text = MarkdownContent(markdown, links_last=article)
        self._count("words", page.words, text.words)
        expected = page.words + page.spare
        self._count("surplus", text.words, expected)
        self._codes(page, text)
        self._headings(page, text)
        self._tables(page, text)
        self._count("links", page.links, _kept_links(page, text))
        term_text = "\n".join(text.terms)
        terms = (
            (term, fragments)
            for term, fragments in page.terms
            if term in term_text and (not fragments or fragments & text.anchors)
        )
        self._count("terms", page.terms, terms)
        return page

    def _headings(self, page: PageContent, text: MarkdownContent) -> None:
        self._count(
            "headings",
            ((head.level, head.text) for head in page.headings),
            ((level, name) for level, name, _ in text.headings),
        )
        found_anchors: defaultdict[str, set[str]] = defaultdict(set)
        for _, name, anchor in text.headings:
            found_anchors[name].add(anchor)
        anchored = [head for head in page.headings if head.anchored]
        matches = (head.text for head in anchored if found_anchors[head.text] & head.anchors)
        self._count("anchors", (head.text for head in anchored), matches)

    def _codes(self, page: PageContent, text: MarkdownContent) -> None:
        short = [code for code in page.codes if code.strip() in text.spans]
        self._count("code", page.codes, [*text.codes, *short])
        # outside preformatted text, leading white space belongs to the theme
        unindented = (_unindent(code) for code in text.codes)
        self._count("code", map(_unindent, page.lines), unindented)

    def _tables(self, page: PageContent, text: MarkdownContent) -> None:
        by_cell: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
        for row in text.rows:
            for cell in dict.fromkeys(row):
                by_cell[cell].append(row)
        lines = "\n".join(text.lines)
        matched = [
            row
            for row in page.rows
            if any(_in_order(row, line) for line in by_cell[row[0]])
            or (len("".join(row)) >= _MIN and "".join(row) in lines)
        ]
        self._count("rows", page.rows, matched)
        everything = lines.replace("\n", "")
        self._count("cells", page.cells, (cell for cell in page.cells if cell in everything))

    def _count(
        self,
        kind: str,
        items: Iterable[Hashable] | Mapping[Any, int],
        actual: Iterable[Hashable] | Mapping[Any, int],
    ) -> None:
        expected = Counter(items)
        missing = expected - Counter(actual)
        self.wanted[kind] += expected.total()
        self.kept[kind] += expected.total() - missing.total()
        self.lost[kind] += missing.elements()


def _unindent(code: str) -> str:
    return "\n".join(line.strip() for line in code.strip().split("\n"))


def _kept_links(page: PageContent, text: MarkdownContent) -> Iterator[tuple[str, str]]:
    """Yield links of a page that its Markdown has; a picture may make their text longer there."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    for name, address in text.links:
        names[address].append(name)
    for name, address in page.links:
        if any(name in other for other in names[address]):
            yield name, address


def _in_order(row: tuple[str, ...], line: tuple[str, ...]) -> bool:
    remaining = iter(line)
    return all(cell in remaining for cell in row)


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


class MarkdownContent:
    """Content of a Markdown text.

    Attributes:
        headings: Level, squashed text, and anchor or ``""``.
        terms: Squashed lines and cells that may be terms.
    """

    def __init__(self, markdown: str, *, links_last: bool = False) -> None:
        self.words: Counter[str] = Counter()
        self.codes: list[str] = []
        self.spans: set[str] = set()
        self.headings: list[tuple[int, str, str]] = []
        self.rows: list[tuple[str, ...]] = []
        self.lines: list[str] = []
        self.links: set[tuple[str, str]] = set()
        self.terms: list[str] = []
        self.anchors: set[str] = set()
        remaining = markdown.rstrip().split("\n")
        while links_last and remaining and _LISTED.fullmatch(remaining[-1]):
            self.links.update(_links(remaining.pop()))
        lines = iter(remaining)
        for line in lines:
            if fence := _FENCE.match(line):
                prefix, ticks = fence.groups()
                code = []
                for text in lines:
                    if text.strip("> ") == ticks:
                        break
                    code.append(
                        text[len(prefix) :] if text.startswith(prefix) else text.lstrip("> ")
                    )
                self.codes.append("\n".join(code))
                self.words.update(words(self.codes[-1]))
                self.lines.extend(map(squash, code))
            elif not _RULE.match(line):
                self._read_line(line)

    def _read_line(self, line: str) -> None:
        if anchor := _ANCHOR.search(line):
            self.anchors.add(unquote(anchor[1]))
            line = line[: anchor.start()]
        if heading := _HEADING.match(line):
            line = heading[2]
        self.links.update(_links(line))
        self.spans.update(span for _, span in _SPAN.findall(line))
        plain_line = _plain(line if heading else _NUMBER.sub(r"\1", line))
        text = squash(plain_line)
        if not text:
            return
        self.words.update(words(plain_line))
        self.lines.append(text)
        if heading:
            self.headings.append((len(heading[1]), text, unquote(anchor[1]) if anchor else ""))
        if heading or _TERM.match(line):
            self.terms.append(text)
        elif line.lstrip("> ").startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip("> "))[1:-1]
            self.rows.append(tuple(squash(_plain(cell)) for cell in cells))
            self.terms += self.rows[-1]


def _links(line: str) -> Iterator[tuple[str, str]]:
    for _, text, address in _LINK.findall(line):
        yield squash(_plain(text)), unquote(address)


def _plain(text: str) -> str:
    """Return a line without link addresses, with entities as characters."""
    for _ in range(3):
        without_links = _LINK.sub(lambda link: link[2], text)
        if without_links == text:
            break
        text = without_links
    return _ENTITY.sub(lambda entity: unescape(entity[0]), text)
