"""Routes for chunks, their ratings and annotations."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Response
from pydantic import BaseModel, Field, StrictBool, StrictInt

from kbkit import models
from kbkit.knowledge_base import KnowledgeBase, handle_of
from kbkit.server import parameters
from kbkit.server.access import READ, WRITE, Caller, Kb, WorkspaceOf, holder_of
from kbkit.server.responses import Page, Paged, Wait, answer
from kbkit.server.routing import Routes, Work

routes = Routes("/api/knowledge", "chunks")


class PlacedChunk(BaseModel):
    """Position of a chunk on the map, and its facts."""

    id: str
    x: float
    y: float
    title: str
    section: str
    snippet: str
    document_type: models.DocumentType
    folder: str
    uri: str


class ChunkMap(BaseModel):
    """Chunks on the plane of the greatest variance of their vectors."""

    places: list[PlacedChunk]
    variance: tuple[float, float] = Field(description="Share of the variance of each axis.")
    chunks: int = Field(description="Number of chunks in the population.")


class Similar(parameters.Options):
    """Conditions on similar chunks."""

    limit: parameters.FewHits = 10
    filters: parameters.FiltersField = None


def _holder(
    chunk: parameters.ChunkId, workspace: WorkspaceOf, caller: Caller, kb: parameters.SomeKb = None
) -> KnowledgeBase:
    return holder_of(workspace, caller, kb, lambda base: base.chunks[chunk])


Holder = Annotated[KnowledgeBase, Depends(_holder)]
"""Parameter: the knowledge base that has the chunk of the path."""


@routes.get("/chunks/{chunk}")
def read_chunk(
    chunk: parameters.ChunkId,
    kb: Holder,
    before: Annotated[int, Query(description="Maximum chunks before it.", ge=0, le=1_000)] = 0,
    after: Annotated[int, Query(description="Maximum chunks after it.", ge=0, le=1_000)] = 0,
) -> list[models.Chunk]:
    """Read a chunk with its neighbours, in document order."""
    return kb.context(chunk, before=before, after=after)


@routes.post("/chunks/{chunk}/similar", READ)
def list_similar_chunks(chunk: parameters.ChunkId, kb: Holder, body: Similar) -> models.Hits:
    """Find chunks of similar content, nearest first."""
    return kb.similar(chunk, **dict(body))


@routes.get("/chunks/{chunk}/related")
def list_related_chunks(
    chunk: parameters.ChunkId, kb: Holder, limit: parameters.FewLimit = 10
) -> list[models.RelatedChunk]:
    """Find chunks that share rare subjects with a chunk."""
    return kb.related(chunk, limit=limit)


@routes.get("/bases/{name}/chunks")
def list_chunks(
    *,
    kb: Kb,
    paging: parameters.PagingOf,
    document: Annotated[
        str, Query(description="Only those of this document, by id or URI.", max_length=4_000)
    ] = "",
) -> Paged[models.Chunk]:
    """List chunks in the order of their documents' URIs."""
    if document:
        return paging.of(kb.chunks.of(document))
    uri, position = paging.place(str, int) or ("", -1)
    chunks = kb.chunks.list(after=(uri, position), limit=paging.limit)
    return paging.ending(chunks, lambda last: (kb.documents[last.document_id].uri, last.position))


@routes.get("/bases/{name}/chunks/map", model=ChunkMap)
def map_chunks(
    kb: Kb,
    limit: Annotated[
        int, Query(description="Maximum chunks; a random sample of more.", ge=1, le=5_000)
    ] = 2_000,
    seed: Annotated[int, Query(description="Seed of the random sample.", ge=0, lt=2**32)] = 0,
) -> dict[str, Any]:
    """Project chunk vectors onto the plane of the greatest variance."""
    frame = kb.chunks.embedding_map(limit=limit, seed=seed)
    records = frame.reset_index().astype(object).to_dict("records")
    return {"places": records, **{str(name): value for name, value in frame.attrs.items()}}


@routes.post("/bases/{name}/chunks/encoder", WRITE, model=dict[str, Any])
def fit_query_encoder(kb: Kb) -> Mapping[str, Any]:
    """Fit the query encoder of a knowledge base to its chunks."""
    return kb.chunks.fit_query_encoder()


rating_routes = Routes("/api/knowledge", "ratings")

TargetName = Annotated[
    str,
    Path(
        description="Id of a chunk or a document, or URI of a document.",
        min_length=1,
        max_length=4_000,
    ),
]
Score = Annotated[StrictInt, Field(ge=1, le=5), parameters.WHOLE]


class NewRating(parameters.Body):
    """A rating of a chunk or a document."""

    score: Score
    """1 (useless) to 5 (exactly right)."""
    query: str = ""
    """Query that found it."""
    note: Annotated[str, Field(max_length=100_000)] = ""
    rater: Annotated[str, Field(max_length=1_000)] = ""
    """Rater; by default the token's name, else the server's user."""


