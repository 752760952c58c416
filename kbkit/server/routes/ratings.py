"""Routes for ratings."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import BeforeValidator, Field, WithJsonSchema

from kbkit.knowledge_base import KnowledgeBase, handle_of
from kbkit.models import Rating, RatingTotal
from kbkit.server.access import READ, WRITE, Caller, Kb
from kbkit.server.parameters import (
    Body,
    ChunkId,
    ChunkIds,
    Cursor,
    Limit,
    integer,
    keyset_page,
    read_cursor,
    whole,
)
from kbkit.server.responses import Paged
from kbkit.server.routes.chunks import Holder
from kbkit.server.routing import Routes

routes = Routes("/api/knowledge", "ratings")

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
    """Query that found it."""
    note: Annotated[str, Field(max_length=100_000)] = ""
    rater: Annotated[str, Field(max_length=1_000)] = ""
    """Rater; by default the token's name, else the server's user."""

    def of(self, kb: KnowledgeBase, target: str, caller: Caller) -> Rating:
        values = self.model_dump() | {"rater": self.rater or caller.name}
        return kb.rate(target, values.pop("score"), **values)


class TargetRatings(Body):
    """Ratings of a chunk or a document."""

    total: RatingTotal | None
    """Null without ratings."""
    data: list[Rating]
    """Oldest first."""


@routes.post("/chunks/{chunk}/rate", WRITE, status=201)
def rate_chunk(chunk: ChunkId, kb: Holder, body: NewRating, caller: Caller) -> Rating:
    """Rate a chunk; the last rating of a rater counts."""
    return body.of(kb, chunk, caller)


@routes.get("/bases/{name}/ratings")
def list_ratings(
    kb: Kb,
    limit: Limit,
    behind: Annotated[int, integer("behind", "Only those after this id.", 0, 2**53, 0)],
    cursor: Cursor = "",
) -> Paged[Rating]:
    """List the ratings of chunks and documents, oldest first."""
    (after,) = read_cursor(cursor, int) or (behind,)
    ratings = kb.ratings.list(after=after, limit=limit)
    return keyset_page(ratings, limit, lambda last: (last.id,))


@routes.delete("/bases/{name}/ratings/{rating}", WRITE)
def delete_rating(
    kb: Kb, rating: Annotated[int, Path(description="Id of a rating.", ge=1, lt=2**53)]
) -> None:
    """Delete a rating; the one before it counts again."""
    kb.ratings.delete(rating)


@routes.get("/bases/{name}/targets/{target:path}/ratings", model=TargetRatings)
def list_target_ratings(kb: Kb, target: TargetName) -> dict[str, Any]:
    """List the ratings of a chunk or document, also of a deleted one."""
    return {"total": kb.ratings.total(target), "data": kb.ratings.of(target)}


@routes.post("/bases/{name}/targets/{target:path}/ratings", WRITE, status=201)
def rate_target(kb: Kb, target: TargetName, body: NewRating, caller: Caller) -> Rating:
    """Rate a chunk or a document; the last rating of a rater counts."""
    return body.of(kb, target, caller)


@routes.post("/bases/{name}/chunk-ratings", READ)
def sum_chunk_ratings(kb: Kb, body: ChunkIds) -> list[Rating]:
    """List the ratings of some chunks and documents, oldest first."""
    return handle_of(kb).ratings_of(body.ids)
