"""Resolve canonical addresses (``rel=canonical``) within a crawl."""

from __future__ import annotations

from kbkit.sources.base import CrawlMemory
from kbkit.sources.web.downloads import PageRequest
from kbkit.sources.web.urls import index_alias


class Canonicals:
    """Canonical addresses of the pages in one crawl."""

    def __init__(self, memory: CrawlMemory) -> None:
        self._memory = memory
        self._copies: dict[str, str] = {}  # what pages call their own address
        self._named_by: dict[str, list[PageRequest]] = {}  # pages that call an address theirs
        self._empty: set[str] = set()  # addresses that became no document

    def believed(self, named: str, uri: str, start: str) -> str:
        if named in (uri, index_alias(uri), start) or (named and self._of(named) == uri):
            return ""  # every page names the home page, or two pages name each other
        if named in self._empty or named.rstrip("/") == uri.rstrip("/"):
            return ""  # what it names is not there, or leads back
        return named

    def add(self, task: PageRequest, uri: str, own: str) -> None:
        self._copies[uri] = own
        if own:
            self.wait_for(own, task)

    def wait_for(self, own: str, task: PageRequest) -> None:
        self._named_by.setdefault(own, []).append(task)

    def settle(self, url: str, own: str) -> list[PageRequest]:
        waiting = self._named_by.pop(url, [])
        if own and own not in self._empty:
            self._named_by.setdefault(own, []).extend(waiting)
            return []
        self._empty.add(url)
        return waiting

    def _of(self, url: str) -> str:
        if url not in self._copies:
            known = self._memory.page(url)
            self._copies[url] = known.canonical if known else ""
        return self._copies[url]
