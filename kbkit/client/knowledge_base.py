"""A knowledge base on a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Self

from kbkit.base_plots import AsyncPlots, Plots
from kbkit.client.annotations import AsyncAnnotations, RemoteAnnotations, RemoteHandle
from kbkit.client.calls import AnyAsyncTransport, AnyTransport, Awaited, Blocking, RemoteObject
from kbkit.client.chunks import (
    AsyncChunks,
    AsyncRatings,
    AsyncSources,
    RatingsCalls,
    RemoteChunks,
    RemoteRatings,
    RemoteSources,
)
from kbkit.client.declared import BASE, KNOWLEDGE, call
from kbkit.client.documents import AsyncDocuments, Conditions, DocumentsCalls, RemoteDocuments
from kbkit.client.feedback import AsyncFeedback, RemoteFeedback
from kbkit.client.ingestion import IngestionCalls
from kbkit.errors import ConfigError
from kbkit.extras import whole
from kbkit.models import Answer, Chunk, Filters, Hits, KnowledgeBaseInfo, Mode, RelatedChunk
from kbkit.recipes import KnowledgeBaseSpec, RetrievalSpec
from kbkit.runtime.validation import explained

if TYPE_CHECKING:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.tools import FunctionTool


_HERE = {"kb": "{self.name}"}


def _retrieval(spec: Any) -> dict[str, Any]:
    if not isinstance(spec, RetrievalSpec):
        raise ConfigError(f"retrieval={spec!r}: give a `kbkit.RetrievalSpec`")
    return spec.model_dump(exclude_unset=True)


def _no_model(_: Any) -> None:
    raise ConfigError(
        "llm: a server uses its own language model; leave llm out, or pass the results of "
        "`search` or `context` to yours"
    )


Retrieval = Annotated[RetrievalSpec, _retrieval]
Model = Annotated[Any, _no_model]


class KnowledgeBaseCalls(IngestionCalls, RemoteObject):
    """Requests for a knowledge base; see `kbkit.KnowledgeBase`.

    Attributes:
        sources: Sources that `refresh` reads.
    """

    @call(f"GET {BASE}")
    def info(self) -> KnowledgeBaseInfo:
        """Return figures: documents, chunks, types, states, embedder, times."""

    @call(f"POST {KNOWLEDGE}/search", body=_HERE)
    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        filters: Conditions | None = None,
        retrieval: Retrieval | None = None,
        graph: float | None = None,
    ) -> Hits:
        """Find the chunks that answer a query, best first."""

    @call(f"GET {KNOWLEDGE}/chunks/{{chunk_id}}/similar?kb={{self.name}}")
    def similar(self, chunk_id: str, *, limit: int = 10, filters: Conditions | None = None) -> Hits:
        """Find other chunks about the same subject as a chunk, nearest first."""

    @call(f"GET {KNOWLEDGE}/chunks/{{chunk_id}}/related?kb={{self.name}}")
    def related(self, chunk_id: str, *, limit: int = 10) -> list[RelatedChunk]:
        """Find chunks that share rare subjects with a chunk, in any words."""

    @call(f"POST {KNOWLEDGE}/ask", body=_HERE)
    def ask(
        self,
        query: str,
        *,
        limit: int = 5,
        llm: Model | None = None,
        filters: Conditions | None = None,
    ) -> Answer:
        """Answer a question from the best passages with the server's language model."""

    @call(f"GET {KNOWLEDGE}/chunks/{{chunk_id}}?kb={{self.name}}")
    def context(self, chunk_id: str, *, before: int = 1, after: int = 1) -> list[Chunk]:
        """Return a chunk with its neighbours, in document order."""

    add = DocumentsCalls.add
    rate = RatingsCalls.add

    @call(f"GET {BASE}/spec")
    def _spec(self) -> KnowledgeBaseSpec: ...

    @property
    def _base(self) -> Self:
        return self  # as in its collections

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


@explained
class RemoteKnowledgeBase(KnowledgeBaseCalls, Blocking):
    """A remote knowledge base with the calls of a local one."""

    def __init__(self, transport: AnyTransport, name: str) -> None:
        super().__init__(transport)
        self.name = name
        self.documents = RemoteDocuments(transport, self)
        self.chunks = RemoteChunks(transport, self)
        self.ratings = RemoteRatings(transport, self)
        self.sources = RemoteSources(transport, self)
        self.annotations = RemoteAnnotations(transport, self)
        self.feedback = RemoteFeedback(transport, self, self.ratings)
        self.plot = Plots(self.documents, self.chunks, self.ratings)
        self._handle = RemoteHandle(transport, self)

    @property
    def id(self) -> str:
        """Permanent id."""
        return self.info().id

    @property
    def url(self) -> str:
        """Address of the server."""
        return self._transport.url

    @property
    def spec(self) -> KnowledgeBaseSpec:
        """The settings: chunking, embedding, retrieval, storage, site."""
        return self._spec()

    def as_retriever(
        self,
        *,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        filters: Filters | Mapping[str, Any] | None = None,
    ) -> BaseRetriever:
        """Return the search as a llama-index retriever, for query engines and agents."""
        with whole("A retriever"):
            from kbkit.retrieval.llamaindex import KbkitRetriever, asking

        return KbkitRetriever(asking(self.search, limit=limit, mode=mode, filters=filters))

    def as_tool(
        self, *, limit: int = 5, filters: Filters | Mapping[str, Any] | None = None
    ) -> FunctionTool:
        """Return the search as a llama-index tool for agents."""
        with whole("A tool"):
            from kbkit.retrieval.llamaindex import search_tool

        return search_tool(self.name, self.info().description, self.search, limit, filters)

    def _repr_html_(self) -> str:
        return self.info()._repr_html_()


@explained
class AsyncKnowledgeBase(KnowledgeBaseCalls, Awaited):
    """A remote knowledge base whose calls are awaited."""

    def __init__(self, transport: AnyAsyncTransport, name: str) -> None:
        super().__init__(transport)
        self.name = name
        self.documents = AsyncDocuments(transport, self)
        self.chunks = AsyncChunks(transport, self)
        self.ratings = AsyncRatings(transport, self)
        self.sources = AsyncSources(transport, self)
        self.annotations = AsyncAnnotations(transport, self)
        self.feedback = AsyncFeedback(transport, self)
        self.plot = AsyncPlots(self.documents, self.chunks, self.ratings)

    async def id(self) -> str:
        return (await self.info()).id

    async def spec(self) -> KnowledgeBaseSpec:
        return await self._spec()

    def as_retriever(
        self,
        *,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        filters: Filters | Mapping[str, Any] | None = None,
    ) -> BaseRetriever:
        """Return the search as a llama-index retriever that is awaited (``aretrieve``)."""
        with whole("A retriever"):
            from kbkit.retrieval.llamaindex import AwaitedRetriever, asking

        return AwaitedRetriever(asking(self.search, limit=limit, mode=mode, filters=filters))

    async def as_tool(
        self, *, limit: int = 5, filters: Filters | Mapping[str, Any] | None = None
    ) -> FunctionTool:
        """Return the search as an awaited llama-index tool for agents."""
        with whole("A tool"):
            from kbkit.retrieval.llamaindex import search_tool

        about = (await self.info()).description
        return search_tool(self.name, about, self.search, limit, filters, awaited=True)
