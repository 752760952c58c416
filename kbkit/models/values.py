"""Value objects as JSON: one way to turn them into it, and one schema of each.

Whatever an interface shows (command line, REST, MCP) is one of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from os import PathLike
from typing import Any, get_type_hints


class Value:
    """A dataclass whose fields are what it says as JSON.

    One that says something else overrides `to_dict` and names its shape, a ``TypedDict``, as what
    that returns.
    """

    __slots__ = ()

    def to_dict(self) -> Mapping[str, Any]:
        """It as JSON values: times in ISO 8601, paths as text, tuples as lists."""
        return {
            field.name: to_json(getattr(self, field.name))
            for field in fields(self)  # type: ignore[arg-type]  # every subclass is a dataclass
        }


def to_json(value: Any) -> Any:
    """A value, and what it is made of, as JSON values."""
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


def schema(kind: type) -> dict[str, Any]:
    """The JSON schema of what ``to_dict`` of a value object gives.

    Args:
        kind: Its class: one of those of `kbkit.models`, or a report.
    """
    from pydantic import TypeAdapter

    shape = get_type_hints(kind.to_dict).get("return", kind)  # type: ignore[attr-defined]
    named = isinstance(shape, type) and hasattr(shape, "__required_keys__")
    return TypeAdapter(shape if named else kind).json_schema(mode="serialization")
