"""API calls, shared by the blocking and the async client, and the HTTP that sends them.

`steps` turns a generator of requests into a method; `Blocking` and `Awaited` run it. A `Request`
includes the parser of its response; problem details become kbkit's errors.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from itertools import count
from types import MethodType
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar, overload
from urllib.parse import urlsplit

import httpx

from kbkit import errors
from kbkit.errors import ConfigError, KbkitError, LimitError, LocalOnlyError, ServerError
from kbkit.models.values import to_json
from kbkit.runtime.validation import explain_method

P = ParamSpec("P")
T = TypeVar("T")

Steps = Generator["Request[Any]", Any, T]
"""Requests in order; the generator receives the result or error of each."""


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """A request, and the function that reads its response.

    Attributes:
        method: HTTP method.
        path: From the root of the server, quoted; see `url`.
        read: Parses a successful response.
        query: Query parameters. ``None`` is omitted, a list is repeated.
        json: JSON body.
        content: Body as bytes.
        files: Parts of a form, as httpx takes them.
        headers: Additional headers.
        timeout: Seconds; by default the client's timeout.
    """

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    query: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    content: bytes | None = None
    files: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None

    @property
    def parameters(self) -> httpx.QueryParams:
        values = {name: to_json(each) for name, each in self.query.items() if each is not None}
        return httpx.QueryParams(values)


class Blocking:
    """Base of clients that block until the response."""

    def __init__(self, transport: Transport, base: Any = None) -> None:
        self._transport = transport
        self._base = base  # the knowledge base of a part

    def _run(self, steps: Steps[T]) -> T:
        return _finish(self._transport.run(steps))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class Awaited:
    """Base of clients whose calls are awaited."""

    def __init__(self, transport: AsyncTransport, base: Any = None) -> None:
        self._transport = transport
        self._base = base

    def _run(self, steps: Steps[T]) -> Awaitable[T]:
        return self._transport.run(steps)


class steps(Generic[P, T]):  # noqa: N801 - a decorator, like `property`
    """Turn a generator, which yields requests and receives their results, into a method."""

    def __init__(self, define: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        update_wrapper(self, define)
        self._define = define

        def run(instance: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:
            return instance._run(define(instance, *args, **kwargs))

        self._method = explain_method(update_wrapper(run, define))

    def __call__(self, instance: Any, /, *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
        """Return the generator itself, for ``yield from`` in another call."""
        return self._define(instance, *args, **kwargs)

    @overload
    def __get__(self, instance: None, owner: type) -> steps[P, T]: ...
    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: Awaited, owner: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else MethodType(self._method, instance)


class RemoteObject:
    """Names an alternative when a remote object lacks an attribute."""

    _only_local: ClassVar[Mapping[str, str]] = {}
    """Methods that need the workspace's folder, with the equivalent commands."""

    def __getattr__(self, name: str) -> Any:
        kind = type(self).__name__
        if name == "path":
            raise LocalOnlyError(
                f"path: the folder is on the server; use the other methods of {kind}, or "
                "kbkit.open(...) on that machine"
            )
        if command := self._only_local.get(name):
            raise only_local(name, command)
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")


def only_local(name: str, command: str) -> LocalOnlyError:
    """Return the error for an operation that needs the workspace's folder."""
    return LocalOnlyError(
        f"{name}: not possible over a server; on its machine, run `{command}` in the workspace, or "
        "call it on kbkit.open(...) of the folder"
    )


ATTEMPTS = 3
"""Attempts of a repeatable request."""
_MAX_WAIT = 30.0
_REPEATABLE = ("GET", "HEAD", "PUT", "DELETE")
_NOTHING: Mapping[str, Any] = {}
_Outcome = httpx.Response | httpx.HTTPError


