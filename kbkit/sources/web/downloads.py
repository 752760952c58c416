"""Concurrent downloads at the pace of each host."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kbkit.errors import ClusterError
from kbkit.models import PageRecord
from kbkit.sources.base import Outcome
from kbkit.sources.web.fetch import Response, pause
from kbkit.sources.web.robots import Robots
from kbkit.sources.web.urls import origin


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


class RateLimiter:
    """Keeps the requests to each host apart."""

    def __init__(self, robots: Robots, delay: float, stop: Callable[[], bool]) -> None:
        self._robots = robots
        self._delay = delay
        self._stop = stop
        self._next: dict[str, float] = {}
        self._lock = threading.Lock()

    def delay(self, url: str) -> float:
        """Seconds between two requests to the host of an address."""
        return max(self._delay, self._robots.delay(url))

    def wait(self, url: str) -> bool:
        delay = self.delay(url)
        if not delay:
            return not self._stop()
        with self._lock:
            host = origin(url)
            now = time.monotonic()
            turn = max(now, self._next.get(host, now))
            self._next[host] = turn + delay
        return pause(turn - now, self._stop)


class Downloads:
    """Threads that fetch pages; they are daemons, so that a slow server never holds an exit."""

    def __init__(
        self,
        fetcher: PageFetcher,
        robots: Robots,
        pace: RateLimiter,
        check: Callable[[PageRequest, str], Response | None],
        stop: Callable[[], bool],
        *,
        concurrency: int,
    ) -> None:
        self._fetcher = fetcher
        self._robots = robots
        self._pace = pace
        self._check = check
        self._stop = stop
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
            task, came = (
                self._results.get(timeout=timeout) if timeout else self._results.get_nowait()
            )
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
            if self._stop():
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
            return Response(task.url, verdict.outcome, verdict.reason)
        if not self._pace.wait(task.url):
            return Response(task.url, Outcome.FAILED, "stopped")
        return self._fetcher.get(
            task.url,
            etag=task.etag,
            last_modified=task.last_modified,
            check=lambda url: self._check(task, url),
        )
