"""Middleware: tokens, limits, refused requests, metrics."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import unquote_to_bytes, urlsplit

import anyio
import prometheus_client as prometheus
from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kbkit import errors
from kbkit.access import TOKEN, Tokens
from kbkit.models import JobState
from kbkit.models.server import Caller
from kbkit.server.jobs import Jobs
from kbkit.server.responses import METADATA, missing_token_header, problem, problem_of, takes_basic
from kbkit.server.settings import ServerSettings

_MAX_CALLERS = 10_000
"""Maximum callers to track; the least recent ones are dropped."""


class Rates:
    """Limits the rate of requests of each caller (token bucket)."""

    def __init__(
        self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._rate = rate
        self._burst = float(max(burst, 1))
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, caller: str) -> None:
        if not self._rate:
            return
        now = self._clock()
        tokens, updated = self._buckets.pop(caller, (self._burst, now))
        tokens = min(self._burst, tokens + (now - updated) * self._rate)
        if len(self._buckets) >= _MAX_CALLERS:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[caller] = max(tokens - 1, 0.0) if tokens >= 1 else tokens, now
        if tokens < 1:
            wait = max(1, math.ceil((1 - tokens) / self._rate))
            raise errors.LimitError(
                f"more than {self._rate:g} requests a second; ask again in {wait} s", wait
            )


log = logging.getLogger("kbkit.server")

_PUBLIC = ("/", "/health", "/ready", "/docs", "/openapi.json")
_TOKEN_PARAMETERS = frozenset(
    {"token", "access_token", "api_key", "apikey", "api-key", "authorization", "bearer"}
)
_POLL_SECONDS = 0.3
_BYTES_A_SECOND = 50_000
"""Minimum rate of a request body after the base time."""

_DEFAULT_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}


class _BodyRefusedError(Exception):
    """The rest of a request body is not read."""


@dataclass
class Middleware:
    """Checks host, token, rate and size of requests before the application."""

    app: ASGIApp
    tokens: Tokens
    settings: ServerSettings
    metrics: Metrics
    closing: threading.Event

    def __post_init__(self) -> None:
        settings = self.settings
        self._rates = Rates(settings.rate, settings.burst)
        self._names = {"localhost", "127.0.0.1", "::1", settings.host, *settings.allow_hosts}
        if hostname := urlsplit(settings.public_url).hostname:
            self._names.add(hostname)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        with self.metrics.request(scope) as statuses:
            exchange = _Exchange(receive, send, self.settings, statuses, self.closing)
            try:
                scope.setdefault("state", {})["caller"] = self._admit(scope)
                await self.app(scope, exchange.receive, exchange.send)
            except errors.KbkitError as error:  # the application answers its own
                exchange.refusal = error
            except Exception as error:
                if exchange.started:
                    raise
                if exchange.refusal is None:
                    log.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
                    answer = problem("the server failed; its log says why", 500, errors.ServerError)
                    await answer(scope, exchange.receive, exchange.send)
            if exchange.refusal is not None and not exchange.started:
                await self._refuse(exchange.refusal, scope, exchange)

    def _admit(self, scope: Scope) -> Caller:
        headers = Headers(scope=scope)
        self._check_host(headers)
        _check_address(scope)
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self.settings.max_body:
            raise _too_large(self.settings)
        peer = scope["client"][0] if scope.get("client") else ""
        if scope["path"] in _PUBLIC or scope["path"].startswith(METADATA):
            self._rates.take(f"address {peer}")
            return Caller("", frozenset())
        try:
            token = _token(headers, basic=takes_basic(scope))
            caller = self.tokens.caller(token)
        except errors.TokenError:
            self._rates.take(f"address {peer}")  # slow down guesses
            raise
        self._rates.take(f"token {caller.name}" if caller.name else f"address {peer}")
        return caller

    def _check_host(self, headers: Headers) -> None:
        """Refuse pages of other sites; after DNS rebinding, `Host` has the other site's name."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_own(_name_of(hosts[0])):
            value = hosts[0][:100] if hosts else ""
            raise errors.ForbiddenError(
                f"Host: {value!r} is not a name of this server; name it with --allow-host"
            )
        for origin in headers.getlist("origin"):
            same_origin = origin.partition("://")[2] == hosts[0] and origin.startswith("http")
            if not same_origin and origin not in self.settings.allow_origins:
                raise errors.ForbiddenError(
                    f"Origin: {origin[:100]!r} may not use this server; permit it with "
                    "--allow-origin"
                )

    def _is_own(self, name: str) -> bool:
        if name in self._names:
            return True
        if self.settings.host not in ("0.0.0.0", "::"):  # noqa: S104 - compared, not listened at
            return False
        try:  # DNS rebinding needs a name, not an address
            ip_address(name)
        except ValueError:
            return False
        return True

    async def _refuse(self, error: errors.KbkitError, scope: Scope, exchange: _Exchange) -> None:
        answer = problem_of(error)
        if isinstance(error, _SlowError):
            answer = problem(str(error), 408, errors.LimitError)
        elif isinstance(error, errors.TokenError):
            answer.headers["WWW-Authenticate"] = missing_token_header(scope, self.settings)
        if not exchange.complete:
            answer.headers["Connection"] = "close"  # the body was not read to its end
        await answer(scope, exchange.receive, exchange.send_refusal)


