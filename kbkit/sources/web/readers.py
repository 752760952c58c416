"""The sources ``crawl`` and ``page``, and their providers.

``crawl`` reads a site from a start page on, ``page`` one page. Providers are kbkit's own crawler
(``trafilatura``, which selects the content), the same with pages rendered by Chromium
(``browser``), and the service Firecrawl.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
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
from kbkit.sources.web.downloads import PageRequest
from kbkit.sources.web.fetch import Response
from kbkit.sources.web.firecrawl import FirecrawlCrawler
from kbkit.sources.web.page_world import Validators
from kbkit.sources.web.robots import directives
from kbkit.sources.web.urls import canonical

_MARKDOWN = frozenset({"text/markdown", "text/x-markdown"})
_TEXTS = _MARKDOWN | {"text/plain"}


class CrawlReader:
    """Reads a site, along its links and sitemaps."""

    type = "crawl"
    exhaustive = False

    def __init__(self, spec: CrawlSource) -> None:
        self._spec = spec

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        """Crawl; an unreachable start page is an event, not an error."""
        service = _firecrawl(self._spec, context)
        events = service.crawl(self._spec) if service else CrawlRun(self._spec, context).events()
        yield from illustrated(events, self._spec, context)


class PageReader:
    """Reads one page of the web."""

    type = "page"
    exhaustive = False

    def __init__(self, spec: PageSource) -> None:
        self._spec = spec

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        service = _firecrawl(self._spec, context)
        event = service.page(self._spec.url) if service else _page(self._spec, context)
        yield from illustrated(iter([event]), self._spec, context)


def _firecrawl(spec: CrawlSource | PageSource, context: SourceContext) -> FirecrawlCrawler | None:
    named = (spec.provider or context.provider) == "firecrawl"
    return FirecrawlCrawler(spec, context) if named else None


def _page(spec: PageSource, context: SourceContext) -> SourceEvent:
    url = canonical(spec.url, routes=page_world.rendered(spec, context))
    if not url:
        return SourceEvent(spec.url, Outcome.FAILED, reason="malformed address")
    earlier = context.memory.page(url)
    validators = Validators(spec)
    etag, last_modified = validators.sent(earlier)
    robots = page_world.open_robots(spec, context)
    with robots.fetcher, closing(open_page_fetcher(spec, context, robots)) as pages:
        response = robots.verdict(url) or pages.get(
            url, etag=etag, last_modified=last_modified, check=robots.verdict
        )
    task = PageRequest(url, earlier=earlier)
    uri, response = validators.compared(task, response)
    if response.outcome is not Outcome.FETCHED:
        return page_world.event_without_body(task, response)
    record = page_world.page_record(task, response, validators.make(response))
    if refused := page_world.body_refusal(response, PAGES | _TEXTS):
        return SourceEvent(uri, Outcome.SKIPPED, reason=refused, record=record)
    page = _extract_page(response, uri, context.stop, drawings=spec.images)
    reason = page.reason
    if directives(response.robots, robots.token) & {"noindex", "none"}:
        reason = "noindex: its X-Robots-Tag asks not to index it"
    if reason or not page.content:
        outcome = Outcome.FAILED if page.failed else Outcome.SKIPPED
        if page.failed:
            record = replace(record, etag="", last_modified="")
        return SourceEvent(uri, outcome, reason=reason or "no text", record=record)
    page = replace(page, license=page.license.or_else(response.license))
    document = page_world.page_document(spec, uri, page)
    return SourceEvent(uri, Outcome.FETCHED, document, record=replace(record, document_uri=uri))


def _extract_page(
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
