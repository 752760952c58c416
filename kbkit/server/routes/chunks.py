"""Routes for chunks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Query
from pydantic import BaseModel, Field

from kbkit.knowledge_base import KnowledgeBase
from kbkit.models import Chunk, DocumentType, Hits, RelatedChunk
from kbkit.server.access import WRITE, Caller, Kb, WorkspaceOf, holder_of
from kbkit.server.parameters import (
    Behind,
    BehindPosition,
    ChunkId,
    Cursor,
    FewLimit,
    Limit,
    SomeKb,
    filters_of,
    integer,
    keyset_page,
    offset_page,
    read_cursor,
)
from kbkit.server.responses import Paged
from kbkit.server.routing import Routes

routes = Routes("/api/knowledge", "chunks")


class PlacedChunk(BaseModel):
    """Position of a chunk on the map, and its facts."""

    id: str
    x: float
    y: float
    title: str
    section: str
    snippet: str
    document_type: DocumentType
    folder: str
    uri: str


class ChunkMap(BaseModel):
    """Chunks on the plane of the greatest variance of their vectors."""

    places: list[PlacedChunk]
    variance: tuple[float, float] = Field(description="Share of the variance of each axis.")
    chunks: int = Field(description="Number of chunks in the population.")


def _holder(
    chunk: ChunkId, workspace: WorkspaceOf, caller: Caller, kb: SomeKb = None
) -> KnowledgeBase:
    return holder_of(workspace, caller, kb, lambda base: base.chunks[chunk])


Holder = Annotated[KnowledgeBase, Depends(_holder)]
"""Parameter: the knowledge base that has the chunk of the path."""


@routes.get("/chunks/{chunk}")
def read_chunk(
    chunk: ChunkId,
    kb: Holder,
    before: Annotated[int, integer("before", "Maximum chunks before it.", 0, 1_000, 0)],
    after: Annotated[int, integer("after", "Maximum chunks after it.", 0, 1_000, 0)],
) -> list[Chunk]:
    """Read a chunk with its neighbours, in document order."""
    return kb.context(chunk, before=before, after=after)


@routes.get("/chunks/{chunk}/similar")
def list_similar_chunks(
    chunk: ChunkId, kb: Holder, filters: Annotated[dict[str, Any], filters_of()], limit: FewLimit
) -> Hits:
    """Find chunks of similar content, nearest first."""
    return kb.similar(chunk, limit=limit, filters=filters)


@routes.get("/chunks/{chunk}/related")
def list_related_chunks(chunk: ChunkId, kb: Holder, limit: FewLimit) -> list[RelatedChunk]:
    """Find chunks that share rare subjects with a chunk."""
    return kb.related(chunk, limit=limit)


@routes.get("/bases/{name}/chunks")
def list_chunks(
    *,
    kb: Kb,
    limit: Limit,
    position: BehindPosition,
    document: Annotated[
        str, Query(description="Only those of this document, by id or URI.", max_length=4_000)
    ] = "",
    behind: Behind = "",
    cursor: Cursor = "",
) -> Paged[Chunk]:
    """List chunks in the order of their documents' URIs."""
    if document:
        return offset_page(kb.chunks.of(document), limit, cursor)
    uri, place = read_cursor(cursor, str, int) or (behind, position)
    chunks = kb.chunks.list(after=(uri, place), limit=limit)
    return keyset_page(
        chunks, limit, lambda last: (kb.documents[last.document_id].uri, last.position)
    )


@routes.get("/bases/{name}/chunks/map", model=ChunkMap)
def map_chunks(
    kb: Kb,
    limit: Annotated[
        int, integer("limit", "Maximum chunks; a random sample of more.", 1, 5_000, 2_000)
    ],
    seed: Annotated[int, integer("seed", "Seed of the random sample.", 0, 2**32 - 1, 0)],
) -> dict[str, Any]:
    """Project chunk vectors onto the plane of the greatest variance."""
    frame = kb.chunks.embedding_map(limit=limit, seed=seed)
    places = frame.reset_index().astype(object).to_dict("records")
    return {"places": places, **{str(name): value for name, value in frame.attrs.items()}}


@routes.post("/bases/{name}/chunks/encoder", WRITE, model=dict[str, Any])
def fit_query_encoder(kb: Kb) -> Mapping[str, Any]:
    """Fit the query encoder of a knowledge base to its chunks."""
    return kb.chunks.fit_query_encoder()
