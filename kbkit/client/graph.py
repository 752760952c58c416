"""The knowledge graph of a workspace on a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from kbkit import models
from kbkit.client.calls import Awaited, Blocking, Steps, steps
from kbkit.client.declared import call, stamp
from kbkit.graph import as_frame, as_networkx, write
from kbkit.runtime.validation import check_properties

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

_AT = "/api/knowledge/graph"

Named = str | models.Target | models.Entity
"""An entity or target by id, name or object."""


Properties = Annotated[Mapping[str, Any], check_properties]


def _first(answer: Any) -> models.Entity:
    return models.from_dict(models.Entity, answer["data"][0])


class GraphCalls:
    """Requests for the graph; see `kbkit.graph.graph.Graph`."""

    @call(f"GET {_AT}/entities")
    def entities(
        self,
        query: str = "",
        *,
        type: str | Sequence[str] = (),
        kbs: Sequence[str] | None = None,
        limit: int = 50,
    ) -> list[models.Entity]:
        """List entities, the most mentioned first."""

    @call(f"GET {_AT}/entities", names={"entity": "name"}, read=_first)
    def entity(self, entity: str) -> models.Entity:
        """Return an entity by id or name."""

    @call(f"GET {_AT}/relationships")
    def relations(
        self,
        target: Named | None = None,
        *,
        name: str | None = None,
        by: str | None = None,
        limit: int = 50,
    ) -> list[models.Relation]:
        """List relations, the strongest first."""

    @call(f"GET {_AT}/relationships/between")
    def relation(self, source: Named, name: str, target: Named) -> models.Relation:
        """Return a relation by its ends, to change or delete it."""

    @call(f"GET {_AT}/neighbors")
    def neighbors(
        self, target: Named, *, depth: int = 1, relation: str | Sequence[str] = (), limit: int = 50
    ) -> list[models.Step]:
        """List targets that relations reach from a target, the nearest and strongest first."""

    @call(f"GET {_AT}/passages")
    def passages(self, target: Named, *, limit: int = 5) -> list[models.Hit]:
        """List passages that define a target, then those that mention it most plainly."""

    @call(f"GET {_AT}/path")
    def path(self, source: Named, target: Named) -> list[models.Step]:
        """Find the path of few and strong relations between two targets."""

    @call(f"GET {_AT}/gaps")
    def gaps(
        self,
        *,
        kind: str | models.GapKind | None = None,
        kbs: Sequence[str] | None = None,
        limit: int = 10,
    ) -> list[models.Gap]:
        """List gaps of the documentation, the most important first, each kind in turn."""

    @call(f"GET {_AT}/suggestions")
    def suggestions(self, *, limit: int = 20) -> list[models.MergeSuggestion]:
        """List pairs of entities that may be one, the surest first; `merge` or `refuse` them."""

    @call(f"POST {_AT}/layout")
    def layout(
        self,
        around: Named | Sequence[Named] = (),
        *,
        depth: int = 2,
        type: str | Sequence[str] = (),
        relation: str | Sequence[str] = (),
        kbs: Sequence[str] | None = None,
        limit: int = 500,
    ) -> models.GraphLayout:
        """Lay out the graph: nodes, sizes and positions; deterministic."""

    @call(f"POST {_AT}/entities")
    def create(
        self,
        name: str,
        *,
        type: str = "name",
        description: str = "",
        properties: Properties | None = None,
        aliases: Sequence[str] = (),
        by: str = "",
    ) -> models.Entity:
        """Create an entity by hand; restores a deleted one."""

    @call(f"PUT {_AT}/entities/{{entity}}")
    def update(
        self,
        entity: str | models.Entity,
        *,
        name: str | None = None,
        type: str | None = None,
        description: str | None = None,
        properties: Properties | None = None,
        aliases: Sequence[str] | None = None,
        by: str = "",
    ) -> models.Entity:
        """Change an entity; omitted values stay."""

    @steps
    def delete(self, entity: str | models.Entity | models.Relation, *, by: str = "") -> Steps[None]:
        """Delete an entity or a relation for good; `create` and `relate` bring it back."""
        if isinstance(entity, models.Relation):
            key, version = (entity.source, entity.name, entity.target), stamp(entity.seen_at)
            return (yield from GraphCalls._unrelate(self, *key, by=by, if_match=version))
        return (yield from GraphCalls._delete(self, entity, by=by))

    @call(f"DELETE {_AT}/entities/{{entity}}")
    def _delete(self, entity: str | models.Entity, *, by: str) -> None: ...

    @call(f"DELETE {_AT}/relationships")
    def _unrelate(
        self, source: models.Target, name: str, target: models.Target, *, by: str, if_match: str
    ) -> None: ...

    @call(f"POST {_AT}/relationships")
    def relate(
        self,
        source: Named,
        name: str,
        target: Named,
        *,
        weight: float = 1.0,
        note: str = "",
        by: str = "",
    ) -> models.Relation:
        """Create a relation by hand, or change one of your own or of documents."""

    @call(f"POST {_AT}/merge")
    def merge(
        self, keep: str | models.Entity, other: str | models.Entity, *, by: str = ""
    ) -> models.Entity:
        """Make an entity another name of a second one; `undo` reverts it."""

    @call(f"POST {_AT}/refuse")
    def refuse(
        self, keep: str | models.Entity, other: str | models.Entity, *, by: str = ""
    ) -> None:
        """Note that two entities are not one, so that `suggestions` leaves them out."""

    @call(f"GET {_AT}/edits")
    def edits(self, *, by: str | None = None, limit: int = 20) -> list[models.GraphEdit]:
        """List changes that `undo` can revert, the last first."""

    @call(f"POST {_AT}/undo")
    def undo(self, edit: models.GraphEdit | int | None = None, *, by: str = "") -> models.GraphEdit:
        """Revert a change of the graph in one step."""

    @call(f"GET {_AT}")
    def to_json(self) -> dict[str, Any]:
        """Return all relations and their ends as JSON values (``nodes`` and ``edges``)."""

    @steps
    def to_networkx(self) -> Steps[nx.MultiDiGraph]:
        """Return all relations as a directed networkx graph with nodes named by kind and id."""
        return as_networkx((yield from GraphCalls.to_json(self)))

    @steps
    def to_frame(self) -> Steps[pd.DataFrame]:
        """Return all relations as a DataFrame, the strongest first, indexed by number."""
        return as_frame((yield from GraphCalls.to_json(self)))

    @steps
    def export(self, path: str | Path) -> Steps[Path]:
        """Write all relations to a file on this machine, for other programs."""
        return write(Path(path), (yield from GraphCalls.to_json(self)))


class RemoteGraph(GraphCalls, Blocking):
    """Graph of a remote workspace: ``workspace.graph``."""


class AsyncGraph(GraphCalls, Awaited):
    """Graph of a remote workspace; each call is awaited."""
