"""A knowledge base on a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from kbkit.base_plots import AsyncPlots, Plots
from kbkit.client.annotations import AsyncAnnotations, RemoteAnnotations, RemoteHandle
from kbkit.client.calls import (
    AnyAsyncTransport,
    AnyTransport,
    Awaited,
    Blocking,
    RemoteObject,
    Request,
    call,
    json_body,
    reads,
    reads_many,
    url,
)
from kbkit.client.chunks import (
    AsyncChunks,
    AsyncRatings,
    AsyncSources,
    RemoteChunks,
    RemoteRatings,
    RemoteSources,
    around,
    rating_request,
)
from kbkit.client.collections import KNOWLEDGE
from kbkit.client.documents import AsyncDocuments, DocumentsCalls, RemoteDocuments, conditions
from kbkit.client.feedback import AsyncFeedback, RemoteFeedback
from kbkit.client.ingestion import IngestionCalls
from kbkit.errors import ConfigError
from kbkit.extras import whole
from kbkit.models import (
    Answer,
    Chunk,
    Filters,
    Hits,
    KnowledgeBaseInfo,
    Mode,
    Rating,
    RelatedChunk,
    Target,
)
from kbkit.recipes import KnowledgeBaseSpec, RetrievalSpec
from kbkit.runtime.validation import explained

if TYPE_CHECKING:
    import httpx
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.llms import LLM
    from llama_index.core.tools import FunctionTool


class KnowledgeBaseCalls(IngestionCalls, RemoteObject):
    """Requests for a knowledge base; see `kbkit.KnowledgeBase`.

    Attributes:
        sources: Sources that `refresh` reads.
    """

    @call
    def info(self) -> Request[KnowledgeBaseInfo]:
        """Return figures: documents, chunks, types, states, embedder, times."""
        return Request("GET", self._at, reads(KnowledgeBaseInfo))

    @call
    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        filters: Filters | Mapping[str, Any] | None = None,
        retrieval: RetrievalSpec | None = None,
        graph: float | None = None,
    ) -> Request[Hits]:
        """Find the chunks that answer a query, best first."""
        return search_request(
            query,
            [self.name],
            limit=limit,
            mode=mode,
            filters=filters,
            retrieval=retrieval,
            graph=graph,
        )

    @call
    def similar(
        self, chunk_id: str, *, limit: int = 10, filters: Filters | Mapping[str, Any] | None = None
    ) -> Request[Hits]:
        """Find other chunks about the same subject as a chunk, nearest first."""
        path = url(f"{KNOWLEDGE}/chunks/{{}}/similar", str(chunk_id))
        query = {**conditions(filters), "kb": self.name, "limit": limit}
        return Request("GET", path, reads(Hits), query)

    @call
    def related(self, chunk_id: str, *, limit: int = 10) -> Request[list[RelatedChunk]]:
        """Find chunks that share rare subjects with a chunk, in any words."""
        path = url(f"{KNOWLEDGE}/chunks/{{}}/related", str(chunk_id))
        return Request("GET", path, reads_many(RelatedChunk), {"kb": self.name, "limit": limit})

    @call
    def ask(
        self,
        query: str,
        *,
        limit: int = 5,
        llm: LLM | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
    ) -> Request[Answer]:
        """Answer a question from the best passages with the server's language model."""
        return answer_request(query, [self.name], limit=limit, llm=llm, filters=filters)

    @call
    def context(self, chunk_id: str, *, before: int = 1, after: int = 1) -> Request[list[Chunk]]:
        """Return a chunk with its neighbours, in document order."""
        return around(self.name, chunk_id, before, after)

    add = DocumentsCalls.add

    @call
    def rate(
        self, target: str | Target, score: int, *, query: str = "", note: str = "", rater: str = ""
    ) -> Request[Rating]:
        """Rate a chunk or a document. Ratings are appended; the last of a rater counts."""
        return rating_request(self.name, target, score, query=query, note=note, rater=rater)

    @call
    def _spec(self) -> Request[KnowledgeBaseSpec]:

        def read(response: httpx.Response) -> KnowledgeBaseSpec:
            return KnowledgeBaseSpec.model_validate(response.json())

        return Request("GET", f"{self._at}/spec", read)

    @property
    def _base(self) -> Self:
        return self  # for `DocumentsCalls.add`

    @property
    def _at(self) -> str:
        return url(f"{KNOWLEDGE}/bases/{{}}", self.name)

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


def search_request(
    query: str,
    kbs: Sequence[str] | None,
    *,
    limit: int,
    mode: str | Mode,
    filters: Filters | Mapping[str, Any] | None,
    retrieval: RetrievalSpec | None,
    graph: float | None,
) -> Request[Hits]:
    if retrieval is not None and not isinstance(retrieval, RetrievalSpec):
        raise ConfigError(f"retrieval={retrieval!r}: give a `kbkit.RetrievalSpec`")
    body = json_body(
        query=query,
        kbs=kbs,
        limit=limit,
        mode=mode,
        filters=filters_of(filters),
        retrieval=None if retrieval is None else retrieval.model_dump(exclude_unset=True),
        graph=graph,
    )
    return Request("POST", f"{KNOWLEDGE}/search", reads(Hits), json=body)


def answer_request(
    query: str,
    kbs: Sequence[str] | None,
    *,
    limit: int,
    llm: object | None,
    filters: Filters | Mapping[str, Any] | None,
) -> Request[Answer]:
    if llm is not None:
        raise ConfigError(
            "llm: a server uses its own language model; leave llm out, or pass the results of "
            "`search` or `context` to yours"
        )
    body = json_body(query=query, kbs=kbs, limit=limit, filters=filters_of(filters))
    return Request("POST", f"{KNOWLEDGE}/ask", reads(Answer), json=body)


def filters_of(filters: Filters | Mapping[str, Any] | None) -> dict[str, Any] | None:
    return conditions(filters) or None
