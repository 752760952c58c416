"""Collections on a server, fetched page by page."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from kbkit.client.calls import AnyAsyncTransport, AnyTransport, Awaited, Blocking, Request
from kbkit.client.declared import ResultPage, first_page, next_page
from kbkit.errors import ConfigError, NotFoundError

if TYPE_CHECKING:
    import pandas as pd


T = TypeVar("T")


class Named(Protocol):
    """A knowledge base with a name."""

    @property
    def name(self) -> str: ...


class CollectionCalls(Generic[T]):
    """Requests that all collections share."""

    _noun: str
    _kind: type[T]
    _path: str
    """Lists all items."""
    _base: Named
    _count: Any

    def _all(self) -> Request[ResultPage[T]]:
        return first_page(self._kind, self._path, self)

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
