"""Parameters of routes.

OpenAPI describes valid values, but kbkit checks most of them later, for its own error messages.
"""
# no `from __future__ import annotations`: annotations use local variables

import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Sequence
from enum import StrEnum
from json import loads
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Query
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    TypeAdapter,
    WithJsonSchema,
)

from kbkit.client.declared import write_cursor
from kbkit.errors import ConfigError, NotFoundError
from kbkit.models import DocumentType, Mode
from kbkit.models.reports import MAX_QUERY_LENGTH
from kbkit.models.searches import condition_types
from kbkit.models.values import valid
from kbkit.runtime.validation import check_integer
from kbkit.server.responses import Paged

T = TypeVar("T")

MAX = 1_000
"""Maximum items of a list."""
_WHOLE = re.compile(r"-?[0-9]{1,18}")


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


FormBoolean = Annotated[
    StrictBool, BeforeValidator(lambda value: {"true": True, "false": False}.get(value, value))
]
"""A boolean in a form."""
Limit = Annotated[int, integer("limit", "Page size.", 1, MAX, 100)]
FewLimit = Annotated[int, integer("limit", "Maximum results.", 1, MAX, 10)]


def read_cursor(cursor: str, *kinds: type) -> tuple[Any, ...] | None:
    """Return the position of a cursor; ``None`` for the start of a list."""
    if not cursor:
        return None
    try:
        place = loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError):
        place = None
    is_place = isinstance(place, list) and [type(each) for each in place] == list(kinds)
    if not is_place or not all(map(_is_storable, place)):
        raise NotFoundError(f"cursor={cursor[:80]!r}: give the `next_cursor` of an answer")
    return tuple(place)


def _is_storable(value: str | int) -> bool:
    return valid(value) == value if isinstance(value, str) else abs(value) < 2**53


def offset_page(values: Sequence[T], limit: int, cursor: str) -> Paged[T]:
    """Return the page of a list that starts at a cursor."""
    first = _start(cursor)
    end = first + limit
    return Paged(values[first:end], write_cursor(end) if end < len(values) else None)


def find_page(find: Callable[[int], Sequence[T]], limit: int, cursor: str) -> Paged[T]:
    """Return a page of a list; ``find(n)`` returns its first `n` values."""
    return offset_page(find(_start(cursor) + limit + 1), limit, cursor)


def keyset_page(values: Sequence[T], limit: int, place: Callable[[T], tuple[Any, ...]]) -> Paged[T]:
    """Return a page of at most `limit` values, with the position of the last one as cursor."""
    more = values and len(values) == limit
    return Paged(values, write_cursor(*place(values[-1])) if more else None)


def _start(cursor: str) -> int:
    start: int
    (start,) = read_cursor(cursor, int) or (0,)
    return max(start, 0)


Cursor = Annotated[
    str,
    Query(description="`next_cursor` of the previous page."),
    _json_schema(type="string", pattern="^[A-Za-z0-9_-]*$", maxLength=8_000),
]
ChunkId = Annotated[str, Path(description="Id of a chunk.", min_length=1, max_length=200)]


class ChunkIds(Body):
    """Chunks or documents, by their ids."""

    ids: Annotated[list[str], Field(max_length=10_000)]


_NAME = "Name of a knowledge base."
KbQuery = Annotated[str, Query(description=_NAME, min_length=1, max_length=200)]
KbName = Annotated[str, Field(description=_NAME, min_length=1, max_length=200)]
KbsQuery = Annotated[
    list[str] | None, Query(description="Knowledge bases; by default all.", max_length=1_000)
]
SomeKb = Annotated[
    str | None,
    Query(description=f"{_NAME} By default all are searched.", min_length=1, max_length=200),
]
KbNames = Annotated[
    list[str] | None,
    Field(description="Names of knowledge bases; by default all.", min_length=1, max_length=1_000),
]

# kbkit strips whitespace before it checks that a query is not empty
_NOT_BLANK = r"[^\s]"
QUERY_SHAPE = {
    "type": "string",
    "pattern": _NOT_BLANK,
    "description": f"A question or some words; {MAX_QUERY_LENGTH:,} characters are read.",
}
QueryText = Annotated[Any, WithJsonSchema(QUERY_SHAPE)]


SearchMode = Annotated[
    Any,
    _json_schema(
        type="string",
        enum=list(Mode),
        description="`hybrid`, `dense` (by meaning only) or `lexical` (by words only).",
    ),
]


GraphWeight = Annotated[
    Any,
    _json_schema(
        anyOf=[{"type": "number", "minimum": 0, "maximum": 5}, {"type": "null"}],
        description="Weight of graph relations; by default the knowledge bases' setting.",
    ),
]


def number(name: str, low: int, high: int) -> BeforeValidator:
    """Check an integer field of any type as Python does, for its error message."""

    def check(value: Any) -> int | None:
        return None if value is None else check_number(name, value, low, high)

    return BeforeValidator(check, json_schema_input_type=Annotated[int, Field(ge=low, le=high)])


def one_of(kind: type[StrEnum], description: str) -> Any:
    shape = {"anyOf": [{"type": "string", "enum": list(kind)}, {"type": "null"}]}
    return Annotated[Any, _json_schema(**shape, description=description)]


FewHits = Annotated[Any, number("limit", 1, MAX), Field(description="Maximum hits.")]
AnyType = one_of(DocumentType, "Type of document; detected by default.")


def _condition(kind: TypeAdapter[Any]) -> dict[str, Any]:
    shape = kind.json_schema()
    definitions = shape.pop("$defs", {})
    if shape.get("format") == "date-time":
        return {"anyOf": [shape, {"type": "string", "format": "date"}, {"type": "null"}]}
    if "items" not in shape:
        return {"anyOf": [shape, {"type": "null"}]}
    one = next(iter(definitions.values()), shape["items"])
    return {"anyOf": [one, {"type": "array", "items": one}, {"type": "null"}]}


def _whole_conditions(value: Any) -> Any:
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
    BeforeValidator(_whole_conditions),
    _json_schema(
        anyOf=[
            {
                "type": "object",
                "properties": {name: _condition(kind) for name, kind in condition_types().items()},
                "additionalProperties": False,
            },
            {"type": "null"},
        ],
        description="Conditions on passages and their documents.",
    ),
]
