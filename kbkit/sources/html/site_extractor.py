"""Extract pages of a site while learning its template.

The first pages are read twice: at once, so that a crawler gets their links, and again when the
template is known. The result depends only on a page's position, not on time: the first eight pages
decide how they and the next eight are read, the first sixteen how the next sixteen are, and so on.
Until then a page waits.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from kbkit.runtime.engine import Engine, WorkerPool
from kbkit.runtime.processes import run_apart
from kbkit.sources.decode import binary_kind, decode_text
from kbkit.sources.html.regions import Region

if TYPE_CHECKING:
    from kbkit.sources.html.extract import ExtractedPage


_MEASURABLE = 500_000  # characters of a page; larger ones take too long to measure
# larger pages (bytes) are read in a process that can be stopped: parsing time is quadratic in the
# number of attributes of an element, and 150 kB hold 18,000 of them
LARGE = 32_000


@dataclass(frozen=True, slots=True)
class ExtractTask:
    """A page to read; a `kbkit.runtime.processes.WorkerTask`.

    Attributes:
        charset: From the Content-Type header, or ``""``.
        common: Keys of texts that most pages of the site have.
        template: Texts of the site's template, from `html.fidelity.recurring`.
        drawings: Keep inline SVG as pictures.
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
    seconds: ClassVar[float] = 60.0

    def perform(self) -> ExtractedPage:
        return extract_page(self)

    def broken(self, reason: str) -> ExtractedPage:
        from kbkit.sources.html.extract import ExtractedPage

        return ExtractedPage(reason=reason, failed=True)


def extract_bounded(task: ExtractTask, stop: Callable[[], bool] = lambda: False) -> ExtractedPage:
    if len(task.body) <= LARGE:
        return extract_page(task)
    try:
        page: ExtractedPage = run_apart(task, stop, preload="kbkit.sources.html.extract")
    except OSError:
        return task.broken("too large to be read where no process can be started")
    return page or task.broken("stopped")


def extract_page(task: ExtractTask) -> ExtractedPage:
    from kbkit.sources.html.extract import ExtractedPage, extract

    if not task.body.strip():
        return ExtractedPage(reason="empty page")
    if kind := binary_kind(task.body):
        return ExtractedPage(reason=f"{kind}, though it is served as a page")
    text = decode_text(task.body, task.charset)
    html, options = text.text, {"alone": task.alone, "drawings": task.drawings}
    page = extract(html, task.url, task.regions, common=task.common, **options)
    page = replace(page, note=text.note) if text.note else page
    measurable = task.measure and page.content and len(html) < _MEASURABLE
    return _measure(page, html, task) if measurable else page


def _measure(page: ExtractedPage, html: str, task: ExtractTask) -> ExtractedPage:
    from kbkit.sources.html.fidelity import Fidelity

    fidelity = Fidelity()
    facts: dict[str, Any] = {"url": task.url, "template": task.template, "article": page.article}
    try:
        figures = fidelity.add(html, page.content, **facts)
    except Exception:  # the page was read; a hostile one may still break the measurement
        return page
    keys = figures.keys if figures is not None else frozenset()
    # articles lose text on purpose; without a template, it is unknown which
    unknown = page.article and not task.template
    return replace(page, survey=keys, fidelity={} if unknown else fidelity.counts())


LEARNED_FROM = 8  # pages that vote before a template is trusted
_AGREED = 0.5  # share of the votes that a template needs
_MIN = 3  # minimum pages from which a small site's template is learned
_SHARED, _SHARED_PAGES = 0.5, 4  # minimum share and number of pages with a text of the template
_HEADED = 0.75  # the same share for headings of level 1


