"""Routes for annotations, and for the revision of a knowledge base."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import BaseModel, Field, StrictBool

from kbkit.knowledge_base import handle_of
from kbkit.models import AnnotatedChunk, Annotation, AnnotationReport, ChunkSummary, StatementType
from kbkit.server.access import READ, WRITE, Kb
from kbkit.server.parameters import (
    Behind,
    BehindPosition,
    ChunkIds,
    Cursor,
    Limit,
    Options,
    keyset_page,
    read_cursor,
)
from kbkit.server.responses import Page, Paged, Wait, answer
from kbkit.server.routing import Routes, Work

routes = Routes("/api/knowledge/bases/{name}", "annotations")


class StatementTypeCount(BaseModel):
    """Number of annotations of a statement type."""

    frame: StatementType
    count: int


class Revision(BaseModel):
    """Revision that changes with a knowledge base."""

    revision: list[int] = Field(description="Changes with its documents or ratings.")
    site: str = Field(description="Changes also with annotations and the graph.")


class Waiting(BaseModel):
    """Number of chunks without annotations."""

    waiting: int = Field(description="Number of chunks.")


class NewAnnotations(Options):
    """Options of an annotation run."""

    estimate: StrictBool = False
    """Only estimate the requests to a language model."""
    wait: Wait = True


class Summarized(BaseModel):
    """A chunk and its summary."""

    chunk: str
    summary: ChunkSummary


@routes.get("/annotations")
def list_annotations(
    kb: Kb,
    target: Annotated[
        str, Query(max_length=8_000, description="Id of a chunk, or id or URI of a document.")
    ],
) -> list[Annotation]:
    """List the annotations of a chunk, or of all chunks of a document."""
    return kb.annotations.of(target)


@routes.get("/annotated-chunks")
def list_annotated_chunks(
    *, kb: Kb, limit: Limit, position: BehindPosition, behind: Behind = "", cursor: Cursor = ""
) -> Paged[AnnotatedChunk]:
    """List annotated chunks, in order of URI."""
    uri, place = read_cursor(cursor, str, int) or (behind, position)
    chunks = kb.annotations.chunks(after=(uri, place), limit=limit)
    return keyset_page(chunks, limit, lambda last: (last.uri, last.position))


@routes.get("/annotations/waiting")
def count_waiting_chunks(kb: Kb) -> Waiting:
    """Count chunks without annotations."""
    return Waiting(waiting=kb.annotations.waiting)


@routes.post("/annotate", WRITE, work=AnnotationReport)
def annotate_chunks(kb: Kb, body: NewAnnotations, work: Work) -> Response:
    """Annotate the remaining chunks, without the limit on calls to a language model."""
    if body.estimate:
        return answer(kb.annotations.make(estimate=True))
    return work.start("annotate", {"kb": kb.name}, wait=body.wait)


@routes.get("/frames", model=Page[StatementTypeCount])
def list_frames(kb: Kb) -> list[dict[str, Any]]:
    """Count annotations by statement type, the most frequent first."""
    counts = kb.annotations.statement_types
    return [{"frame": frame, "count": count} for frame, count in counts.items()]


@routes.get("/revision", model=Revision)
def read_revision(kb: Kb) -> dict[str, Any]:
    """Return a revision that changes with the knowledge base."""
    *revision, site = handle_of(kb).site_revision()
    return {"revision": revision, "site": str(site)}


@routes.post("/summaries", READ, model=Page[Summarized])
def summarize_chunks(kb: Kb, body: ChunkIds) -> list[dict[str, Any]]:
    """Summarize chunks; those without annotations are left out."""
    summaries = handle_of(kb).summaries_of(body.ids)
    return [{"chunk": chunk, "summary": summary} for chunk, summary in summaries.items()]
