"""Concurrent downloads at the pace of each host, by this machine or the workers of a cluster.

This process handles robots.txt, delays, ``Retry-After``, retries and redirects; a worker makes one
request.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Protocol

from kbkit.errors import ClusterError
from kbkit.models import PageRecord
from kbkit.runtime.engine import WorkerPool
from kbkit.sources.base import Outcome
from kbkit.sources.web.addresses import Private
from kbkit.sources.web.fetch import Fetcher, Response
from kbkit.sources.web.robots import Robots


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A page to request.

    Attributes:
        referrer: Page that links to it, or ``""``.
        again: Only requested because an earlier run knew it; does not count as read.
        etag: Validator to send, or ``""``.
        last_modified: Validator to send, or ``""``.
        place: Position in the order of requests, from 0.
    """

    url: str
    depth: int = 0
    referrer: str = ""
    earlier: PageRecord | None = None
    again: bool = False
    etag: str = ""
    last_modified: str = ""
    place: int = 0


class PageFetcher(Protocol):
    """Fetches pages: as the server sends them, or as a browser shows them."""

    def get(
        self,
        url: str,
        *,
        etag: str = "",
        last_modified: str = "",
        check: Callable[[str], Response | None] | None = None,
    ) -> Response: ...

    def close(self) -> None: ...


class Downloads:
    """Threads that fetch pages; they are daemons, so that a slow server never holds an exit."""

    def __init__(
        self,
        fetcher: PageFetcher,
        robots: Robots,
        check: Callable[[PageRequest, str], Response | None],
        *,
        concurrency: int,
    ) -> None:
        self._fetcher = fetcher
        self._robots = robots
        self._check = check
        self._tasks: queue.SimpleQueue[PageRequest | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[tuple[PageRequest, Response | ClusterError]] = (
            queue.SimpleQueue()
        )
        self.running = 0
        self._threads = [
            threading.Thread(target=self._work, daemon=True) for _ in range(concurrency)
        ]
        for thread in self._threads:
            thread.start()

    def start(self, task: PageRequest) -> None:
        self.running += 1
        self._tasks.put(task)

    def poll(self, timeout: float) -> tuple[PageRequest, Response] | None:
        try:
            task, came = self._results.get(timeout > 0, timeout or None)
        except queue.Empty:
            return None
        self.running -= 1
        if isinstance(came, ClusterError):
            raise came
        return task, came

    def close(self) -> None:
        """End the threads after their current work."""
        for _ in self._threads:
            self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            if self._robots.stop():
                continue
            came: Response | ClusterError
            try:
                came = self._fetch(task)
            except ClusterError as error:
                came = error
            except Exception as error:  # a page must never end the thread
                reason = f"cannot be fetched ({type(error).__name__}: {error})"
                came = Response(task.url, Outcome.FAILED, " ".join(reason.split())[:300])
            self._results.put((task, came))

    def _fetch(self, task: PageRequest) -> Response:
        verdict = self._robots.verdict(task.url)
        if verdict is not None:
            return verdict
        if not self._robots.wait(task.url):
            return Response(task.url, Outcome.FAILED, "stopped")
        return self._fetcher.get(
            task.url,
            etag=task.etag,
            last_modified=task.last_modified,
            check=lambda url: self._check(task, url),
        )


_POLL = 0.5  # seconds between two looks at whether to stop
_MARGIN = 60  # seconds that finding an address may take, which nothing here ends


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """Options of a worker's `Fetcher`."""

    user_agent: str
    timeout: float
    max_bytes: int
    allow_private: Private


@dataclass(frozen=True, slots=True)
class RequestTask:
    """One request; a `kbkit.runtime.processes.WorkerTask`."""

    options: FetchOptions
    url: str
    headers: tuple[tuple[str, str], ...]
    limit: int
    truncate: bool

    @property
    def seconds(self) -> float:
        return self.options.timeout + _MARGIN  # a `Fetcher` ends it itself, but for the system

    def perform(self) -> Response:
        return _fetcher(self.options).once(self.url, dict(self.headers), self.limit, self.truncate)

    def broken(self, reason: str) -> Response:
        return Response(self.url, Outcome.FAILED, reason, again=True)


class ClusterFetcher(Fetcher):
    """A `Fetcher` whose requests the workers of a cluster make; cookies are each worker's own."""

    def __init__(self, pool: WorkerPool, options: FetchOptions, stop: Callable[[], bool]) -> None:
        super().__init__(**asdict(options), stop=stop)
        self._pool = pool
        self._options = options

    def once(self, url: str, headers: dict[str, str], limit: int, truncate: bool) -> Response:
        task = RequestTask(self._options, url, tuple(headers.items()), limit, truncate)
        result = self._pool.submit(task)
        while not self._stop():
            with suppress(TimeoutError):
                came: Response = result.result(_POLL)
                return came
        return Response(url, Outcome.FAILED, "stopped")


@lru_cache
def _fetcher(options: FetchOptions) -> Fetcher:
    return Fetcher(**asdict(options))
