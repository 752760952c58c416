"""Fetch through the workers of a cluster, at a pace set by this process.

It handles robots.txt, delays, ``Retry-After``, retries and redirects; a worker makes one request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache

from kbkit.runtime.engine import WorkerPool
from kbkit.sources.base import Outcome
from kbkit.sources.web.addresses import Private
from kbkit.sources.web.fetch import Fetcher, Response

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

    def perform(self) -> tuple[Response, str, bool]:
        return _fetcher(self.options).once(self.url, dict(self.headers), self.limit, self.truncate)

    def broken(self, reason: str) -> tuple[Response, str, bool]:
        return Response(self.url, Outcome.FAILED, reason), "", True


class ClusterFetcher(Fetcher):
    """A `Fetcher` whose requests the workers of a cluster make; cookies are each worker's own."""

    def __init__(self, pool: WorkerPool, options: FetchOptions, stop: Callable[[], bool]) -> None:
        super().__init__(**asdict(options), stop=stop)
        self._pool = pool
        self._options = options

    def once(
        self, url: str, headers: dict[str, str], limit: int, truncate: bool
    ) -> tuple[Response, str, bool]:
        task = RequestTask(self._options, url, tuple(headers.items()), limit, truncate)
        result = self._pool.submit(task)
        while not self._stop():
            try:
                came: tuple[Response, str, bool] = result.result(_POLL)
            except TimeoutError:
                continue
            return came
        return Response(url, Outcome.FAILED, "stopped"), "", False


@lru_cache
def _fetcher(options: FetchOptions) -> Fetcher:
    return Fetcher(**asdict(options))
