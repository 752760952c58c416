"""Routes for entities and relations: `/api/knowledge/graph`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import BaseModel, Field

from kbkit.errors import ConflictError, VersionConflictError
from kbkit.graph.graph import Graph
from kbkit.models import Entity, GraphEdit, Relation, Step, Target, TargetKind
from kbkit.rest.access import READ, WRITE, Caller, WorkspaceOf
from kbkit.rest.bodies import (
    MAX_IN_GRAPH,
    MAX_NAME,
    EntityChange,
    NewEntity,
    NewRelation,
    Pair,
    UndoRequest,
    changed_at,
    stamp,
    target_of,
    version_of,
)
from kbkit.rest.parameters import Cursor, integer, left_out, part_found
from kbkit.rest.responses import IfMatch, answer, documented, no_content, page

router = APIRouter(prefix="/api/knowledge/graph", tags=["graph"])

_WRONG = (404, 409, 412)
EntityOf = Annotated[
    str, Path(min_length=1, max_length=MAX_NAME, description="Id of the entity, or its name.")
]
LimitOf = Annotated[int, integer("limit", "Most that are listed.", 1, MAX_IN_GRAPH, 50)]
Ref = Annotated[str, Query(min_length=1, max_length=2_000)]
Kind = Annotated[
    str | None,
    Query(
        description="Kind of target, if given by id; looked up by default.",
        json_schema_extra={"enum": list(TargetKind)},
    ),
]
Several = Annotated[list[str] | None, Query(max_length=1_000)]


def graph_of(workspace: WorkspaceOf, caller: Caller) -> Graph:
    """The graph, to who may use all of the workspace.

    Raises:
        ForbiddenError: They may not.
    """
    caller.require_all_kbs()
    return workspace.graph


GraphOf = Annotated[Graph, Depends(graph_of)]


class WholeGraph(BaseModel):
    """All relations and their ends."""

    nodes: list[dict[str, Any]] = Field(description="Each with `id`, `kind`, `name`, `type`.")
    edges: list[dict[str, Any]] = Field(description="With ids of nodes as ends.")


@router.get("", dependencies=[READ], responses=documented(WholeGraph))
def read_graph(graph: GraphOf) -> Response:
    """Return all relations and their ends."""
    return answer(graph.to_json())


@router.get(
    "/entities", dependencies=[READ], responses=documented(Entity, many=True, refusals=(404,))
)
def list_entities(
    *,
    graph: GraphOf,
    limit: LimitOf,
    query: Annotated[str, Query(max_length=MAX_NAME, description="A part of their name.")] = "",
    type: Several = None,
    kbs: Several = None,
    name: Annotated[
        str | None, Query(max_length=MAX_NAME, description="Only the one of this id or name.")
    ] = None,
    cursor: Cursor = "",
) -> Response:
    """List entities, the most mentioned first."""
    if name is not None:
        return page([graph.entity(name)])
    return part_found(
        lambda first: graph.entities(query, type=type or (), kbs=kbs, limit=first), limit, cursor
    )


@router.post(
    "/entities",
    dependencies=[WRITE],
    status_code=201,
    responses=documented(Entity, 201, refusals=_WRONG),
)
def create_entity(graph: GraphOf, caller: Caller, body: NewEntity) -> Response:
    """Create an entity by hand; restores a deleted one."""
    values = body.model_dump(exclude={"name", "by"}, exclude_unset=True)
    made = graph.create(body.name, **values, by=body.by or caller.name)
    return answer(
        made,
        201,
        version=version_of(made),
        headers={"Location": f"{router.prefix}/entities/{made.id}"},
    )


@router.get("/entities/{id}", dependencies=[READ], responses=documented(Entity, refusals=(404,)))
def read_entity(graph: GraphOf, id: EntityOf) -> Response:
    """Return an entity."""
    found = graph.entity(id)
    return answer(found, version=version_of(found))


@router.put("/entities/{id}", dependencies=[WRITE], responses=documented(Entity, refusals=_WRONG))
def update_entity(
    graph: GraphOf, caller: Caller, id: EntityOf, body: EntityChange, expected: IfMatch
) -> Response:
    """Change an entity; omitted fields stay."""
    values = body.model_dump(exclude={"by"}, exclude_none=True)
    with _as_seen(graph, id, expected) as entity:
        changed = graph.update(entity, **values, by=body.by or caller.name)
    return answer(changed, version=version_of(changed))


@router.delete(
    "/entities/{id}",
    dependencies=[WRITE],
    status_code=204,
    responses=documented(status=204, refusals=_WRONG),
)
def delete_entity(
    graph: GraphOf,
    caller: Caller,
    id: EntityOf,
    expected: IfMatch,
    by: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Delete an entity for good; chunks that name it stay as they are."""
    with _as_seen(graph, id, expected) as entity:
        graph.delete(entity, by=by or caller.name)
    return no_content()


@router.get(
    "/entities/{id}/neighbors",
    dependencies=[READ],
    responses=documented(Step, many=True, refusals=(404,)),
)
def list_entity_neighbors(
    graph: GraphOf,
    id: EntityOf,
    depth: Annotated[int, integer("depth", "Relations to follow.", 1, 5, 1)],
    limit: LimitOf,
    relation: Several = None,
) -> Response:
    """List what relations reach from an entity, the nearest and strongest first."""
    found = Target(TargetKind.ENTITY, id)
    return page(graph.neighbors(found, depth=depth, relation=relation or (), limit=limit))


