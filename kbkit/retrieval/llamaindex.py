"""llama-index adapters (nodes, postprocessors, retriever, tool); import lazily, as it is heavy."""

import asyncio
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import (
    NodeRelationship,
    NodeWithScore,
    ObjectType,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.tools.function_tool import FunctionTool
from pydantic import Field, create_model

from kbkit.errors import ConfigError, PostprocessorError
from kbkit.models import Filters, Hit, Mode
from kbkit.recipes import PostprocessorSpec
from kbkit.retrieval.delimiting import quote_hits
from kbkit.retrieval.query import Query
from kbkit.runtime.third_party import open_class, safe_message

T = TypeVar("T")

_PROMPT_KEYS = ("title", "section", "url")
"""Metadata in prompts, in addition to the text."""
_EMBEDDED_KEYS = ("title", "section")
"""Metadata for rerankers and embedders, the same as for kbkit's embedder."""
_MAX_NAME_LENGTH = 64
"""Maximum characters of a tool's name in APIs of language models."""
_MAX_PASSAGES = 20


def node_of(hit: Hit, notes: tuple[str, ...] = ()) -> NodeWithScore:
    """Convert a hit to a node with the chunk's id.

    Metadata are those of `Hit.to_dict` without the text, with the headings in one line as
    ``section`` and notes of the search as ``notes``. Prompts contain title, section and address.
    """
    metadata: dict[str, Any] = {**hit.to_dict()}
    text = metadata.pop("text")
    metadata["section"] = " > ".join(hit.chunk.heading_path)
    if notes:
        metadata["notes"] = list(notes)
    source = RelatedNodeInfo(
        node_id=hit.chunk.document_id,
        node_type=ObjectType.DOCUMENT,
        metadata={"uri": hit.uri, "title": hit.title},
    )
    node = TextNode(
        id_=hit.chunk.id,
        text=text,
        metadata=metadata,
        excluded_llm_metadata_keys=[key for key in metadata if key not in _PROMPT_KEYS],
        excluded_embed_metadata_keys=[key for key in metadata if key not in _EMBEDDED_KEYS],
        relationships={NodeRelationship.SOURCE: source},
        start_char_idx=hit.chunk.start,
        end_char_idx=hit.chunk.end,
        mimetype="text/markdown",
    )
    return NodeWithScore(node=node, score=hit.score)


def run_postprocessor(hits: Sequence[Hit], query: str, spec: PostprocessorSpec) -> list[Hit]:
    processor = _open(spec.path, json.dumps(spec.arguments, sort_keys=True, default=str))
    try:
        nodes = processor.postprocess_nodes([node_of(hit) for hit in hits], query_str=query)
        scored = {node.node.node_id: _score(node) for node in nodes}
    except Exception as error:  # third-party code may raise anything
        detail = safe_message(error, spec.arguments)
        raise PostprocessorError(f"{spec.path}: failed ({detail})") from None
    by_id = {hit.chunk.id: hit for hit in hits}
    return [
        by_id[id_] if score is None else replace(by_id[id_], score=score)
        for id_, score in scored.items()
        if id_ in by_id
    ]


def _score(node: NodeWithScore) -> float | None:
    if node.score is None:
        return None
    score = float(node.score)
    if not math.isfinite(score):
        raise ValueError(f"it returned the score {score}")
    return score


@lru_cache(maxsize=16)
def _open(path: str, arguments: str) -> BaseNodePostprocessor:
    """Return the postprocessor at an import path; opened once, because it may be a large model."""
    return open_class(
        path,
        json.loads(arguments),
        BaseNodePostprocessor,  # type: ignore[type-abstract]
        kind="llama-index postprocessor",
        name=path,
        error=PostprocessorError,
        check="the arguments of this postprocessor, the package that it needs, and the keys in the "
        "environment",
    )


class KbkitRetriever(BaseRetriever):
    """A search as a llama-index retriever."""

    def __init__(self, search: Callable[[str], Any]) -> None:
        super().__init__()
        self._search = search

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._search(query_bundle.query_str)
        return [node_of(hit, hits.notes) for hit in hits]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


class AwaitedRetriever(KbkitRetriever):
    """An asynchronous search as a llama-index retriever; use ``aretrieve``."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        raise ConfigError("this search is awaited: use `await retriever.aretrieve(...)`")

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = await self._search(query_bundle.query_str)
        return [node_of(hit, hits.notes) for hit in hits]


def asking(
    search: Callable[..., T],
    *,
    limit: int,
    mode: str | Mode,
    filters: Filters | Mapping[str, Any] | None,
    **more: Any,
) -> Callable[[str], T]:
    query = Query.of("anything", limit, mode, filters)
    options = {"limit": query.limit, "mode": query.mode, "filters": query.filters, **more}
    return lambda text: search(text, **options)


def search_tool(
    kb: str,
    description: str,
    search: Callable[..., Any],
    limit: int,
    filters: Filters | Mapping[str, Any] | None,
    *,
    awaited: bool = False,
) -> FunctionTool:
    """Return the search of a knowledge base as a tool that returns `quoted` hits."""
    conditions = Filters.of(filters)
    if not 1 <= limit <= _MAX_PASSAGES:
        raise ConfigError(f"limit={limit}: give 1 to {_MAX_PASSAGES} passages")

    default = limit

    def search_limited(query: str, limit: int) -> Any:
        return search(query, limit=max(1, min(limit, _MAX_PASSAGES)), filters=conditions)

    def ask(query: str, limit: int = default) -> str:
        return quote_hits(search_limited(query, limit))

    async def ask_awaited(query: str, limit: int = default) -> str:
        return quote_hits(await search_limited(query, limit))

    parameters = create_model(
        "Search",
        query=(str, Field(description="A question, or some words that the answer may hold.")),
        limit=(int, Field(default, description=f"Most passages, 1 to {_MAX_PASSAGES}.")),
    )
    return FunctionTool.from_defaults(
        fn=None if awaited else ask,
        async_fn=ask_awaited if awaited else None,
        name=f"search_{kb.replace('-', '_')}"[:_MAX_NAME_LENGTH],
        description=f"Search the knowledge base {kb!r}{description and ': '}{description}\n"
        "Gives passages of its documents, best first, each with its source.",
        fn_schema=parameters,
    )