@dataclass(slots=True)
class SiteTemplate:
    """Template that pages vote on; `common` are keys (`key_of`) of texts on most pages."""

    regions: tuple[Region, ...] = ()
    common: frozenset[int] = frozenset()
    _votes: list[tuple[Region, ...]] = field(default_factory=list)
    _texts: list[frozenset[int]] = field(default_factory=list)
    _articles: int = 0
    _closed: bool = False

    @property
    def settled(self) -> bool:
        return self._closed or len(self._votes) >= LEARNED_FROM

    def close(self) -> None:
        if not self.settled and len(self._votes) >= _MIN:
            self._closed = True
            self.count()

    def vote(
        self, ballot: tuple[Region, ...], texts: frozenset[int] = frozenset(), article: bool = False
    ) -> None:
        """Count a page's vote: its content element and all ancestors, innermost first."""
        self._votes.append(ballot)
        if len(self._texts) < LEARNED_FROM:
            self._texts.append(texts)
        self._articles += article

    def count(self) -> None:
        """Choose the innermost regions that most pages agree on.

        Other pages, such as indexes, vote again among themselves, so a site may have several
        templates.
        """
        if self._articles > 0.5 * len(self._votes):
            return
        if not self.common:
            pages = len(self._texts)
            keys = Counter(key for texts in self._texts for key in texts)
            self.common = frozenset(
                key
                for key, count in keys.items()
                if count >= max(_SHARED_PAGES, (_HEADED if key < 0 else _SHARED) * pages)
            )
        ballots = self._votes
        chosen = dict.fromkeys(self.regions)
        for _ in range(3):
            places: defaultdict[Region, list[float]] = defaultdict(list)  # 0 is the innermost
            for ballot in ballots:
                for region in dict.fromkeys(ballot):
                    places[region].append(ballot.index(region) / len(ballot))
            inner = (len(at) for region, at in places.items() if region.signature[0] != "body")
            # nearly as many votes as the best region: a few pages always select one level deeper
            need = max(3, _AGREED * len(ballots), 0.9 * max(inner, default=0))
            depths = {region: sum(at) / len(at) for region, at in places.items() if len(at) >= need}
            if not depths:
                break
            best = min(depths, key=lambda region: (depths[region], repr(region)))
            if best.signature[0] == "body":
                # the whole body is no template: read each page by itself, unless most pages
                # selected the body
                direct = sum(ballot[0] == best for ballot in ballots)
                if len(places[best]) == len(ballots) <= 2 * direct:
                    chosen[best] = None
                break
            chosen[best] = None
            ballots = [ballot for ballot in ballots if best not in ballot]
        self.regions = tuple(chosen)[:6]


_MEASURED_FIRST, _MEASURED_THEN = 32, 8  # the first pages are measured, then each eighth
_COMPARED = 4  # minimum surveys from which the site's common texts are found
_VOTERS = 512  # maximum pages that vote on the template
_AHEAD = 64  # pages in memory
_PER_WORKER = 16  # of them, those that each worker process has
MANY = 30  # waiting pages that justify starting worker processes


@dataclass(frozen=True, slots=True)
class Extraction:
    """A page that was read; until it is `final`, only its links are used."""

    key: Any
    page: ExtractedPage
    final: bool


@dataclass(slots=True, eq=False)
class _Page:
    key: Any
    place: int
    url: str
    body: bytes
    charset: str
    voted: bool = False


_Vote = tuple[tuple[Region, ...], frozenset[int], bool]  # ballot, texts, article


