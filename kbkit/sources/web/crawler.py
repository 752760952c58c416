"""One crawl: frontier, order and outcomes.

The frontier is not stored. An interrupted crawl rebuilds it from the sitemaps and from the links of
visited pages, which are in the catalog.
"""

from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from functools import partial

from kbkit.errors import ClusterError
from kbkit.models import PageRecord
from kbkit.recipes import CrawlSource
from kbkit.runtime.processes import start
from kbkit.sources import Outcome, SourceContext, SourceEvent
from kbkit.sources.html.extract import NEEDS_BROWSER, NOINDEX, ExtractedPage
from kbkit.sources.html.site_extractor import SiteExtractor
from kbkit.sources.web import Response, pages, urls
from kbkit.sources.web.browser_fetcher import SHOWN_ALREADY, open_page_fetcher
from kbkit.sources.web.pages import PageRequest, Validators
from kbkit.sources.web.urls import canonical, index_alias

PAGES = frozenset({"", "text/html", "application/xhtml+xml", "application/octet-stream"})
"""Media types read as pages."""

_AHEAD = 16  # maximum number of downloads in progress
_READ_AHEAD = 64  # maximum number of fetched pages not yet read; bounds memory
_MAX_UNANSWERED = 8  # consecutive requests without an answer, after which the host counts as dead


