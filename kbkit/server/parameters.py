"""Parameters of routes.

OpenAPI describes valid values; kbkit checks some of them later, for its own error messages.
"""

from base64 import urlsafe_b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from json import loads
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter
from pydantic.json_schema import WithJsonSchema
from pydantic.types import StrictBool, StrictInt

from kbkit.client.declared import write_cursor
from kbkit.errors import NotFoundError
from kbkit.models import DocumentType
from kbkit.models.ratings import MAX_QUERY_LENGTH
from kbkit.models.searches import condition_types, whole
from kbkit.models.values import valid
from kbkit.server.responses import Paged

T = TypeVar("T")

MAX = 1_000
"""Maximum items of a list."""


class Body(BaseModel):
    """Base of JSON request bodies; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Options(Body):
    """Base of bodies that may be omitted: all fields have defaults."""


WHOLE = BeforeValidator(whole)
"""For integers; in JSON, 5.0 is one too."""


FormBoolean = Annotated[
    StrictBool, BeforeValidator(lambda value: {"true": True, "false": False}.get(value, value))
]
"""A boolean in a form."""
FewLimit = Annotated[int, Query(description="Maximum results.", ge=1, le=MAX)]


def _is_storable(value: str | int) -> bool:
    return valid(value) == value if isinstance(value, str) else abs(value) < 2**53


Cursor = Annotated[
    str,
    Query(description="`next_cursor` of the previous page."),
    WithJsonSchema({"type": "string", "pattern": "^[A-Za-z0-9_-]*$", "maxLength": 8_000}),
]


@dataclass(frozen=True)
class Paging:
    """The part of a list that a request asks for."""

    limit: Annotated[int, Query(description="Page size.", ge=1, le=MAX)] = 100
    cursor: Cursor = ""

    def place(self, *kinds: type) -> tuple[Any, ...] | None:
        """Return the position of the cursor; ``None`` for the start of a list."""
        if not self.cursor:
            return None
        try:
            position = loads(urlsafe_b64decode(self.cursor + "=" * (-len(self.cursor) % 4)))
        except (ValueError, RecursionError):
            position = None
        is_valid = isinstance(position, list) and [type(each) for each in position] == list(kinds)
        if not is_valid or not all(map(_is_storable, position)):
            raise NotFoundError(f"cursor={self.cursor[:80]!r}: give the `next_cursor` of an answer")
        return tuple(position)

    def of(self, values: Sequence[T]) -> Paged[T]:
        """Return the page of a whole list."""
        first = self._start
        end = first + self.limit
        return Paged(values[first:end], write_cursor(end) if end < len(values) else None)

    def find(self, find: Callable[[int], Sequence[T]]) -> Paged[T]:
        """Return a page of a list; ``find(n)`` returns its first `n` values."""
        return self.of(find(self._start + self.limit + 1))

    def ending(self, values: Sequence[T], place: Callable[[T], tuple[Any, ...]]) -> Paged[T]:
        """Return a page of at most `limit` values, with the position of the last one as cursor."""
        has_more = values and len(values) == self.limit
        return Paged(values, write_cursor(*place(values[-1])) if has_more else None)

    @property
    def _start(self) -> int:
        (start,) = self.place(int) or (0,)
        return max(int(start), 0)


PagingOf = Annotated[Paging, Depends()]
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
NOT_BLANK = r"[^\s]"
QueryText = Annotated[
    str,
    Field(
        description=f"A question or some words; {MAX_QUERY_LENGTH:,} characters are read.",
        json_schema_extra={"pattern": NOT_BLANK},
    ),
]
FewHits = Annotated[StrictInt, Field(description="Maximum hits.", ge=1, le=MAX), WHOLE]
AnyType = Annotated[
    DocumentType | None, Field(description="Type of document; detected by default.")
]


def _condition(kind: TypeAdapter[Any]) -> dict[str, Any]:
    shape = kind.json_schema()
    definitions = shape.pop("$defs", {})
    if shape.get("format") == "date-time":
        return {"anyOf": [shape, {"type": "string", "format": "date"}, {"type": "null"}]}
    if "items" not in shape:
        return {"anyOf": [shape, {"type": "null"}]}
    item = next(iter(definitions.values()), shape["items"])
    return {"anyOf": [item, {"type": "array", "items": item}, {"type": "null"}]}


_Conditions = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "properties": {name: _condition(kind) for name, kind in condition_types().items()},
            "additionalProperties": False,
        }
    ),
]
FiltersField = Annotated[
    _Conditions | None, Field(description="Conditions on passages and their documents.")
]
