"""Send requests over HTTP, and convert problem details to kbkit's errors."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing, closing
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from kbkit import errors
from kbkit.client.calls import Request
from kbkit.errors import ConfigError, KbkitError, LimitError, ServerError

T = TypeVar("T")

ATTEMPTS = 3
"""Attempts of a repeatable request."""
_MAX_WAIT = 30.0
_NOTHING: Mapping[str, Any] = {}
_REPEATED = frozenset({None, 502, 503, 504})
_OF_STATUS: dict[int, type[KbkitError]] = {
    401: errors.TokenError,
    403: errors.ForbiddenError,
    404: errors.NotFoundError,
    409: errors.ConflictError,
    412: errors.VersionConflictError,
}


class _Base:
    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        self.url = _checked(url)
        self._timeout = timeout
        self._options: dict[str, Any] = {
            "base_url": self.url,
            "headers": {
                "User-Agent": "kbkit",
                "Accept": "application/json, */*;q=0.5",
                **({"Authorization": f"Bearer {_checked_token(token)}"} if token else {}),
            },
            "timeout": httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            "follow_redirects": False,  # the token must not reach another host
        }

    def _built(
        self, client: httpx.Client | httpx.AsyncClient, request: Request[Any]
    ) -> httpx.Request:
        options: dict[str, Any] = {} if request.timeout is None else {"timeout": request.timeout}
        content, headers = request.content, dict(request.headers)
        if request.json is not None:
            content, headers["Content-Type"] = _json(request.json), "application/json"
        return client.build_request(
            request.method,
            request.path,
            params=httpx.QueryParams(request.parameters),
            content=content,
            files=request.files,
            headers=headers,
            **options,
        )

    def _wait(
        self, request: Request[Any], attempt: int, response: httpx.Response | None
    ) -> float | None:
        status = None if response is None else response.status_code
        # a rate limit applies before any work
        again = status == 429 or (status in _REPEATED and request.may_repeat)
        if attempt >= ATTEMPTS or not again:
            return None
        # exponential backoff with jitter; needs no secure randomness
        backoff: float = 0.2 * 2**attempt * (0.5 + random.random() / 2)  # noqa: S311
        return backoff if response is None else max(backoff, _retry_after(response))

    def _unreachable(self, error: httpx.HTTPError) -> ServerError:
        if isinstance(error, httpx.TimeoutException):
            return ServerError(
                f"{self.url}: no answer within {self._timeout:g} s; try again, or give a longer "
                "timeout"
            )
        return ServerError(
            f"{self.url}: cannot be reached ({error or type(error).__name__}); is `kbkit serve` "
            "running there?"
        )


class Transport(_Base):
    """Sends requests and waits for the responses; safe to use from several threads."""

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 30.0) -> None:
        super().__init__(url, token, timeout)
        self._client = httpx.Client(**self._options)

    def send(self, request: Request[T]) -> T:
        attempt = 0
        while True:
            attempt += 1
            try:
                response = self._answer(request)
            except httpx.HTTPError as error:
                if (wait := self._wait(request, attempt, None)) is None:
                    raise self._unreachable(error) from error
            else:
                if (wait := self._wait(request, attempt, response)) is None:
                    return read(request, response)
            time.sleep(wait)

    def _answer(self, request: Request[Any]) -> httpx.Response:
        built, follow = self._built(self._client, request), request.on_event
        response = self._client.send(built, stream=follow is not None)
        if follow is not None:
            with closing(response):
                if response.is_success:
                    any(not handle_line(follow, line) for line in response.iter_lines())
                else:
                    response.read()
        return response

    def close(self) -> None:
        self._client.close()


class AsyncTransport(_Base):
    """Sends requests; responses are awaited."""

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 30.0) -> None:
        super().__init__(url, token, timeout)
        self._client = httpx.AsyncClient(**self._options)

    async def send(self, request: Request[T]) -> T:
        attempt = 0
        while True:
            attempt += 1
            try:
                response = await self._answer(request)
            except httpx.HTTPError as error:
                if (wait := self._wait(request, attempt, None)) is None:
                    raise self._unreachable(error) from error
            else:
                if (wait := self._wait(request, attempt, response)) is None:
                    return read(request, response)
            await asyncio.sleep(wait)

    async def _answer(self, request: Request[Any]) -> httpx.Response:
        built, follow = self._built(self._client, request), request.on_event
        response = await self._client.send(built, stream=follow is not None)
        if follow is not None:
            async with aclosing(response):
                if response.is_success:
                    async for line in response.aiter_lines():
                        if not handle_line(follow, line):
                            break
                else:
                    await response.aread()
        return response

    async def close(self) -> None:
        await self._client.aclose()


def handle_line(follow: Callable[[str | None], bool], line: str) -> bool:
    """Handle a line of an event stream; return whether to continue."""
    if line.startswith("data: "):
        return follow(line.removeprefix("data: "))
    return not line.startswith(":") or follow(None)


def _json(values: Any) -> bytes:
    try:
        return json.dumps(values, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"the request cannot be written as JSON ({error}); give texts, numbers, lists, mappings"
        ) from None


def read(request: Request[T], response: httpx.Response) -> T:
    if response.is_success or response.status_code == 304:
        try:
            return request.read(response)
        except (ValueError, KeyError, TypeError, ConfigError) as error:
            raise ServerError(
                f"{response.request.url}: the answer cannot be read ({error}); is it a server of "
                "this version of kbkit?"
            ) from error
    raise error_of(response)


def error_of(response: httpx.Response) -> KbkitError:
    status = response.status_code
    try:
        answer = response.json()
        detail, name = str(answer["detail"]), str(answer["error"])
    except (ValueError, KeyError, TypeError):
        kind = _OF_STATUS.get(status, ServerError)
        return _new_error(kind, f"{response.request.url}: {status} {response.reason_phrase}", {})
    attributes = answer.get("attributes")
    return error_named(name, detail, attributes if isinstance(attributes, dict) else {})


def error_named(name: str, message: str, attributes: Mapping[str, Any] = _NOTHING) -> KbkitError:
    """Return an error of a class of `kbkit.errors` by its name; of an unknown one `ServerError`."""
    kind = getattr(errors, name, ServerError)
    if not (isinstance(kind, type) and issubclass(kind, KbkitError)):
        kind = ServerError
    return _new_error(kind, message, attributes)


def _new_error(kind: type[KbkitError], message: str, attributes: Mapping[str, Any]) -> KbkitError:
    error = kind.__new__(kind, message)
    Exception.__init__(error, message)
    if issubclass(kind, LimitError):
        error.retry_after = 0  # type: ignore[attr-defined]
    for name, value in attributes.items():
        if not name.startswith("_"):
            setattr(error, name, value)
    return error


def _retry_after(response: httpx.Response) -> float:
    try:
        return min(float(response.headers.get("Retry-After", "0")), _MAX_WAIT)
    except ValueError:
        return 0.0


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(
            f"{url!r}: not an address of a server; give one such as http://127.0.0.1:8765"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError(
            "the address of a server cannot have a user, query or fragment; give a token as token="
        )
    return url.rstrip("/")


def _checked_token(token: str) -> str:
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError("token: has characters that no token has; copy it as it was shown")
    return token
