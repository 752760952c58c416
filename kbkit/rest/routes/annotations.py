"""Routes for annotations, and for the revision of a knowledge base."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field, StrictBool

from kbkit.knowledge_base import handle_of
from kbkit.models import AnnotatedChunk, Annotation, AnnotationReport, ChunkSummary, Frame
from kbkit.rest.access import READ, WRITE, Caller, JobsOf, WorkspaceOf, base_of
from kbkit.rest.known_query import KNOWN_QUERY
from kbkit.rest.middleware import Once
from kbkit.rest.parameters import (
    Behind,
    BehindPosition,
    Body,
    ChunkIds,
    Cursor,
    KbPath,
    Limit,
    left_out,
    read_cursor,
    write_cursor,
)
from kbkit.rest.responses import Wait, answer, documented, documented_work, page, run_as_job

router = APIRouter(prefix="/api/knowledge/bases/{name}", tags=["annotations"])


class FrameCount(BaseModel):
    """Number of annotations of a statement type."""

    frame: Frame
    count: int


class Revision(BaseModel):
    """Revision that changes with a knowledge base."""

    revision: list[int] = Field(description="Changes with its documents or ratings.")
    site: str = Field(description="Changes also with annotations and the graph.")


class Waiting(BaseModel):
    """Number of chunks that still need annotation."""

    waiting: int = Field(description="Chunks.")


class NewAnnotations(Body):
    """Options of an annotation run."""

    estimate: StrictBool = False
    """Only estimate the requests to a language model."""
    wait: Wait = True


class Summarized(BaseModel):
    """A chunk and its summary."""

    chunk: str
    summary: ChunkSummary


@router.get(
    "/annotations",
    dependencies=[READ],
    responses=documented(Annotation, many=True, refusals=(404,)),
)
def list_annotations(
    workspace: WorkspaceOf,
    caller: Caller,
    name: KbPath,
    target: Annotated[
        str, Query(max_length=8_000, description="Id of a chunk, or id or URI of a document.")
    ],
) -> Response:
    """The statements that a chunk, or all chunks of a document, are annotated with."""
    return page(base_of(workspace, caller, name).annotations.of(target))


@router.get(
    "/annotated-chunks",
    dependencies=[READ, KNOWN_QUERY],
    responses=documented(AnnotatedChunk, many=True, refusals=(404, 422)),
)
def list_annotated_chunks(
    *,
    workspace: WorkspaceOf,
    caller: Caller,
    name: KbPath,
    limit: Limit,
    position: BehindPosition,
    behind: Behind = "",
    cursor: Cursor = "",
) -> Response:
    """List annotated chunks, in order of URI."""
    uri, place = read_cursor(cursor, str, int) or (behind, position)
    annotations = base_of(workspace, caller, name).annotations
    found = annotations.chunks(after=(uri, place), limit=limit)
    last = found[-1] if len(found) == limit else None
    return page(found, None if last is None else write_cursor(last.uri, last.position))


@router.get(
    "/annotations/waiting",
    dependencies=[READ, KNOWN_QUERY],
    responses=documented(Waiting, refusals=(404, 501, 503)),
)
def count_waiting_chunks(workspace: WorkspaceOf, caller: Caller, name: KbPath) -> Response:
    """Count chunks that still need annotation."""
    return answer({"waiting": base_of(workspace, caller, name).annotations.waiting})


@router.post(
    "/annotate", dependencies=[WRITE, KNOWN_QUERY], responses=documented_work(AnnotationReport)
)
def annotate_chunks(
    *,
    workspace: WorkspaceOf,
    caller: Caller,
    jobs: JobsOf,
    name: KbPath,
    body: Annotated[NewAnnotations, left_out(NewAnnotations)],
    once: Once,
) -> Response:
    """Annotate the remaining chunks, without the limit on calls to a language model."""
    annotations = base_of(workspace, caller, name).annotations
    if body.estimate:
        return answer(annotations.make(estimate=True))
    arguments = {"kb": name}
    return once(arguments, lambda: run_as_job(jobs, caller, "annotate", arguments, wait=body.wait))


@router.get(
    "/frames", dependencies=[READ], responses=documented(FrameCount, many=True, refusals=(404,))
)
def list_frames(workspace: WorkspaceOf, caller: Caller, name: KbPath) -> Response:
    """Count annotations by statement type, the most frequent first."""
    found = base_of(workspace, caller, name).annotations.frames
    return page([{"frame": frame, "count": count} for frame, count in found.items()])


@router.get("/revision", dependencies=[READ], responses=documented(Revision, refusals=(404,)))
def read_revision(workspace: WorkspaceOf, caller: Caller, name: KbPath) -> Response:
    """Return a revision that changes with the knowledge base."""
    *found, site = handle_of(base_of(workspace, caller, name)).site_revision()
    return answer({"revision": found, "site": str(site)})


@router.post(
    "/summaries", dependencies=[READ], responses=documented(Summarized, many=True, refusals=(404,))
)
def summarize_chunks(
    workspace: WorkspaceOf, caller: Caller, name: KbPath, body: ChunkIds
) -> Response:
    """Summarize chunks; those without annotations are left out."""
    found = handle_of(base_of(workspace, caller, name)).summaries_of(body.ids)
    return page([{"chunk": chunk, "summary": summary} for chunk, summary in found.items()])
