"""A page of HTML to read, here or in a worker process."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kbkit.processes import Workers
from kbkit.sources.decode import binary_kind, decoded
from kbkit.sources.html.regions import Region

if TYPE_CHECKING:
    from kbkit.sources.html.extract import ExtractedPage

_MEASURABLE = 500_000  # characters of a page; larger ones take too long to measure
# bytes from which a page may take long, and is read where that can be ended: a parser takes the
# square of the attributes of one element, of which 18,000 fit into 150 kB
LARGE = 32_000
PAGE_SECONDS = 60.0  # longest that one page may take to read


@dataclass(frozen=True, slots=True)
class ExtractTask:
    """A page to read; a `kbkit.processes.Task`.

    Attributes:
        body: As it came.
        charset: From the Content-Type header, or ``""``.
        regions: Content elements of the site's templates.
        measure: Also tell how faithfully the page was read.
        common: Keys of texts that most pages of the site have.
        alone: No other pages of its site are known.
        template: Texts of the site's template, as `html.fidelity.recurring` finds them.
        drawings: Keep SVG that stands in the page as pictures.
    """

    url: str
    body: bytes
    charset: str
    regions: tuple[Region, ...]
    measure: bool = False
    template: frozenset[int] = frozenset()
    common: frozenset[int] = frozenset()
    alone: bool = True
    drawings: bool = False

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


def extract_bounded(task: ExtractTask, stop: Callable[[], bool] = lambda: False) -> ExtractedPage:
    """Read a page here, or, if it is large, in a worker that ends with its time.

    Args:
        task: The page.
        stop: Asked a few times a second; true ends the worker.
    """
    if len(task.body) <= LARGE:
        return extract_page(task)
    try:
        workers = Workers(1, preload="kbkit.sources.html.extract")
    except OSError:
        return task.broken("too large to be read where no process can be started")
    with closing(workers):
        page: Future[ExtractedPage] = workers.submit(task)
        while not stop():
            with suppress(TimeoutError):
                return page.result(0.2)
    return task.broken("stopped")


def extract_page(task: ExtractTask) -> ExtractedPage:
    """Read a page here and now."""
    from kbkit.sources.html.extract import ExtractedPage, extract

    if not task.body.strip():
        return ExtractedPage(reason="empty page")
    if kind := binary_kind(task.body):
        return ExtractedPage(reason=f"{kind}, though it is served as a page")
    found = decoded(task.body, task.charset)
    html = found.text
    page = extract(
        html,
        task.url,
        task.regions,
        common=task.common,
        alone=task.alone,
        drawings=task.drawings,
    )
    page = replace(page, note=found.note) if found.note else page
    if task.measure and page.content and len(html) < _MEASURABLE:
        page = _measured(page, html, task)
    return page


def _measured(page: ExtractedPage, html: str, task: ExtractTask) -> ExtractedPage:
    from kbkit.sources.html.fidelity import Fidelity

    fidelity = Fidelity()
    try:
        found = fidelity.add(
            html, page.content, url=task.url, template=task.template, article=page.article
        )
    except Exception:  # the page was read, whatever a hostile one does to the measure
        return page
    keys = found.keys if found is not None else frozenset()
    if page.article and not task.template:
        # of an article much is left out on purpose, and nothing tells what
        return replace(page, survey=keys)
    return replace(page, survey=keys, fidelity=fidelity.counts())
