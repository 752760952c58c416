"""Routes for the graph: entities, relations, walks, gaps, layout, and subjects."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Path, Query
from pydantic import BaseModel, Field, StrictFloat, StrictInt

from kbkit import models
from kbkit.errors import VersionConflictError
from kbkit.graph.graph import Graph
from kbkit.server.access import READ, WRITE, Caller, WorkspaceOf
from kbkit.server.parameters import NOT_BLANK, WHOLE, Body, Cursor, Options, Paging
from kbkit.server.responses import Created, IfMatch, Paged
from kbkit.server.routing import Routes

_MAX_NAME = 500
_MAX = 100_000
_OF = "Id or name of an entity."


Named = Annotated[str, Field(max_length=8_000)]
Name = Annotated[
    str, Field(min_length=1, max_length=_MAX_NAME, json_schema_extra={"pattern": NOT_BLANK})
]
Names = Annotated[list[Name], Field(max_length=1_000)]
Word = Annotated[str, Field(json_schema_extra={"pattern": "^[a-z0-9_]{1,80}$"})]
By = Annotated[str, Field(max_length=200, description="Author; by default the caller.")]


class NewEntity(Body):
    """A new entity."""

    name: Name = Field(description="Its name.")
    type: Word = Field("name", description="Its type.")
    description: str = Field("", description="Description in a sentence.")
    properties: dict[str, Any] | None = Field(None, description="Further properties.")
    aliases: Names = Field([], description="Other names.")
    by: By = ""


class EntityChange(Body):
    """Changes of an entity; omitted or null fields stay."""

    name: Name | None = Field(None, description="New name.")
    type: Word | None = Field(None, description="Its type.")
    description: str | None = Field(None, description="Description in a sentence.")
    properties: dict[str, Any] | None = Field(None, description="Replace the existing ones.")
    aliases: Names | None = Field(None, description="Replace the existing ones.")
    by: By = ""


class NewRelation(Body):
    """A relation to create or change."""

    source: Named = Field(description="Its start.")
    name: Word = Field(description="Name of the relation, such as `depends_on`.")
    target: Named = Field(description="Its end.")
    weight: StrictFloat = Field(1.0, gt=0, le=1, description="How strong it is.")
    note: str = Field("", description="Free text.")
    by: By = ""


class Pair(Body):
    """Two entities to merge, or to keep apart."""

    keep: Name = Field(description=_OF)
    other: Name = Field(description=_OF)
    by: By = ""


class UndoRequest(Options):
    """A change to revert."""

    edit: Annotated[StrictInt, Field(ge=1, le=2**53), WHOLE] | None = None
    """Number of the edit; by default the last one."""
    by: By = ""


class Picture(Options):
    """The part of the graph to lay out."""

    around: list[Named] = Field(
        default_factory=list,
        description="Start nodes; by default hubs.",
        json_schema_extra={"maxItems": 1_000},
    )
    depth: Annotated[StrictInt, Field(ge=1, le=5), WHOLE] = 2
    type: list[str] = Field(default_factory=list, description="Only nodes of these types.")
    relation: list[str] = Field(default_factory=list, description="Only relations of these names.")
    kbs: list[str] | None = Field(None, description="Only of these knowledge bases.")
    limit: Annotated[StrictInt, Field(ge=1, le=2_000), WHOLE] = 500


routes = Routes("/api/knowledge/graph", "graph")
subjects = Routes("/api/knowledge", "graph")


def _graph(workspace: WorkspaceOf, caller: Caller) -> Graph:
    caller.require_all_kbs()
    return workspace.graph


GraphOf = Annotated[Graph, Depends(_graph)]
"""Needs access to the whole workspace."""


def limit_field(description: str) -> Any:
    return Query(description=description, ge=1, le=_MAX)


def _values(body: Any, caller: Caller) -> dict[str, Any]:
    return {**dict(body), "by": body.by or caller.name}


EntityOf = Annotated[
    str, Path(min_length=1, max_length=_MAX_NAME, description="Id of the entity, or its name.")
]
LimitOf = Annotated[int, limit_field("Maximum results.")]
Depth = Annotated[int, Query(description="Relations to follow.", ge=1, le=5)]
Ref = Annotated[
    str,
    Query(
        min_length=1,
        max_length=2_000,
        description="Name or id of an entity, id of a chunk or document, a URI, or `KIND:ID`.",
    ),
]
RelationName = Annotated[str, Query(max_length=80)]
Several = Annotated[list[str] | None, Query(max_length=1_000)]
ByQuery = Annotated[str, Query(max_length=200)]
OnlyBy = Annotated[str | None, Query(max_length=200, description="Only of this author.")]


class WholeGraph(BaseModel):
    """All relations and their ends."""

    nodes: list[dict[str, Any]] = Field(description="Each with `id`, `kind`, `name`, `type`.")
    edges: list[dict[str, Any]] = Field(description="Between ids of nodes.")


@routes.get("", model=WholeGraph)
def read_graph(graph: GraphOf) -> Any:
    """Return all relations and their ends."""
    return graph.to_json()


@routes.get("/entities")
def list_entities(
    *,
    graph: GraphOf,
    limit: LimitOf = 50,
    query: Annotated[str, Query(max_length=_MAX_NAME, description="Part of the name.")] = "",
    type: Several = None,
    kbs: Several = None,
    name: Annotated[
        str | None, Query(max_length=_MAX_NAME, description="Only the one with this id or name.")
    ] = None,
    cursor: Cursor = "",
) -> Paged[models.Entity]:
    """List entities, most mentioned first."""
    if name is not None:
        return Paged([graph.entity(name)], None)
    return Paging(limit, cursor).find(
        lambda first: graph.entities(query, type=type or (), kbs=kbs, limit=first)
    )


@routes.post("/entities", WRITE)
def create_entity(graph: GraphOf, caller: Caller, body: NewEntity) -> Created[models.Entity]:
    """Create an entity, or restore a deleted one."""
    entity = graph.create(**_values(body, caller))
    return Created(entity, f"{routes.prefix}/entities/{entity.id}")


@routes.get("/entities/{id:path}/neighbors")
def list_entity_neighbors(
    graph: GraphOf, id: EntityOf, depth: Depth = 1, limit: LimitOf = 50, relation: Several = None
) -> list[models.Step]:
    """List what an entity is related to, nearest and strongest first."""
    target = models.Target(models.TargetKind.ENTITY, id)
    return graph.neighbors(target, depth=depth, relation=relation or (), limit=limit)


@routes.get("/entities/{id:path}")
def read_entity(graph: GraphOf, id: EntityOf) -> models.Entity:
    """Return an entity."""
    return graph.entity(id)


@routes.put("/entities/{id:path}", WRITE)
def update_entity(
    graph: GraphOf, caller: Caller, id: EntityOf, body: EntityChange, expected: IfMatch
) -> models.Entity:
    """Change an entity; omitted fields stay."""
    return graph.update(_as_seen(graph, id, expected), **_values(body, caller))


@routes.delete("/entities/{id:path}", WRITE)
def delete_entity(
    graph: GraphOf, caller: Caller, id: EntityOf, expected: IfMatch, by: ByQuery = ""
) -> None:
    """Delete an entity; chunks stay, and rebuilds do not restore it."""
    graph.delete(_as_seen(graph, id, expected), by=by or caller.name)


@routes.get("/relationships")
def list_relationships(
    *,
    graph: GraphOf,
    limit: LimitOf = 50,
    target: Ref | None = None,
    name: Annotated[str | None, Query(max_length=80, description="Only with this name.")] = None,
    by: OnlyBy = None,
    cursor: Cursor = "",
) -> Paged[models.Relation]:
    """List relations, of one target or all, strongest first."""
    return Paging(limit, cursor).find(
        lambda first: graph.relations(target, name=name, by=by, limit=first)
    )


@routes.post("/relationships", WRITE)
def create_relationship(graph: GraphOf, caller: Caller, body: NewRelation) -> models.Relation:
    """Create or change a relation."""
    return graph.relate(**_values(body, caller))


def _relation(graph: GraphOf, source: Ref, name: RelationName, target: Ref) -> models.Relation:
    return graph.relation(source, name, target)


RelationOf = Annotated[models.Relation, Depends(_relation)]


@routes.get("/relationships/between")
def read_relationship(relation: RelationOf) -> models.Relation:
    """Return a relation by its ends."""
    return relation


@routes.delete("/relationships", WRITE)
def delete_relationship(
    graph: GraphOf, caller: Caller, relation: RelationOf, expected: IfMatch, by: ByQuery = ""
) -> None:
    """Delete a relation; creating it again restores it."""
    seen_at = relation.seen_at if expected is None else _changed_at(expected)
    graph.delete(replace(relation, seen_at=seen_at), by=by or caller.name)


@routes.post("/merge", WRITE)
def merge_entities(graph: GraphOf, caller: Caller, body: Pair) -> models.Entity:
    """Merge an entity into another one; `undo` reverts it."""
    return graph.merge(**_values(body, caller))


@routes.post("/refuse", WRITE)
def refuse_suggestion(graph: GraphOf, caller: Caller, body: Pair) -> None:
    """Note that two entities are not the same."""
    graph.refuse(**_values(body, caller))


@routes.get("/edits")
def list_graph_edits(
    graph: GraphOf,
    limit: Annotated[int, limit_field("Maximum edits.")] = 20,
    by: OnlyBy = None,
    cursor: Cursor = "",
) -> Paged[models.GraphEdit]:
    """List changes that `undo` can revert, newest first."""
    return Paging(limit, cursor).find(lambda first: graph.edits(by=by, limit=first))


@routes.post("/undo", WRITE)
def undo_graph_edit(graph: GraphOf, caller: Caller, body: UndoRequest) -> models.GraphEdit:
    """Revert a change of the graph."""
    return graph.undo(**_values(body, caller))


@routes.get("/neighbors")
def list_neighbors(
    graph: GraphOf, target: Ref, depth: Depth = 1, relation: Several = None, limit: LimitOf = 50
) -> list[models.Step]:
    """List what a target is related to, nearest and strongest first."""
    return graph.neighbors(target, depth=depth, relation=relation or (), limit=limit)


@routes.get("/passages")
def list_passages(
    graph: GraphOf, target: Ref, limit: Annotated[int, limit_field("Maximum passages.")] = 5
) -> list[models.Hit]:
    """List passages that define a target, then those that mention it, clearest first."""
    return graph.passages(target, limit=limit)


@routes.get("/path")
def find_path(graph: GraphOf, source: Ref, target: Ref) -> list[models.Step]:
    """Find the path between two targets; empty if nothing connects them."""
    return graph.path(source, target)


@routes.get("/gaps")
def list_gaps(
    graph: GraphOf,
    limit: Annotated[int, limit_field("Maximum of each kind.")] = 10,
    kind: models.GapKind | None = None,
    kbs: Several = None,
) -> list[models.Gap]:
    """List gaps of the documentation, most important first."""
    return graph.gaps(kind=kind, kbs=kbs, limit=limit)


@routes.get("/suggestions")
def list_suggestions(
    graph: GraphOf, limit: Annotated[int, limit_field("Maximum pairs.")] = 20
) -> list[models.MergeSuggestion]:
    """List pairs of entities that may be the same, likeliest first."""
    return graph.suggestions(limit=limit)


@routes.post("/layout", READ)
def lay_out_graph(graph: GraphOf, body: Picture) -> models.GraphLayout:
    """Lay out the graph or a part of it: nodes, sizes and positions."""
    return graph.layout(**dict(body))


@subjects.get("/subjects")
def list_subjects(
    *,
    workspace: WorkspaceOf,
    caller: Caller,
    limit: Annotated[int | None, limit_field("Maximum; by default all.")] = None,
    kind: models.SubjectKind | None = None,
    like: Annotated[str, Query(max_length=500, description="Part of a name.")] = "",
    kbs: Several = None,
) -> list[models.Subject]:
    """List subjects that chunks mention, most mentioned first."""
    return workspace.subjects(kind=kind, like=like, kbs=caller.restrict(kbs), limit=limit)


@subjects.get("/about")
def read_about(
    workspace: WorkspaceOf,
    caller: Caller,
    query: Annotated[
        str,
        Query(
            max_length=500,
            description="Name of a subject.",
            json_schema_extra={"pattern": r"[^\s]"},
        ),
    ],
    limit: Annotated[int, limit_field("Maximum of each kind.")] = 20,
    kbs: Several = None,
) -> models.About:
    """Find chunks, documents and entities about a subject."""
    return workspace.about(query, kbs=caller.restrict(kbs), limit=limit)


def _as_seen(graph: Graph, name: str, expected: str | None) -> str | models.Entity:
    if expected is None:
        return name
    return replace(graph.entity(name), updated_at=_changed_at(expected))


def _changed_at(version: str) -> datetime | None:
    if version == "unchanged":
        return None
    try:
        return datetime.fromisoformat(version).astimezone(UTC)
    except (ValueError, OverflowError):
        raise VersionConflictError(
            f"If-Match: {version!r} is not a version; send the `ETag` of a response"
        ) from None
