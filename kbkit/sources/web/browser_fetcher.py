"""The provider ``browser``: pages rendered by a local Chromium.

The browser has no network: the guarded fetcher fetches all resources of a page, scripts once per
crawl.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from urllib.parse import urldefrag

from kbkit.errors import SourceError
from kbkit.models import Image
from kbkit.recipes import CrawlSource, PageSource
from kbkit.sources import Outcome, SourceContext, SourceEvent
from kbkit.sources.decode import decode
from kbkit.sources.html import parse
from kbkit.sources.html.extract import is_shell
from kbkit.sources.html.images import MAX_BYTES, image_addresses, prepare_image
from kbkit.sources.web import Response
from kbkit.sources.web.browser import Browser, RenderedPage, RenderError
from kbkit.sources.web.pages import open_robots, uses_browser
from kbkit.sources.web.urls import Robots, origin

_PAGES = frozenset({"", "text/html", "application/xhtml+xml"})
_CACHE_BYTES = 50_000_000  # of scripts, styles and shells
SHOWN_ALREADY = "shows what"  # start of the reason for routes that show the same page
_TURNS, _MAX_LENGTH = 20, 300.0  # waits for the host's pace per page, and their maximum seconds
_MAX_REPEATS = 3  # routes without new text, after which a page's other routes are skipped
_SAME = 0.01  # share of new lines up to which a route counts as the same
_LEADS = '<meta http-equiv="refresh" content="0; url={}">'


def open_page_fetcher(
    spec: CrawlSource | PageSource, context: SourceContext, robots: Robots
) -> Robots | BrowserFetcher:
    return BrowserFetcher(robots, spec, context) if uses_browser(spec, context) else robots


class BrowserFetcher:
    """Fetches pages and renders them in a browser; safe to use from several threads."""

    def __init__(
        self, robots: Robots, spec: CrawlSource | PageSource, context: SourceContext
    ) -> None:
        self._browser = Browser(
            user_agent=context.user_agent, program=context.browser, sandbox=context.browser_sandbox
        )
        self._robots = robots
        # private networks are closed to a page, except for its own host
        public = spec.model_copy(update={"allow_private": False})
        self._public_robots = open_robots(public, context)
        self._allow_private = spec.allow_private
        self._limit = spec.max_bytes
        self._seconds = context.timeout
        self._lock = threading.Lock()
        self._cache: OrderedDict[str, Response] = OrderedDict()
        self._lines: dict[str, frozenset[str]] = {}  # lines of each page's first route
        self._repeats: dict[str, int] = {}  # number of routes without new text

    def close(self) -> None:
        self._browser.close()
        self._public_robots.close()

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        check: Callable[[str], Response | None] | None = None,
    ) -> Response:
        """Fetch and render a page; other responses are returned unchanged."""
        address, route = urldefrag(url)
        if route and self._repeats.get(address, 0) >= _MAX_REPEATS:
            return _same_page(url, address)
        with self._lock:
            cached = self._cache.get(address) if route else None
        shell = cached or self._store(address, self._robots.get(address, check=check))
        fragment = f"#{route}" if route else ""
        shell = replace(shell, url=shell.url + fragment, etag="", last_modified="")
        if shell.outcome is not Outcome.FETCHED or shell.media_type not in _PAGES:
            return shell
        page_origin = origin(shell.url)
        try:
            page = self._browser.render(
                shell.url,
                decode(shell.body, shell.charset),
                lambda request_url, kind: self._resource(request_url, kind, page_origin),
                limit=self._limit,
                seconds=self._seconds + min(_TURNS * self._robots.delay(page_origin), _MAX_LENGTH),
            )
        except (RenderError, SourceError) as error:
            return replace(shell, outcome=Outcome.FAILED, reason=str(error), body=b"")
        return self._with_page(shell, address, page)

    def _with_page(self, shell: Response, address: str, page: RenderedPage) -> Response:
        routed = "#/" in page.html or "#!/" in page.html or "#" in shell.url
        first = self._lines.setdefault(address, page.lines) if routed else page.lines
        differs = len(page.lines - first) > _SAME * len(page.lines)
        if "#" in shell.url and first is not page.lines and not differs:
            self._repeats[address] = self._repeats.get(address, 0) + 1
            return _same_page(shell.url, address)
        html = page.html
        if page.leads:
            quoted = page.leads.replace("&", "&amp;").replace('"', "&quot;").replace("'", "%27")
            html = html.replace("<head>", "<head>" + _LEADS.format(quoted), 1)
        elif (root := parse(html)) is not None and is_shell(root, rendered=True):
            reason = "its scripts show no text in kbkit's restricted browser"
            return replace(shell, outcome=Outcome.FAILED, reason=reason, body=b"")
        return replace(shell, body=html.encode("utf-8", "replace"), charset="utf-8")

    def _resource(self, url: str, kind: str, page_origin: str) -> Response:
        url = urldefrag(url).url
        host = origin(url)
        if host != page_origin and self._allow_private and kind not in ("script", "stylesheet"):
            # private content must not reach other hosts
            return Response(url, Outcome.SKIPPED)
        with self._lock:
            cached = self._cache.get(url)
            if cached is not None:
                self._cache.move_to_end(url)
        if cached is None:
            robots = self._robots if host == page_origin else self._public_robots

            def check_redirect(address: str) -> Response | None:
                if self._allow_private and host == page_origin != origin(address):
                    return Response(address, Outcome.SKIPPED, "leaves the host of the page")
                return robots.verdict(address)

            cached = robots.get(url, check=check_redirect)
            if kind in ("script", "stylesheet"):
                self._store(url, cached)
        return cached

    def _store(self, url: str, response: Response) -> Response:
        if response.outcome in (Outcome.FETCHED, Outcome.GONE):
            with self._lock:
                self._cache[url] = response
                while sum(len(stored.body) for stored in self._cache.values()) > _CACHE_BYTES:
                    self._cache.popitem(last=False)
        return response


def _same_page(url: str, address: str) -> Response:
    return Response(url, Outcome.SKIPPED, f"{SHOWN_ALREADY} {address} shows", status=200)


_MAX_REQUESTS = 20_000  # per run
_MAX_FETCHED = 1_000_000_000  # bytes per run
_MAX_CACHED = 50_000_000  # bytes of pictures, which other pages may show too


def add_pictures(
    events: Iterator[SourceEvent], spec: CrawlSource | PageSource, context: SourceContext
) -> Iterator[SourceEvent]:
    """Add pictures to documents if the recipe asks for them, fetched under the rules of pages."""
    if not spec.images:
        yield from events
        return
    with closing(_Pictures(spec, context)) as pictures:
        for event in events:
            if event.document is None:
                yield event
                continue
            images = dict(event.document.images)  # inline drawings
            for address in image_addresses(event.document.content):
                if address not in images and (image := pictures.get(address)) is not None:
                    images[address] = image
            yield replace(event, document=replace(event.document, images=images))


class _Pictures:
    """Fetches pictures, and caches them up to a limit."""

    def __init__(self, spec: CrawlSource | PageSource, context: SourceContext) -> None:
        self._context = context
        self._robots = open_robots(spec, context)
        self._cached: dict[str, Image | None] = {}
        self._cached_bytes = self._fetched = self._requests = 0

    def get(self, address: str) -> Image | None:
        if address not in self._cached:
            image = self._fetch(address)
            if image is not None and self._cached_bytes + len(image.data) > _MAX_CACHED:
                return image
            self._cached_bytes += 0 if image is None else len(image.data)
            self._cached[address] = image
        return self._cached[address]

    def _fetch(self, address: str) -> Image | None:
        spent = self._requests >= _MAX_REQUESTS or self._fetched >= _MAX_FETCHED
        if spent or not address.startswith(("http://", "https://")) or self._context.stop():
            return None
        self._requests += 1
        response = self._robots.get(address, max_bytes=MAX_BYTES)
        self._fetched += len(response.body)
        return prepare_image(response.body) if response.outcome is Outcome.FETCHED else None

    def close(self) -> None:
        self._robots.close()
