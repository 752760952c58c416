"""Routes for ratings."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from pydantic import BeforeValidator, Field, WithJsonSchema

from kbkit.access import Caller as AccessCaller
from kbkit.knowledge_base import KnowledgeBase, handle_of
from kbkit.models import Rating, RatingTotal
from kbkit.rest.access import READ, WRITE, Caller, WorkspaceOf, base_of, holder_of
from kbkit.rest.known_query import KNOWN_QUERY
from kbkit.rest.parameters import (
    Body,
    ChunkId,
    ChunkIds,
    Cursor,
    KbPath,
    Limit,
    SomeKb,
    integer,
    read_cursor,
    whole,
    write_cursor,
)
from kbkit.rest.responses import answer, documented, no_content, page

router = APIRouter(prefix="/api/knowledge", tags=["ratings"], dependencies=[KNOWN_QUERY])

TargetName = Annotated[
    str,
    Path(
        description="Id of a chunk or a document, or URI of a document.",
        min_length=1,
        max_length=4_000,
    ),
]
Score = Annotated[
    Any, BeforeValidator(whole), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": 5})
]


class NewRating(Body):
    """A rating of a chunk or a document."""

    score: Score
    """1 (useless) to 5 (exactly right)."""
    query: str = ""
    """Query that found it, if any."""
    note: Annotated[str, Field(max_length=100_000)] = ""
    """A note."""
    rater: Annotated[str, Field(max_length=1_000)] = ""
    """Rater; by default the token's name, else the server's user."""


@router.post(
    "/chunks/{chunk}/rate",
    status_code=201,
    dependencies=[WRITE],
    responses=documented(Rating, 201, refusals=(404, 422)),
)
def rate_chunk(
    *, chunk: ChunkId, body: NewRating, workspace: WorkspaceOf, caller: Caller, kb: SomeKb = None
) -> Response:
    """Rate a chunk; the last rating of a rater counts."""
    found = holder_of(workspace, caller, kb, lambda base: base.chunks[chunk])
    return _rated(found, chunk, body, caller)


@router.get(
    "/bases/{name}/ratings",
    dependencies=[READ],
    responses=documented(Rating, many=True, refusals=(404, 422)),
)
def list_ratings(
    *,
    name: KbPath,
    workspace: WorkspaceOf,
    caller: Caller,
    limit: Limit,
    behind: Annotated[int, integer("behind", "Only those after this id.", 0, 2**53, 0)],
    cursor: Cursor = "",
) -> Response:
    """List the ratings of chunks and documents, oldest first."""
    (after,) = read_cursor(cursor, int) or (behind,)
    found = base_of(workspace, caller, name).ratings.list(after=after, limit=limit)
    return page(found, write_cursor(found[-1].id) if len(found) == limit else None)


@router.delete(
    "/bases/{name}/ratings/{rating}",
    status_code=204,
    dependencies=[WRITE],
    responses=documented(status=204, refusals=(404, 422)),
)
def delete_rating(
    name: KbPath,
    rating: Annotated[int, Path(description="Id of a rating.", ge=1, lt=2**53)],
    workspace: WorkspaceOf,
    caller: Caller,
) -> Response:
    """Delete a mistaken rating; the one before it counts again."""
    base_of(workspace, caller, name).ratings.delete(rating)
    return no_content()


class TargetRatings(Body):
    """Ratings of a chunk or a document."""

    total: RatingTotal | None
    """Total; null without ratings."""
    data: list[Rating]
    """The ratings, oldest first."""


@router.get(
    "/bases/{name}/targets/{target:path}/ratings",
    dependencies=[READ],
    responses=documented(TargetRatings, refusals=(404, 422)),
)
def list_target_ratings(
    name: KbPath, target: TargetName, workspace: WorkspaceOf, caller: Caller
) -> Response:
    """List the ratings of one chunk or document, also of one that is gone."""
    ratings = base_of(workspace, caller, name).ratings
    return answer({"total": ratings.total(target), "data": ratings.of(target)})


@router.post(
    "/bases/{name}/targets/{target:path}/ratings",
    status_code=201,
    dependencies=[WRITE],
    responses=documented(Rating, 201, refusals=(404, 422)),
)
def rate_target(
    *, name: KbPath, target: TargetName, body: NewRating, workspace: WorkspaceOf, caller: Caller
) -> Response:
    """Rate a chunk or a document; the last rating of a rater counts."""
    return _rated(base_of(workspace, caller, name), target, body, caller)


@router.post(
    "/bases/{name}/chunk-ratings",
    dependencies=[READ],
    responses=documented(Rating, many=True, refusals=(404,)),
)
def sum_chunk_ratings(
    workspace: WorkspaceOf, caller: Caller, name: KbPath, body: ChunkIds
) -> Response:
    """List the ratings of some chunks and documents, oldest first."""
    return page(handle_of(base_of(workspace, caller, name)).ratings_of(body.ids))


def _rated(kb: KnowledgeBase, target: str, body: NewRating, caller: AccessCaller) -> Response:
    rater = body.rater or caller.name
    given = kb.rate(target, body.score, query=body.query, note=body.note, rater=rater)
    return answer(given, 201)
