"""Parameters of routes.

Values that Python checks anyway are passed on as they are, so that the error is Python's; the
OpenAPI document describes valid ones.
"""
# no `from __future__ import annotations`: annotations use local variables

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from datetime import datetime
from enum import StrEnum
from inspect import Parameter, Signature
from json import dumps, loads
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from fastapi import Depends, Path, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from kbkit.errors import ConfigError, NotFoundError
from kbkit.models import DocumentType, Filters, Mode
from kbkit.models.reports import MAX_QUERY_LENGTH
from kbkit.runtime.validation import check_integer
from kbkit.server.responses import Paged

T = TypeVar("T")

MAX = 1_000
"""Maximum items of a list."""
_MAX_IN_ADDRESS = 100
"""Maximum values of a condition in an address of at most 64 kB."""
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_DECIMAL = re.compile(r"[0-9](?:\.[0-9]{1,18})?")
_LARGEST = 2**31 - 1


class Body(BaseModel):
    """Base of JSON request bodies; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Options(Body):
    """Base of bodies that may be omitted: all fields have defaults."""


def _json_schema(**schema: Any) -> WithJsonSchema:
    return WithJsonSchema(schema)


def whole(value: Any) -> Any:
    """Return an integer for a JSON number such as 5.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def check_number(name: str, value: Any, low: int, high: int) -> int:
    """Check an integer against the bounds of Python and of the server."""
    checked = check_integer(name, whole(value), low)
    if checked > high:
        raise ConfigError(f"{name}={checked}: a server takes {high:,} at most")
    return checked


def integer(name: str, description: str, low: int, high: int, default: int | None) -> Any:
    """Dependency for an integer query parameter, with Python's error message."""
    shape = {"type": "integer", "minimum": low, "maximum": high}
    if default is not None:
        shape["default"] = default

    async def read(
        value: Annotated[
            str | None, Query(alias=name, description=description), _json_schema(**shape)
        ] = None,
    ) -> int | None:
        if value is None:
            return default
        whole_value = int(value) if _WHOLE.fullmatch(value) else value
        return check_number(name, whole_value, low, high)

    return Depends(read)


def boolean(name: str, description: str) -> Any:
    """Dependency for a boolean query parameter; false by default."""

    async def read(
        value: Annotated[
            str,
            Query(alias=name, description=description),
            _json_schema(type="boolean", default=False),
        ] = "false",
    ) -> bool:
        if value not in ("true", "false"):
            raise ConfigError(f"{name}={value!r}: give true or false")
        return value == "true"

    return Depends(read)


Limit = Annotated[int, integer("limit", "Most of them.", 1, MAX, 100)]
"""Parameter: page size."""
FewLimit = Annotated[int, integer("limit", "Most of them.", 1, MAX, 10)]
"""Parameter: number of hits."""


Behind = Annotated[
    str, Query(description="Only those after the document of this URI.", max_length=4_000)
]
"""Parameter: list chunks after this document."""
BehindPosition = Annotated[
    int, integer("behind_position", "And after this position in it.", -1, _LARGEST, -1)
]
"""Parameter: position in that document."""


def write_cursor(*place: Any) -> str:
    """Return a cursor for the next page of a list."""
    return urlsafe_b64encode(dumps(place, ensure_ascii=False).encode()).decode().rstrip("=")


def read_cursor(cursor: str, *kinds: type) -> tuple[Any, ...] | None:
    """Return the position of a cursor; ``None`` for the beginning of a list."""
    if not cursor:
        return None
    try:
        place = loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError):
        place = None
    if not isinstance(place, list) or [type(each) for each in place] != list(kinds):
        raise NotFoundError(f"cursor={cursor[:80]!r}: give the `next_cursor` of an answer")
    return tuple(place)


def part_of(values: Sequence[T], limit: int, cursor: str) -> Paged[T]:
    """Return the page of a list that begins at a cursor."""
    first = _start(cursor)
    end = first + limit
    return Paged(values[first:end], write_cursor(end) if end < len(values) else None)


def part_found(find: Callable[[int], Sequence[T]], limit: int, cursor: str) -> Paged[T]:
    """Return a page of a list; ``find(n)`` returns its first `n` values."""
    return part_of(find(_start(cursor) + limit + 1), limit, cursor)


def part_after(values: Sequence[T], limit: int, place: Callable[[T], tuple[Any, ...]]) -> Paged[T]:
    """Return a page of at most `limit` values, with the position of the last one as cursor."""
    more = values and len(values) == limit
    return Paged(values, write_cursor(*place(values[-1])) if more else None)


def _start(cursor: str) -> int:
    start: int
    (start,) = read_cursor(cursor, int) or (0,)
    return max(start, 0)


Cursor = Annotated[
    str,
    Query(description="The `next_cursor` of the answer before."),
    _json_schema(type="string", pattern="^[A-Za-z0-9_-]*$", maxLength=8_000),
]
"""Parameter: position in a list."""

ChunkId = Annotated[str, Path(description="Id of a chunk.", min_length=1, max_length=200)]
"""Parameter: id of a chunk in a path."""


class ChunkIds(Body):
    """Chunks or documents, by their ids."""

    ids: Annotated[list[str], Field(max_length=10_000)]