class TargetRatings(parameters.Body):
    """Ratings of a chunk or a document."""

    total: models.RatingTotal | None
    """Null without ratings."""
    data: list[models.Rating]
    """Oldest first."""


@rating_routes.post("/chunks/{chunk}/rate", WRITE, status=201)
def rate_chunk(
    chunk: parameters.ChunkId, kb: Holder, body: NewRating, caller: Caller
) -> models.Rating:
    """Rate a chunk; the last rating of a rater counts."""
    return rate_target(kb, chunk, body, caller)


@rating_routes.get("/bases/{name}/ratings")
def list_ratings(kb: Kb, paging: parameters.PagingOf) -> Paged[models.Rating]:
    """List the ratings of chunks and documents, oldest first."""
    (after,) = paging.place(int) or (0,)
    ratings = kb.ratings.list(after=after, limit=paging.limit)
    return paging.ending(ratings, lambda last: (last.id,))


@rating_routes.delete("/bases/{name}/ratings/{rating}", WRITE)
def delete_rating(
    kb: Kb, rating: Annotated[int, Path(description="Id of a rating.", ge=1, lt=2**53)]
) -> None:
    """Delete a rating; the one before it counts again."""
    kb.ratings.delete(rating)


@rating_routes.get("/bases/{name}/targets/{target:path}/ratings", model=TargetRatings)
def list_target_ratings(kb: Kb, target: TargetName) -> dict[str, Any]:
    """List the ratings of a chunk or document, also of a deleted one."""
    return {"total": kb.ratings.total(target), "data": kb.ratings.of(target)}


@rating_routes.post("/bases/{name}/targets/{target:path}/ratings", WRITE, status=201)
def rate_target(kb: Kb, target: TargetName, body: NewRating, caller: Caller) -> models.Rating:
    """Rate a chunk or a document; the last rating of a rater counts."""
    values = body.model_dump() | {"rater": body.rater or caller.name}
    return kb.rate(target, values.pop("score"), **values)


@rating_routes.post("/bases/{name}/chunk-ratings", READ)
def sum_chunk_ratings(kb: Kb, body: parameters.ChunkIds) -> list[models.Rating]:
    """List the ratings of some chunks and documents, oldest first."""
    return handle_of(kb).ratings_of(body.ids)


annotation_routes = Routes("/api/knowledge/bases/{name}", "annotations")


class Revision(BaseModel):
    """Revision that changes with a knowledge base."""

    revision: list[int] = Field(description="Changes with its documents or ratings.")
    site: str = Field(description="Changes also with annotations and the graph.")


class NewAnnotations(parameters.Options):
    """Options of an annotation run."""

    estimate: StrictBool = False
    """Only estimate the requests to a language model."""
    wait: Wait = True


class Summarized(BaseModel):
    """A chunk and its summary."""

    chunk: str
    summary: models.ChunkSummary


@annotation_routes.get("/annotations")
def list_annotations(
    kb: Kb,
    target: Annotated[
        str, Query(max_length=8_000, description="Id of a chunk, or id or URI of a document.")
    ],
) -> list[models.Annotation]:
    """List the annotations of a chunk, or of all chunks of a document."""
    return kb.annotations.of(target)


@annotation_routes.get("/annotated-chunks")
def list_annotated_chunks(*, kb: Kb, paging: parameters.PagingOf) -> Paged[models.AnnotatedChunk]:
    """List annotated chunks, in order of URI."""
    uri, position = paging.place(str, int) or ("", -1)
    chunks = kb.annotations.chunks(after=(uri, position), limit=paging.limit)
    return paging.ending(chunks, lambda last: (last.uri, last.position))


@annotation_routes.post("/annotate", WRITE, work=models.AnnotationReport)
def annotate_chunks(kb: Kb, body: NewAnnotations, work: Work) -> Response:
    """Annotate the remaining chunks, without the limit on calls to a language model."""
    if body.estimate:
        return answer(kb.annotations.make(estimate=True))
    return work.run("annotate", body, kb=kb.name)


@annotation_routes.get("/revision", model=Revision)
def read_revision(kb: Kb) -> dict[str, Any]:
    """Return a revision that changes with the knowledge base."""
    *revision, site = handle_of(kb).site_revision()
    return {"revision": revision, "site": str(site)}


@annotation_routes.post("/summaries", READ, model=Page[Summarized])
def summarize_chunks(kb: Kb, body: parameters.ChunkIds) -> list[dict[str, Any]]:
    """Summarize chunks; those without annotations are left out."""
    summaries = handle_of(kb).summaries_of(body.ids)
    return [{"chunk": chunk, "summary": summary} for chunk, summary in summaries.items()]
