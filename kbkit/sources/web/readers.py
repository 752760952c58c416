"""The sources ``crawl`` and ``page``, and their providers.

``crawl`` reads a site from a start page on, ``page`` one page. Who fetches is a `Crawler`: kbkit's
own crawler, named ``trafilatura`` after what decides about the content of a page (with ``browser``,
a Chromium renders what it fetches), or Firecrawl, a service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Protocol
from urllib.parse import urlsplit

from kbkit.models.values import plain
from kbkit.recipes import CrawlSource, PageSource
from kbkit.sources.base import Outcome, SourceContext, SourceEvent
from kbkit.sources.decode import decoded
from kbkit.sources.front_matter import read_text
from kbkit.sources.html.extract import ExtractedPage
from kbkit.sources.web import page_world
from kbkit.sources.web.browser_fetcher import illustrated, open_page_fetcher
from kbkit.sources.web.crawler import PAGES, CrawlRun
from kbkit.sources.web.downloads import PageRequest, RateLimiter
from kbkit.sources.web.fetch import Response
from kbkit.sources.web.page_world import Validators
from kbkit.sources.web.robots import Robots, directives
from kbkit.sources.web.urls import canonical

_MARKDOWN = frozenset({"text/markdown", "text/x-markdown"})
_TEXTS = _MARKDOWN | {"text/plain"}


class Crawler(Protocol):
    """Fetches pages of the web and reads them."""

    def crawl(self, url: str, limit: int) -> Iterator[SourceEvent]:
        """Crawl a site from a page on, with an event for each page."""
        ...

    def page(self, url: str) -> SourceEvent: ...


def open_crawler(spec: CrawlSource | PageSource, context: SourceContext) -> Crawler:
    """The provider that a recipe, or else the setting, names."""
    if (spec.provider or context.provider) == "firecrawl":
        from kbkit.sources.web.firecrawl import FirecrawlCrawler

        return FirecrawlCrawler(spec, context)
    return LocalCrawler(spec, context)


class CrawlReader:
    """A site, followed along its links and sitemaps."""

    type = "crawl"
    exhaustive = False

    def __init__(self, spec: CrawlSource) -> None:
        self._spec = spec

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        """Crawl. A start page that cannot be had is an event like any other page."""
        crawler = open_crawler(self._spec, context)
        events = crawler.crawl(self._spec.url, self._spec.limit)
        yield from illustrated(events, self._spec, context)


class PageReader:
    """Reads one page of the web."""

    type = "page"
    exhaustive = False

    def __init__(self, spec: PageSource) -> None:
        self._spec = spec

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        event = open_crawler(self._spec, context).page(self._spec.url)
        yield from illustrated(iter([event]), self._spec, context)


class LocalCrawler:
    """kbkit's own crawler, on this machine."""

    def __init__(self, spec: CrawlSource | PageSource, context: SourceContext) -> None:
        self._spec = spec
        self._context = context

    def crawl(self, url: str, limit: int) -> Iterator[SourceEvent]:
        spec = self._spec
        if isinstance(spec, CrawlSource):
            spec = spec.model_copy(update={"url": url, "limit": limit})
        else:
            shared = spec.model_dump(exclude={"type", "url"})
            spec = CrawlSource(url=url, limit=limit, **shared)
        run = CrawlRun(spec, self._context)
        try:
            yield from run.events()
        finally:
            run.close()

    def page(self, url: str) -> SourceEvent:
        """Read one page of HTML, Markdown or plain text."""
        rendered = page_world.rendered(self._spec, self._context)
        given, url = url, canonical(url, routes=rendered)
        if not url:
            return SourceEvent(given, Outcome.FAILED, reason="malformed address")
        earlier = self._context.memory.page(url)
        validators = Validators(self._spec)
        etag, last_modified = validators.sent(earlier)
        with page_world.open_fetcher(self._spec, self._context) as fetcher:
            robots = Robots(fetcher, self._context.user_agent)
            pace = RateLimiter(robots, self._spec.delay, self._context.stop)

            def check(address: str) -> Response | None:
                return page_world.robots_refusal(robots, address)

            pages = open_page_fetcher(self._spec, self._context, fetcher, robots, pace)
            with closing(pages):
                response = check(url) or pages.get(
                    url, etag=etag, last_modified=last_modified, check=check
                )
        task = PageRequest(url, earlier=earlier)
        uri = canonical(response.url, routes=True) or url
        if response.outcome is Outcome.FETCHED and validators.same(earlier, response, uri):
            response = replace(response, outcome=Outcome.UNCHANGED)
        if response.outcome is not Outcome.FETCHED:
            return page_world.event_without_body(task, response)
        record = page_world.page_record(task, response, validators.make(response))
        if refused := page_world.body_refusal(response, PAGES | _TEXTS):
            return SourceEvent(uri, Outcome.SKIPPED, reason=refused, record=record)
        page = _read(response, uri, self._context.stop, drawings=self._spec.images)
        reason = page.reason
        if directives(response.robots, robots.token) & {"noindex", "none"}:
            reason = "noindex: its X-Robots-Tag asks not to index it"
        if reason or not page.content:
            outcome = Outcome.FAILED if page.failed else Outcome.SKIPPED
            if page.failed:
                record = replace(record, etag="", last_modified="")
            return SourceEvent(uri, outcome, reason=reason or "no text", record=record)
        document = page_world.page_document(self._spec, uri, page, response)
        return SourceEvent(uri, Outcome.FETCHED, document, record=replace(record, document_uri=uri))


def _read(
    response: Response, uri: str, stop: Callable[[], bool], *, drawings: bool
) -> ExtractedPage:
    if response.media_type in _TEXTS:
        body = decoded(response.body, response.charset, markup=False)
        named = urlsplit(uri).path.lower().endswith((".md", ".markdown", ".mdx"))
        markdown = named or response.media_type in _MARKDOWN
        text = read_text(body.text, uri, markdown=markdown)
        description = text.metadata.get("description")
        described = plain(description[:1_000]) if isinstance(description, str) else ""
        note = "; ".join(filter(None, (body.note, text.note)))
        return ExtractedPage(text.title, text.content, description=described, note=note)
    from kbkit.sources.html.site_extractor import ExtractTask, extract_bounded

    task = ExtractTask(uri, response.body, response.charset, (), measure=True, drawings=drawings)
    return extract_bounded(task, stop)
