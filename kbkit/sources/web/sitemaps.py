"""Sitemaps: XML, text and indexes of them, plain or gzipped, read within bounds."""

from __future__ import annotations

import re
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable

from kbkit.sources.base import Outcome
from kbkit.sources.web.fetch import Fetcher, Response
from kbkit.sources.web.urls import origin

_MOST_FILES = 50
_MOST_BYTES = 50_000_000  # what sitemaps.org permits
_MOST_URLS = 50_000
_MOST_SECONDS = 120.0  # for all of them
_LOC = re.compile(r"<(?:\w+:)?loc>\s*(?:<!\[CDATA\[)?\s*([^<\]\s]{1,2000})", re.IGNORECASE)
_ENTITIES = (("&amp;", "&"), ("&apos;", "'"), ("&quot;", '"'), ("&lt;", "<"), ("&gt;", ">"))


def read_sitemaps(
    fetcher: Fetcher,
    starts: Iterable[str],
    *,
    wants: Callable[[str], str],
    check: Callable[[str], Response | None],
    wait: Callable[[str], bool],
    stop: Callable[[], bool],
) -> list[str]:
    """Collect the addresses that sitemaps name.

    Sitemaps are hints: one that is missing or damaged is passed over. No XML parser reads
    them, so there are no entities to expand and nothing to go wrong on malformed ones.

    Args:
        fetcher: Fetches the files.
        starts: Addresses of sitemaps or indexes.
        wants: Gives the canonical form of an address in scope, or ``""``.
        check: Says why an address may not be fetched, or ``None``.
        wait: Waits until a host may be asked; false ends the reading.
        stop: Ends the reading.

    Returns:
        Canonical addresses in scope, each once, in order.
    """
    waiting = deque(dict.fromkeys(starts))
    seen = set(waiting)
    found: dict[str, None] = {}
    files = 0
    end = time.monotonic() + _MOST_SECONDS
    while waiting and files < _MOST_FILES and len(found) < _MOST_URLS and not stop():
        url = waiting.popleft()
        files += 1
        if check(url) is not None:
            continue
        if not wait(url) or time.monotonic() > end:
            break
        response = fetcher.get(url, check=check, max_bytes=_MOST_BYTES)
        if response.outcome is not Outcome.FETCHED:
            continue
        text = _text(response.body)
        nested = "<sitemapindex" in text[:2000]
        if "<loc>" in text or nested or ":loc>" in text:
            locations = [_unescaped(match) for match in _LOC.findall(text)]
        elif "<" in text[:200]:
            continue
        else:
            locations = text.split()
        for location in locations[:_MOST_URLS]:
            if nested:
                # a site's index must not send us to the hosts of others
                if location not in seen and origin(location) == origin(url):
                    seen.add(location)
                    waiting.append(location)
            elif page := wants(location):
                found[page] = None
    return list(found)[:_MOST_URLS]


def _text(body: bytes) -> str:
    if body.startswith(b"\x1f\x8b"):
        try:
            body = zlib.decompressobj(31).decompress(body, _MOST_BYTES)
        except zlib.error:
            return ""
    return body.decode("utf-8", errors="replace")


def _unescaped(text: str) -> str:
    for entity, character in reversed(_ENTITIES):
        text = text.replace(entity, character)
    return text
