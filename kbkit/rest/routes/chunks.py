"""Routes for chunks."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from kbkit.models import Chunk, DocumentType, Hits, RelatedChunk
from kbkit.rest.access import READ, WRITE, Caller, WorkspaceOf, base_of, holder_of
from kbkit.rest.known_query import KNOWN_QUERY
from kbkit.rest.parameters import (
    Behind,
    BehindPosition,
    ChunkId,
    Cursor,
    FewLimit,
    KbPath,
    Limit,
    SomeKb,
    filters_of,
    integer,
    part_of,
    read_cursor,
    write_cursor,
)
from kbkit.rest.responses import answer, documented, page

router = APIRouter(prefix="/api/knowledge", tags=["chunks"], dependencies=[KNOWN_QUERY])


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
    variance: tuple[float, float] = Field(description="Share of it that each axis shows.")
    chunks: int = Field(description="Number of chunks in the population.")


@router.get(
    "/chunks/{chunk}",
    dependencies=[READ],
    responses=documented(Chunk, many=True, refusals=(404, 422)),
)
def read_chunk(
    *,
    chunk: ChunkId,
    workspace: WorkspaceOf,
    caller: Caller,
    before: Annotated[int, integer("before", "Most chunks before it.", 0, 1_000, 0)],
    after: Annotated[int, integer("after", "Most chunks after it.", 0, 1_000, 0)],
    kb: SomeKb = None,
) -> Response:
    """Read a chunk with its neighbours, in document order."""
    found = holder_of(workspace, caller, kb, lambda base: base.chunks[chunk])
    return page(found.context(chunk, before=before, after=after))


@router.get(
    "/chunks/{chunk}/similar", dependencies=[READ], responses=documented(Hits, refusals=(404, 422))
)
def list_similar_chunks(
    *,
    chunk: ChunkId,
    workspace: WorkspaceOf,
    caller: Caller,
    filters: Annotated[dict[str, Any], filters_of()],
    limit: FewLimit,
    kb: SomeKb = None,
) -> Response:
    """Find other chunks that speak of the same as a chunk, nearest first."""
    found = holder_of(workspace, caller, kb, lambda base: base.chunks[chunk])
    return answer(found.similar(chunk, limit=limit, filters=filters))


@router.get(
    "/chunks/{chunk}/related",
    dependencies=[READ],
    responses=documented(RelatedChunk, many=True, refusals=(404, 422)),
)
def list_related_chunks(
    *, chunk: ChunkId, workspace: WorkspaceOf, caller: Caller, limit: FewLimit, kb: SomeKb = None
) -> Response:
    """Find chunks that share rare subjects with a chunk, in any words."""
    found = holder_of(workspace, caller, kb, lambda base: base.chunks[chunk])
    return page(found.related(chunk, limit=limit))


@router.get(
    "/bases/{name}/chunks",
    dependencies=[READ],
    responses=documented(Chunk, many=True, refusals=(404, 422)),
)
def list_chunks(
    *,
    name: KbPath,
    workspace: WorkspaceOf,
    caller: Caller,
    limit: Limit,
    position: BehindPosition,
    document: Annotated[
        str, Query(description="Only those of this document, by id or URI.", max_length=4_000)
    ] = "",
    behind: Behind = "",
    cursor: Cursor = "",
) -> Response:
    """List chunks in the order of their documents' URIs."""
    found = base_of(workspace, caller, name)
    if document:
        return part_of(found.chunks.of(document), limit, cursor)
    place = read_cursor(cursor, str, int) or (behind, position)
    chunks = found.chunks.list(after=(place[0], place[1]), limit=limit)
    if len(chunks) < limit:
        return page(chunks)
    last = chunks[-1]
    return page(chunks, write_cursor(found.documents[last.document_id].uri, last.position))


@router.get(
    "/bases/{name}/chunks/map",
    dependencies=[READ],
    responses=documented(ChunkMap, refusals=(404, 422)),
)
def map_chunks(
    *,
    name: KbPath,
    workspace: WorkspaceOf,
    caller: Caller,
    limit: Annotated[
        int, integer("limit", "Most chunks; of more, so many are drawn.", 1, 5_000, 2_000)
    ],
    seed: Annotated[int, integer("seed", "Another one draws others.", 0, 2**32 - 1, 0)],
) -> Response:
    """Project chunk vectors onto the plane of the greatest variance."""
    frame = base_of(workspace, caller, name).chunks.embedding_map(limit=limit, seed=seed)
    places = frame.reset_index().astype(object).to_dict("records")
    return answer({"places": places, **frame.attrs})


@router.post(
    "/bases/{name}/chunks/encoder",
    dependencies=[WRITE],
    responses=documented(dict[str, Any], refusals=(404, 422, 503)),
)
def fit_query_encoder(name: KbPath, workspace: WorkspaceOf, caller: Caller) -> Response:
    """Fit the query encoder of a knowledge base to its chunks."""
    return answer(base_of(workspace, caller, name).chunks.fit_query_encoder())
