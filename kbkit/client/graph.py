"""The knowledge graph of a workspace on a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit.client.calls import (
    Awaited,
    Blocking,
    Request,
    Steps,
    call,
    json_body,
    reads,
    reads_json,
    reads_many,
    reads_nothing,
    steps,
    url,
)
from kbkit.errors import ConfigError
from kbkit.graph import Labels, as_frame, as_networkx, write
from kbkit.models import (
    Entity,
    Gap,
    GapKind,
    GraphEdit,
    GraphLayout,
    Hit,
    MergeSuggestion,
    Relation,
    Step,
    Target,
    TargetKind,
    from_dict,
    to_json,
)
from kbkit.runtime.validation import check_properties, check_text, is_share

if TYPE_CHECKING:
    import httpx
    import networkx as nx
    import pandas as pd

_AT = "/api/knowledge/graph"

Named = str | Target | Entity
"""An entity or target by id, name or object."""


class GraphCalls:
    """Requests for the graph; see `kbkit.graph.graph.Graph`."""

    @call
    def entities(
        self,
        query: str = "",
        *,
        type: str | Sequence[str] = (),
        kbs: Sequence[str] | None = None,
        limit: int = 50,
    ) -> Request[list[Entity]]:
        """List entities, the most mentioned first."""
        params = {
            "query": check_text("query", query),
            "type": _several(type),
            "kbs": _several(kbs),
            "limit": limit,
        }
        return Request("GET", f"{_AT}/entities", reads_many(Entity), params)

    @call
    def entity(self, entity: str) -> Request[Entity]:
        """Return an entity by id or name."""

        def one(response: httpx.Response) -> Entity:
            return reads_many(Entity)(response)[0]

        return Request("GET", f"{_AT}/entities", one, {"name": check_text("entity", entity)})

    @call
    def relations(
        self,
        target: Named | None = None,
        *,
        name: str | None = None,
        by: str | None = None,
        limit: int = 50,
    ) -> Request[list[Relation]]:
        """List relations, the strongest first."""
        end = {} if target is None else _end("target", "kind", target)
        params = {**end, "name": name, "by": by, "limit": limit}
        return Request("GET", f"{_AT}/relationships", reads_many(Relation), params)

    @call
    def relation(self, source: Named, name: str, target: Named) -> Request[Relation]:
        """Return a relation by its ends, to change or delete it."""
        params = {**_ends(source, target), "name": name}
        return Request("GET", f"{_AT}/relationships/between", reads(Relation), params)

    @call
    def names(self, targets: Iterable[Target]) -> Request[dict[Target, str]]:
        """Return labels of targets: entity names, titles, headings of chunks."""

        def called(response: httpx.Response) -> dict[Target, str]:
            data = response.json()["data"]
            return {from_dict(Target, each["target"]): each["name"] for each in data}

        body = {"targets": to_json(list(dict.fromkeys(targets)))}
        return Request("POST", f"{_AT}/names", called, json=body)

    @call
    def neighbors(
        self, target: Named, *, depth: int = 1, relation: str | Sequence[str] = (), limit: int = 50
    ) -> Request[list[Step]]:
        """List targets that relations reach from a target, the nearest and strongest first."""
        params = {
            **_end("target", "kind", target),
            "depth": depth,
            "relation": _several(relation),
            "limit": limit,
        }
        return Request("GET", f"{_AT}/neighbors", reads_many(Step), params)

    @call
    def passages(self, target: Named, *, limit: int = 5) -> Request[list[Hit]]:
        """List passages that define a target, then those that mention it most plainly."""
        params = {**_end("target", "kind", target), "limit": limit}
        return Request("GET", f"{_AT}/passages", reads_many(Hit), params)

    @call
    def path(self, source: Named, target: Named) -> Request[list[Step]]:
        """Find the path of few and strong relations between two targets."""
        return Request("GET", f"{_AT}/path", reads_many(Step), _ends(source, target))

    @call
    def gaps(
        self,
        *,
        kind: str | GapKind | None = None,
        kbs: Sequence[str] | None = None,
        limit: int = 10,
    ) -> Request[list[Gap]]:
        """List gaps of the documentation, the most important first, each kind in turn."""
        params = {"kind": kind, "kbs": _several(kbs), "limit": limit}
        return Request("GET", f"{_AT}/gaps", reads_many(Gap), params)

    @call
    def suggestions(self, *, limit: int = 20) -> Request[list[MergeSuggestion]]:
        """List pairs of entities that may be one, the surest first; `merge` or `refuse` them."""
        params = {"limit": limit}
        return Request("GET", f"{_AT}/suggestions", reads_many(MergeSuggestion), params)

    @call
    def layout(
        self,
        around: Named | Sequence[Named] = (),
        *,
        depth: int = 2,
        type: str | Sequence[str] = (),
        relation: str | Sequence[str] = (),
        kbs: Sequence[str] | None = None,
        limit: int = 500,
    ) -> Request[GraphLayout]:
        """Lay out the graph: nodes, sizes and positions; deterministic."""
        starts = [around] if isinstance(around, str | Target | Entity) else around
        body = json_body(
            around=[_reference(each) for each in starts],
            depth=depth,
            type=_several(type),
            relation=_several(relation),
            kbs=_several(kbs),
            limit=limit,
        )
        return Request("POST", f"{_AT}/layout", reads(GraphLayout), json=body)

    @call
    def create(
        self,
        name: str,
        *,
        type: str = "name",
        description: str = "",
        properties: Mapping[str, Any] | None = None,
        aliases: Sequence[str] = (),
        by: str = "",
    ) -> Request[Entity]:
        """Create an entity by hand; restores a deleted one."""
        body = json_body(
            name=name,
            type=type,
            description=description,
            properties=None if properties is None else check_properties(properties),
            aliases=aliases,
            by=by,
        )
        return Request("POST", f"{_AT}/entities", reads(Entity), json=body)

    @steps
    def update(
        self,
        entity: str | Entity,
        *,
        name: str | None = None,
        type: str | None = None,
        description: str | None = None,
        properties: Mapping[str, Any] | None = None,
        aliases: Sequence[str] | None = None,
        by: str = "",
    ) -> Steps[Entity]:
        """Change an entity; omitted values stay."""
        body = json_body(
            name=name,
            type=type,
            description=description,
            properties=None if properties is None else check_properties(properties),
            aliases=aliases,
            by=by,
        )
        place, headers = yield from _place_of(self, entity)
        changed: Entity = yield Request("PUT", place, reads(Entity), json=body, headers=headers)
        return changed

    @steps
    def delete(self, entity: str | Entity | Relation, *, by: str = "") -> Steps[None]:
        """Delete an entity or a relation for good; `create` and `relate` bring it back."""
        if isinstance(entity, Relation):
            params = {**_ends(entity.source, entity.target), "name": entity.name, "by": by}
            place, headers = f"{_AT}/relationships", _seen(entity.seen_at)
        else:
            params = {"by": by}
            place, headers = yield from _place_of(self, entity)
        yield Request("DELETE", place, reads_nothing, params, headers=headers)

    @call
    def relate(
        self,
        source: Named,
        name: str,
        target: Named,
        *,
        weight: float = 1.0,
        note: str = "",
        by: str = "",
        expected: datetime | None = None,
    ) -> Request[Relation]:
        """Create or change a relation by hand."""
        if not is_share(weight):
            raise ConfigError(f"weight={weight!r}: give a number above 0, at most 1")
        body = json_body(
            source=_reference(source),
            name=name,
            target=_reference(target),
            weight=weight,
            note=note,
            by=by,
            expected=expected,
        )
        return Request("POST", f"{_AT}/relationships", reads(Relation), json=body)

    @call
    def merge(self, keep: str | Entity, other: str | Entity, *, by: str = "") -> Request[Entity]:
        """Make an entity another name of a second one; `undo` reverts it."""
        body = {"keep": _reference(keep), "other": _reference(other), "by": by}
        return Request("POST", f"{_AT}/merge", reads(Entity), json=body)

    @call
    def refuse(self, keep: str | Entity, other: str | Entity, *, by: str = "") -> Request[None]:
        """Note that two entities are not one, so that `suggestions` leaves them out."""
        body = {"keep": _reference(keep), "other": _reference(other), "by": by}
        return Request("POST", f"{_AT}/refuse", reads_nothing, json=body)

    @call
    def edits(self, *, by: str | None = None, limit: int = 20) -> Request[list[GraphEdit]]:
        """List changes that `undo` can revert, the last first."""
        return Request("GET", f"{_AT}/edits", reads_many(GraphEdit), {"by": by, "limit": limit})

    @call
    def undo(self, edit: GraphEdit | int | None = None, *, by: str = "") -> Request[GraphEdit]:
        """Revert a change of the graph in one step."""
        body = json_body(edit=edit.id if isinstance(edit, GraphEdit) else edit, by=by)
        return Request("POST", f"{_AT}/undo", reads(GraphEdit), json=body)

    @call
    def to_json(self) -> Request[dict[str, Any]]:
        """Return all relations and their ends as JSON values (``nodes`` and ``edges``)."""
        return Request("GET", _AT, reads_json)

    @steps
    def to_networkx(self) -> Steps[nx.MultiDiGraph]:
        """Return all relations as a directed networkx graph with nodes named by kind and id."""
        return as_networkx(*(yield _ALL))

    @steps
    def to_frame(self) -> Steps[pd.DataFrame]:
        """Return all relations as a DataFrame, the strongest first, indexed by number."""
        return as_frame(*(yield _ALL))

    @steps
    def export(self, path: str | Path) -> Steps[Path]:
        """Write all relations to a file on this machine, for other programs."""
        return write(Path(path), *(yield _ALL))


class RemoteGraph(GraphCalls, Blocking):
    """Graph of a remote workspace: ``workspace.graph``."""

    def __repr__(self) -> str:
        return "<RemoteGraph>"


class AsyncGraph(GraphCalls, Awaited):
    """Graph of a remote workspace; each call is awaited."""


def _place_of(self: GraphCalls, entity: str | Entity) -> Steps[tuple[str, Mapping[str, str]]]:
    if isinstance(entity, Entity):
        return url(f"{_AT}/entities/{{}}", entity.id), _seen(entity.updated_at)
    node = yield from GraphCalls.entity(self, entity)
    return url(f"{_AT}/entities/{{}}", node.id), {}


def _seen(changed: datetime | None) -> Mapping[str, str]:
    return {"If-Match": f'"{"unchanged" if changed is None else changed.isoformat()}"'}


def _reference(named: Named) -> Any:
    if isinstance(named, Entity):
        return named.id
    return named.to_dict() if isinstance(named, Target) else check_text("entity", named)


def _end(name: str, kind: str, named: Named) -> dict[str, str]:
    if isinstance(named, Target):
        return {name: named.id, kind: named.kind.value}
    return {name: _reference(named)}


def _ends(source: Named, target: Named) -> dict[str, str]:
    return _end("source", "source_kind", source) | _end("target", "target_kind", target)


def _several(named: str | Sequence[str] | None) -> list[str] | None:
    return None if named is None else [named] if isinstance(named, str) else list(named)


def _read_all(response: httpx.Response) -> tuple[list[Relation], Labels]:
    answer = response.json()
    labels = {_target(node["id"]): (node["name"], node["type"]) for node in answer["nodes"]}
    relations = [
        Relation(
            edge["id"],
            _target(edge["source"]),
            edge["name"],
            _target(edge["target"]),
            edge["weight"],
            tuple(edge["evidence"]),
            edge["made_by"],
            note=edge["note"],
        )
        for edge in answer["edges"]
    ]
    return relations, labels


def _target(node: str) -> Target:
    kind, _, id_ = node.partition(":")
    return Target(TargetKind(kind), id_)


_ALL = Request("GET", _AT, _read_all)
