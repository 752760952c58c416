"""Report the fidelity of pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbkit.errors import SourceError
from kbkit.models import Progress
from kbkit.models.ingest_report import POOR, poor_site
from kbkit.runtime.config import Settings
from kbkit.runtime.progress import OnProgress
from kbkit.sources import Outcome
from kbkit.sources.decode import decode
from kbkit.sources.html.extract import ExtractedPage
from kbkit.sources.html.fidelity import KINDS, Fidelity, recurring, survey
from kbkit.sources.html.site_extractor import SiteExtractor
from kbkit.sources.web import Fetcher

_PAGES = frozenset({".html", ".htm", ".xhtml"})
_MAX_BYTES = 50_000_000
_SURVEYED = 100  # most pages that are compared to find a site's template


@dataclass(frozen=True, slots=True)
class PageFidelity:
    """Fidelity of one page's Markdown.

    Attributes:
        uri: Path below the measured folder, or address.
        fidelity: Its figures.
        title: Its title.
        article: Read as an ordinary article, of which only the text counts.
        reason: Why nothing was measured, or ``""``.
        names: Possible titles, without spaces: its title and its first heading.
    """

    uri: str
    fidelity: Fidelity
    title: str = ""
    article: bool = False
    reason: str = ""
    names: tuple[str, ...] = ()

    @property
    def poor(self) -> bool:
        """Whether the page was read badly."""
        return not self.reason and self.fidelity.score < POOR

    def to_dict(self) -> dict[str, Any]:
        """Return the page as JSON values."""
        return {
            "uri": self.uri,
            "title": self.title,
            "article": self.article,
            "poor": self.poor,
            "reason": self.reason,
            "fidelity": self.fidelity.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class FidelityReport:
    """Fidelity of the Markdown of several pages.

    Attributes:
        pages: The pages, by name.
        total: All pages together.
    """

    pages: tuple[PageFidelity, ...]
    total: Fidelity

    @property
    def titles(self) -> float:
        """Share of pages whose title no page with other possible names has, 0 to 1."""
        read = [page for page in self.pages if not page.reason]
        named = Counter({(page.title, page.names) for page in read})
        titles = Counter(title for title, _ in named)
        return sum(titles[page.title] == 1 for page in read) / len(read) if read else 1.0

    @property
    def warning(self) -> str:
        """Warning about badly read pages as a whole, or ``""``."""
        return poor_site(self.total.counts())

    @property
    def worst(self) -> tuple[PageFidelity, ...]:
        """Poorly read pages, worst first."""
        poor = (page for page in self.pages if page.poor)
        return tuple(sorted(poor, key=lambda page: page.fidelity.score))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "total": self.total.to_dict(),
            "titles": round(self.titles, 4),
            "warning": self.warning,
            "poor": [page.uri for page in self.worst],
            "pages": [page.to_dict() for page in self.pages],
        }

    def rows(self) -> list[tuple[str, ...]]:
        """Return a heading, a row for each page, and one for all: kept shares in per cent."""
        rows = [(page.uri, *_figures(page.fidelity, page.reason)) for page in self.pages]
        return [("page", *KINDS), *rows, (f"all {len(rows):,}", *_figures(self.total, ""))]

    def _repr_html_(self) -> str:
        import pandas as pd

        head, *rest = self.rows()
        return str(pd.DataFrame(rest, columns=head).to_html(index=False, max_rows=20))


def fidelity(
    place: str | Path, *, allow_private: bool = False, on_progress: OnProgress | None = None
) -> FidelityReport:
    """Measure how much of HTML pages kbkit keeps as Markdown.

    Independent of the converter. Counts words of the content, headings with level and text, their
    anchors, terms, code blocks byte for byte, table rows with their cells in order, cells and
    links, and the share of written text that is not content. Shared text of a folder's pages,
    landmarks, headings and links tell what is content.

    Args:
        place: An HTML file, a folder of HTML files (read as one site), or an address.
        allow_private: Permit an address on loopback or a private network.
        on_progress: Called after each page.

    Raises:
        SourceError: The file, folder or page cannot be read, or the folder has no pages.
    """
    address = str(place)
    if address.startswith(("http://", "https://")):
        pages = _fetched(address, allow_private)
        many = 1
        template: Collection[int] = ()
    else:
        files = _files(Path(place).expanduser())
        pages = ((name, path.read_bytes(), "") for name, path in files)
        many = len(files)
        chosen = files[:: -(-many // _SURVEYED)]
        template = recurring([survey(decode(path.read_bytes(), "")) for _, path in chosen])
    measured = []
    total = Fidelity()
    tasks = ((page, _address(page[0]), *page[1:]) for page in pages)
    for (name, body, charset), extracted in SiteExtractor(expected=many).read(tasks):
        page = _measured(name, decode(body, charset), extracted, template)
        total.include(page.fidelity)
        measured.append(page)
        if on_progress is not None:
            on_progress(Progress("measure", len(measured), many, page.uri))
    return FidelityReport(tuple(sorted(measured, key=lambda page: page.uri)), total)


def _address(name: str) -> str:
    return name if "://" in name else f"https://pages.invalid/{name}"


def _measured(name: str, html: str, page: ExtractedPage, template: Collection[int]) -> PageFidelity:
    result = Fidelity()
    if not page.content:
        return PageFidelity(name, result, reason=page.reason or "no text")
    figures = result.add(
        html, page.content, url=_address(name), template=template, article=page.article
    )
    names = () if figures is None else figures.names
    return PageFidelity(name, result, page.title, page.article, names=names)


def _files(path: Path) -> list[tuple[str, Path]]:
    if path.is_file():
        return [(path.name, path)]
    if not path.is_dir():
        raise SourceError(f"{path}: no such file or folder; an address starts with https://")
    files = [
        (file.relative_to(path).as_posix(), file)
        for file in sorted(path.rglob("*"))
        if file.suffix.lower() in _PAGES and file.is_file() and file.stat().st_size < _MAX_BYTES
    ]
    if not files:
        raise SourceError(f"{path}: no HTML pages in this folder")
    return files


def _fetched(address: str, allow_private: bool) -> Iterator[tuple[str, bytes, str]]:
    settings = Settings.load()
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
        f"{100 * figures.share(kind):.1f}" if figures.wanted[kind] else "-" for kind in KINDS
    )
