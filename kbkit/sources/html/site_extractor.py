"""Reads pages as they come, in this process or in several, with what the site has taught.

The first pages of a site are read twice: at once, so that a crawler gets their links, and again
when the site's template is known, so that how a page is read does not depend on when it came.
"""

from __future__ import annotations

import functools
import queue
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kbkit.processes import Workers
from kbkit.sources.html.extract_task import ExtractTask, extract_page
from kbkit.sources.html.regions import Region, SiteTemplate

if TYPE_CHECKING:
    from kbkit.sources.html.extract import ExtractedPage

_MEASURED_FIRST, _MEASURED_THEN = 32, 8  # which pages are measured: the first, then each eighth
_COMPARED = 4  # pages after whose survey the site's common texts are found anew
MANY = 30  # pages waiting that are worth the start of worker processes


@dataclass(frozen=True, slots=True)
class Extraction:
    """A page that was read.

    Attributes:
        key: What the caller gave with it.
        page: What it says.
        final: Whether this is the last word; before it, only the links are to be used.
    """

    key: Any
    page: ExtractedPage
    final: bool


@dataclass(slots=True)
class _Page:
    """A page on its way; ``tried`` are the regions that it was last read with."""

    key: Any
    url: str
    body: bytes
    charset: str
    tried: tuple[Region, ...] = ()
    surveyed: bool = False


class SiteExtractor:
    """Reads the pages of one site.

    Args:
        processes: Most worker processes; by default one for each processor. With 0 or 1 all
            is read in this process.
        expected: Pages that are known to come, where that is known.
        drawings: Keep SVG that stands in pages as pictures.
    """

    def __init__(
        self, *, processes: int | None = None, expected: int = 0, drawings: bool = False
    ) -> None:
        self._drawings = drawings
        self._template = SiteTemplate()
        self._surveys: list[frozenset[int]] = []
        self._common: frozenset[int] = frozenset()
        self._processes = processes
        self._workers: Workers | None = None
        self._may_start = processes is None or processes > 1
        self._expected = expected
        self._waiting: deque[_Page] = deque()
        self._held: list[tuple[_Page, ExtractedPage]] = []
        self._done: queue.SimpleQueue[tuple[_Page, ExtractedPage]] = queue.SimpleQueue()
        self._running = 0
        self._jobs = 0
        self._ready: deque[Extraction] = deque()

    def close(self) -> None:
        """End the worker processes."""
        if self._workers is not None:
            self._workers.close()
            self._workers = None

    def submit(self, key: Any, url: str, body: bytes, charset: str) -> None:
        """Take a page to read."""
        self._waiting.append(_Page(key, url, body, charset))

    @property
    def pending(self) -> int:
        """Pages whose last word has not been given yet, those held back included."""
        return len(self._waiting) + self._running + len(self._held) + len(self._ready)

    @property
    def busy(self) -> bool:
        """Whether something will come without `settle`."""
        return bool(self._waiting or self._running or self._ready)

    def settle(self) -> None:
        """No more pages come for now: give the last word on those held back."""
        self._template.close()
        held, self._held = self._held, []
        if self._template.regions or self._template.common:
            self._waiting.extend(item for item, _ in held)
            return
        for item, page in held:
            self._ready.append(Extraction(item.key, _bare(page), final=True))

    def poll(self, timeout: float, *, backlog: int = 0) -> Extraction | None:
        """Read on, or wait for the workers.

        Args:
            timeout: Seconds to wait for workers.
            backlog: Pages that the caller knows of and has not submitted yet.

        Returns:
            A page, or ``None`` when none is ready.
        """
        if self._ready:
            return self._ready.popleft()
        self._start(backlog)
        if self._workers is None:
            if not self._waiting:
                return None
            item = self._waiting.popleft()
            self._take(item, extract_page(self._job(item)))
        else:
            self._feed(self._workers)
            if not self._running:
                return None
            try:
                item, page = self._done.get(timeout=timeout)
            except queue.Empty:
                return None
            self._running -= 1
            self._take(item, page)
            self._feed(self._workers)
        return self._ready.popleft() if self._ready else None

    def _start(self, backlog: int) -> None:
        known = len(self._waiting) + backlog + self._expected
        if self._workers is not None or not self._may_start or known <= MANY:
            return
        self._may_start = False
        try:
            workers = Workers(self._processes, preload="kbkit.sources.html.extract")
        except OSError:
            return  # reading in this process is slower, but all it takes
        if workers.count < 2:
            workers.close()
            return
        self._workers = workers

    def _feed(self, workers: Workers) -> None:
        # few ahead, so that what the first pages teach serves the next
        while self._waiting and self._running < workers.count * 2:
            item = self._waiting.popleft()
            self._running += 1
            workers.submit(self._job(item), functools.partial(self._came, item))

    def _came(self, item: _Page, page: ExtractedPage) -> None:
        self._done.put((item, page))

    def _job(self, item: _Page) -> ExtractTask:
        item.tried = self._template.regions
        self._jobs += 1
        measure = self._jobs <= _MEASURED_FIRST or self._jobs % _MEASURED_THEN == 0
        return ExtractTask(
            item.url,
            item.body,
            item.charset,
            item.tried,
            measure,
            self._common,
            self._template.common,
            alone=False,
            drawings=self._drawings,
        )

    def _compare(self, item: _Page, page: ExtractedPage) -> None:
        """Learn which texts the pages of the site have in common, from the first of them."""
        if item.surveyed or not page.survey or len(self._surveys) >= _MEASURED_FIRST:
            return
        from kbkit.sources.html.fidelity import recurring

        item.surveyed = True
        self._surveys.append(page.survey)
        if len(self._surveys) % _COMPARED == 0:
            self._common = recurring(self._surveys)

    def _take(self, item: _Page, page: ExtractedPage) -> None:
        """Take what a page says: it is final, or votes and waits for the template."""
        self._compare(item, page)
        page = replace(page, survey=frozenset())
        last = Extraction(item.key, _bare(page), final=True)
        if not page.ballot:
            self._ready.append(last)
            return
        if self._template.settled:
            if set(self._template.regions) - set(item.tried):
                # the template was found while this page was read without it
                self._waiting.append(item)
                return
            self._template.vote(page.ballot, page.texts, article=page.article)
            self._ready.append(last)
            return
        self._held.append((item, page))
        self._ready.append(Extraction(item.key, page, final=False))
        if self._template.vote(page.ballot, page.texts, article=page.article):
            held, self._held = self._held, []
            if self._template.regions or self._template.common:
                self._waiting.extend(other for other, _ in held)
            else:
                self._held = held
                self.settle()


def _bare(page: ExtractedPage) -> ExtractedPage:
    """A page without its vote."""
    return replace(page, ballot=(), texts=frozenset())
