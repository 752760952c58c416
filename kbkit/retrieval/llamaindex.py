"""Search as llama-index knows it: nodes, a retriever, a tool.

This module imports llama-index; who needs it imports this module when it is asked for.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from llama_index.core.base.base_retriever import BaseRetriever
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
from kbkit.models import Filters, Hit, Hits, Mode
from kbkit.recipes import PostprocessorSpec
from kbkit.retrieval.query import Query
from kbkit.retrieval.quoting import quoted
from kbkit.third_party import is_there, open_class, safe_message

if TYPE_CHECKING:
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import NodeWithScore


T = TypeVar("T")

_PROMPTED = ("title", "section", "url")
"""Metadata that prompts show, beside the text; the rest would only flood them."""
_EMBEDDED = ("title", "section")
"""Metadata that rerankers and embedders read, as kbkit's own embedder does."""
_LONGEST_NAME = 64
"""Characters of a tool's name that services of language models take."""
_MOST_PASSAGES = 20


def node_of(hit: Hit, notes: tuple[str, ...] = ()) -> NodeWithScore:
    """A hit as a node whose id is the chunk's.

    Its metadata is what `Hit.to_dict` gives but for the text, with the headings on one line as
    ``section``, and with ``notes`` where the search has some. Only title, section and address are
    shown in prompts.
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
        excluded_llm_metadata_keys=[key for key in metadata if key not in _PROMPTED],
        excluded_embed_metadata_keys=[key for key in metadata if key not in _EMBEDDED],
        relationships={NodeRelationship.SOURCE: source},
        start_char_idx=hit.chunk.start,
        end_char_idx=hit.chunk.end,
        mimetype="text/markdown",
    )
    return NodeWithScore(node=node, score=hit.score)


class KbkitRetriever(BaseRetriever):
    """A search as a llama-index retriever.

    Args:
        search: Gives the hits of a query.
    """

    def __init__(self, search: Callable[[str], Hits]) -> None:
        super().__init__()
        self._search = search

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._search(query_bundle.query_str)
        return [node_of(hit, hits.notes) for hit in hits]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


class AwaitedRetriever(BaseRetriever):
    """A search that is awaited as a llama-index retriever; ``aretrieve`` asks it.

    Args:
        search: Gives the hits of a query.
    """

    def __init__(self, search: Callable[[str], Awaitable[Hits]]) -> None:
        super().__init__()
        self._search = search

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
    """A search with all but the query given, which is checked now.

    Args:
        search: Of a knowledge base or a workspace.
        limit: Most hits.
        mode: How to search.
        filters: What a chunk and its document must be.
        more: Other arguments of that search.

    Raises:
        ConfigError: Limit, mode or a filter is wrong.
    """
    asked = Query.of("anything", limit, mode, filters)
    given = {"limit": asked.limit, "mode": asked.mode, "filters": asked.filters, **more}
    return lambda text: search(text, **given)


def search_tool(
    kb: str,
    about: str,
    search: Callable[..., Any],
    limit: int,
    filters: Filters | Mapping[str, Any] | None,
    *,
    awaited: bool = False,
) -> FunctionTool:
    """The search of a knowledge base as a tool; what it gives is what `quoted` makes of the hits.

    Args:
        kb: Its name.
        about: What it says of itself.
        search: Its search.
        limit: Passages it gives where the agent does not say how many, 1 to 20.
        filters: What a chunk and its document must be.
        awaited: Whether the search is, so that the tool has to be, too.

    Raises:
        ConfigError: The limit is none of these, or a filter is wrong.
    """
    asked = Filters.of(filters)
    if not 1 <= limit <= _MOST_PASSAGES:
        raise ConfigError(f"limit={limit}: give 1 to {_MOST_PASSAGES} passages")

    default = limit

    def found(query: str, limit: int) -> Any:
        return search(query, limit=max(1, min(limit, _MOST_PASSAGES)), filters=asked)

    def ask(query: str, limit: int = default) -> str:
        return quoted(found(query, limit))

    async def ask_awaited(query: str, limit: int = default) -> str:
        return quoted(await found(query, limit))

    parameters = create_model(
        "Search",
        query=(str, Field(description="A question, or some words that the answer may hold.")),
        limit=(int, Field(default, description=f"Most passages, 1 to {_MOST_PASSAGES}.")),
    )
    return FunctionTool.from_defaults(
        fn=None if awaited else ask,
        async_fn=ask_awaited if awaited else None,
        name=f"search_{kb.replace('-', '_')}"[:_LONGEST_NAME],
        description=f"Search the knowledge base {kb!r}{about and ': '}{about}\n"
        "Gives passages of its documents, best first, each with its source.",
        fn_schema=parameters,
    )


_PACKAGES = "llama_index.postprocessor."


def hits_needed(specs: Sequence[PostprocessorSpec], limit: int) -> int:
    """How many of the best hits postprocessors must be given for ``limit`` of them."""
    return max([limit, *(spec.hits for spec in specs)])


def postprocess(
    hits: Sequence[Hit], query: str, specs: Sequence[PostprocessorSpec], limit: int
) -> tuple[Hit, ...]:
    """Pass hits through postprocessors.

    Each is given what the one before left, at most its own number of hits or ``limit``, whichever
    is more. Order and scores are theirs, and what they leave out is out. A node that they make up
    or whose text they change is no hit: what is found is what the documents say.

    Args:
        hits: Best first.
        query: What was asked.
        specs: Which, in order.
        limit: Most hits to give.

    Raises:
        PostprocessorError: One cannot be opened, or failed.
    """
    for spec in specs:
        hits = _run(hits[: hits_needed([spec], limit)], query, spec)
    return tuple(hits[:limit])


def _run(hits: Sequence[Hit], query: str, spec: PostprocessorSpec) -> list[Hit]:
    if not hits:
        return []

    processor = _open(spec.path, json.dumps(spec.arguments, sort_keys=True, default=str))
    try:
        given = processor.postprocess_nodes([node_of(hit) for hit in hits], query_str=query)
        scored = {node.node.node_id: _score(node) for node in given}
    except Exception as error:  # whatever a third party's code raises
        detail = safe_message(error, spec.arguments)
        raise PostprocessorError(f"{spec.path}: failed ({detail})") from None
    by_id = {hit.chunk.id: hit for hit in hits}
    return [
        by_id[known] if score is None else replace(by_id[known], score=score)
        for known, score in scored.items()
        if known in by_id
    ]


def _score(node: NodeWithScore) -> float | None:
    """The score of a node, ``None`` where there is none."""
    if node.score is None:
        return None
    score = float(node.score)
    if not math.isfinite(score):
        raise ValueError(f"it gave the score {score}")
    return score


@lru_cache(maxsize=16)
def _open(path: str, arguments: str) -> BaseNodePostprocessor:
    """The postprocessor at an import path; opened once a process, since it may be a large model.

    Args:
        path: ``package.module:Class``, or with a dot in place of the colon.
        arguments: Of its constructor, as JSON.

    Raises:
        PostprocessorError: There is none, or it cannot be opened.
    """
    from llama_index.core.postprocessor.types import BaseNodePostprocessor

    return open_class(
        path,
        json.loads(arguments),
        BaseNodePostprocessor,  # type: ignore[type-abstract]
        kind="llama-index postprocessor",
        name=path,
        error=PostprocessorError,
        install=_install(path),
        check="the arguments of this postprocessor, the package that it needs, and the keys in the "
        "environment",
    )


def check_installed(spec: PostprocessorSpec) -> None:
    """Whether the package of a postprocessor is there; nothing of it is imported.

    Raises:
        PostprocessorError: It is not.
    """
    if not is_there(spec.path):
        raise PostprocessorError(f"{spec.path}: is not installed; {_install(spec.path)}")


def _install(path: str) -> str:
    if not path.startswith(_PACKAGES):
        return "install its package"
    name = re.split("[.:]", path.removeprefix(_PACKAGES))[0].replace("_", "-")
    return f"pip install llama-index-postprocessor-{name}"
