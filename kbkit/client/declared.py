"""Calls declared by their signatures: arguments, path, and the type of the response."""

import inspect
import typing
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, update_wrapper
from io import BytesIO
from json import dumps
from string import Formatter
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar
from urllib.parse import parse_qsl, quote

import httpx

from kbkit.client.calls import Request, Steps, steps
from kbkit.errors import ConfigError
from kbkit.models import Entity, GraphEdit, Target
from kbkit.models.values import from_dict, to_json
from kbkit.runtime.validation import check_integer, check_text

P = ParamSpec("P")
T = TypeVar("T")

LONG = 600.0
"""Timeout in seconds of requests that start work."""
KNOWLEDGE = "/api/knowledge"
BASE = f"{KNOWLEDGE}/bases/{{self._base.name}}"
"""Path of the knowledge base of a call's object."""
_MAX = 500
"""Page size."""


def write_cursor(*place: Any) -> str:
    """Return the cursor of the values after a position in a list."""
    return urlsafe_b64encode(dumps(place, ensure_ascii=False).encode()).decode().rstrip("=")


def cursor_after(place: Any) -> dict[str, Any]:
    """Return the parameter of a list that begins after an id, a URI, or a URI and a position."""
    values = place if isinstance(place, tuple) else (place,)
    return {"cursor": write_cursor(*values)} if values[0] else {}


After = Annotated[tuple[str, int], cursor_after]
"""URI and position of the last chunk that a list leaves out."""


def names(kbs: Sequence[str]) -> list[str]:
    """Return names of knowledge bases."""
    if not kbs:
        raise ConfigError("kbs is empty: name a knowledge base, or leave kbs out for all")
    return [kbs] if isinstance(kbs, str) else list(kbs)


Names = Annotated[Sequence[str], names]


class Declare(Protocol):
    """Turns a signature into a method."""

    def __call__(self, define: Callable[Concatenate[Any, P], T], /) -> steps[P, T]: ...


Run = Callable[[Any, Request[Any], Mapping[str, Any]], Steps[Any]]
"""Sends a request and those that follow; receives ``self`` and arguments given by name."""