class CrawlRun:
    """One crawl from start to end."""

    def __init__(self, spec: CrawlSource, context: SourceContext) -> None:
        self._spec = spec
        self._context = context
        self._stop = context.stop
        routes = pages.uses_browser(spec, context)
        self._start = canonical(spec.url, routes=routes)
        self._scope = urls.CrawlScope(
            self._start or spec.url, spec.include, spec.exclude, spec.queries, routes
        )
        self._validators = Validators(spec)
        self._robots = pages.open_robots(spec, context)
        self._pages = open_page_fetcher(spec, context, self._robots)
        self._downloads: dict[Future[Response], PageRequest] = {}  # in the order of their start
        self._refusals = pages.Refusals()
        self._without_document = pages.Refusals()  # pages that were read
        self._reader = SiteExtractor(drawings=spec.images, engine=context.engine)
        self._frontier: deque[PageRequest] = deque()
        self._seen: set[str] = set()
        self._links: dict[int, tuple[PageRequest, tuple[str, ...]]] = {}  # not yet followed
        self._followed = 0  # requests whose links were followed
        self._unlinked: Counter[int] = Counter()  # requests whose links were not, by depth
        self._canonicals = pages.Canonicals(context.memory)
        self._active = 0  # open requests that count against the limit
        self._document_count = 0
        self._request_count = self._unanswered = 0
        self._started = False  # whether the start page is done
        self._outage = ""

    def events(self) -> Iterator[SourceEvent]:
        """Yield an event for each page; refused addresses are summed up."""
        try:
            if not self._start:
                yield SourceEvent(self._spec.url, Outcome.FAILED, reason="malformed address")
                return
            yield from self._crawl()
            yield from self._without_document.events(())
        finally:
            for part in (self._reader, self._pages, self._robots):
                part.close()

    def _crawl(self) -> Iterator[SourceEvent]:
        self._resume()
        yield from self._drain()
        yield from self._report_unread()
        if self._outage or self._stop():
            return
        for record in list(self._context.memory.known()):
            # only an answer shows that a page is gone, so request known pages without links to them
            is_new = self._seen.isdisjoint({record.url, index_alias(record.url)})
            if record.document_uri and self._scope.contains(record.url) and is_new:
                self._seen.add(record.url)
                task = self._task(record.url, record.depth - 1, "")
                self._frontier.append(replace(task, again=True))
        yield from self._drain()
        yield from self._report_unread()
        if not self._stop():
            yield from self._refusals.events(self._seen)

    def _resume(self) -> None:
        earlier = list(self._context.memory.visited())
        self._seen.add(self._start)  # so that links under an alias are not new
        for record in earlier:
            self._seen.update((record.url, record.address))
            self._document_count += bool(record.document_uri)
            if record.url == self._start:
                self._started = True
                self._scope.follow_start(record.address)
        if not self._started:
            self._frontier.append(self._task(self._start, 0, ""))
        for record in earlier:
            if record.canonical and not record.document_uri:
                task = self._task(record.url, record.depth - 1, "")
                self._canonicals.wait_for(record.canonical, task)
            self._follow(_all_links(record), record.url, record.depth)
        for record in earlier:
            if not record.document_uri:
                self._settle_copies(record.url, record.canonical)
        if self._started:
            self._read_sitemaps()

    def _drain(self) -> Iterator[SourceEvent]:
        while not self._stop():
            self._dispatch()
            event = self._next_event()
            if event is not None:
                yield event
            elif not self._downloads and not self._reader.busy and not self._can_request():
                if not self._reader.pending:
                    return
                self._reader.settle()

    def _can_request(self) -> bool:
        if not self._frontier or self._outage:
            return False
        if not self._started and self._request_count:
            return False  # the scope depends on redirects of the start page
        task = self._frontier[0]
        if self._spec.depth is not None and any(
            count and depth < task.depth for depth, count in self._unlinked.items()
        ):
            return False  # an open page may link to it with a smaller depth
        return task.again or (
            self._document_count + self._active < self._spec.limit
            and self._request_count < self._spec.limit * 10 + 1000
        )

    def _dispatch(self) -> None:
        while (
            self._can_request()
            and len(self._downloads) < _AHEAD
            and sum(not each.done() for each in self._downloads) < self._spec.concurrency
            and self._reader.pending < _READ_AHEAD
        ):
            task = self._frontier.popleft()
            task = replace(task, place=self._request_count)
            self._request_count += 1
            self._active += not task.again
            self._unlinked[task.depth] += 1
            self._downloads[start(partial(self._fetch, task))] = task

    def _next_event(self) -> SourceEvent | None:
        future = self._finished_download(0)
        if future is None:
            backlog = len(self._frontier) if self._started else 0
            backlog = min(backlog, self._spec.limit - self._document_count)
            reading = self._reader.poll(0.05, backlog=backlog)
            if reading is not None:
                task, response = reading.key
                return self._read(task, response, reading.page, final=reading.final)
            if not self._reader.busy and self._downloads:
                future = self._finished_download(0.1)
        if future is None:
            return None
        return self._handle_response(self._downloads.pop(future), future.result())

    def _finished_download(self, seconds: float) -> Future[Response] | None:
        done, _ = wait(self._downloads, seconds, FIRST_COMPLETED)
        return next((each for each in self._downloads if each in done), None)

    def _handle_response(self, task: PageRequest, response: Response) -> SourceEvent | None:
        if response.outcome is Outcome.FAILED and self._stop():
            return None  # interrupted: the next run requests it again
        self._unanswered = self._unanswered + 1 if not response.status else 0
        if self._unanswered >= _MAX_UNANSWERED and response.outcome is Outcome.FAILED:
            self._outage = response.reason
        uri, response = self._validators.compare(task, response)
        if response.outcome is not Outcome.FETCHED:
            self._reader.skip(task.place)
            return self._finish(task, self._not_fetched(task, response))
        reason = ""
        if uri != task.url:
            if task.url == self._start:
                self._scope.follow_start(uri)
            if uri in self._seen:
                reason = f"redirects to {uri}, which is read itself"
            self._seen.add(uri)
        if reason := reason or pages.body_refusal(response, PAGES):
            self._reader.skip(task.place)
            record = pages.page_record(task, response)
            skipped = SourceEvent(task.url, Outcome.SKIPPED, reason=reason, record=record)
            return self._finish(task, skipped)
        key = task, replace(response, body=b"")
        self._reader.submit(key, uri, response.body, response.charset, place=task.place)
        return None

    def _not_fetched(self, task: PageRequest, response: Response) -> SourceEvent:
        event = pages.event_without_body(task, response)
        if response.reason.startswith(SHOWN_ALREADY):
            self._without_document.add(task.url, response.reason)
            event = replace(event, reason="")
        if response.outcome is Outcome.UNCHANGED:
            earlier = task.earlier
            assert earlier is not None
            self._seen.add(earlier.address)
            if earlier.canonical and not earlier.document_uri:
                self._canonicals.wait_for(earlier.canonical, task)
            if task.url == self._start:
                self._scope.follow_start(earlier.address)
            self._take_links(task, _all_links(earlier))
        elif task.url == self._start and response.outcome is Outcome.FAILED:
            # do not request 1,000 known pages from a host that does not answer
            self._outage = response.reason
        return event

    def _read(
        self, task: PageRequest, response: Response, page: ExtractedPage, *, final: bool
    ) -> SourceEvent | None:
        uri = canonical(response.url, routes=True) or task.url
        rules = urls.directives(response.robots, self._robots.token)
        hrefs = () if rules & {"nofollow", "none"} else page.links
        targets = (self._scope.link(href, uri) for href in (page.refresh, *hrefs) if href)
        links = tuple(dict.fromkeys(filter(None, targets)))
        original = self._scope.link(page.canonical, uri) if page.canonical else ""
        original = self._canonicals.resolve(original, uri, self._start)
        self._take_links(task, (*links, original) if original else links)
        if not final:
            self._finish_start()
            return None
        self._canonicals.add(task, uri, original)
        record = replace(pages.page_record(task, response), links=links, canonical=original)
        reason = ""
        if rules & {"noindex", "none"}:
            reason = f"{NOINDEX}: its X-Robots-Tag asks not to index it"
        elif page.refusal == NEEDS_BROWSER:
            self._without_document.add(uri, NEEDS_BROWSER)
            skipped = SourceEvent(task.url, Outcome.SKIPPED, record=record)
            return self._finish(task, skipped)
        elif original and not page.reason:
            reason = f"a copy of {original} (rel=canonical)"
        elif not page.reason and not self._scope.allows(uri):
            reason = "read for its links only (include and exclude leave it out)"
        # a skipped page is named as it was linked
        name = task.url if reason or page.refusal else uri
        return self._finish(task, pages.event_of_page(name, page, record, reason=reason))

    def _take_links(self, task: PageRequest, links: tuple[str, ...]) -> None:
        """Follow a page's links after those of all earlier requests.

        This way, the order of a crawl depends on the site, not on the speed of answers.
        """
        if task.place < self._followed or task.place in self._links:
            return  # already followed
        self._links[task.place] = task, links
        while self._followed in self._links:
            request, hrefs = self._links.pop(self._followed)
            self._followed += 1
            self._unlinked[request.depth] -= 1
            self._follow(hrefs, request.url, request.depth)

    def _finish(self, task: PageRequest, event: SourceEvent) -> SourceEvent:
        self._take_links(task, ())
        if not task.again:
            self._active -= 1
            has_document = event.record is not None and event.record.document_uri != ""
            kept = event.outcome in (Outcome.FETCHED, Outcome.UNCHANGED)
            self._document_count += has_document and kept
        missing = event.outcome in (Outcome.SKIPPED, Outcome.GONE)
        if missing and not event.reason.startswith(NOINDEX):
            self._settle_copies(task.url, event.record.canonical if event.record else "")
        self._finish_start()
        if event.reason and task.referrer and event.outcome in (Outcome.GONE, Outcome.FAILED):
            event = replace(event, reason=f"{event.reason} (linked from {task.referrer})")
        return event

    def _settle_copies(self, url: str, original: str) -> None:
        self._frontier.extend(self._canonicals.settle(url, original))

    def _finish_start(self) -> None:
        if not self._started:
            self._started = True
            if not self._outage:
                self._read_sitemaps()

    def _read_sitemaps(self) -> None:
        if self._spec.sitemap:
            self._follow(tuple(urls.read_sitemaps(self._robots, self._scope)), "", 0)

    def _fetch(self, task: PageRequest) -> Response:
        """Request a page; runs in a thread of its own, so a slow server does not delay the exit."""
        headers = self._validators.to_send(task.earlier)
        try:
            return self._pages.get(task.url, headers=headers, check=partial(self._check, task))
        except ClusterError:
            raise
        except Exception as error:  # a page must never end the crawl
            reason = f"cannot be fetched ({type(error).__name__}: {error})"
            return Response(task.url, Outcome.FAILED, " ".join(reason.split())[:300])

    def _check(self, task: PageRequest, url: str) -> Response | None:
        """Return a response instead of following a redirect."""
        target = canonical(url)
        if task.url != self._start:
            reason = ""
            if not self._scope.contains(target):
                reason = f"redirects to {url}, outside the crawl"
            elif target in self._seen and target != task.url:
                reason = f"redirects to {url}, which is read itself"
            if reason:
                return Response(url, Outcome.SKIPPED, reason, status=302)
        return self._robots.verdict(url)

    def _follow(self, links: tuple[str, ...], referrer: str, depth: int) -> None:
        for link in links:
            url = self._url_in_memory(link)
            if url in self._seen or url in self._refusals or index_alias(url) in self._seen:
                continue
            if self._spec.depth is not None and depth >= self._spec.depth:
                reason = f"more than {self._spec.depth} links away from the start (depth)"
                self._refusals.add(url, reason, for_good=False)
            elif reason := self._scope.refusal(url):
                self._refusals.add(url, reason)
            else:
                self._seen.add(url)
                self._frontier.append(self._task(url, depth + 1, referrer))

    def _url_in_memory(self, url: str) -> str:
        memory, alias = self._context.memory, index_alias(url)
        if alias and alias not in self._seen and url not in self._seen:
            page = None if memory.page(url) else memory.page(alias)
            return alias if page and page.document_uri else url
        return url

    def _task(self, url: str, depth: int, referrer: str) -> PageRequest:
        return PageRequest(url, depth, referrer, self._context.memory.page(url))

    def _report_unread(self) -> Iterator[SourceEvent]:
        remaining = len(self._frontier)
        if not remaining or self._stop():
            return
        if self._outage:
            reason = (
                f"the host no longer answers ({self._outage}); {remaining} pages were not requested"
            )
            yield SourceEvent(self._scope.prefix, Outcome.FAILED, reason=reason)
        elif self._started:
            for task in self._frontier:
                self._refusals.add(task.url, f"beyond the limit of {self._spec.limit:,} pages")
                self._seen.discard(task.url)
            self._frontier.clear()


def _all_links(record: PageRecord) -> tuple[str, ...]:
    return (*record.links, record.canonical) if record.canonical else record.links
