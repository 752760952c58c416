"""The sources that fetch: ``crawl`` reads a site from a start page on, ``page`` one page."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import unquote, urlsplit

from kbkit.models import PageVisit, SourceDocument
from kbkit.recipes import CrawlSource, PageSource
from kbkit.sources.base import Outcome, SourceContext, SourceEvent
from kbkit.sources.decode import decode
from kbkit.sources.doctype import detect
from kbkit.sources.downloads import Downloads, Pace, Task
from kbkit.sources.extract import Extracted
from kbkit.sources.fetch import Fetcher, Response
from kbkit.sources.reading import Reader
from kbkit.sources.robots import Robots
from kbkit.sources.sitemaps import read_sitemaps
from kbkit.sources.textfile import read_text
from kbkit.sources.urls import Scope, canonical, origin, twin

_AHEAD = 16  # downloads that wait for a thread
_READ_AHEAD = 64  # pages fetched that wait to be read; bounds memory
_SILENT_MOST = 8  # requests in a row without any answer before the host counts as gone
_PAGES = frozenset({"", "text/html", "application/xhtml+xml", "application/octet-stream"})
_TEXTS = frozenset({"text/plain", "text/markdown", "text/x-markdown"})
_STUB = 400  # characters of a page that only refreshes to another


class Crawl:
    """A site, followed along its links and sitemaps.

    Args:
        spec: The part of the recipe that describes it.
    """

    type = "crawl"
    exhaustive = False

    def __init__(self, spec: CrawlSource) -> None:
        self._spec = spec

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        """Crawl. A start page that cannot be had is an event like any other page."""
        run = _Run(self._spec, context)
        try:
            yield from run.events()
        finally:
            run.close()


class Page:
    """One page of the web.

    Args:
        spec: The part of the recipe that describes it.
    """

    type = "page"
    exhaustive = False

    def __init__(self, spec: PageSource) -> None:
        self._spec = spec

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        """Read the page; whatever happens is one event."""
        url = canonical(self._spec.url)
        if not url:
            yield SourceEvent(self._spec.url, Outcome.FAILED, reason="malformed address")
            return
        earlier = context.memory.page(url)
        with _fetcher(self._spec, context) as fetcher:
            robots = Robots(fetcher, context.user_agent)

            def check(address: str) -> Response | None:
                return _forbidden(robots, address)

            response = check(url) or fetcher.get(
                url,
                etag=earlier.etag if earlier else "",
                last_modified=earlier.last_modified if earlier else "",
                check=check,
            )
        task = Task(url, earlier=earlier)
        if response.outcome is not Outcome.FETCHED:
            yield _without(task, response)
            return
        uri = canonical(response.url) or url
        visit = _visit(task, response, (), "")
        if refused := _refused(response, _PAGES | _TEXTS):
            yield SourceEvent(uri, Outcome.SKIPPED, reason=refused, visit=visit)
            return
        if response.media_type in _TEXTS:
            text = read_text(decode(response.body, response.charset, markup=False), uri)
            page = Extracted(text.title, text.content, reason="" if text.content else "no text")
        else:
            page = _read_here(response, uri)
        if not page.content:
            outcome = Outcome.FAILED if page.failed else Outcome.SKIPPED
            yield SourceEvent(uri, outcome, reason=page.reason, visit=visit)
            return
        document = _document(self._spec, uri, page)
        yield SourceEvent(uri, Outcome.FETCHED, document, visit=replace(visit, document_uri=uri))


class _Run:
    """One crawl from its start to its end."""

    def __init__(self, spec: CrawlSource, context: SourceContext) -> None:
        self._spec = spec
        self._context = context
        self._stop = context.stop
        self._start = canonical(spec.url)
        self._scope = Scope(self._start or spec.url, spec.include, spec.exclude)
        self._fetcher = _fetcher(spec, context)
        self._robots = Robots(self._fetcher, context.user_agent)
        pace = Pace(self._robots, spec.delay, context.stop)
        self._downloads = Downloads(self._fetcher, self._robots, pace, self._check, context.stop)
        self._reader = Reader()
        self._frontier: deque[Task] = deque()
        self._seen: set[str] = set()
        self._linked: set[str] = set()  # pages whose links have been taken
        self._responses: dict[str, Response] = {}  # of pages that are being read
        self._active = 0  # pages asked for that count against the limit
        self._made = 0  # documents
        self._asked = 0
        self._silent = 0
        self._opened = False  # the start page has been dealt with
        self._dead = ""

    def close(self) -> None:
        """Let go of threads, processes and connections."""
        self._downloads.close()
        self._reader.close()
        self._fetcher.close()

    def events(self) -> Iterator[SourceEvent]:
        if not self._start:
            yield SourceEvent(self._spec.url, Outcome.FAILED, reason="malformed address")
            return
        self._resume()
        yield from self._drain()
        if self._dead or self._stop():
            yield from self._abandoned()
            return
        for visit in list(self._context.memory.known()):
            # only a real answer says that a page is gone, so those not met this time are asked
            if visit.document_uri and self._scope.holds(visit.url) and self._new(visit.url):
                self._frontier.append(Task(visit.url, visit.depth, earlier=visit, again=True))
        yield from self._drain()
        yield from self._abandoned()

    def _resume(self) -> None:
        """Take up an interrupted run where it was, or begin."""
        earlier = list(self._context.memory.visited())
        for visit in earlier:
            self._seen.update(address for address in (visit.url, visit.document_uri) if address)
            self._made += bool(visit.document_uri)
            if visit.url == self._start:
                self._opened = True
                if visit.document_uri:
                    self._scope.follow_start(visit.document_uri)
        for visit in earlier:
            self._follow(visit.links, visit.url, visit.depth)
        if self._opened:
            self._read_sitemaps()
        else:
            self._seen.add(self._start)
            self._frontier.appendleft(self._task(self._start, 0, ""))

    def _drain(self) -> Iterator[SourceEvent]:
        """Work until nothing is left to ask for and to read."""
        while not self._stop():
            self._dispatch()
            event = self._step()
            if event is not None:
                yield event
            elif not self._downloads.running and not self._reader.busy and not self._can_ask():
                if not self._reader.pending:
                    return
                self._reader.settle()

    def _can_ask(self) -> bool:
        if not self._frontier or self._dead:
            return False
        if not self._opened and self._asked:
            return False  # the scope hangs on where the start page leads
        task = self._frontier[0]
        return task.again or (
            self._made + self._active < self._spec.limit
            and self._asked < self._spec.limit * 10 + 1000
        )

    def _dispatch(self) -> None:
        while (
            self._can_ask()
            and self._downloads.running < _AHEAD
            and self._reader.pending < _READ_AHEAD
        ):
            task = self._frontier.popleft()
            self._asked += 1
            self._active += not task.again
            self._downloads.start(task)

    def _step(self) -> SourceEvent | None:
        """Take one thing that came: a response, or a page that was read."""
        came = self._downloads.poll(0)
        if came is None:
            backlog = len(self._frontier) if self._opened else 0
            backlog = min(backlog, self._spec.limit - self._made)
            reading = self._reader.poll(0.05, backlog=backlog)
            if reading is not None:
                return self._read(reading.key, reading.page, final=reading.final)
            if not self._reader.busy and self._downloads.running:
                came = self._downloads.poll(0.1)
        return None if came is None else self._received(*came)

    def _received(self, task: Task, response: Response) -> SourceEvent | None:
        self._silent = self._silent + 1 if not response.status else 0
        if self._silent >= _SILENT_MOST and response.outcome is Outcome.FAILED:
            self._dead = response.reason
        if response.outcome is not Outcome.FETCHED:
            return self._finish(task, self._not_fetched(task, response))
        uri = canonical(response.url) or task.url
        if uri != task.url:
            if task.url == self._start:
                self._scope.follow_start(uri)
            if uri in self._seen:
                reason = f"redirects to {uri}, which is read itself"
                event = SourceEvent(task.url, Outcome.SKIPPED, reason=reason)
                return self._finish(task, replace(event, visit=_visit(task, response, (), "")))
            self._seen.add(uri)
        if refused := _refused(response, _PAGES):
            event = SourceEvent(task.url, Outcome.SKIPPED, reason=refused)
            return self._finish(task, replace(event, visit=_visit(task, response, (), "")))
        self._responses[task.url] = replace(response, body=b"")
        self._reader.submit(task, uri, response.body, response.charset)
        return None

    def _not_fetched(self, task: Task, response: Response) -> SourceEvent:
        event = _without(task, response)
        if event.outcome is Outcome.UNCHANGED or (event.visit and response.status == 304):
            earlier = task.earlier
            assert earlier is not None
            self._seen.add(earlier.document_uri or task.url)
            self._scope_of_start(task, earlier.document_uri)
            self._follow(earlier.links, task.url, task.depth)
        elif task.url == self._start and response.outcome is Outcome.FAILED:
            # 1,000 known pages need not be asked one by one when the door is shut
            self._dead = response.reason
        return event

    def _scope_of_start(self, task: Task, uri: str) -> None:
        if task.url == self._start and uri:
            self._scope.follow_start(uri)

    def _read(self, task: Task, page: Extracted, *, final: bool) -> SourceEvent | None:
        response = self._responses[task.url]
        uri = canonical(response.url) or task.url
        links = tuple(
            dict.fromkeys(
                link
                for href in (page.refresh, *page.links)
                if href and (link := self._scope.link(href, uri))
            )
        )
        own = self._scope.link(page.canonical, uri) if page.canonical else ""
        if own in (uri, twin(uri)) or own == self._start:
            own = ""  # a common mistake: every page names the home page
        if task.url not in self._linked:
            self._linked.add(task.url)
            self._follow(links, task.url, task.depth)
            if own:
                self._follow((own,), task.url, task.depth)
        if not final:
            self._open()
            return None
        del self._responses[task.url]
        visit = _visit(task, response, links, "")
        return self._finish(task, self._judged(visit, page, uri, own, response.robots))

    def _judged(
        self, visit: PageVisit, page: Extracted, uri: str, own: str, header: str
    ) -> SourceEvent:
        """The event of a page that came and was read."""
        reason = page.reason
        if "noindex" in header or header.strip() == "none":
            reason = "noindex: its X-Robots-Tag asks not to index it"
        elif own and not reason:
            reason = f"a copy of {own} (rel=canonical)"
        elif not reason and not self._scope.wants(uri):
            reason = "read for its links only (include and exclude leave it out)"
        elif page.refresh and len(page.content) < _STUB:
            reason = f"leads on to {page.refresh} (meta refresh)"
        elif not page.content:
            reason = reason or "no text"
        if reason:
            outcome = Outcome.FAILED if page.failed else Outcome.SKIPPED
            return SourceEvent(visit.url, outcome, reason=reason, visit=visit)
        document = _document(self._spec, uri, page)
        return SourceEvent(uri, Outcome.FETCHED, document, visit=replace(visit, document_uri=uri))

    def _finish(self, task: Task, event: SourceEvent) -> SourceEvent:
        """Close a task's books."""
        if not task.again:
            self._active -= 1
            self._made += bool(event.visit and event.visit.document_uri) and event.outcome in (
                Outcome.FETCHED,
                Outcome.UNCHANGED,
            )
        self._open()
        if event.reason and task.referrer and event.outcome in (Outcome.GONE, Outcome.FAILED):
            event = replace(event, reason=f"{event.reason} (linked from {task.referrer})")
        return event

    def _open(self) -> None:
        """The start page has been dealt with: the scope is known, so sitemaps can be read."""
        if not self._opened:
            self._opened = True
            if not self._dead:
                self._read_sitemaps()

    def _read_sitemaps(self) -> None:
        if not self._spec.sitemap:
            return
        named = self._robots.sitemaps(self._scope.prefix)
        usual = [origin(self._scope.prefix) + "/sitemap.xml", self._scope.prefix + "sitemap.xml"]
        found = read_sitemaps(
            self._fetcher,
            named or usual,
            wants=lambda url: self._scope.link(url, ""),
            check=self._check_sitemap,
            stop=self._stop,
        )
        self._follow(tuple(found), "", 0)

    def _check_sitemap(self, url: str) -> Response | None:
        return _forbidden(self._robots, url)

    def _check(self, task: Task, url: str) -> Response | None:
        """Whether a redirect may be followed; called in download threads."""
        target = canonical(url)
        if task.url != self._start:
            reason = ""
            if not self._scope.holds(target):
                reason = f"redirects to {url}, outside the crawl"
            elif target in self._seen and target != task.url:
                reason = f"redirects to {url}, which is read itself"
            if reason:
                return Response(url, Outcome.SKIPPED, reason, status=302)
        return self._check_sitemap(url)

    def _new(self, url: str) -> bool:
        """Whether an address has not been met; remembers it."""
        if url in self._seen or twin(url) in self._seen:
            return False
        self._seen.add(url)
        return True

    def _follow(self, links: tuple[str, ...], referrer: str, depth: int) -> None:
        for url in links:
            if self._scope.wants(url) and self._new(url) and not self._scope.trap(url):
                self._frontier.append(self._task(url, depth + 1, referrer))

    def _task(self, url: str, depth: int, referrer: str) -> Task:
        return Task(url, depth, referrer, self._context.memory.page(url))

    def _abandoned(self) -> Iterator[SourceEvent]:
        left = len(self._frontier)
        if self._dead and left and not self._stop():
            reason = f"the host no longer answers ({self._dead}); {left} pages were not asked for"
            yield SourceEvent(self._scope.prefix, Outcome.FAILED, reason=reason)


