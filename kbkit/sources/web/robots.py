"""robots.txt by RFC 9309: rules, delays and sitemaps."""

from __future__ import annotations

import math
import re
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any
from urllib.parse import urljoin
from xml.sax.saxutils import unescape

from kbkit.sources import Outcome
from kbkit.sources.web import Fetcher, Response, pause
from kbkit.sources.web.urls import CrawlScope, origin

_MAX_BYTES = 512 * 1024  # RFC 9309 asks for at least 500 KiB
_MAX_DELAY = 60.0
_WITH_VALUES = frozenset(
    {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}
)


def directives(header: str, token: str) -> frozenset[str]:
    names = set()
    for line in header.split("\n"):
        applies = True
        for part in line.split(","):
            name, colon, value = (piece.strip() for piece in part.partition(":"))
            if colon and name not in _WITH_VALUES:
                applies = name in ("*", token.lower())
                name = value
            if applies and name:
                names.add(name)
    return frozenset(names)


class Robots:
    """Rules and pace of all hosts of a crawl; safe to use from several threads."""

    def __init__(
        self,
        fetcher: Fetcher,
        user_agent: str,
        delay: float = 0.0,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.fetcher = fetcher
        self.token = user_agent.partition("/")[0].strip() or "kbkit"
        self.stop = stop
        self._delay = delay
        self._rules: dict[str, tuple[Response | None, Any]] = {}
        self._lock = threading.Lock()
        self._next: dict[str, float] = {}
        self._turns = threading.Lock()

    def verdict(self, url: str) -> Response | None:
        """Return the response for an address that may not be fetched, or ``None``."""
        refused, rules = self._of(origin(url))
        if refused is not None:
            return replace(refused, url=url)
        if rules.can_fetch(url.partition("#")[0], self.token):
            return None
        return Response(url, Outcome.SKIPPED, "robots.txt forbids it")

    def delay(self, url: str) -> float:
        """Return the seconds between two requests to a host: as it asks, at most a minute."""
        _, rules = self._of(origin(url))
        delay = rules.crawl_delay(self.token)
        if delay is None:
            rate = rules.request_rate(self.token)
            delay = rate.seconds / rate.requests if rate and rate.requests else 0.0
        seconds = 0.0 if math.isnan(float(delay)) else min(max(float(delay), 0.0), _MAX_DELAY)
        return max(self._delay, seconds)

    def wait(self, url: str) -> bool:
        delay = self.delay(url)
        if not delay:
            return not self.stop()
        with self._turns:
            host = origin(url)
            now = time.monotonic()
            start = max(now, self._next.get(host, now))
            self._next[host] = start + delay
        return pause(start - now, self.stop)

    def sitemaps(self, url: str) -> list[str]:
        _, rules = self._of(origin(url))
        return list(filter(None, (_joined(url, each) for each in islice(rules.sitemaps, 100))))

    def _of(self, host: str) -> tuple[Response | None, Any]:
        with self._lock:
            if host not in self._rules:
                self._rules[host] = self._read(host)
            return self._rules[host]

    def _read(self, host: str) -> tuple[Response | None, Any]:
        """Return the response for all pages of a blocked host, or ``None``, and its rules."""
        from protego import Protego

        response = self.fetcher.get(f"{host}/robots.txt", max_bytes=_MAX_BYTES, truncate=True)
        if response.outcome is Outcome.FETCHED:
            return None, Protego.parse(response.body.decode("utf-8-sig", errors="replace"))
        none = Protego.parse("")
        if 400 <= response.status < 500 and response.status != 429:
            return None, none  # "unavailable" in RFC 9309: everything is allowed
        if response.status == 0:
            # the host is unreachable, not just robots.txt
            return response, none
        reason = f"robots.txt cannot be read ({response.reason}), which forbids everything"
        return Response(host, Outcome.FAILED, reason), none


_MAX_FILES = 50
_MAX_SITEMAP_BYTES = 50_000_000  # limit of sitemaps.org
_MAX_URLS = 50_000
_MAX_SECONDS = 120.0  # for all sitemaps
_ROOT = re.compile(r"<([\w.-]+:)?(sitemapindex|urlset)\b", re.IGNORECASE)
_LOC = r"<{}loc>\s*(?:<!\[CDATA\[)?\s*([^<\]\s]{{1,2000}})"
"""Address of a page; pictures' addresses have another namespace prefix."""
_QUOTES = {"&quot;": '"', "&apos;": "'"}


def read_sitemaps(robots: Robots, scope: CrawlScope, *, guess: bool = False) -> list[str]:
    """Return the addresses in scope that sitemaps name.

    Sitemaps are those in robots.txt; if there are none, or with `guess`, also those at the usual
    paths. Missing or damaged ones are ignored. No XML parser is used: there are no entities to
    expand, and malformed sitemaps can be read.
    """
    starts = robots.sitemaps(scope.prefix)
    if guess or not starts:
        starts += [origin(scope.prefix) + "/sitemap.xml", scope.prefix + "sitemap.xml"]
    waiting = deque(dict.fromkeys(starts))
    seen = set(waiting)
    pages: dict[str, None] = {}
    files = 0
    end = time.monotonic() + _MAX_SECONDS
    while waiting and files < _MAX_FILES and len(pages) < _MAX_URLS and not robots.stop():
        url = waiting.popleft()
        files += 1
        if robots.verdict(url) is not None:
            continue
        if not robots.wait(url) or time.monotonic() > end:
            break
        response = robots.fetcher.get(url, check=robots.verdict, max_bytes=_MAX_SITEMAP_BYTES)
        if response.outcome is not Outcome.FETCHED:
            continue
        text = _text(response.body)
        root = _ROOT.search(text[:2000])
        nested = root is not None and root[2].lower() == "sitemapindex"
        if root is not None or "<loc>" in text:
            loc = re.compile(_LOC.format((root and root[1]) or ""), re.IGNORECASE)
            locations = [unescape(match, _QUOTES) for match in loc.findall(text)]
        elif "<" in text[:200]:
            continue
        else:
            locations = text.split()
        for relative in locations[:_MAX_URLS]:
            location = _joined(url, relative)
            if nested:
                # an index must not lead to other hosts
                if location not in seen and origin(location) == origin(url):
                    seen.add(location)
                    waiting.append(location)
            elif page := scope.link(location, ""):
                pages[page] = None
    return list(pages)[:_MAX_URLS]


def _joined(base: str, url: str) -> str:
    try:
        return urljoin(base, url)
    except ValueError:
        return ""


def _text(body: bytes) -> str:
    if body.startswith(b"\x1f\x8b"):
        try:
            body = zlib.decompressobj(31).decompress(body, _MAX_SITEMAP_BYTES)
        except zlib.error:
            return ""
    return body.decode("utf-8-sig", errors="replace")
