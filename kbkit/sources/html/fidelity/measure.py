"""Compare a page with its Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kbkit.models.ingest_report import fidelity_score
from kbkit.sources.html.fidelity.markdown import MarkdownContent, PageContent, content, parsed

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
    lost: dict[str, list[Any]] = field(default_factory=dict)

    def share(self, kind: str) -> float:
        """Return the kept share of a kind, 0 to 1; 1 if the pages have none.

        For ``surplus``, the share of the written words that is not content; 0 if there are none.
        """
        kept = self.kept[kind] / self.wanted[kind] if self.wanted[kind] else 1.0
        return 1 - kept if kind == "surplus" else kept

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
            self.lost.setdefault(kind, []).extend(things)

    def to_dict(self) -> dict[str, Any]:
        """Return shares (0 to 1) and counts of kept and wanted items, by kind, as JSON values."""
        return {
            kind: {
                "share": round(self.share(kind), 4),
                "kept": self.kept[kind],
                "wanted": self.wanted[kind],
            }
            for kind in KINDS
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
        text = parsed(markdown, links_last=article)
        self._words(page, text)
        self._codes(page, text)
        self._headings(page, text)
        self._tables(page, text)
        self._count("links", page.links, _links(page, text))
        self._terms(page, text)
        return page

    def _words(self, page: PageContent, text: MarkdownContent) -> None:
        self._count("words", page.words, text.words)
        foreign = text.words - page.words - page.spare
        self.wanted["surplus"] += text.words.total()
        self.kept["surplus"] += text.words.total() - foreign.total()
        self.lost.setdefault("surplus", []).extend(foreign.elements())

    def _headings(self, page: PageContent, text: MarkdownContent) -> None:
        self._count(
            "headings",
            ((one.level, one.text) for one in page.headings),
            ((level, name) for level, name, _ in text.headings),
        )
        places: dict[str, set[str]] = {}
        for _, name, anchor in text.headings:
            places.setdefault(name, set()).add(anchor)
        anchored = [one for one in page.headings if one.anchored]
        right = (one.text for one in anchored if places.get(one.text, set()) & one.anchors)
        self._count("anchors", (one.text for one in anchored), right)

    def _codes(self, page: PageContent, text: MarkdownContent) -> None:
        short = [code for code in page.codes if code.strip() in text.spans]
        self._count("code", page.codes, [*text.codes, *short])
        # outside preformatted text, leading white space belongs to the theme
        bare = (_unindented(code) for code in text.codes)
        self._count("code", map(_unindented, page.lines), bare)

    def _tables(self, page: PageContent, text: MarkdownContent) -> None:
        rows = Counter(tuple(cell for cell in row if cell) for row in text.rows)
        by_cell: dict[str, list[tuple[str, ...]]] = {}
        for row in text.rows:
            for cell in dict.fromkeys(row):
                by_cell.setdefault(cell, []).append(row)
        lines = "\n".join(text.lines)
        matched = [
            row
            for row in page.rows
            if row in rows
            or any(_in_order(row, line) for line in by_cell.get(row[0], ()))
            or (len("".join(row)) >= _MIN and "".join(row) in lines)
        ]
        self._count("rows", page.rows, matched)
        everything = lines.replace("\n", "")
        self._count("cells", page.cells, (cell for cell in page.cells if cell in everything))

    def _terms(self, page: PageContent, text: MarkdownContent) -> None:
        named = "\n".join(text.terms)
        matched = [
            (term, places)
            for term, places in page.terms
            if term in named and (not places or places & text.anchors)
        ]
        self._count("terms", page.terms, matched)

    def _count(
        self,
        kind: str,
        wanted: Iterable[Hashable] | Mapping[Any, int],
        actual: Iterable[Hashable] | Mapping[Any, int],
    ) -> None:
        expected = Counter(wanted)
        missing = expected - Counter(actual)
        self.wanted[kind] += expected.total()
        self.kept[kind] += expected.total() - missing.total()
        self.lost.setdefault(kind, []).extend(missing.elements())

    def __str__(self) -> str:
        return "  ".join(
            f"{kind} {100 * self.share(kind):.2f} % of {self.wanted[kind]}" for kind in KINDS
        )


def _unindented(code: str) -> str:
    return "\n".join(line.strip() for line in code.strip().split("\n"))


def _links(page: PageContent, text: MarkdownContent) -> set[tuple[str, str]]:
    """Return links of a page that its Markdown has; a picture may make their text longer there."""
    matched = page.links & text.links
    by_address: dict[str, list[str]] = {}
    for name, address in text.links:
        by_address.setdefault(address, []).append(name)
    return matched | {
        (name, address)
        for name, address in page.links - matched
        if any(name in other for other in by_address.get(address, ()))
    }


def _in_order(row: tuple[str, ...], line: tuple[str, ...]) -> bool:
    rest = iter(line)
    return all(cell in rest for cell in row)