def _fetcher(spec: CrawlSource | PageSource, context: SourceContext) -> Fetcher:
    return Fetcher(
        user_agent=context.user_agent,
        timeout=context.timeout,
        max_bytes=spec.max_bytes,
        allow_private=spec.allow_private,
        stop=context.stop,
    )


def _forbidden(robots: Robots, url: str) -> Response | None:
    verdict = robots.verdict(url)
    return Response(url, verdict.outcome, verdict.reason) if verdict else None


def _read_here(response: Response, uri: str) -> Extracted:
    from kbkit.sources.workers import Job, perform

    page: Extracted = perform(Job(uri, response.body, response.charset, ()))
    return page


def _refused(response: Response, accepted: frozenset[str]) -> str:
    """Say why a body is not worth reading, or ``""``."""
    if not response.body.strip():
        return "empty page"
    if response.media_type not in accepted:
        return f"{response.media_type}, not a page"
    return ""


def _visit(task: Task, response: Response, links: tuple[str, ...], document_uri: str) -> PageVisit:
    return PageVisit(
        task.url, task.depth, response.etag, response.last_modified, links, document_uri
    )


def _without(task: Task, response: Response) -> SourceEvent:
    """The event of a page that brought no body; what the last visit left is kept."""
    earlier = task.earlier
    visit = replace(earlier or PageVisit(task.url), depth=task.depth)
    uri = visit.document_uri or task.url
    if response.outcome is Outcome.UNCHANGED:
        visit = replace(
            visit,
            etag=response.etag or visit.etag,
            last_modified=response.last_modified or visit.last_modified,
        )
        if not visit.document_uri:
            reason = "unchanged, and no document the last time"
            return SourceEvent(uri, Outcome.SKIPPED, reason=reason, visit=visit)
    return SourceEvent(uri, response.outcome, reason=response.reason, visit=visit)


def _document(spec: CrawlSource | PageSource, uri: str, page: Extracted) -> SourceDocument:
    title = page.title or unquote(urlsplit(uri).path.rstrip("/").rpartition("/")[2]) or uri
    kind = spec.document_type or detect(uri, title, page.content)
    return SourceDocument(uri, title, page.content, kind, spec.tags)
