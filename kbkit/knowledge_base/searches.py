"""Search, ask and similar queries of a knowledge base."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kbkit.knowledge_base.handle import Handle
from kbkit.models import Answer, Chunk, Filters, Hits, Mode, RelatedChunk
from kbkit.recipes import RetrievalSpec
from kbkit.retrieval.query import Query
from kbkit.retrieval.searching import ask, search, similar
from kbkit.runtime.validation import check_integer, explain_calls
from kbkit.stores.catalog import reading
from kbkit.stores.catalog.subjects import related_chunks

if TYPE_CHECKING:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.llms import LLM
    from llama_index.core.tools import FunctionTool


@explain_calls
class Searches:
    """The searches of a knowledge base."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        filters: Filters | Mapping[str, Any] | None = None,
        retrieval: RetrievalSpec | None = None,
        graph: float | None = None,
    ) -> Hits:
        """Find the chunks that answer a query, best first.

        Args:
            query: A question or some words.
            limit: Maximum number of hits.
            mode: ``hybrid``, ``dense`` (by meaning only) or ``lexical`` (by words only).
            filters: Conditions on chunks and documents, as `Filters` or a mapping such as
                ``{"document_type": "manual", "heading": "install"}``.
            retrieval: Ranking settings, in place of the recipe's ``retrieval`` part.
            graph: Weight of the graph, 0 to 5, in place of the recipe's ``graph_weight``; 0
                switches it off.

        Raises:
            ConfigError: The query is empty, or limit, mode or a filter is wrong.
            EmbedderError: The embedder failed.
            NotFoundError: The knowledge base was deleted.
        """
        parsed = Query.of(query, limit, mode, filters, retrieval, graph=graph)
        return search([self._handle.retriever], parsed)

    def similar(
        self, chunk_id: str, *, limit: int = 10, filters: Filters | Mapping[str, Any] | None = None
    ) -> Hits:
        """Find other chunks about the same subject as a chunk, nearest first.

        Compares stored vectors. Further chunks of one document rank lower. The hits' ``query`` is
        the chunk's title and headings. Scores are not comparable with those of a search.

        Args:
            chunk_id: Id of the chunk.
            limit: Maximum number of hits.
            filters: Conditions on documents.

        Raises:
            ConfigError: Limit or a filter is wrong.
            NotFoundError: There is no such chunk.
        """
        with self._handle.stores.database.read() as transaction:
            (chunk,) = reading.neighbours(transaction, self._handle.id, str(chunk_id), 0, 0)
            document = reading.get_document(transaction, self._handle.id, chunk.document_id)
        path = chunk.heading_path
        names = [document.title, *(path[1:] if path[:1] == (document.title,) else path)]
        name = " › ".join(filter(str.strip, names)) or document.uri
        query = Query.of(name, limit, Mode.DENSE, filters)
        return similar(self._handle.retriever, chunk_id, query)

    def related(self, chunk_id: str, *, limit: int = 10) -> list[RelatedChunk]:
        """Find chunks that share rare subjects with a chunk.

        Args:
            chunk_id: Id of the chunk.
            limit: Maximum number of chunks.

        Raises:
            ConfigError: The limit is wrong.
            NotFoundError: There is no such chunk.
        """
        check_integer("limit", limit, 1)
        with self._handle.stores.database.read() as transaction:
            reading.neighbours(transaction, self._handle.id, str(chunk_id), 0, 0)
            neighbors = related_chunks(transaction, self._handle.id, str(chunk_id), limit)
            chunks = reading.get_chunks(transaction, [seq for seq, _, _ in neighbors])
        return [
            RelatedChunk(
                chunk_id=chunks[seq][0].id,
                title=chunks[seq][1].title,
                section=reading.heading_text(chunks[seq][1].title, chunks[seq][0].heading_path),
                uri=chunks[seq][1].uri,
                anchor=chunks[seq][0].anchor,
                score=score,
                shared=shared,
            )
            for seq, score, shared in neighbors
        ]

    def ask(
        self,
        query: str,
        *,
        limit: int = 5,
        llm: LLM | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
    ) -> Answer:
        """Answer a question from the best passages with a language model.

        The prompt contains the numbered passages. Without a model the answer has passages only.

        Args:
            query: The query.
            limit: Maximum number of passages.
            llm: A llama-index language model; by default its ``Settings.llm``. A remote model gets
                question and passages.
            filters: Conditions on documents.

        Raises:
            ConfigError: The query is empty, or the limit or a filter is wrong.
            LanguageModelError: The model failed.
        """
        return ask(self.search(query, limit=limit, filters=filters), llm)

    def as_retriever(
        self,
        *,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        filters: Filters | Mapping[str, Any] | None = None,
    ) -> BaseRetriever:
        """Return the search as a llama-index retriever; see `search` for the arguments.

        Nodes have the ids of their chunks, and the fields of hits as metadata.

        Raises:
            ConfigError: Limit, mode or a filter is wrong.
        """
        from kbkit.retrieval.llamaindex import KbkitRetriever, asking

        return KbkitRetriever(asking(self.search, limit=limit, mode=mode, filters=filters))

    def as_tool(
        self, *, limit: int = 5, filters: Filters | Mapping[str, Any] | None = None
    ) -> FunctionTool:
        """Return the search as a llama-index tool, which gives agents quoted passages with sources.

        Args:
            limit: Default number of passages, 1 to 20.
            filters: Conditions on documents.

        Raises:
            ConfigError: The limit or a filter is wrong.
        """
        from kbkit.retrieval.llamaindex import search_tool

        text = self._handle.info().description
        return search_tool(self._handle.name, text, self.search, limit, filters)

    def context(self, chunk_id: str, *, before: int = 1, after: int = 1) -> list[Chunk]:
        """Return a chunk with its neighbours, in document order.

        Args:
            chunk_id: Id of the chunk.
            before: Maximum number of chunks before it, 0 or more.
            after: Maximum number of chunks after it, 0 or more.

        Raises:
            ConfigError: A number is below 0.
            NotFoundError: There is no such chunk.
        """
        before, after = check_integer("before", before, 0), check_integer("after", after, 0)
        return self._handle.look_up(reading.neighbours, chunk_id, before, after)
