"""The sources ``crawl`` and ``page``, and their providers.

``crawl`` reads a site from a start page on, ``page`` one page. Providers are kbkit's own crawler
(``trafilatura``, which selects the content), the same with pages rendered by Chromium
(``browser``), and the service Firecrawl.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

from kbkit.errors import ForbiddenAddressError, SourceError
from kbkit.extras import extra
from kbkit.models import PageRecord
from kbkit.models.values import plain
from kbkit.recipes import CrawlSource, PageSource
from kbkit.sources import Outcome, SourceContext, SourceEvent
from kbkit.sources.decode import decode_text
from kbkit.sources.html.extract import ExtractedPage, extract
from kbkit.sources.parts import with_front_matter
from kbkit.sources.web import Response, pages, pause, refusal_of
from kbkit.sources.web.addresses import resolve
from kbkit.sources.web.browser_fetcher import add_pictures, open_page_fetcher
from kbkit.sources.web.crawler import PAGES, CrawlRun
from kbkit.sources.web.pages import PageRequest, Validators
from kbkit.sources.web.urls import CrawlScope, canonical, directives

_MARKDOWN = frozenset({"text/markdown", "text/x-markdown"})
_TEXTS = _MARKDOWN | {"text/plain"}


def read_site(spec: CrawlSource, context: SourceContext) -> Iterator[SourceEvent]:
    """Crawl along links and sitemaps; an unreachable start page is an event, not an error."""
    service = _firecrawl(spec, context)
    events = service.crawl(spec) if service else CrawlRun(spec, context).events()
    yield from add_pictures(events, spec, context)


def read_page(spec: PageSource, context: SourceContext) -> Iterator[SourceEvent]:
    service = _firecrawl(spec, context)
    event = service.page(spec.url) if service else _page(spec, context)
    yield from add_pictures(iter([event]), spec, context)


def _firecrawl(spec: CrawlSource | PageSource, context: SourceContext) -> FirecrawlCrawler | None:
    enabled = (spec.provider or context.provider) == "firecrawl"
    return FirecrawlCrawler(spec, context) if enabled else None


def _page(spec: PageSource, context: SourceContext) -> SourceEvent:
    url = canonical(spec.url, routes=pages.uses_browser(spec, context))
    if not url:
        return SourceEvent(spec.url, Outcome.FAILED, reason="malformed address")
    earlier = context.memory.page(url)
    validators = Validators(spec)
    robots = pages.open_robots(spec, context)
    with closing(robots), closing(open_page_fetcher(spec, context, robots)) as fetcher:
        response = fetcher.get(url, headers=validators.to_send(earlier))
    task = PageRequest(url, earlier=earlier)
    uri, response = validators.compare(task, response)
    if response.outcome is not Outcome.FETCHED:
        return pages.event_without_body(task, response)
    record = pages.page_record(task, response)
    if refusal := pages.body_refusal(response, PAGES | _TEXTS):
        return SourceEvent(uri, Outcome.SKIPPED, reason=refusal, record=record)
    page = _extract_page(response, uri, context.stop, drawings=spec.images)
    reason = ""
    if directives(response.robots, robots.token) & {"noindex", "none"}:
        reason = "noindex: its X-Robots-Tag asks not to index it"
    return pages.event_of_page(uri, page, record, reason=reason)


def _extract_page(
    response: Response, uri: str, stop: Callable[[], bool], *, drawings: bool
) -> ExtractedPage:
    if response.media_type in _TEXTS:
        body = decode_text(response.body, response.charset, markup=False)
        has_suffix = urlsplit(uri).path.lower().endswith((".md", ".markdown", ".mdx"))
        markdown = has_suffix or response.media_type in _MARKDOWN
        text = with_front_matter(body.text, uri, markdown=markdown)
        description = text.metadata.get("description")
        summary = plain(description[:1_000]) if isinstance(description, str) else ""
        note = "; ".join(filter(None, (body.note, text.note)))
        return ExtractedPage(text.title, text.content, description=summary, note=note)
    from kbkit.sources.html.site_extractor import ExtractTask, extract_bounded

    task = ExtractTask(uri, response.body, response.charset, (), measure=True, drawings=drawings)
    return extract_bounded(task, stop)


_CLOUD = "https://api.firecrawl.dev"
_FORMATS = ["rawHtml", "markdown"]
_POLL = 2.0  # seconds between two checks of a crawl
_PATIENCE = 4  # retries while the service is busy
_MAX_LENGTH = 6 * 3600.0  # maximum seconds of a crawl
_T = TypeVar("_T")


class FirecrawlCrawler:
    """Fetches through a Firecrawl service.

    The service returns the HTML that its browser saw, which is read like the crawler's pages. If a
    page has no HTML, its Markdown is rendered without raw HTML. All addresses in answers are
    checked, and private ones are not sent to the service unless the recipe permits them.
    ``FIRECRAWL_API_KEY`` names the account, ``FIRECRAWL_API_URL`` a self-hosted service.
    """

    def __init__(self, spec: CrawlSource | PageSource, context: SourceContext) -> None:
        self._spec = spec
        self._context = context

    def crawl(self, spec: CrawlSource) -> Iterator[SourceEvent]:
        """Crawl a site with the service; yield pages when they are ready."""
        start = canonical(spec.url)
        if reason := self._refusal(start or spec.url):
            yield SourceEvent(spec.url, Outcome.SKIPPED, reason=reason)
            return
        client = self._client()
        request = partial(
            client.start_crawl,
            start,
            limit=spec.limit,
            formats=_FORMATS,
            sitemap="include" if spec.sitemap else "skip",
            max_concurrency=spec.concurrency,
            max_discovery_depth=spec.depth,
            delay=max(1, round(spec.delay)) if spec.delay else None,
        )
        job = self._call(request)
        scope = CrawlScope(start, spec.include, spec.exclude)
        completed = False
        try:
            fetched = 0
            for item in self._pages(client, str(job.id)):
                if fetched >= spec.limit:
                    break
                event = self._event(item, start, scope)
                fetched += event.outcome is Outcome.FETCHED
                yield event
            else:
                completed = not self._context.stop()
        finally:
            if not completed:  # a cancelled crawl costs no more credits
                with suppress(Exception):  # best effort
                    client.cancel_crawl(str(job.id))

    def page(self, url: str) -> SourceEvent:
        address = canonical(url)
        if reason := self._refusal(address or url):
            return SourceEvent(url, Outcome.SKIPPED, reason=reason)
        client = self._client()
        try:
            item = self._call(lambda: client.scrape(address, formats=_FORMATS), only_page=True)
        except _PageError as error:
            record = self._record(address)
            return SourceEvent(address, Outcome.FAILED, reason=str(error), record=record)
        return self._event(item, address, None)

    def _client(self) -> Any:
        with extra("firecrawl", "firecrawl-py", "The provider firecrawl"):
            from firecrawl import Firecrawl
        key = os.environ.get("FIRECRAWL_API_KEY") or ""
        url = os.environ.get("FIRECRAWL_API_URL") or _CLOUD
        if refusal_of(url):
            raise SourceError(f"FIRECRAWL_API_URL={url}: not an http or https address")
        if not key and url.rstrip("/") == _CLOUD:
            raise SourceError(
                "Firecrawl needs a key: set FIRECRAWL_API_KEY, or FIRECRAWL_API_URL to a service "
                "of your own"
            )
        timeout = max(self._context.timeout, 60.0)
        # an empty key, since without one the client reads the environment
        return Firecrawl(api_key=key, api_url=url.rstrip("/"), timeout=timeout, max_retries=2)

    def _pages(self, client: Any, job: str) -> Iterator[Any]:
        from firecrawl.v2.types import PaginationConfig

        single_part = PaginationConfig(auto_paginate=False)
        request = partial(client.get_crawl_status, job, pagination_config=single_part)
        yielded = offset = 0  # pages of all parts, and of the current one, which may still grow
        end = time.monotonic() + _MAX_LENGTH
        while not self._context.stop():
            if time.monotonic() > end:
                raise SourceError(f"Firecrawl: the crawl did not end within {_MAX_LENGTH:.0f} s")
            part = self._call(request)
            yield from part.data[offset:]
            yielded, offset = yielded + len(part.data) - offset, len(part.data)
            if part.next and part.data:
                request, offset = partial(client.get_crawl_status_page, part.next), 0
                continue
            if part.status == "completed":
                return
            if part.status != "scraping":
                raise SourceError(f"Firecrawl: the crawl was {part.status} after {yielded} pages")
            pause(_POLL, self._context.stop)

    def _event(self, item: Any, requested: str, scope: CrawlScope | None) -> SourceEvent:
        metadata = item.metadata_typed
        url = canonical(str(metadata.url or metadata.source_url or ("" if scope else requested)))
        if scope is not None and url and requested == canonical(str(metadata.source_url or "")):
            scope.follow_start(url)
        if not url or (reason := self._refusal(url)):
            reason = reason if url else "Firecrawl gave no address with it"
            return SourceEvent(url or requested, Outcome.SKIPPED, reason=reason)
        if scope is not None and not scope.allows(url):
            return SourceEvent(url, Outcome.SKIPPED, reason="outside the crawl")
        record = self._record(url)
        status = metadata.status_code or 200
        if status >= 400:
            outcome = Outcome.GONE if status in (404, 410) else Outcome.FAILED
            return SourceEvent(url, outcome, reason=f"HTTP {status}", record=record)
        size = max(len(item.raw_html or ""), len(item.markdown or ""))
        if size > self._spec.max_bytes:
            reason = f"larger than {self._spec.max_bytes / 1e6:g} MB"
            return SourceEvent(url, Outcome.SKIPPED, reason=reason, record=record)
        page = _read(item, url, str(metadata.title or ""))
        if not page.refusal:
            record = PageRecord(url)  # validators of another provider do not apply
        return pages.event_of_page(url, page, record)

    def _record(self, url: str) -> PageRecord:
        return self._context.memory.page(url) or PageRecord(url)

    def _refusal(self, url: str) -> str:
        if reason := refusal_of(url):
            return reason
        parts = urlsplit(url)
        try:
            resolve(parts.hostname or "", parts.port or 443, allow_private=self._spec.allow_private)
        except ForbiddenAddressError as error:
            return str(error)
        except (OSError, UnicodeError):
            return ""  # only the service can resolve it, so it is not in a local network
        return ""

    def _call(self, request: Callable[[], _T], *, only_page: bool = False) -> _T:
        """Call the service; retry while it is busy."""
        import requests
        from firecrawl.v2.utils.error_handler import FirecrawlError, RateLimitError

        for attempt in range(_PATIENCE + 1):
            try:
                return request()
            except RateLimitError as error:
                if attempt == _PATIENCE or not pause(_POLL * 2**attempt, self._context.stop):
                    raise SourceError(_advice(error)) from error
            except FirecrawlError as error:
                if only_page and error.status_code not in (401, 402, None):
                    raise _PageError(_advice(error)) from error
                raise SourceError(_advice(error)) from error
            except (requests.RequestException, ValueError, TypeError) as error:
                raise SourceError(f"Firecrawl: {_line(error)}") from error
        raise AssertionError("unreachable")


class _PageError(Exception):
    """The service could not fetch one page."""


def _read(item: Any, url: str, title: str) -> ExtractedPage:
    page = extract(item.raw_html, url, alone=False) if item.raw_html else ExtractedPage()
    if page.content or page.reason.startswith("noindex") or not item.markdown:
        return page
    from html import escape

    from markdown_it import MarkdownIt

    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(item.markdown)
    head = f"<title>{escape(title)}</title>"
    html = f"<html><head>{head}</head><body><main>{body}</main></body></html>"
    return extract(html, url, alone=False)


def _advice(error: Any) -> str:
    advice = {
        401: "the key in FIRECRAWL_API_KEY is not accepted",
        402: "the account has no credits left",
        429: "too many requests; try again later, or lower the limit",
    }.get(error.status_code, "")
    return f"Firecrawl: {advice or _line(error)}"


def _line(error: object) -> str:
    return " ".join(str(error).split())[:300]
