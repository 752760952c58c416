"""The pictures of web pages, fetched as the pages are where a recipe asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

from kbkit.models import Image
from kbkit.recipes import CrawlSource, PageSource
from kbkit.sources.base import Outcome, SourceContext, SourceEvent
from kbkit.sources.images import MOST_BYTES, image_addresses, kept_image
from kbkit.sources.web import page_events
from kbkit.sources.web.downloads import RateLimiter
from kbkit.sources.web.fetch import Response
from kbkit.sources.web.robots import Robots

_MOST_REQUESTS = 20_000  # of one run
_MOST_FETCHED = 1_000_000_000  # bytes of one run
_MOST_HELD = 50_000_000  # bytes of pictures that other pages may show too


def illustrated(
    events: Iterator[SourceEvent], spec: CrawlSource | PageSource, context: SourceContext
) -> Iterator[SourceEvent]:
    """The events of a source, with the pictures of its documents where its recipe wants them.

    Pictures are fetched under the rules of pages: no private addresses, robots.txt, delays.

    Args:
        events: What happened to the pages.
        spec: The part of the recipe that describes the source.
        context: What the pipeline gives.
    """
    if not spec.images:
        yield from events
        return
    with closing(_Pictures(spec, context)) as pictures:
        for event in events:
            if event.document is None:
                yield event
                continue
            known = dict(event.document.images)  # drawn in the page itself
            for address in image_addresses(event.document.content):
                if address not in known and (image := pictures.get(address)) is not None:
                    known[address] = image
            yield replace(event, document=replace(event.document, images=known))


class _Pictures:
    """Fetches pictures, each once as long as they are held."""

    def __init__(self, spec: CrawlSource | PageSource, context: SourceContext) -> None:
        self._context = context
        self._fetcher = page_events.open_fetcher(spec, context)
        self._robots = Robots(self._fetcher, context.user_agent)
        self._pace = RateLimiter(self._robots, spec.delay, context.stop)
        self._known: dict[str, Image | None] = {}
        self._held = self._fetched = self._requests = 0

    def get(self, address: str) -> Image | None:
        """A picture, if its address has one that may be had."""
        if address not in self._known:
            image = self._fetch(address)
            if image is not None and self._held + len(image.data) > _MOST_HELD:
                return image
            self._held += 0 if image is None else len(image.data)
            self._known[address] = image
        return self._known[address]

    def _fetch(self, address: str) -> Image | None:
        spent = self._requests >= _MOST_REQUESTS or self._fetched >= _MOST_FETCHED
        if spent or not address.startswith(("http://", "https://")) or self._context.stop():
            return None

        def check(url: str) -> Response | None:
            return page_events.robots_refusal(self._robots, url)

        self._requests += 1
        if check(address) is not None or not self._pace.wait(address):
            return None
        response = self._fetcher.get(address, check=check, max_bytes=MOST_BYTES)
        self._fetched += len(response.body)
        return kept_image(response.body) if response.outcome is Outcome.FETCHED else None

    def close(self) -> None:
        """Let go of connections."""
        self._fetcher.close()
