"""Tells how faithfully pages are read: each page's Markdown against the page itself."""

from __future__ import annotations

import html as html_text
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from kbkit.config import Settings
from kbkit.errors import SourceError
from kbkit.models import Progress
from kbkit.models.fidelity import POOR
from kbkit.progress import OnProgress
from kbkit.sources.base import Outcome
from kbkit.sources.decode import decode
from kbkit.sources.html.fidelity import KINDS, Fidelity
from kbkit.sources.html.site_extractor import SiteExtractor
from kbkit.sources.web.fetch import Fetcher

_PAGES = frozenset({".html", ".htm", ".xhtml"})
_AHEAD = 64  # pages in memory
_MOST_BYTES = 50_000_000


@dataclass(frozen=True, slots=True)
class PageFidelity:
    """What the Markdown of one page keeps.

    Attributes:
        uri: The page's file, from the measured folder on, or its address.
        fidelity: The figures.
        article: It was read as an ordinary article, of which only the text is wanted.
        reason: Why nothing was measured, or ``""``.
    """

    uri: str
    fidelity: Fidelity
    article: bool = False
    reason: str = ""

    @property
    def poor(self) -> bool:
        """Whether the page was poorly read."""
        return not self.reason and not self.article and self.fidelity.score < POOR

    def to_dict(self) -> dict[str, Any]:
        """The page as JSON values."""
        return {
            "uri": self.uri,
            "article": self.article,
            "poor": self.poor,
            "reason": self.reason,
            "fidelity": self.fidelity.to_dict(),
        }


class FidelityReportDict(TypedDict):
    """A report as JSON values."""

    total: dict[str, dict[str, float]]
    poor: list[str]
    pages: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class FidelityReport:
    """What the Markdown of some pages keeps of them.

    Attributes:
        pages: The pages in the order of their names.
        total: All that were measured together.
    """

    pages: tuple[PageFidelity, ...]
    total: Fidelity

    def to_dict(self) -> FidelityReportDict:
        """The report as JSON values."""
        return {
            "total": self.total.to_dict(),
            "poor": [page.uri for page in self.pages if page.poor],
            "pages": [page.to_dict() for page in self.pages],
        }

    def rows(self) -> list[tuple[str, ...]]:
        """A heading, a row for each page, and one for all: kept share, of how many there are."""
        rows = [(page.uri, *_figures(page.fidelity, page.reason)) for page in self.pages]
        return [("page", *KINDS), *rows, (f"all {len(rows):,}", *_figures(self.total, ""))]

    def _repr_html_(self) -> str:
        def row(cells: tuple[str, ...], tag: str) -> str:
            return "".join(f"<{tag}>{html_text.escape(cell)}</{tag}>" for cell in cells)

        head, *rest = self.rows()
        body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rest)
        return f"<table><tr>{row(head, 'th')}</tr>{body}</table>"


def fidelity(
    place: str | Path,
    *,
    allow_private: bool = False,
    on_progress: OnProgress | None = None,
) -> FidelityReport:
    """Measure what kbkit keeps of pages when it turns them into Markdown.

    The measure is written apart from the converter: code blocks byte for byte, headings with
    level and text, their anchors, anchored terms, table rows with their cells in order, and
    whether texts of the page's navigation turn up.

    Args:
        place: An HTML file, a folder of them (read as one site), or the address of a page.
        allow_private: Permit an address on loopback or a private network.
        on_progress: Called as pages are measured.

    Raises:
        SourceError: There is no such page.
    """
    address = str(place)
    if address.startswith(("http://", "https://")):
        pages = _fetched(address, allow_private)
        many = 1
    else:
        files = _files(Path(place).expanduser())
        pages = ((name, path.read_bytes(), "") for name, path in files)
        many = len(files)
    measured = []
    total = Fidelity()
    for page in _read(pages, many):
        total.include(page.fidelity)
        measured.append(page)
        if on_progress is not None:
            on_progress(Progress("measure", len(measured), many, page.uri))
    return FidelityReport(tuple(sorted(measured, key=lambda page: page.uri)), total)


def _read(pages: Iterator[tuple[str, bytes, str]], many: int) -> Iterator[PageFidelity]:
    reader = SiteExtractor(expected=many)
    try:
        for name, body, charset in pages:
            address = name if "://" in name else f"https://pages.invalid/{name}"
            reader.submit((name, body, charset), address, body, charset)
            while reader.pending >= _AHEAD:
                yield from _measured(reader)
        while reader.pending:
            if not reader.busy:
                reader.settle()
            yield from _measured(reader)
    finally:
        reader.close()


def _measured(reader: SiteExtractor) -> Iterator[PageFidelity]:
    reading = reader.poll(0.2)
    if reading is None or not reading.final:
        return
    name, body, charset = reading.key
    page = reading.page
    result = Fidelity()
    if not page.content:
        yield PageFidelity(name, result, reason=page.reason or "no text")
        return
    result.add(decode(body, charset), page.content)
    yield PageFidelity(name, result, article=page.article)


def _files(path: Path) -> list[tuple[str, Path]]:
    if path.is_file():
        return [(path.name, path)]
    if not path.is_dir():
        raise SourceError(f"{path}: no such file or folder; an address starts with https://")
    found = [
        (file.relative_to(path).as_posix(), file)
        for file in sorted(path.rglob("*"))
        if file.suffix.lower() in _PAGES and file.is_file() and file.stat().st_size < _MOST_BYTES
    ]
    if not found:
        raise SourceError(f"{path}: no HTML pages in this folder")
    return found


def _fetched(address: str, allow_private: bool) -> Iterator[tuple[str, bytes, str]]:
    settings = Settings.from_environment()
    with Fetcher(
        user_agent=settings.user_agent, timeout=settings.timeout, allow_private=allow_private
    ) as fetcher:
        response = fetcher.get(address)
    if response.outcome is not Outcome.FETCHED:
        raise SourceError(f"{address}: {response.reason}")
    yield response.url, response.body, response.charset


def _figures(figures: Fidelity, reason: str) -> tuple[str, ...]:
    if reason:
        return (reason, *("" for _ in KINDS[1:]))
    return tuple(
        f"{100 * figures.share(kind):.1f}% {figures.wanted[kind]:,}"
        if figures.wanted[kind]
        else "-"
        for kind in KINDS
    )
