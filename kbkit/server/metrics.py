"""Prometheus metrics of routes, never of callers or queries."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import prometheus_client as prometheus
from starlette.types import Scope

from kbkit.models import JobState
from kbkit.server.jobs import Jobs

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """Counters of a server."""

    def __init__(self) -> None:
        self.registry = prometheus.CollectorRegistry()
        self._requests = prometheus.Counter(
            "kbkit_requests",
            "Answered requests.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self._seconds = prometheus.Histogram(
            "kbkit_request_seconds",
            "Time until a request was answered.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._running = prometheus.Gauge(
            "kbkit_requests_running", "Running requests.", registry=self.registry
        )
        self._jobs = prometheus.Gauge(
            "kbkit_jobs", "Jobs by state.", ["state"], registry=self.registry
        )
        prometheus.ProcessCollector(registry=self.registry)

    @contextmanager
    def request(self, scope: Scope) -> Iterator[list[int]]:
        """Count a request; the block appends the status of its response to the list."""
        began, statuses = time.perf_counter(), list[int]()
        self._running.inc()
        try:
            yield statuses
        finally:
            self._running.dec()
            method = scope["method"] if scope["method"] in _METHODS else "other"
            # templates of paths bound the number of labels
            route = getattr(scope.get("route"), "path", "other")
            status = statuses[0] if statuses else 499
            self._requests.labels(method, route, str(status)).inc()
            self._seconds.labels(method, route).observe(time.perf_counter() - began)

    def text(self, jobs: Jobs) -> bytes:
        counts = Counter(job.state for job in jobs.list())
        for state in JobState:
            self._jobs.labels(state.value).set(counts[state])
        return bytes(prometheus.generate_latest(self.registry))
