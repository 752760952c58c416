"""Definitions of API calls, shared by the blocking and the async client.

`steps` turns a generator of requests into a method; `Blocking` and `Awaited` run it. A `Request`
includes the parser of its response.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from types import MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    overload,
)

from kbkit.errors import KbkitError, LocalOnlyError
from kbkit.models.values import Target, to_json
from kbkit.runtime.validation import explained_method

if TYPE_CHECKING:
    import httpx


P = ParamSpec("P")
T = TypeVar("T")

_IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE"})

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
        on_event: Receives server-sent events, and ``None`` as a heartbeat; returns whether to
            continue.
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
    on_event: Callable[[str | None], bool] | None = None

    @property
    def may_repeat(self) -> bool:
        """Whether the request may be sent again if its outcome is unknown."""
        return self.method in _IDEMPOTENT or "Idempotency-Key" in self.headers

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """Query parameters as pairs of strings; the kind of a target is another parameter."""
        pairs: list[tuple[str, str]] = []
        for name, value in self.query.items():
            if isinstance(value, Target):
                pairs += [(name, value.id), (f"{name}_kind", value.kind.value)]
                continue
            values = value if isinstance(value, list | tuple) else (value,)
            pairs += [(name, _parameter(each)) for each in values if each is not None]
        return tuple(pairs)


class AnyTransport(Protocol):
    """Sends requests to a server."""

    @property
    def url(self) -> str:
        """Address of the server."""

    def send(self, request: Request[T]) -> T:
        """Send a request and return its parsed response."""


class AnyAsyncTransport(Protocol):
    """Sends requests to a server, awaited."""

    async def send(self, request: Request[T]) -> T:
        """Send a request and return its parsed response."""


class Blocking:
    """Base of clients that block until the response."""

    def __init__(self, transport: AnyTransport) -> None:
        self._transport = transport

    def _run(self, steps: Steps[T]) -> T:
        advance: Callable[[], Request[Any]] = partial(next, steps)
        while True:
            try:
                request = advance()
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                advance = partial(steps.send, self._transport.send(request))
            except KbkitError as error:  # the generator may handle it
                advance = partial(steps.throw, error)


class Awaited:
    """Base of clients whose calls are awaited."""

    def __init__(self, transport: AnyAsyncTransport) -> None:
        self._transport = transport

    async def _run(self, steps: Steps[T]) -> T:
        advance: Callable[[], Request[Any]] = partial(next, steps)
        while True:
            try:
                request = advance()
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                advance = partial(steps.send, await self._transport.send(request))
            except KbkitError as error:  # the generator may handle it
                advance = partial(steps.throw, error)


class steps(Generic[P, T]):  # noqa: N801 - a decorator, like `property`
    """Turn a generator, which yields requests and receives their results, into a method."""

    def __init__(self, define: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        update_wrapper(self, define)
        self._define = define

        def run(instance: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:
            return instance._run(define(instance, *args, **kwargs))

        self._method = explained_method(update_wrapper(run, define))

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


def _parameter(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(to_json(value))


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
        if kind == "RemoteWorkspace" and name in ("open", "get", "load", "kb", "knowledge_base"):
            raise AttributeError(
                f"a workspace has no {name!r}: write workspace['name'] for a knowledge base, "
                "and workspace.create('name') for a new one"
            )
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")


def only_local(name: str, command: str) -> LocalOnlyError:
    """Return the error for an operation that needs the workspace's folder."""
    return LocalOnlyError(
        f"{name}: not possible over a server; on its machine, run `{command}` in the workspace, or "
        "call it on kbkit.open(...) of the folder"
    )