def call(
    route: str,
    run: Run | None = None,
    *,
    names: Mapping[str, str] | None = None,
    key: str = "",
    read: Callable[[Any], Any] | None = None,
    body: Mapping[str, Any] | None = None,
    text: str = "",
    timeout: float | None = None,
    paged: bool = False,
) -> Declare:
    """Turn a signature into a method that sends one request, or others after it.

    Arguments fill the path by name; the others are query parameters of ``GET`` and ``DELETE``, and
    else the fields of a JSON body. The returned type says how to read the response. A type
    ``Annotated[kind, convert]`` converts an argument; a mapping is several query parameters.

    Args:
        route: Method, path and fixed query parameters, with names to fill; see `address`.
        run: Sends the request and others; by default only that request.
        names: Names in the request of arguments with other names there.
        key: Key of the result in the response.
        read: Reads the result from the JSON response.
        body: More fields of the body, with names to fill.
        text: Name of the argument that is the whole body, as text.
        timeout: Seconds; by default the client's timeout.
        paged: Whether to return a `ResultPage` of the list.
    """
    method, _, path = route.partition(" ")
    in_path = {name for _, name, _, _ in _ADDRESS.parse(path.partition("?")[0]) if name}

    def declare(define: Callable[Concatenate[Any, P], T]) -> steps[P, T]:
        signature = inspect.signature(define)

        @cache
        def hints() -> dict[str, Any]:
            annotations = dict(define.__annotations__)
            if read is not None:
                del annotations["return"]  # its module may not be imported yet
            holder = SimpleNamespace(__annotations__=annotations)
            return typing.get_type_hints(holder, define.__globals__, include_extras=True)

        @cache
        def reader() -> Callable[[httpx.Response], Any]:
            return _reader(hints().get("return", Any), key, read, paged)

        def request(self: Any, /, *args: Any, **kwargs: Any) -> Request[Any]:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            arguments = {
                name: _json_value(name, value, hints()[name])
                for name, value in bound.arguments.items()
                if name not in _NOT_SENT and value is not None
            }
            version = arguments.pop("if_match", None)
            for name in in_path:
                if isinstance(entity := bound.arguments.get(name), Entity):
                    version = stamp(entity.updated_at)
            filled = {name: arguments.pop(name) for name in in_path & set(arguments)}
            at, query = address(path, self, **filled)
            arguments = {(names or {}).get(name, name): value for name, value in arguments.items()}
            json = None
            if method in ("GET", "DELETE"):
                for name, value in arguments.items():
                    query |= value if isinstance(value, Mapping) else {name: value}
            elif arguments or body:
                json = json_body(**_fill(body or {}, self), **arguments)
            headers, content = {} if version is None else {"If-Match": f'"{version}"'}, None
            if text:
                headers["Content-Type"] = "text/plain; charset=utf-8"
                content, json = arguments[text].encode(), None
            return Request(
                method, at, reader(), query, json, content, headers=headers, timeout=timeout
            )

        def start(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
            first = request(self, *args, **kwargs)
            return run(self, first, kwargs) if run else send(first)

        return steps(update_wrapper(start, define))

    return declare


def send(request: Request[T]) -> Steps[T]:
    """Send one request, as a step of others."""
    return (yield request)


_NOT_SENT = frozenset({"self", "base", "on_progress", "stop"})


def _json_value(name: str, value: Any, hint: Any) -> Any:
    kinds, converters = _parts(hint)
    for convert in converters:
        value = convert(value)
    if isinstance(value, Entity | GraphEdit):
        return value.id
    if kinds >= {str, Sequence} and isinstance(value, tuple(kinds - {Sequence})):
        return [_json_value(name, value, Any)]
    if isinstance(value, Target):
        return value.key
    if isinstance(value, str):
        return check_text(name, value)
    if Sequence in kinds and not converters and isinstance(value, Iterable):
        return [_json_value(name, each, Any) for each in value]
    if str in kinds and not converters and not isinstance(value, tuple(kinds)):
        return check_text(name, value)  # raises
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


def _parts(hint: Any) -> tuple[set[Any], list[Callable[[Any], Any]]]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        kinds, converters = _parts(arguments[0])
        return kinds, converters + [each for each in arguments[1:] if callable(each)]
    if origin not in (typing.Union, UnionType):
        return {origin or hint}, []
    parts = [_parts(each) for each in arguments]
    kinds = {kind for found, _ in parts for kind in found}
    return kinds, [convert for _, found in parts for convert in found]


def _reader(
    kind: Any, key: str, convert: Callable[[Any], Any] | None, paged: bool
) -> Callable[[httpx.Response], Any]:
    if kind is NoneType:
        return reads_nothing
    if kind is typing.BinaryIO:
        return lambda response: BytesIO(response.content)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    container: Any = origin if origin in (list, tuple) and not convert else None
    if NoneType in arguments:
        (kind,) = {*arguments} - {NoneType}

    def read(response: httpx.Response) -> Any:
        if kind is str and response.headers["Content-Type"].startswith("text/"):
            return response.content.decode()
        if not response.content and NoneType in arguments:
            return None
        body = response.json()
        answer = body[key or "data"] if key or container else body
        if convert:
            return convert(answer)
        if container:
            values = container(from_dict(arguments[0], each) for each in answer)
            return ResultPage(values, body["next_cursor"]) if paged else values
        return None if answer is None else from_dict(kind, answer)

    return read


class _Address(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        parts = str(value).split("/") if format_spec == "path" else [str(value)]
        return "/".join(map(_segment, parts))


_ADDRESS = _Address()


def url(template: str, /, *names: Any, **named: Any) -> str:
    """Format a path with quoted names; ``{name:path}`` keeps its slashes."""
    return _ADDRESS.format(template, *names, **named)


def stamp(changed: datetime | None) -> str:
    """Return the version of something that was last changed at a time."""
    return "unchanged" if changed is None else changed.isoformat()


def address(path: str, owner: Any, /, **names: Any) -> tuple[str, dict[str, Any]]:
    """Format a path and its query, which may name attributes of their owner, ``self``."""
    base_path, _, fixed = path.partition("?")
    return url(base_path, self=owner, **names), _fill(dict(parse_qsl(fixed)), owner)


def _fill(values: Mapping[str, Any], owner: Any) -> dict[str, Any]:
    return {
        name: value.format(self=owner) if isinstance(value, str) else value
        for name, value in values.items()
    }


def reads_nothing(_: httpx.Response) -> None:
    """Ignore the body of a response."""


def json_body(**values: Any) -> dict[str, Any]:
    """Return the values that are not ``None`` as a JSON body."""
    return {name: to_json(value) for name, value in values.items() if value is not None}


def _segment(name: str) -> str:
    """Quote a path segment, also ``.`` and ``..``, which clients would resolve."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


@dataclass(frozen=True, slots=True)
class ResultPage(Generic[T]):
    """A page of a list."""

    values: list[T]
    cursor: str | None
    """Cursor of the next page; ``None`` at the end."""


def first_page(kind: type[T], path: str, owner: object) -> Request[ResultPage[T]]:
    """Request the first page of a list, whose path may name attributes of its owner."""
    full_path, query = address(path, owner)
    params = {"limit": _MAX, **query}
    return Request("GET", full_path, _reader(list[kind], "", None, paged=True), params)  # type: ignore[valid-type]


def next_page(
    request: Request[ResultPage[T]], part: ResultPage[T]
) -> Request[ResultPage[T]] | None:
    """Request the next page; ``None`` after the last."""
    if part.cursor is None:
        return None
    return replace(request, query={**request.query, "cursor": part.cursor})


def list_all(request: Request[ResultPage[T]], limit: int | None = None) -> Steps[list[T]]:
    """Request a list, page by page, up to a limit."""
    following: Request[ResultPage[T]] | None = request
    values: list[T] = []
    while following is not None:
        part: ResultPage[T] = yield following
        values += part.values
        if limit is not None and len(values) >= limit:
            break
        following = next_page(following, part)
    return values[:limit]


def every(path: str, **options: Any) -> Declare:
    """Make a method that returns a list, page by page, up to its argument ``limit``."""

    def run(_: object, first: Request[Any], __: object) -> Steps[Any]:
        limit = first.query.get("limit")
        size = _MAX if limit is None else min(check_integer("limit", limit, 1), _MAX)
        return list_all(replace(first, query={**first.query, "limit": size}), limit)

    return call(f"GET {path}", run, paged=True, **options)