class SiteExtractor:
    """Reads the pages of one site."""

    def __init__(
        self, *, processes: int | None = None, drawings: bool = False, engine: Engine | None = None
    ) -> None:
        self._engine = engine or Engine()
        self._drawings = drawings
        self._template = SiteTemplate()
        self._surveys: list[frozenset[int]] = []
        self._common: frozenset[int] = frozenset()
        self._processes = processes
        self._workers: WorkerPool | None = None
        self._may_start = processes is None or processes > 1
        self._waiting: list[_Page] = []  # to be read, or for a template
        self._votes: dict[int, _Vote | None] = {}  # by place, until all earlier ones are counted
        self._counted = 0  # places whose vote is counted
        self._readable = LEARNED_FROM  # pages at lower places may be read
        self._settled = False  # whether the template is settled
        self._provisional: list[tuple[_Page, ExtractedPage]] = []  # to be read again
        self._running: deque[tuple[_Page, Future[ExtractedPage]]] = deque()
        self._jobs = 0
        self._ready: deque[Extraction] = deque()

    def close(self) -> None:
        if self._workers is not None:
            self._workers.close()
            self._workers = None

    def read(
        self, pages: Iterable[tuple[Any, str, bytes, str]], stop: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[Any, ExtractedPage]]:
        """Read pages (`submit`'s first arguments) and close; yield keys and pages.

        Their order depends on the pages alone.
        """
        with closing(self):
            for place, page in enumerate(chain(pages, [None])):
                if page is not None:
                    self.submit(*page, place=place)
                while self.pending >= (1 if page is None else _AHEAD) and not stop():
                    if page is None and not self.busy:
                        self.settle()
                    reading = self.poll(0.2)
                    if reading is not None and reading.final:
                        yield reading.key, reading.page

    def submit(self, key: Any, url: str, body: bytes, charset: str, *, place: int) -> None:
        self._waiting.append(_Page(key, place, url, body, charset))

    def skip(self, place: int) -> None:
        self._take_vote(place, None)

    @property
    def pending(self) -> int:
        """Number of unfinished pages, provisional ones included."""
        reading = len(self._waiting) + len(self._running)
        return reading + len(self._provisional) + len(self._ready)

    @property
    def busy(self) -> bool:
        return bool(self._ready or self._running or self._next_pages())

    def _next_pages(self) -> list[_Page]:
        pages = (page for page in self._waiting if page.place < self._readable)
        return sorted(pages, key=lambda page: page.place)

    def _take_vote(self, place: int, vote: _Vote | None) -> None:
        """Count a vote once all earlier pages have voted."""
        self._votes[place] = vote
        while self._counted in self._votes:
            next_vote = self._votes.pop(self._counted)
            self._counted += 1
            if next_vote is not None and self._readable <= _VOTERS:
                self._template.vote(*next_vote)
            if self._counted == self._readable:
                self._start_round()

    def _start_round(self) -> None:
        self._readable = self._readable * 2 if self._readable < _VOTERS else sys.maxsize
        self._compare()
        if self._template.settled:
            self._template.count()
            self._read_again()

    def _read_again(self) -> None:
        self._settled = self._template.settled
        provisional, self._provisional = self._provisional, []
        if self._template.regions or self._template.common:
            self._waiting.extend(page for page, _ in provisional)
        else:
            self._ready.extend(Extraction(item.key, page, final=True) for item, page in provisional)

    def settle(self) -> None:
        """Finish the provisional pages, when no more pages come for now."""
        self._template.close()
        self._compare()
        self._read_again()

    def poll(self, timeout: float, *, backlog: int = 0) -> Extraction | None:
        self._start(backlog)
        self._feed()
        if self._running and not self._ready:
            with suppress(TimeoutError):
                self._running[0][1].result(timeout)
        # in order, so that builds of equal pages are equal
        while self._running and self._running[0][1].done():
            item, future = self._running.popleft()
            self._finish(item, future.result())
        if self._workers:  # they read on while the caller stores a page
            self._feed()
        return self._ready.popleft() if self._ready else None

    def _start(self, backlog: int) -> None:
        many = len(self._waiting) + backlog > MANY or any(
            len(page.body) > LARGE for page in self._waiting
        )
        if self._workers or not self._may_start or (self._engine.is_local and not many):
            return
        self._may_start = False
        with suppress(OSError):  # read in this process instead
            preload = "kbkit.sources.html.extract"
            workers = self._engine.child_processes(self._processes, preload=preload)
            if self._engine.is_local and workers.count < 2:
                workers.close()
            else:
                self._workers = workers

    def _feed(self) -> None:
        # enough to keep the workers busy while documents are stored
        ahead = self._workers.count * _PER_WORKER if self._workers else 1
        for item in self._next_pages()[: max(0, ahead - len(self._running))]:
            self._waiting.remove(item)
            if self._workers:
                future = self._workers.submit(self._job(item))
            else:
                future = Future()
                future.set_result(extract_bounded(self._job(item)))
            self._running.append((item, future))

    def _job(self, item: _Page) -> ExtractTask:
        self._jobs += 1
        measure = self._jobs <= _MEASURED_FIRST or self._jobs % _MEASURED_THEN == 0
        return ExtractTask(
            item.url,
            item.body,
            item.charset,
            self._template.regions,
            measure,
            self._common,
            self._template.common,
            alone=False,
            drawings=self._drawings,
        )

    def _compare(self) -> None:
        if len(self._surveys) >= _COMPARED:
            from kbkit.sources.html.fidelity import recurring

            self._common = recurring(self._surveys)

    def _finish(self, item: _Page, page: ExtractedPage) -> None:
        final = self._settled or not page.ballot
        if not final:
            self._provisional.append((item, page))
        self._ready.append(Extraction(item.key, page, final=final))
        if not item.voted:
            item.voted = True
            if page.survey and len(self._surveys) < _MEASURED_FIRST:
                self._surveys.append(page.survey)
            vote = (page.ballot, page.texts, page.article) if page.ballot else None
            self._take_vote(item.place, vote)