@router.get(
    "/relationships",
    dependencies=[READ],
    responses=documented(Relation, many=True, refusals=(404,)),
)
def list_relationships(
    *,
    graph: GraphOf,
    limit: LimitOf,
    target: Ref | None = None,
    kind: Kind = None,
    name: Annotated[str | None, Query(max_length=80, description="Only of this name.")] = None,
    by: Annotated[str | None, Query(max_length=200, description="Only by this person.")] = None,
    cursor: Cursor = "",
) -> Response:
    """List relations, the strongest first; of one thing or of all."""
    end = None if target is None and kind is None else target_of(target or "", kind)
    return part_found(
        lambda first: graph.relations(end, name=name, by=by, limit=first), limit, cursor
    )


@router.post(
    "/relationships", dependencies=[WRITE], responses=documented(Relation, refusals=_WRONG)
)
def create_relationship(graph: GraphOf, caller: Caller, body: NewRelation) -> Response:
    """Create or change a relation by hand."""
    made = graph.relate(
        target_of(body.source),
        body.name,
        target_of(body.target),
        weight=body.weight,
        note=body.note,
        by=body.by or caller.name,
        expected=body.expected,
    )
    return answer(made, version=stamp(made.seen_at))


@router.get(
    "/relationships/between", dependencies=[READ], responses=documented(Relation, refusals=(404,))
)
def read_relationship(
    *,
    graph: GraphOf,
    source: Ref,
    name: Annotated[str, Query(max_length=80)],
    target: Ref,
    source_kind: Kind = None,
    target_kind: Kind = None,
) -> Response:
    """Return a relation by its ends."""
    ends = target_of(source, source_kind), target_of(target, target_kind)
    found = graph.relation(ends[0], name, ends[1])
    return answer(found, version=stamp(found.seen_at))


@router.delete(
    "/relationships",
    dependencies=[WRITE],
    status_code=204,
    responses=documented(status=204, refusals=_WRONG),
)
def delete_relationship(
    *,
    graph: GraphOf,
    caller: Caller,
    expected: IfMatch,
    source: Ref,
    name: Annotated[str, Query(max_length=80)],
    target: Ref,
    source_kind: Kind = None,
    target_kind: Kind = None,
    by: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Delete a relation for good; `relationships` brings it back."""
    ends = target_of(source, source_kind), target_of(target, target_kind)
    found = graph.relation(ends[0], name, ends[1])
    seen = found.seen_at if expected is None else changed_at(expected)
    with _conflicts(found.seen_at, seen):
        graph.delete(replace(found, seen_at=seen), by=by or caller.name)
    return no_content()


@router.post("/merge", dependencies=[WRITE], responses=documented(Entity, refusals=_WRONG))
def merge_entities(graph: GraphOf, caller: Caller, body: Pair) -> Response:
    """Make an entity another name of a second one; `undo` reverts it."""
    kept = graph.merge(body.keep, body.other, by=body.by or caller.name)
    return answer(kept, version=version_of(kept))


@router.post(
    "/refuse",
    dependencies=[WRITE],
    status_code=204,
    responses=documented(status=204, refusals=_WRONG),
)
def refuse_suggestion(graph: GraphOf, caller: Caller, body: Pair) -> Response:
    """Note that two entities are not one."""
    graph.refuse(body.keep, body.other, by=body.by or caller.name)
    return no_content()


@router.get(
    "/edits", dependencies=[READ], responses=documented(GraphEdit, many=True, refusals=(404,))
)
def list_graph_edits(
    graph: GraphOf,
    limit: Annotated[int, integer("limit", "Most edits.", 1, MAX_IN_GRAPH, 20)],
    by: Annotated[str | None, Query(max_length=200, description="Only by this person.")] = None,
    cursor: Cursor = "",
) -> Response:
    """List changes that `undo` can revert, the last first."""
    return part_found(lambda first: graph.edits(by=by, limit=first), limit, cursor)


@router.post("/undo", dependencies=[WRITE], responses=documented(GraphEdit, refusals=_WRONG))
def undo_graph_edit(
    graph: GraphOf, caller: Caller, body: Annotated[UndoRequest, left_out(UndoRequest)]
) -> Response:
    """Revert a change of the graph in one step."""
    return answer(graph.undo(body.edit, by=body.by or caller.name))


@contextmanager
def _as_seen(graph: Graph, name: str, expected: str | None) -> Iterator[str | Entity]:
    """Return an entity to change: by name, or in the expected version.

    Raises:
        VersionConflictError: It is of another version.
    """
    if expected is None:
        yield name
        return
    found = graph.entity(name)
    with _conflicts(found.updated_at, changed_at(expected)):
        yield replace(found, updated_at=changed_at(expected))


@contextmanager
def _conflicts(now: datetime | None, expected: datetime | None) -> Iterator[None]:
    """Report conflicts that concern the version.

    Raises:
        VersionConflictError: It is.
    """
    try:
        yield
    except ConflictError as error:
        if now == expected:
            raise
        raise VersionConflictError(str(error)) from error
