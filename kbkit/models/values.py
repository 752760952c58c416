"""Convert value objects to JSON and back, with schemas.

Whatever an interface shows (command line, REST, MCP) is one of these.
"""

from __future__ import annotations

import html
from collections.abc import Hashable, Iterable, Mapping, Sized
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from functools import cache
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_type_hints

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

_MAX_LENGTH = 300
"""Characters of a field that a person is shown."""


class Value:
    """A dataclass that converts to JSON, and is shown as a table in notebooks.

    One that says something else overrides `to_dict` and names its shape, a ``TypedDict``, as what
    that returns; `lines` likewise, for people.
    """

    __slots__ = ()

    def to_dict(self) -> Mapping[str, Any]:
        """It as JSON values: times in ISO 8601, paths as text, tuples as lists."""
        return {
            field.name: to_json(getattr(self, field.name))
            for field in fields(self)  # type: ignore[arg-type]  # every subclass is a dataclass
        }

    def lines(self) -> list[tuple[str, str]]:
        """Return labels and values for a person; empty ones are left out."""
        pairs = (
            (field.name.replace("_", " "), _shown(getattr(self, field.name)))
            for field in fields(self)  # type: ignore[arg-type]
        )
        return [(label, text) for label, text in pairs if text]

    def _repr_html_(self) -> str:
        return pairs_html(self.lines())


def pairs_html(pairs: Iterable[tuple[str, str]]) -> str:
    rows = (
        f"<tr><th style='text-align:left'>{html.escape(label)}</th>"
        f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
        for label, value in pairs
    )
    return f"<table>{''.join(rows)}</table>"


def _shown(value: Any) -> str:
    """Format a field's value; ``""`` if it is empty."""
    if value is None or (isinstance(value, Sized) and not value):
        return ""
    if isinstance(value, Enum):
        text = str(value.value)
    elif isinstance(value, bool):
        text = "yes" if value else "no"
    elif isinstance(value, int):
        text = f"{value:,}"
    elif isinstance(value, float):
        text = f"{value:,.4g}"
    elif isinstance(value, datetime):
        text = f"{value:%Y-%m-%d %H:%M} {value:%Z}".rstrip()
    elif isinstance(value, Mapping):
        text = ", ".join(f"{name} {_shown(item)}" for name, item in value.items())
    elif isinstance(value, tuple | list | set | frozenset):
        text = ", ".join(map(_shown, value))
    else:
        text = str(value)
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"


def to_json(value: Any) -> Any:
    """Convert a value and its fields to JSON values."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, PathLike):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [to_json(item) for item in value]
    return value


def from_dict(kind: type[T], data: Any) -> T:
    """Make a value object from the output of its ``to_dict``, also after JSON.

    Args:
        kind: Its class; may have its own ``from_dict``.
        data: JSON values; unknown keys are ignored.

    Raises:
        pydantic.ValidationError: The values are invalid.
    """
    own = getattr(kind, "from_dict", None)
    if own is None:
        own = _adapter(cast("Hashable", kind)).validate_python
    found: T = own(data)
    return found


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def shape_of(kind: type) -> Any:
    shape = get_type_hints(kind.to_dict).get("return", kind)  # type: ignore[attr-defined]
    named = isinstance(shape, type) and hasattr(shape, "__required_keys__")
    return shape if named else kind


def schema(kind: type) -> dict[str, Any]:
    """Return the JSON schema of a value object's ``to_dict``.

    Args:
        kind: Its class: one of `kbkit.models`, or a report.
    """
    return _adapter(shape_of(kind)).json_schema(mode="serialization")
