"""Sources that fetch from the web: politely, and guarded against hostile servers.

This module fetches single addresses over http and https. Addresses are checked on connecting, also
after redirects. Size (after decompression), time, redirects and retries are bounded.
"""

import email.utils
import logging
import random
import ssl
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpcore
import httpx

from kbkit.errors import ForbiddenAddressError
from kbkit.sources import Outcome
from kbkit.sources.decode import charset_of
from kbkit.sources.web.addresses import Deadline, GuardedBackend, Private

LOCATION = "kbkit-location"  # replaces ``Location``, so that httpx builds no next request


@cache
def _ssl_context() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)  # slow: loads all certificates


class GuardedTransport(httpx.HTTPTransport):
    """An httpx transport on a connection pool whose backend checks addresses."""

    def __init__(self, backend: GuardedBackend, connections: int) -> None:
        self._pool = httpcore.ConnectionPool(  # httpx has no argument for a backend
            ssl_context=_ssl_context(),
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=15.0,
            network_backend=backend,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; return the response before its body is read."""
        response = super().handle_request(request)
        if (location := response.headers.pop("location", None)) is not None:
            response.headers[LOCATION] = location
        return response


def decompress(parts: Iterator[bytes], encoding: str, limit: int) -> Iterator[bytes]:
    """Undo gzip or deflate, at most ``limit`` bytes at once and in all."""
    if encoding in ("", "identity"):
        yield from parts
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise httpx.DecodingError(f"encoding {encoding!r} is not known")
    machine: Any = None  # the decompressor of one member
    for part in parts:
        data = part
        while data:
            if machine is None:
                # some servers send deflate without the zlib wrapper
                wrapped = 15 if data[0] & 15 == zlib.DEFLATED else -15
                machine = zlib.decompressobj(wrapped if encoding == "deflate" else 31)
            out = machine.decompress(data, limit)
            yield out
            limit -= len(out)
            if limit <= 0:
                return
            data = machine.unconsumed_tail
            if machine.unused_data and encoding != "deflate":  # another member
                data, machine = machine.unused_data, None
    if machine is not None and not machine.eof:
        raise zlib.error("it ends in the middle")


_log = logging.getLogger(__name__)

MAX_REDIRECTS = 10
RETRIES = 3
RETRY_AFTER_MOST = 60.0
PAGE_SECONDS = 180.0  # time limit for a page with all redirects, retries and waits
_RETRIED = frozenset({429, 502, 503, 504})
_CONDITIONS = {"if-none-match", "if-modified-since"}
_MAX_COOKIES = 50


@dataclass(frozen=True, slots=True)
class Response:
    """Result of a request.

    Attributes:
        outcome: ``FETCHED``, ``UNCHANGED`` (304), ``SKIPPED`` (refused or too large), ``FAILED`` or
            ``GONE`` (404, 410).
        reason: Why there is no body, in one line.
        status: HTTP status, or 0 without an answer.
        media_type: Lower case, without parameters; ``""`` if missing.
        charset: From the Content-Type header, or ``""``.
        location: Target of a redirect, or ``""``.
        again: Whether a retry may help.
    """

    url: str
    outcome: Outcome
    reason: str = ""
    status: int = 0
    body: bytes = b""
    media_type: str = ""
    charset: str = ""
    etag: str = ""
    last_modified: str = ""
    robots: str = ""
    retry_after: float | None = None
    location: str = ""
    again: bool = False


class Fetcher:
    """Fetches pages; safe to use from several threads."""

    def __init__(
        self,
        *,
        user_agent: str,
        timeout: float = 30.0,
        max_bytes: int = 10_000_000,
        allow_private: Private = False,
        stop: Callable[[], bool] = lambda: False,
        connections: int = 8,
        page_seconds: float = PAGE_SECONDS,
    ) -> None:
        self._timeout = timeout
        self._page_seconds = max(page_seconds, timeout)
        self._timeout_reason = f"took longer than the {self._page_seconds:g} s allowed for a page"
        self._max_bytes = max_bytes
        self._stop = stop
        self._deadline = Deadline()
        self._silence: dict[str, float] = {}  # end of the wait that a host requested
        backend = GuardedBackend(allow_private=allow_private, stop=stop, deadline=self._deadline)
        self._client = httpx.Client(
            transport=GuardedTransport(backend, connections),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            headers={
                "User-Agent": user_agent,
                "Accept": "text/html,application/xhtml+xml,text/*;q=0.9,*/*;q=0.5",
                # can be decompressed in bounded steps
                "Accept-Encoding": "gzip, deflate",
            },
        )

    def close(self) -> None:
        self._client.close()

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        check: Callable[[str], Response | None] | None = None,
        max_bytes: int | None = None,
        truncate: bool = False,
        span: tuple[int, int] | None = None,
    ) -> Response:
        """Fetch one address with redirects and retries."""
        headers = dict(headers or {})
        if span is not None:
            headers |= {"Range": f"bytes={span[0]}-{span[1] - 1}", "Accept-Encoding": "identity"}
        limit = max_bytes or self._max_bytes
        seen: list[str] = []
        end = time.monotonic() + self._page_seconds
        while True:
            refusal = refusal_of(url)
            if refusal:
                return Response(url, Outcome.SKIPPED, refusal)
            if url in seen:
                return Response(url, Outcome.FAILED, "redirects in a circle")
            seen.append(url)
            if len(seen) > MAX_REDIRECTS + 1:
                return Response(url, Outcome.FAILED, f"more than {MAX_REDIRECTS} redirects")
            response = self._with_retries(url, headers, limit, truncate, end)
            _log.debug("GET %s: %s", url, response.location or response.reason or response.status)
            if not response.location:
                return response
            try:
                url = str(urljoin(url, response.location)).partition("#")[0]
            except ValueError:
                return Response(url, Outcome.FAILED, "redirects to a malformed address")
            if check is not None and url not in seen:
                verdict = check(url)
                if verdict is not None:
                    return verdict

    def _with_retries(
        self, url: str, headers: dict[str, str], limit: int, truncate: bool, end: float
    ) -> Response:
        host = urlsplit(url).netloc
        for attempt in range(RETRIES + 1):
            silence = self._silence.get(host, 0.0)
            if max(silence, time.monotonic()) >= end:
                return Response(url, Outcome.FAILED, self._timeout_reason)
            if not pause(silence - time.monotonic(), self._stop):
                return Response(url, Outcome.FAILED, "stopped")
            response = self.once(url, headers, limit, truncate)
            # an unreachable host rarely comes up within seconds
            attempts = RETRIES if response.status else min(RETRIES, 1)
            if not response.again or attempt >= attempts or self._stop():
                return response
            wait = 0.5 * 2**attempt * (1 + random.random() / 4)  # noqa: S311 - jitter
            if response.retry_after is not None:
                if response.retry_after > RETRY_AFTER_MOST:
                    reason = f"{response.reason}; it asks to wait {response.retry_after:.0f} s"
                    return replace(response, reason=reason)
                wait = max(wait, response.retry_after)
                self._silence[host] = time.monotonic() + response.retry_after
            if time.monotonic() + wait >= end:
                return replace(response, reason=f"{response.reason}; {self._timeout_reason}")
            if not pause(wait, self._stop):
                return response
        raise AssertionError("unreachable")

    def once(self, url: str, headers: dict[str, str], limit: int, truncate: bool) -> Response:
        """Send one request."""
        self._deadline.ends_at = time.monotonic() + self._timeout
        host = urlsplit(url).netloc
        try:
            with self._client.stream("GET", url, headers=headers) as raw:
                return self._read(url, raw, limit, truncate)
        except ForbiddenAddressError as error:
            return Response(url, Outcome.SKIPPED, str(error))
        except httpx.ConnectTimeout:
            reason, again = f"{host} does not answer (timeout)", False
        except httpx.TimeoutException:
            reason, again = f"no complete answer within {self._timeout:g} s", False
        except (httpx.ConnectError, ssl.SSLError) as error:
            text = str(error)
            permanent = "resolve" in text or "CERTIFICATE" in text.upper() or "SSL" in text.upper()
            reason, again = f"cannot connect to {host} ({text})", not permanent
        except httpx.NetworkError as error:
            stopped = self._stop()
            reason = "stopped" if stopped else f"the connection broke ({error})"
            again = not stopped
        except httpx.ProtocolError as error:
            reason, again = f"the answer is not proper HTTP ({error})", True
        except (httpx.InvalidURL, httpx.HTTPError, ValueError, OSError, RuntimeError) as error:
            reason, again = f"cannot be fetched ({error})", False
        finally:
            self._deadline.ends_at = float("inf")
            if len(self._client.cookies.jar) > _MAX_COOKIES:
                self._client.cookies.clear()
        return Response(url, Outcome.FAILED, " ".join(reason.split())[:300], again=again)

    def _read(self, url: str, raw: httpx.Response, limit: int, truncate: bool) -> Response:
        status = raw.status_code
        content_type = raw.headers.get("content-type", "")
        login = ", needs a login" if status == 401 else ""
        response = Response(
            url,
            Outcome.FAILED,
            f"HTTP {status} {httpx.codes.get_reason_phrase(status)}{login}".strip(),
            status=status,
            media_type=content_type.partition(";")[0].strip().lower(),
            charset=charset_of(content_type),
            etag=raw.headers.get("etag", "")[:1000],
            last_modified=raw.headers.get("last-modified", "")[:100],
            robots="\n".join(raw.headers.get_list("x-robots-tag"))[:2000].lower(),
        )
        if status == 304:
            if _CONDITIONS & set(raw.request.headers):
                return replace(response, outcome=Outcome.UNCHANGED, reason="")
            return replace(response, reason="HTTP 304 to a request without a condition")
        if status in (301, 302, 303, 307, 308):
            location = raw.headers.get(LOCATION, "").strip()
            reason = "" if location else f"HTTP {status} without a Location"
            return replace(response, reason=reason, location=location)
        if status in (404, 410):
            return replace(response, outcome=Outcome.GONE)
        if not 200 <= status < 300:
            delay = _retry_after(raw.headers.get("retry-after", ""))
            return replace(response, retry_after=delay, again=status in _RETRIED)
        return self._body(response, raw, limit, truncate)

    def _body(
        self, response: Response, raw: httpx.Response, limit: int, truncate: bool
    ) -> Response:
        encoding = raw.headers.get("content-encoding", "").strip().lower()
        size = raw.headers.get("content-length", "")
        reason = f"larger than {limit / 1e6:g} MB"
        too_large = replace(response, outcome=Outcome.SKIPPED, reason=reason)
        if size.isascii() and size.isdigit() and int(size[:18]) > limit and not truncate:
            return too_large
        body = bytearray()
        try:
            for part in decompress(raw.iter_raw(), encoding, limit + 1):
                body += part
                if len(body) > limit:
                    break
                if time.monotonic() > self._deadline.ends_at:
                    raise httpx.ReadTimeout("slow")
        except zlib.error:
            return replace(response, reason=f"its {encoding} compression is damaged")
        except httpx.DecodingError:
            return replace(response, reason=f"compressed as {encoding}, which was not requested")
        if len(body) > limit and not truncate:
            return too_large
        del body[limit:]
        return replace(response, outcome=Outcome.FETCHED, reason="", body=bytes(body))


def refusal_of(url: str) -> str:
    """Return the reason why an address is refused by its form, or ``""``."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "malformed address"
    if parts.scheme not in ("http", "https"):
        return f"only http and https are fetched, not {parts.scheme or 'a bare path'}"
    if parts.username is not None or parts.password is not None:
        return "the address contains a user name or password"
    is_odd = any(character.isspace() or not character.isprintable() for character in url)
    return "malformed address" if is_odd or not parts.hostname or port == 0 else ""


def pause(seconds: float, stop: Callable[[], bool]) -> bool:
    """Wait, checking ``stop`` every fifth of a second."""
    end = time.monotonic() + seconds
    while not stop():
        remaining = end - time.monotonic()
        if remaining <= 0:
            return True
        time.sleep(min(remaining, 0.2))
    return False


def _retry_after(value: str) -> float | None:
    """Return the seconds of a Retry-After header (number or date), or ``None``."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError, OSError):
        return None
