"""Report the fidelity of pages."""

from collections import Counter
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbkit.errors import SourceError
from kbkit.models import Progress
from kbkit.models.ingest_report import POOR, poor_site
from kbkit.paths import bytes_of
from kbkit.recipes import PageSource
from kbkit.runtime.config import Settings
from kbkit.runtime.progress import OnProgress
from kbkit.sources import Outcome, SourceContext
from kbkit.sources.archives import MAX_BYTES, StoredPage, read_pages
from kbkit.sources.decode import decode
from kbkit.sources.html.extract import ExtractedPage
from kbkit.sources.html.fidelity import KINDS, Fidelity, recurring, survey
from kbkit.sources.html.site_extractor import SiteExtractor
from kbkit.sources.web.pages import open_robots

_SURVEYED = 100  # maximum number of pages compared to find a site's template


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
        rated = [page for page in self.pages if not page.reason]
        distinct = Counter({(page.title, page.names) for page in rated})
        titles = Counter(title for title, _ in distinct)
        return sum(titles[page.title] == 1 for page in rated) / len(rated) if rated else 1.0

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
        """Return a heading, a row for each page, and a total: kept shares in per cent."""
        rows = [(page.uri, *_figures(page.fidelity, page.reason)) for page in self.pages]
        return [("page", *KINDS), *rows, (f"all {len(rows):,}", *_figures(self.total, ""))]

    def _repr_html_(self) -> str:
        import pandas as pd

        head, *rows = self.rows()
        return str(pd.DataFrame(rows, columns=head).to_html(index=False, max_rows=20))


def fidelity(
    place: str | Path, *, allow_private: bool = False, on_progress: OnProgress | None = None
) -> FidelityReport:
    """Measure how much of HTML pages kbkit keeps as Markdown.

    Independent of the converter. Counts words of the content, headings with level and text, their
    anchors, terms, code blocks byte for byte, table rows with their cells in order, cells and
    links, and the share of written text that is not content. Text that pages of a folder
    share, landmarks, headings and links show where the content is.

    Args:
        place: An HTML file, a folder or archive of them (read as one site), or an address.
        allow_private: Permit an address on loopback or a private network.
        on_progress: Called after each page.

    Raises:
        SourceError: The file, folder or page cannot be read, or the folder has no pages.
    """
    template: Collection[int] = ()
    address, path = str(place), Path(place).expanduser()
    if address.startswith(("http://", "https://")):
        pages, count = iter([_fetch_page(address, allow_private)]), 1
    elif path.is_file() and path.suffix.lower() != ".zip":
        pages, count = iter([StoredPage(path.name, bytes_of(path, MAX_BYTES))]), 1
    else:
        names = _names(path)
        pages, count = read_pages(path, lambda _: True), len(names)
        sample = set(names[:: -(-count // _SURVEYED)])
        sampled_pages = read_pages(path, sample.__contains__)
        template = recurring([survey(decode(page.body, page.charset)) for page in sampled_pages])
    tasks = ((page, _address(page.place), page.body, page.charset) for page in pages)
    measured = []
    total = Fidelity()
    for stored, extracted in SiteExtractor().read(tasks):
        page = _measure_page(stored, extracted, template)
        total.include(page.fidelity)
        measured.append(page)
        if on_progress is not None:
            on_progress(Progress("measure", len(measured), count, page.uri))
    return FidelityReport(tuple(sorted(measured, key=lambda page: page.uri)), total)


def _names(path: Path) -> list[str]:
    if not path.exists():
        raise SourceError(f"{path}: no such file or folder; an address starts with https://")
    names: list[str] = []

    def note(name: str) -> bool:
        names.append(name)
        return False  # do not read it

    for _ in read_pages(path, note):
        pass
    if not names:
        raise SourceError(f"{path}: contains no HTML pages")
    return names


def _address(name: str) -> str:
    return name if "://" in name else f"https://pages.invalid/{name}"


def _measure_page(
    stored: StoredPage, page: ExtractedPage, template: Collection[int]
) -> PageFidelity:
    result = Fidelity()
    if not page.content:
        return PageFidelity(stored.place, result, reason=stored.reason or page.refusal)
    html = decode(stored.body, stored.charset)
    figures = result.add(
        html, page.content, url=_address(stored.place), template=template, article=page.article
    )
    names = () if figures is None else figures.names
    return PageFidelity(stored.place, result, page.title, page.article, names=names)


def _fetch_page(address: str, allow_private: bool) -> StoredPage:
    settings = Settings.load()
    spec = PageSource(url=address, allow_private=allow_private)
    context = SourceContext(user_agent=settings.user_agent, timeout=settings.timeout)
    with closing(open_robots(spec, context)) as robots:
        response = robots.get(address)
    if response.outcome is not Outcome.FETCHED:
        raise SourceError(f"{address}: {response.reason}")
    return StoredPage(response.url, response.body, response.charset)


def _figures(figures: Fidelity, reason: str) -> tuple[str, ...]:
    if reason:
        return (reason, *("" for _ in KINDS[1:]))
    return tuple(
        f"{100 * figures.share(kind):.1f}" if figures.wanted[kind] else "-" for kind in KINDS
    )
