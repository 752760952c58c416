"""Tools for knowledge bases: search, context, documents, ratings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from kbkit.errors import NotFoundError
from kbkit.mcp import passages
from kbkit.mcp.replies import Budget, PartValues, Reply, listing, short
from kbkit.mcp.tools import Limit, MaxTokens, Score, Tools, page_type
from kbkit.models import Document, KnowledgeBaseInfo
from kbkit.models.values import pluralize

if TYPE_CHECKING:
    from kbkit.workspace import Workspace

KbName = Annotated[str, Field(description="Knowledge base; empty for all.")]


@with_config(ConfigDict(extra="forbid"))
class ConditionValues(TypedDict, total=False):
    """All conditions must hold."""

    document_type: Literal["manual", "tutorial", "api_spec", "faq", "policy", "reference", "other"]
    tags: list[str]
    source: Annotated[str, Field(description="Prefix of the address.")]
    path: Annotated[str, Field(description="Glob, such as library/**.")]
    version: Annotated[str, Field(description="Version of the documented product, such as 3.12.")]
    heading: str
    entity: str
    after: Annotated[str, Field(description="Fetched on this day or later.")]
    min_rating: float
    min_probability: Annotated[float, Field(description="That a hit answers, 0 to 1.")]


class PassageValues(TypedDict):
    """A quoted passage with its source."""

    title: str
    source: NotRequired[str]
    page: NotRequired[str]
    document: NotRequired[str]
    kb: str
    fetched_at: str
    state: str
    version: str
    chunk_id: NotRequired[str]
    text: str


class Passages(TypedDict):
    """Results of a search."""

    note: str
    results: list[PassageValues]
    notes: list[str]
    next_cursor: str


class KnowledgeBaseValues(TypedDict):
    """A knowledge base."""

    name: str
    description: str
    documents: int
    chunks: int
    updated_at: str


class DocumentPartValues(PartValues):
    """A document, or a part of one."""

    kb: str
    title: str
    source: str
    fetched_at: str
    state: str
    version: str
    lines: int


class ContextPieces(TypedDict):
    """Pieces of a context."""

    note: str
    pieces: list[dict[str, Any]]
    notes: list[str]


class RatedChunk(TypedDict):
    """A rating that was stored."""

    chunk_id: str
    score: int


def add(tools: Tools) -> None:
    @tools.read(Passages)
    def search_knowledge_base(
        *,
        query: str,
        kb_name: KbName = "",
        limit: Limit = 5,
        filters: ConditionValues | None = None,
        budget: Budget,
    ) -> Reply:
        """Find passages that answer a question, best first, with source, date and state."""
        return search_page(tools, query, tools.kbs(kb_name), limit, budget, filters=filters)

    @tools.read(page_type("knowledge_bases", KnowledgeBaseValues))
    def list_knowledge_bases(*, budget: Budget) -> Reply:
        """List the knowledge bases that can be searched, with their topics."""
        rows = map(row_of, tools.list())
        nothing = "No knowledge base yet."
        return listing(rows, name="knowledge_bases", nothing=nothing, budget=budget)

    @tools.read(DocumentPartValues)
    def get_document(
        *,
        document_name: Annotated[str, Field(description="Its source, as in a search.")],
        kb_name: KbName = "",
        section: Annotated[str, Field(description="Only below this heading.")] = "",
        lines: Annotated[str, Field(description="Only these, such as 10-40.")] = "",
        budget: Budget,
    ) -> Reply:
        """Read a document as Markdown: whole, a section, or lines; long ones in parts."""
        kbs = tools.kbs(kb_name) or list(tools.workspace)
        sources = [document_name, document_name.partition("#")[0]]
        kb, document, source = find_document(tools.workspace, kbs, sources)
        return passages.document_reply(
            document,
            kb=kb,
            section=section,
            lines=lines,
            anchor=document_name[len(source) + 1 :],
            budget=budget,
        )

    @tools.read(ContextPieces)
    def get_context(*, query: str, kb_name: KbName = "", max_tokens: MaxTokens = 0) -> Reply:
        """Collect what helps to answer a question: passages, facts about names in it, entries."""
        searches, budget, kbs = tools.searches, tools.budget(max_tokens), tools.kbs(kb_name)
        return passages.context_reply(
            lambda tokens: searches.context(query, kbs=kbs, max_tokens=tokens), budget
        )

    @tools.write(RatedChunk, destructive=False, idempotent=False)
    def rate_chunk(
        *,
        chunk_id: Annotated[str, Field(description="From a search.")],
        score: Score,
        kb_name: Annotated[str, Field(description="Its knowledge base.")],
        query: Annotated[str, Field(description="The question.")] = "",
        note: str = "",
    ) -> Reply:
        """Rate how well a passage answered, 1 (wrong) to 5 (perfect); later searches use it."""
        tools.kbs(kb_name)
        rating = tools.workspace[kb_name].rate(chunk_id, score, query=query, note=note)
        return Reply(f"Rated {score} of 5.", RatedChunk(chunk_id=rating.target.id, score=score))


def search_page(
    tools: Tools,
    query: str,
    kbs: Sequence[str] | None,
    limit: int,
    budget: Budget,
    *,
    filters: ConditionValues | None = None,
) -> Reply:
    """Search, and return a page of passages."""
    count = passages.HITS_PER_PASSAGE * (budget.start + limit + 1)
    hits = tools.searches.search(query, kbs=kbs, limit=count, filters=filters)
    return passages.search_reply(hits, limit=limit, budget=budget, with_ids=tools.allow_write)


def find_document(
    workspace: Workspace, kbs: Sequence[str], sources: Sequence[str]
) -> tuple[str, Document, str]:
    """Return the first document with one of some sources, its knowledge base and that source."""
    missing: list[NotFoundError] = []
    for kb in kbs:
        for source in dict.fromkeys(sources):
            try:
                return kb, workspace[kb].documents[source], source
            except NotFoundError as error:
                missing.append(error)
    if len(kbs) == 1:
        raise missing[0]
    message = (
        f"no knowledge base has a document of the source {sources[0][:200]!r}; take one from a "
        "search"
    )
    raise NotFoundError(message)


def row_of(info: KnowledgeBaseInfo) -> tuple[str, KnowledgeBaseValues]:
    topic, day = short(info.description), f"{info.updated_at:%Y-%m-%d}"
    documents = pluralize(info.documents, "document")
    line = f"- {info.name}{f': {topic}' if topic else ''} ({documents}, updated {day})"
    return line, KnowledgeBaseValues(
        name=info.name,
        description=topic,
        documents=info.documents,
        chunks=info.chunks,
        updated_at=day,
    )
