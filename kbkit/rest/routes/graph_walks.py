"""Routes for walks, gaps, layout and subjects of the graph."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from kbkit.errors import ArgumentError
from kbkit.models import (
    About,
    Gap,
    GapKind,
    GraphLayout,
    Hit,
    MergeSuggestion,
    Step,
    Subject,
    SubjectKind,
    Target,
)
from kbkit.rest.access import READ, Caller, WorkspaceOf
from kbkit.rest.bodies import MAX_IN_GRAPH, Picture, Targets, target_of
from kbkit.rest.parameters import integer, left_out
from kbkit.rest.responses import answer, documented, page
from kbkit.rest.routes.graph import GraphOf, Kind, LimitOf, Ref, Several

router = APIRouter(prefix="/api/knowledge", tags=["graph"], dependencies=[READ])


class Called(BaseModel):
    """Label of a target."""

    target: Target
    name: str


@router.get("/graph/neighbors", responses=documented(Step, many=True, refusals=(404,)))
def list_neighbors(
    *,
    graph: GraphOf,
    target: Ref,
    kind: Kind = None,
    depth: Annotated[int, integer("depth", "Relations to follow.", 1, 5, 1)],
    relation: Several = None,
    limit: LimitOf,
) -> Response:
    """List what relations reach from a target, the nearest and strongest first."""
    end = target_of(target, kind)
    return page(graph.neighbors(end, depth=depth, relation=relation or (), limit=limit))


@router.get("/graph/passages", responses=documented(Hit, many=True, refusals=(404,)))
def list_passages(
    graph: GraphOf,
    target: Ref,
    limit: Annotated[int, integer("limit", "Most passages.", 1, MAX_IN_GRAPH, 5)],
    kind: Kind = None,
) -> Response:
    """List passages that define a target, then those that mention it most plainly."""
    return page(graph.passages(target_of(target, kind), limit=limit))


@router.get("/graph/path", responses=documented(Step, many=True, refusals=(404,)))
def find_path(
    graph: GraphOf, source: Ref, target: Ref, source_kind: Kind = None, target_kind: Kind = None
) -> Response:
    """Find the path between two targets; empty if nothing connects them."""
    return page(graph.path(target_of(source, source_kind), target_of(target, target_kind)))


@router.get("/graph/gaps", responses=documented(Gap, many=True, refusals=(404,)))
def list_gaps(
    graph: GraphOf,
    limit: Annotated[int, integer("limit", "Most of each kind.", 1, MAX_IN_GRAPH, 10)],
    kind: Annotated[str | None, Query(json_schema_extra={"enum": list(GapKind)})] = None,
    kbs: Several = None,
) -> Response:
    """List gaps of the documentation, the most important first."""
    return page(graph.gaps(kind=kind, kbs=kbs, limit=limit))


@router.get("/graph/suggestions", responses=documented(MergeSuggestion, many=True))
def list_suggestions(
    graph: GraphOf, limit: Annotated[int, integer("limit", "Most pairs.", 1, MAX_IN_GRAPH, 20)]
) -> Response:
    """List pairs of entities that may be one, the surest first."""
    return page(graph.suggestions(limit=limit))


@router.post("/graph/names", responses=documented(Called, many=True))
def list_names(graph: GraphOf, body: Targets) -> Response:
    """Return labels of targets; missing ones are left out."""
    targets = [target_of(each) for each in body.targets]
    if wrong := [each for each in targets if not isinstance(each, Target)]:
        raise ArgumentError(f"targets: {wrong[0][:200]!r}: give a kind with an id")
    found = graph.names(targets)
    return page([{"target": target, "name": name} for target, name in found.items()])


@router.post("/graph/layout", responses=documented(GraphLayout, refusals=(404,)))
def lay_out_graph(graph: GraphOf, body: Annotated[Picture, left_out(Picture)]) -> Response:
    """Lay out the graph or a part of it: nodes, sizes and positions."""
    around = [target_of(each) for each in body.around]
    return answer(
        graph.layout(
            around,
            depth=body.depth,
            type=body.type,
            relation=body.relation,
            kbs=body.kbs,
            limit=body.limit,
        )
    )


@router.get("/subjects", responses=documented(Subject, many=True, refusals=(404,)))
def list_subjects(
    *,
    workspace: WorkspaceOf,
    caller: Caller,
    limit: Annotated[int | None, integer("limit", "Most; by default all.", 1, MAX_IN_GRAPH, None)],
    kind: Annotated[str | None, Query(json_schema_extra={"enum": list(SubjectKind)})] = None,
    like: Annotated[str, Query(max_length=500, description="A part of a name.")] = "",
    kbs: Several = None,
) -> Response:
    """List subjects that chunks mention, the most mentioned first."""
    named = caller.restrict(kbs)
    return page(workspace.subjects(kind=kind, like=like, kbs=named, limit=limit))


@router.get("/about", responses=documented(About, refusals=(404,)))
def tell_about(
    workspace: WorkspaceOf,
    caller: Caller,
    query: Annotated[
        str,
        Query(
            max_length=500,
            description="A name of a subject.",
            json_schema_extra={"pattern": r"[^\s]"},
        ),
    ],
    limit: Annotated[int, integer("limit", "Most of each.", 1, MAX_IN_GRAPH, 20)],
    kbs: Several = None,
) -> Response:
    """Find chunks, documents and entities about a subject."""
    return answer(workspace.about(query, kbs=caller.restrict(kbs), limit=limit))
