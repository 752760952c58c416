"""Answers out of a knowledge base."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kbkit.knowledge_base.opened import Opened
from kbkit.models import (
    Filters,
    Hits,
    Mode,
)
from kbkit.models.answers import Answer
from kbkit.recipes import (
    RetrievalSpec,
)
from kbkit.retrieval.answering import ask
from kbkit.retrieval.query import Query
from kbkit.retrieval.retriever import Retriever, search, similar

if TYPE_CHECKING:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.llms import LLM
    from llama_index.core.tools import FunctionTool


class Searched(Opened):
    """A knowledge base to search."""

    @cached_property
    def retriever(self) -> Retriever:
        """What finds candidates in it; `Workspace.search` ranks those of several together."""
        return Retriever(self._stores, self.id, self._embedder_of)

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        filters: Filters | Mapping[str, Any] | None = None,
        retrieval: RetrievalSpec | None = None,
    ) -> Hits:
        """The chunks that answer a query, best first.

        Args:
            query: A question or some words.
            limit: Most hits.
            mode: ``hybrid``, ``dense`` (by meaning only) or ``lexical`` (by words only).
            filters: What a document must be, as `Filters` or as a mapping of its attributes, such
                as ``{"document_type": "manual", "tags": ["api"]}``.
            retrieval: How to rank, in place of the recipe's ``retrieval`` part.

        Raises:
            ConfigError: The query is empty, or limit, mode or a filter is wrong.
            EmbedderError: The embedder failed.
            NotFoundError: The knowledge base was deleted.
        """
        return search([self.retriever], Query.of(query, limit, mode, filters, retrieval))

    def similar(
        self,
        chunk_id: str,
        *,
        limit: int = 10,
        filters: Filters | Mapping[str, Any] | None = None,
    ) -> Hits:
        """Other chunks that speak of the same as a chunk, nearest first.

        Vectors decide, and nothing is embedded. Further chunks of one document come later, so
        that other documents are seen too. The ``query`` of the hits names the chunk by its
        title and headings; scores compare among themselves, not with those of a search.

        Args:
            chunk_id: Of the chunk.
            limit: Most hits.
            filters: What a document must be.

        Raises:
            ConfigError: Limit or a filter is wrong.
            NotFoundError: There is no such chunk.
        """
        (chunk,) = self.context(chunk_id, before=0, after=0)
        document = self.document(chunk.document_id)
        path = chunk.heading_path
        names = [document.title, *(path[1:] if path[:1] == (document.title,) else path)]
        name = " › ".join(filter(str.strip, names)) or document.uri
        asked = Query.of(name, limit, Mode.DENSE, filters)
        return similar(self.retriever, chunk_id, asked)

    def ask(
        self,
        query: str,
        *,
        limit: int = 5,
        llm: LLM | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
    ) -> Answer:
        """What a language model makes of the passages that answer a query best.

        The passages are handed over as numbered, quoted material. Without a model there is no
        text, only the passages.

        Args:
            query: What is asked.
            limit: Most passages.
            llm: A llama-index language model; by default what its ``Settings.llm`` was set to. A
                model may be a service, which then sees question and passages.
            filters: What a document must be.

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
        """The search as a llama-index retriever, for its query engines and agents.

        Takes what `search` takes. The id of a node is its chunk's, and its metadata is what a hit
        says of itself.

        Raises:
            ConfigError: Limit, mode or a filter is wrong.
        """
        from kbkit.retrieval.llamaindex import KbkitRetriever

        asked = Query.of("anything", limit, mode, filters)
        return KbkitRetriever(
            lambda text: self.search(
                text, limit=asked.limit, mode=asked.mode, filters=asked.filters
            )
        )

    def as_tool(
        self, *, limit: int = 5, filters: Filters | Mapping[str, Any] | None = None
    ) -> FunctionTool:
        """The search as a llama-index tool, for agents.

        It gives passages with their sources, marked as quoted material.

        Args:
            limit: Passages where the agent does not say how many, 1 to 20.
            filters: What a document must be.

        Raises:
            ConfigError: The limit or a filter is wrong.
        """
        from kbkit.retrieval.llamaindex import search_tool

        asked = Filters.of(filters)
        about = self.info().description
        return search_tool(
            f"search_{self.name.replace('-', '_')}",
            f"Search the knowledge base {self.name!r}{about and ': '}{about}\n"
            "Gives passages of its documents, best first, each with its source.",
            lambda text, most: self.search(text, limit=most, filters=asked),
            limit,
        )
