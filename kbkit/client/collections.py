"""Collections on a server, fetched page by page."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from kbkit.client.calls import AnyAsyncTransport, AnyTransport, Awaited, Blocking, Request, Steps
from kbkit.errors import ConfigError, NotFoundError
from kbkit.models.values import from_dict
from kbkit.runtime.validation import check_integer

if TYPE_CHECKING:
    import httpx
    import pandas as pd


T = TypeVar("T")

_MAX = 500
"""Page size."""


@dataclass(frozen=True, slots=True)
class ResultPage(Generic[T]):
    """A page of a list."""

    values: list[T]
    cursor: str | None
    """Cursor of the next page; ``None`` at the end."""


def reads_page(kind: type[T]) -> Callable[[httpx.Response], ResultPage[T]]:
    def read(response: httpx.Response) -> ResultPage[T]:
        answer = response.json()
        return ResultPage([from_dict(kind, each) for each in answer["data"]], answer["next_cursor"])

    return read


def first_page(
    kind: type[T], path: str, query: Mapping[str, Any], limit: int = _MAX
) -> Request[ResultPage[T]]:
    """Request the first page of a list."""
    return Request("GET", path, reads_page(kind), {**query, "limit": limit})


def next_page(
    request: Request[ResultPage[T]], part: ResultPage[T]
) -> Request[ResultPage[T]] | None:
    """Request the next page; ``None`` after the last."""
    if part.cursor is None:
        return None
    return replace(request, query={**request.query, "cursor": part.cursor})


def list_all(
    kind: type[T], path: str, query: Mapping[str, Any], limit: int | None = None
) -> Steps[list[T]]:
    """Request a list, page by page, up to a limit."""
    left = _MAX if limit is None else check_integer("limit", limit, 1)
    request: Request[ResultPage[T]] | None = first_page(kind, path, query, min(left, _MAX))
    values: list[T] = []
    while request is not None:
        part: ResultPage[T] = yield request
        values += part.values
        if limit is not None and len(values) >= limit:
            break
        request = next_page(request, part)
    return values[:limit]


KNOWLEDGE = "/api/knowledge"


class Named(Protocol):
    """A knowledge base with a name."""

    @property
    def name(self) -> str: ...


class CollectionCalls(Generic[T]):
    """Requests that all collections share."""

    _noun: str
    _kind: type[T]
    _base: Named
    _count: Any

    @abstractmethod
    def _all(self) -> Request[ResultPage[T]]:
        """Request the first page."""

    @staticmethod
    @abstractmethod
    def _frame_of(values: Iterable[Any]) -> pd.DataFrame:
        """Return items as a DataFrame."""

    def __repr__(self) -> str:
        return f"<{self._noun} of {self._base.name!r}>"


class RemoteList(CollectionCalls[T], Blocking):
    """A remote collection without lookup by key."""

    def __init__(self, transport: AnyTransport, base: Named) -> None:
        super().__init__(transport)
        self._base = base

    def __iter__(self) -> Iterator[T]:
        request: Request[ResultPage[T]] | None = self._all()
        while request is not None:
            part = self._transport.send(request)
            yield from part.values
            request = next_page(request, part)

    def __len__(self) -> int:
        count: int = self._count()
        return count

    def to_frame(self) -> pd.DataFrame:
        """Return all items as a DataFrame."""
        return self._frame_of(self)

    def _repr_html_(self) -> str:
        from kbkit.frames import collection_html

        caption = f"{len(self):,} {self._noun} of {self._base.name!r}"
        return collection_html(caption, self._kind, self)


class RemoteCollection(RemoteList[T]):
    """A remote collection with lookup by key."""

    _find: Any
    """Call that returns an item by id, or raises `NotFoundError`."""

    def __getitem__(self, key: Any) -> T:
        value: T = self._find(key)
        return value

    def __contains__(self, key: object) -> bool:
        try:
            return self[key] is not None
        except (NotFoundError, ConfigError):  # not a valid id
            return False


class AsyncList(CollectionCalls[T], Awaited):
    """A remote collection whose calls are awaited; ``async for`` iterates over it."""

    def __init__(self, transport: AnyAsyncTransport, base: Named) -> None:
        super().__init__(transport)
        self._base = base

    async def __aiter__(self) -> AsyncIterator[T]:
        request: Request[ResultPage[T]] | None = self._all()
        while request is not None:
            part = await self._transport.send(request)
            for value in part.values:
                yield value
            request = next_page(request, part)

    async def count(self) -> int:
        count: int = await self._count()
        return count

    async def to_frame(self) -> pd.DataFrame:
        return self._frame_of([value async for value in self])


class AsyncCollection(AsyncList[T]):
    """An awaited collection with lookup by key."""

    _find: Any
    """Call that returns an item by id, or raises `NotFoundError`."""

    async def get(self, key: Any) -> T:
        value: T = await self._find(key)
        return value