_NAME = "Name of a knowledge base."
KbQuery = Annotated[str, Query(description=_NAME, min_length=1, max_length=200)]
"""Parameter: name of a knowledge base in a query."""
KbName = Annotated[str, Field(description=_NAME, min_length=1, max_length=200)]
"""Field: name of a knowledge base."""
KbsQuery = Annotated[
    list[str] | None, Query(description="Knowledge bases; by default all.", max_length=1_000)
]
"""Parameter: names of knowledge bases in a query; all by default."""
SomeKb = Annotated[
    str | None,
    Query(description=f"{_NAME} By default all are looked through.", min_length=1, max_length=200),
]
"""Parameter: name of a knowledge base in a query; all by default."""
KbNames = Annotated[
    Any,
    _json_schema(
        anyOf=[
            {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 1_000},
            {"type": "null"},
        ],
        description="Names of knowledge bases; by default all.",
    ),
]
"""Field: names of knowledge bases; all by default."""

# Python strips a query before it checks for text
_SAYS_SOMETHING = r"[^\s]"
QUERY_SHAPE = {
    "type": "string",
    "pattern": _SAYS_SOMETHING,
    "description": f"A question or some words; {MAX_QUERY_LENGTH:,} characters are read.",
}
QueryText = Annotated[Any, WithJsonSchema(QUERY_SHAPE)]
"""Field: a query."""
FewHits = Annotated[
    Any, _json_schema(type="integer", minimum=1, maximum=MAX, description="Most hits.")
]
"""Field: number of hits."""
SearchMode = Annotated[
    Any,
    _json_schema(
        type="string",
        enum=list(Mode),
        description="`hybrid`, `dense` (by meaning only) or `lexical` (by words only).",
    ),
]
"""Field: search mode."""
GraphWeight = Annotated[
    Any,
    _json_schema(
        anyOf=[{"type": "number", "minimum": 0, "maximum": 5}, {"type": "null"}],
        description="Weight of relations of the graph; by default that of the knowledge bases.",
    ),
]
"""Field: weight of the graph."""


def number(low: int, high: int) -> WithJsonSchema:
    """Document a field of any type as an integer, which Python checks."""
    return _json_schema(type="integer", minimum=low, maximum=high)


def one_of(kind: type[StrEnum], description: str) -> Any:
    """Return a field of an optional enum."""
    shape = {"anyOf": [{"type": "string", "enum": list(kind)}, {"type": "null"}]}
    return Annotated[Any, _json_schema(**shape, description=description)]


AnyType = one_of(DocumentType, "Type of document; detected by default.")
"""Field: type of a document."""


def _condition(kind: Any) -> tuple[dict[str, Any], bool]:
    inner = [each for each in get_args(kind) if each not in (NoneType, Ellipsis)]
    several = get_origin(kind) is tuple
    one = inner[0] if inner else kind
    if one is datetime:
        return {"anyOf": [{"type": "string", "format": f} for f in ("date-time", "date")]}, several
    if one is float:
        return {"type": "number", "minimum": 1, "maximum": 5}, several
    if one is int:
        return {"type": "integer", "minimum": 1, "maximum": _LARGEST}, several
    shape: dict[str, Any] = {"type": "string"}
    return shape | ({"enum": list(one)} if issubclass(one, StrEnum) else {}), several


def _listed(shape: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": shape}


_CONDITIONS = {name: _condition(kind) for name, kind in get_type_hints(Filters).items()}


def _read_filters(value: Any) -> Any:
    """Convert numbers of JSON such as 5.0 to integers."""
    if not isinstance(value, dict):
        return value
    return {
        name: [whole(each) for each in condition]
        if isinstance(condition, list)
        else whole(condition)
        for name, condition in value.items()
    }


FiltersField = Annotated[
    Any,
    BeforeValidator(_read_filters),
    _json_schema(
        anyOf=[
            {
                "type": "object",
                "properties": {
                    name: {"anyOf": [shape, *[_listed(shape)] * several, {"type": "null"}]}
                    for name, (shape, several) in _CONDITIONS.items()
                },
                "additionalProperties": False,
            },
            {"type": "null"},
        ],
        description="Conditions on passages and their documents.",
    ),
]
"""Field: `kbkit.Filters` as a mapping."""


def filters_of(*names: str) -> Any:
    """Dependency for `kbkit.Filters` in query parameters."""

    async def read(**given: Any) -> dict[str, Any]:
        conditions = {name: value for name, value in given.items() if value is not None}
        for name, value in conditions.items():
            if isinstance(value, list) and len(value) > _MAX_IN_ADDRESS:
                raise ConfigError(f"{name}: a URL takes {_MAX_IN_ADDRESS} at most; use POST")
        return {name: _number(name, value) for name, value in conditions.items()}

    parameters = []
    for name, (shape, several) in _CONDITIONS.items():
        if names and name not in names:
            continue
        about = Query(description=f"Condition: see `{name}` of the filters of a search.")
        kind: Any = list[str] if several else str
        shown = {**_listed(shape), "maxItems": _MAX_IN_ADDRESS} if several else shape
        given_values = Annotated[kind | None, about, _json_schema(**shown)]
        parameters.append(
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=given_values)
        )
    read.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # FastAPI reads it
    return Depends(read)


def _number(name: str, value: Any) -> Any:
    """Convert a condition to a number; Python reports malformed ones."""
    if name == "page":
        return [int(each) if _WHOLE.fullmatch(each) else each for each in value]
    if name == "min_rating" and _DECIMAL.fullmatch(value):
        return float(value)
    return value
