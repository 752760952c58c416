"""A page of HTML to read, here or in a worker process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kbkit.sources.decode import binary_kind, decode
from kbkit.sources.html.regions import Region

if TYPE_CHECKING:
    from kbkit.sources.html.extract import ExtractedPage

_MEASURABLE = 500_000  # characters of a page; larger ones take too long to measure
PAGE_SECONDS = 60.0  # longest that one page may take to read


@dataclass(frozen=True, slots=True)
class ExtractTask:
    """A page to read; a `kbkit.processes.Task`.

    Attributes:
        body: As it came.
        charset: From the Content-Type header, or ``""``.
        regions: Content elements of the site's templates.
        measure: Also tell how faithfully the page was read.
    """

    url: str
    body: bytes
    charset: str
    regions: tuple[Region, ...]
    measure: bool = False

    @property
    def seconds(self) -> float:
        """Longest that a page may take."""
        return PAGE_SECONDS

    def perform(self) -> ExtractedPage:
        """Read the page."""
        return extract_page(self)

    def broken(self, reason: str) -> ExtractedPage:
        """A page that could not be read."""
        from kbkit.sources.html.extract import ExtractedPage

        return ExtractedPage(reason=reason, failed=True)


def extract_page(task: ExtractTask) -> ExtractedPage:
    """Read a page here and now."""
    from kbkit.sources.html.extract import ExtractedPage, extract

    if not task.body.strip():
        return ExtractedPage(reason="empty page")
    if kind := binary_kind(task.body):
        return ExtractedPage(reason=f"{kind}, though it is served as a page")
    html = decode(task.body, task.charset)
    page = extract(html, task.url, task.regions)
    # of an article much is left out on purpose
    if task.measure and page.content and not page.article and len(html) < _MEASURABLE:
        page = replace(page, fidelity=_measured(html, page.content))
    return page


def _measured(html: str, content: str) -> dict[str, tuple[int, int]]:
    from kbkit.sources.html.fidelity import Fidelity

    fidelity = Fidelity()
    try:
        fidelity.add(html, content)
    except Exception:  # the page was read, whatever a hostile one does to the measure
        return {}
    return fidelity.counts()