class _Base:
    _kind: ClassVar[Callable[..., Any]]
    _answer: Callable[[httpx.Request], Awaitable[httpx.Response]]
    _sleep: Callable[[float], Awaitable[None]]

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 30.0) -> None:
        self.url = _check_url(url)
        if timeout <= 0:
            raise ConfigError(f"timeout={timeout}: give a number of seconds above 0")
        self._timeout = timeout
        self._client = self._kind(
            base_url=self.url,
            headers={
                "User-Agent": "kbkit",
                "Accept": "application/json, */*;q=0.5",
                **({"Authorization": f"Bearer {_check_token(token)}"} if token else {}),
            },
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            follow_redirects=False,  # the token must not reach another host
        )

    async def run(self, steps: Steps[T]) -> T:
        """Send the requests of a generator, and return its result."""
        advance: Callable[[], Request[Any]] = partial(next, steps)
        while True:
            try:
                request = advance()
            except StopIteration as end:
                return end.value
            try:
                advance = partial(steps.send, await self.attempt(request))
            except KbkitError as error:  # the generator may handle it
                advance = partial(steps.throw, error)

    async def attempt(self, request: Request[T]) -> T:
        """Send a request until it succeeds or may not be repeated."""
        for attempt in count(1):
            outcome: _Outcome
            try:
                outcome = await self._answer(self._build(request))
            except httpx.HTTPError as error:
                outcome = error
            if (wait := self._wait(request, attempt, outcome)) is None:
                break
            await self._sleep(wait)
        return self._read(request, outcome)

    def _build(self, request: Request[Any]) -> httpx.Request:
        content, headers = request.content, dict(request.headers)
        if request.json is not None:
            content, headers["Content-Type"] = _json(request.json), "application/json"
        return self._client.build_request(
            request.method,
            request.path,
            params=request.parameters,
            content=content,
            files=request.files,
            headers=headers,
            timeout=request.timeout or httpx.USE_CLIENT_DEFAULT,
        )

    def _wait(self, request: Request[Any], attempt: int, outcome: _Outcome) -> float | None:
        response = outcome if isinstance(outcome, httpx.Response) else None
        status = None if response is None else response.status_code
        # its outcome may be unknown; a rate limit applies before any work
        may_repeat = request.method in _REPEATABLE or "Idempotency-Key" in request.headers
        should_retry = status == 429 or (status in (None, 502, 503, 504) and may_repeat)
        if attempt >= ATTEMPTS or not should_retry:
            return None
        # exponential backoff with jitter; needs no secure randomness
        backoff: float = 0.2 * 2**attempt * (0.5 + random.random() / 2)  # noqa: S311
        return backoff if response is None else max(backoff, _retry_after(response))

    def _read(self, request: Request[T], outcome: _Outcome) -> T:
        if isinstance(outcome, httpx.Response):
            return read(request, outcome)
        reason = str(outcome) or type(outcome).__name__
        problem = f"cannot be reached ({reason}); is `kbkit serve` running there?"
        if isinstance(outcome, httpx.TimeoutException):
            problem = f"no answer within {self._timeout:g} s; try again, or give a longer timeout"
        raise ServerError(f"{self.url}: {problem}") from outcome


class Transport(_Base):
    """Sends requests and waits for the responses; safe to use from several threads.

    Its coroutines block instead of suspending, so that `_finish` can run them.
    """

    _kind = httpx.Client

    def send(self, request: Request[T]) -> T:
        return _finish(self.attempt(request))

    async def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        return self._client.send(request)

    def close(self) -> None:
        self._client.close()


def _finish(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("a coroutine of the blocking client was suspended")


class AsyncTransport(_Base):
    """Sends requests; responses are awaited."""

    _kind = httpx.AsyncClient
    _sleep = staticmethod(asyncio.sleep)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        return await self._client.send(request)

    async def close(self) -> None:
        await self._client.aclose()


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
        return ServerError(f"{response.request.url}: {status} {response.reason_phrase}")
    attributes = answer.get("attributes")
    return error_named(name, detail, attributes if isinstance(attributes, dict) else {})


def error_named(name: str, message: str, attributes: Mapping[str, Any] = _NOTHING) -> KbkitError:
    """Return an error of a class of `kbkit.errors` by its name; of an unknown one `ServerError`."""
    kind = getattr(errors, name, ServerError)
    if not (isinstance(kind, type) and issubclass(kind, KbkitError)):
        kind = ServerError
    error: KbkitError = kind.__new__(kind, message)
    Exception.__init__(error, message)
    if issubclass(kind, LimitError):
        error.retry_after = 0  # type: ignore[attr-defined]
    for attribute, value in attributes.items():
        if not attribute.startswith("_"):
            setattr(error, attribute, value)
    return error


def _retry_after(response: httpx.Response) -> float:
    try:
        return min(float(response.headers.get("Retry-After", "0")), _MAX_WAIT)
    except ValueError:
        return 0.0


def _check_url(url: str) -> str:
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


def _check_token(token: str) -> str:
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError("token: has characters that no token has; copy it as it was shown")
    return token
