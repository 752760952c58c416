"""Lists of a server, which come a part at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kbkit.client.calls import Request, Steps
from kbkit.models.values import from_dict
from kbkit.validation import check_integer

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

_MOST = 500
"""Most that is asked for at once."""


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """A part of a list.

    Attributes:
        values: This part.
        cursor: What asks for the next; ``None`` at the end.
    """

    values: list[T]
    cursor: str | None


def reads_part(kind: type[T]) -> Callable[[httpx.Response], Part[T]]:
    """Reads a part of a list of value objects."""

    def read(response: httpx.Response) -> Part[T]:
        told = response.json()
        return Part([from_dict(kind, each) for each in told["data"]], told["next_cursor"])

    return read


def part_of(
    kind: type[T], path: str, query: Mapping[str, Any], limit: int = _MOST
) -> Request[Part[T]]:
    """Asks for the first part of a list."""
    return Request("GET", path, reads_part(kind), {**query, "limit": limit})


def next_part(request: Request[Part[T]], part: Part[T]) -> Request[Part[T]] | None:
    """Asks for what follows a part; ``None`` behind the last."""
    if part.cursor is None:
        return None
    return replace(request, query={**request.query, "cursor": part.cursor})


def listed(
    kind: type[T], path: str, query: Mapping[str, Any], limit: int | None = None
) -> Steps[list[T]]:
    """All of a list, or as much as is wanted.

    Raises:
        ConfigError: The limit is wrong.
    """
    left = _MOST if limit is None else check_integer("limit", limit, 1)
    request: Request[Part[T]] | None = part_of(kind, path, query, min(left, _MOST))
    found: list[T] = []
    while request is not None:
        part: Part[T] = yield request
        found += part.values
        if limit is not None and len(found) >= limit:
            break
        request = next_part(request, part)
    return found[:limit]