class _SlowError(errors.LimitError):
    """A request body did not arrive in time."""


@dataclass(slots=True)
class _Exchange:
    """Watches a request's body and its response."""

    _receive: Receive
    _send: Send
    _settings: ServerSettings
    _statuses: list[int]
    _closing: threading.Event
    _start: float = field(default_factory=time.monotonic)
    _bytes: int = 0
    _streams: bool = False
    refusal: errors.KbkitError | None = None
    started: bool = False
    complete: bool = False

    async def receive(self) -> Message:
        if self.complete:
            return await self._disconnect()
        if self.refusal is not None:
            raise _BodyRefusedError
        settings = self._settings
        remaining = (
            self._start + settings.body_seconds + self._bytes / _BYTES_A_SECOND - time.monotonic()
        )
        try:
            with anyio.fail_after(max(remaining, 0)):
                message = await self._receive()
        except TimeoutError:
            self.refusal = _SlowError(
                f"the request did not arrive within {settings.body_seconds:g} s; send it faster, "
                "or in parts"
            )
            raise _BodyRefusedError from None
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            self.complete = not message.get("more_body", False)
            if self._bytes > settings.max_body:
                self.refusal = _too_large(settings)
                self.complete = False
                raise _BodyRefusedError
        return message

    async def _disconnect(self) -> Message:
        """Wait for the disconnect; streams of events also end when the server shuts down."""
        while True:
            with anyio.move_on_after(_POLL_SECONDS):
                return await self._receive()
            if self._streams and self._closing.is_set():
                return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        # after a refusal, the application's error response is dropped
        if self.refusal is None or self.started:
            await self.send_refusal(message)

    async def send_refusal(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            self._statuses.append(message["status"])
            headers = MutableHeaders(scope=message)
            self._streams = headers.get("content-type", "").startswith("text/event-stream")
            for name, text in _DEFAULT_HEADERS.items():
                headers.setdefault(name, text)
        await self._send(message)


def _too_large(settings: ServerSettings) -> errors.LimitError:
    return errors.LimitError(
        f"the request is longer than {settings.max_body / 1e6:,.4g} MB; send it in parts, or serve "
        "with a larger --max-body"
    )


def _check_address(scope: Scope) -> None:
    """Refuse addresses with a token, which logs would keep, and paths that are not UTF-8."""
    query = scope.get("query_string", b"").decode("latin-1")
    names = {part.partition("=")[0].lower() for part in query.split("&")}
    raw = scope.get("raw_path") or scope["path"].encode()
    try:
        unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        raise errors.ArgumentError("the path is not percent-encoded UTF-8") from None
    if names & _TOKEN_PARAMETERS or TOKEN.search(query) or TOKEN.search(raw.decode("latin-1")):
        raise errors.ArgumentError(
            "a token does not belong into an address, which logs store: revoke it, and send a new "
            "one as Authorization: Bearer TOKEN"
        )


def _name_of(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _token(headers: Headers, *, basic: bool) -> str | None:
    values = headers.getlist("authorization")
    if not values:
        return None
    scheme, _, text = values[0].partition(" ")
    if len(values) == 1 and scheme.lower() == "bearer":
        return text.strip()
    if len(values) == 1 and basic and scheme.lower() == "basic":
        with contextlib.suppress(ValueError, binascii.Error):
            return base64.b64decode(text, validate=True).decode().partition(":")[2]
    raise errors.TokenError("Authorization: give one token, as Authorization: Bearer TOKEN")


async def _check(request: Request) -> None:
    if "json" not in request.headers.get("content-type", "").lower():
        return
    try:
        values = await request.json()
    except (ValueError, RecursionError):
        return  # the handler reports invalid JSON
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        message = "a text contains half of a character (a lone surrogate); leave it out"
        fault = {"type": "string_unicode", "loc": ("body",), "msg": message}
        raise RequestValidationError([fault]) from None


CHECK_TEXTS = Depends(_check)
"""Dependency that refuses JSON with lone surrogates."""


_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """Counters of a server."""

    def __init__(self) -> None:
        registry = self.registry = prometheus.CollectorRegistry()
        labels = ["method", "route"]
        self._requests = prometheus.Counter(
            "kbkit_requests", "Answered requests.", [*labels, "status"], registry=registry
        )
        self._seconds = prometheus.Histogram(
            "kbkit_request_seconds",
            "Time until a request was answered.",
            labels,
            buckets=_SECONDS,
            registry=registry,
        )
        self._running = prometheus.Gauge(
            "kbkit_requests_running", "Running requests.", registry=registry
        )
        self._jobs = prometheus.Gauge("kbkit_jobs", "Jobs by state.", ["state"], registry=registry)
        prometheus.ProcessCollector(registry=registry)

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
