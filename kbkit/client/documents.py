"""Collections on a server, fetched page by page, such as documents."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, TypeVar

from kbkit import models
from kbkit.client import declared
from kbkit.client.calls import Awaited, Blocking, Request, Steps, steps
from kbkit.client.work import OnProgress, Stop, job, result_of
from kbkit.errors import ConfigError, NotFoundError
from kbkit.models.values import to_json
from kbkit.runtime.validation import check_json

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
    _path = f"{declared.BASE}/{{self._noun}}"
    """Lists all items."""
    _base: Named
    _count: Any

    def _all(self) -> Request[declared.ResultPage[T]]:
        return declared.first_page(self._kind, self._path, self)

    def _rows(self) -> Steps[Sequence[Any]]:
        return declared.list_all(self._all())

    @steps
    def to_frame(self) -> Steps[pd.DataFrame]:
        """Return all items as a DataFrame."""
        from kbkit import frames

        return getattr(frames, f"{self._noun}_frame")((yield from self._rows()))

    def __repr__(self) -> str:
        return f"<{self._noun} of {self._base.name!r}>"


class RemoteList(CollectionCalls[T], Blocking):
    """A remote collection without lookup by key."""

    def __iter__(self) -> Iterator[T]:
        request: Request[declared.ResultPage[T]] | None = self._all()
        while request is not None:
            part = self._transport.send(request)
            yield from part.values
            request = declared.next_page(request, part)

    def __len__(self) -> int:
        return self._count()

    def _repr_html_(self) -> str:
        from kbkit.frames import collection_html

        caption = f"{len(self):,} {self._noun} of {self._base.name!r}"
        return collection_html(caption, self._kind, self)


class RemoteCollection(RemoteList[T]):
    """A remote collection with lookup by key."""

    _find: Any
    """Call that returns an item by id, or raises `NotFoundError`."""

    def __getitem__(self, key: Any) -> T:
        return self._find(key)

    def __contains__(self, key: object) -> bool:
        try:
            return self[key] is not None
        except (NotFoundError, ConfigError):  # not a valid id
            return False


class AsyncList(CollectionCalls[T], Awaited):
    """A remote collection whose calls are awaited; ``async for`` iterates over it."""

    async def __aiter__(self) -> AsyncIterator[T]:
        request: Request[declared.ResultPage[T]] | None = self._all()
        while request is not None:
            part = await self._transport.attempt(request)
            for value in part.values:
                yield value
            request = declared.next_page(request, part)

    def count(self) -> Awaitable[int]:
        return self._count()


class AsyncCollection(AsyncList[T]):
    """An awaited collection with lookup by key."""

    _find: Any
    """Call that returns an item by id, or raises `NotFoundError`."""

    def get(self, key: Any) -> Awaitable[T]:
        return self._find(key)


_DOCUMENT = f"{declared.KNOWLEDGE}/documents/{{document}}?kb={{self._base.name}}"


def conditions(filters: Any) -> dict[str, Any]:
    values: dict[str, Any] = to_json(models.Filters.of(filters))
    return {name: value for name, value in values.items() if value not in ("", [], None)}


def _of_documents(filters: Any) -> dict[str, Any]:
    models.Filters.of(filters).check_of_documents()
    return conditions(filters)


def _model_name(llm: Any) -> str:
    if not isinstance(llm, str):
        raise ConfigError(
            "llm: a server uses its own language model; give a name such as "
            "'openai:gpt-4o-mini', or leave llm out for the recipe's model"
        )
    return llm


Conditions = Annotated[models.Filters | Mapping[str, Any], conditions]
Metadata = Annotated[Mapping[str, Any], lambda values: check_json("metadata", dict(values))]


class DocumentsCalls(CollectionCalls[models.Document]):
    """Requests for documents; see `kbkit.knowledge_base.documents.Documents`."""

    _noun = "documents"
    _kind = models.Document
    _path = f"{declared.KNOWLEDGE}/documents?kb={{self._base.name}}&content=true&limit=50"

    @declared.every(f"{declared.KNOWLEDGE}/documents?kb={{self._base.name}}")
    def list(
        self,
        *,
        filters: Annotated[models.Filters | Mapping[str, Any], _of_documents] | None = None,
        after: Annotated[str, declared.cursor_after] = "",
        limit: int | None = None,
        content: bool = False,
    ) -> builtins.list[models.Document]:
        """List documents in order of URI, by default without their text."""

    @declared.call(f"GET {_DOCUMENT}")
    def part(
        self, document: str, *, section: str = "", start: int = 0, end: int | None = None
    ) -> models.DocumentPart:
        """Return a document or a part of its text."""

    @declared.call(f"POST {declared.KNOWLEDGE}/documents", body={"kb": "{self._base.name}"})
    def add(
        self,
        title: str,
        content: str,
        *,
        source: str = "",
        document_type: models.DocumentType | str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Metadata | None = None,
    ) -> models.DocumentInfo:
        """Add one document of Markdown text, or replace the one with the same source."""

    @declared.call(f"PUT {_DOCUMENT}")
    def update(
        self,
        document: str,
        *,
        title: str | None = None,
        content: str | None = None,
        document_type: models.DocumentType | str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Metadata | None = None,
        if_match: str | None = None,
    ) -> models.DocumentInfo:
        """Change a document, given by id or URI; omitted values stay."""

    @declared.call(f"DELETE {_DOCUMENT}")
    def delete(self, document: str, *, if_match: str | None = None) -> None:
        """Move a document to the trash; `undelete` restores it."""

    @declared.call(f"POST {declared.BASE}/trash/undelete")
    def undelete(self, document: str) -> models.DocumentInfo | None:
        """Restore a deleted document with its ratings and labels."""

    @declared.every(f"{declared.BASE}/trash")
    def trash(self) -> builtins.list[models.DeletedDocument]:
        """List documents that `undelete` can restore, the last deleted first."""

    @job(f"POST {declared.BASE}/expansions", result_of(models.Expansion, models.Expansion("")))
    def expand(
        self,
        llm: Annotated[Any, _model_name] = None,
        *,
        questions: int | None = None,
        estimate: bool = False,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> models.Expansion:
        """Write document summaries and questions with a language model of the server."""

    @declared.call(f"DELETE {declared.BASE}/expansions", key="documents")
    def unexpand(self) -> int:
        """Delete text that language models wrote; return the number of documents."""

    @declared.call(f"GET {declared.BASE}/stats", key="tags")
    def tags(self) -> dict[str, int]:
        """Count documents by tag, the most frequent first."""

    @declared.call(f"GET {declared.BASE}/stats", key="folders")
    def folders(self, *, depth: int = 2) -> dict[str, int]:
        """Count documents by folder of their URI, sorted by folder."""

    @declared.call(f"GET {declared.BASE}", read=lambda answer: sum(answer["states"].values()))
    def _count(self) -> int: ...

    @declared.call(f"GET {_DOCUMENT}", key="document")
    def _find(self, document: str) -> models.Document: ...


class RemoteDocuments(DocumentsCalls, RemoteCollection[models.Document]):
    """Documents of a knowledge base on a server."""

    def __contains__(self, key: object) -> bool:
        try:
            return isinstance(key, str) and bool(self.part(key, end=0))
        except NotFoundError:
            return False


class AsyncDocuments(DocumentsCalls, AsyncCollection[models.Document]):
    """Documents of a knowledge base on a server, awaited."""
