"""The knowledge graph of a workspace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit.errors import ConfigError, NotFoundError
from kbkit.graph import facts
from kbkit.graph.building import build_waiting
from kbkit.graph.drawing import Place, drawing
from kbkit.graph.editing import Editing, Named
from kbkit.graph.exporting import as_frame, as_json, as_networkx, write
from kbkit.graph.gaps import find_gaps, suggestions
from kbkit.graph.walking import shortest_path, widened
from kbkit.models import (
    Entity,
    Gap,
    GapKind,
    GraphLayout,
    Hit,
    MergeSuggestion,
    Relation,
    Step,
    Target,
    TargetKind,
)
from kbkit.runtime.validation import check_integer, check_text, explained
from kbkit.stores.catalog import entities, knowledge_bases, names, relations
from kbkit.stores.catalog import names as target_rows
from kbkit.stores.catalog import relations as edge_rows
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.graph import named_entities
from kbkit.stores.stores import Stores

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from kbkit.stores.catalog.relations import Edge

MAX_DRAWN = 2_000
"""Nodes of a picture."""


@explained
class Graph(Editing):
    """Entities of a workspace and the relations between them; ``workspace.graph``.

    It follows from the documents: whatever looks at it first reads what changed since.
    """

    def __init__(self, stores: Stores, rater: str) -> None:
        super().__init__(stores, rater)
        self._stores = stores
        self._looked_at = -1
        self._layouts: dict[object, GraphLayout] = {}  # of the graph as it was looked at last
        self._places: dict[object, dict[Target, Place]] = {}  # in those before

    def entities(
        self,
        query: str = "",
        *,
        type: str | Sequence[str] = (),
        kbs: Sequence[str] | None = None,
        limit: int = 50,
    ) -> list[Entity]:
        """List entities, the most mentioned first.

        Args:
            query: A part of their name, in capitals or not; by default any.
            type: Only these types (see `kbkit.models.EntityType`).
            kbs: Only entities mentioned in these knowledge bases.
            limit: Maximum number of entities.

        Raises:
            ConfigError: An argument has a wrong value.
            NotFoundError: There is no such knowledge base.
        """
        check_integer("limit", limit, 1)
        types = (type,) if isinstance(type, str) else tuple(type)
        types = tuple(check_text("type", one) for one in types)
        with self._read() as transaction:
            ids = self._kb_ids(transaction, kbs)
            return entities.listed(
                transaction,
                like=" ".join(check_text("query", query).split()),
                types=types,
                kb_ids=ids,
                limit=limit,
            )

    def entity(self, entity: str) -> Entity:
        """Return an entity by id or name.

        Raises:
            NotFoundError: No such entity; the message lists similar names.
        """
        with self._read() as transaction:
            return entities.get(transaction, self._entity_id(transaction, entity))

    def relations(
        self,
        target: Named | None = None,
        *,
        name: str | None = None,
        by: str | None = None,
        limit: int = 50,
    ) -> list[Relation]:
        """Relations, the strongest first.

        Args:
            target: Only relations with this end; named as in `relate`.
            name: Only of this name.
            by: Only by this person, or by kbkit (``kbkit``).
            limit: Maximum number of relations.

        Raises:
            NotFoundError: There is no such target.
        """
        check_integer("limit", limit, 1)
        with self._read() as transaction:
            end = None if target is None else self._target(transaction, target)
            return relations.listed(transaction, target=end, name=name, made_by=by, limit=limit)

    def relation(self, source: Named, name: str, target: Named) -> Relation:
        """Return a relation by its ends, to change or delete it.

        Args:
            source: Start; named as in `relate`.
            name: Name of the relation.
            target: End; named as in `relate`.

        Raises:
            NotFoundError: There is no such relation, or an end does not exist.
        """
        with self._read() as transaction:
            ends = self._target(transaction, source), self._target(transaction, target)
            for each in relations.listed(transaction, target=ends[0], name=name):
                if (each.source, each.target) == ends:
                    return each
        raise NotFoundError(
            f"{source} has no relation {name!r} to {target}; list the relations to see all"
        )

    def names(self, targets: Iterable[Target]) -> dict[Target, str]:
        """Return labels of targets: entity names, titles, headings of chunks."""
        with self._database.read() as transaction:
            labels = target_rows.labels(transaction, list(dict.fromkeys(targets)))
        return {target: name for target, (name, _) in labels.items()}

    def neighbors(
        self, target: Named, *, depth: int = 1, relation: str | Sequence[str] = (), limit: int = 50
    ) -> list[Step]:
        """List what relations reach from a target, the nearest and strongest first.

        Args:
            target: Start; named as in `relate`.
            depth: Maximum number of relations to follow, 1 to 5.
            relation: Only relations of these names.
            limit: Maximum number of results.

        Raises:
            ConfigError: An argument has a wrong value.
            NotFoundError: There is no such target.
        """
        check_integer("depth", depth, 1, 5)
        check_integer("limit", limit, 1)
        names = (relation,) if isinstance(relation, str) else tuple(relation)
        with self._read() as transaction:
            start = self._target(transaction, target)
            walk = widened(
                lambda ends: edge_rows.edges(transaction, at=ends, names=names), start, depth, limit
            )
            return self._steps(transaction, walk)

    def passages(self, target: Named, *, limit: int = 5) -> list[Hit]:
        """List passages that define a target, then those that mention it most plainly.

        Args:
            target: An entity, a document or a chunk; named as in `relate`.
            limit: Maximum number of passages.

        Raises:
            ConfigError: The limit is not positive.
            NotFoundError: There is no such target.
        """
        check_integer("limit", limit, 1)
        with self._read() as transaction:
            kbs = {
                knowledge_bases.get(transaction, name).id: name
                for name in knowledge_bases.names(transaction)
            }
            return facts.passages(transaction, kbs, self._target(transaction, target), limit)

    def path(self, source: Named, target: Named) -> list[Step]:
        """Find the path of few and strong relations between two targets.

        Returns:
            The start and each step; empty if nothing connects the two.

        Raises:
            NotFoundError: One of them is not there.
        """
        with self._read() as transaction:
            ends = self._target(transaction, source), self._target(transaction, target)
            walk = shortest_path(edge_rows.edges(transaction), *ends)
            return self._steps(transaction, walk)

    def gaps(
        self,
        *,
        kind: str | GapKind | None = None,
        kbs: Sequence[str] | None = None,
        limit: int = 10,
    ) -> list[Gap]:
        """List gaps of the documentation, the most important first, each kind in turn.

        Args:
            kind: Only this kind: ``missing`` (a linked note that does not exist), ``undescribed``
                (mentioned by several documents, described by none), ``unlinked`` (described, but
                mentioned nowhere else), ``unanswered`` (badly rated questions), ``unreached`` (a
                document without names), ``orphan`` (no relations).
            kbs: Only of these knowledge bases; by default of all.
            limit: Maximum number of gaps of each kind.

        Raises:
            ConfigError: There is no such kind, or the limit is not positive.
            NotFoundError: There is no such knowledge base.
        """
        check_integer("limit", limit, 1)
        try:
            kinds = tuple(GapKind) if kind is None else (GapKind(kind),)
        except ValueError:
            allowed = ", ".join(GapKind)
            raise ConfigError(f"kind={kind!r}: give one of {allowed}") from None
        with self._read() as transaction:
            ids = self._kb_ids(transaction, kbs)
            if ids is None:
                ids = [
                    knowledge_bases.get(transaction, name).id
                    for name in knowledge_bases.names(transaction)
                ]
            return find_gaps(transaction, ids, kinds, limit)

    def suggestions(self, *, limit: int = 20) -> list[MergeSuggestion]:
        """Pairs of entities that may be one, the surest first; `merge` or `refuse` them.

        Args:
            limit: Maximum number of pairs.

        Raises:
            ConfigError: The limit is not positive.
        """
        check_integer("limit", limit, 1)
        with self._read() as transaction:
            ids = [
                knowledge_bases.get(transaction, name).id
                for name in knowledge_bases.names(transaction)
            ]
            named, _ = named_entities(transaction, ids)
            decided = names.decided(transaction)
        return suggestions(named, decided)[:limit]

    def layout(
        self,
        around: Named | Sequence[Named] = (),
        *,
        depth: int = 2,
        type: str | Sequence[str] = (),
        relation: str | Sequence[str] = (),
        kbs: Sequence[str] | None = None,
        limit: int = 500,
    ) -> GraphLayout:
        """Lay out the graph: nodes, sizes and positions; deterministic.

        When the same picture is asked for again, nodes keep their places, also after changes.

        Args:
            around: Centre of the picture, named as in `relate`; by default the most connected
                entities.
            depth: Maximum distance in relations, 1 to 5.
            type: Only nodes of these types; ``document`` are documents. By default entities of any.
            relation: Only relations of these names, by default of any.
            kbs: Only relations from these knowledge bases or by a person.
            limit: Maximum number of nodes, at most 2,000.

        Raises:
            ConfigError: An argument has a wrong value.
            NotFoundError: There is no such target or knowledge base.
        """
        check_integer("depth", depth, 1, 5)
        check_integer("limit", limit, 1, MAX_DRAWN)
        starts = [around] if isinstance(around, str | Target | Entity) else around
        types = (type,) if isinstance(type, str) else tuple(type)
        names = (relation,) if isinstance(relation, str) else tuple(relation)
        with self._read() as transaction:
            targets = tuple(self._target(transaction, each) for each in starts)
            ids = self._kb_ids(transaction, kbs)
            asked = (targets, depth, types, names, None if ids is None else tuple(ids), limit)
            if asked not in self._layouts:
                self._layouts[asked] = drawing(
                    transaction,
                    around=targets,
                    depth=depth,
                    types=types,
                    names=names,
                    kb_ids=ids,
                    limit=limit,
                    before=self._places.get(asked),
                )
            return self._layouts[asked]

    def to_json(self) -> dict[str, Any]:
        """Return all relations and their ends as JSON values (``nodes`` and ``edges``)."""
        return as_json(*self._whole())

    def to_networkx(self) -> nx.MultiDiGraph:
        """Return all relations as a directed networkx graph; nodes are named by kind and id."""
        return as_networkx(*self._whole())

    def export(self, path: str | Path) -> Path:
        """Write all relations to a file for other programs.

        GraphML is for Gephi, yEd and others. Control characters, invalid in XML, become U+FFFD.

        Args:
            path: The file, overwritten; it ends with ``.graphml`` or ``.json``.

        Raises:
            ConfigError: It ends otherwise.
            WorkspaceError: It cannot be written.
        """
        return write(Path(path), *self._whole())

    def to_frame(self) -> pd.DataFrame:
        """Return all relations as a DataFrame, the strongest first, indexed by number."""
        return as_frame(*self._whole())

    def _whole(self) -> tuple[list[Relation], dict[Target, tuple[str, str]]]:
        with self._read() as transaction:
            listed = relations.listed(transaction)
            made = [Target(TargetKind.ENTITY, each.id) for each in entities.by_hand(transaction)]
            ends = dict.fromkeys(
                [*(end for each in listed for end in (each.source, each.target)), *made]
            )
            return listed, target_rows.labels(transaction, list(ends))

    @contextmanager
    def _read(self) -> Iterator[Transaction]:
        """A transaction that reads the graph as the documents are now."""
        changes = self._database.changes()
        if changes != self._looked_at:
            build_waiting(self._stores)
            self._looked_at = changes
            self._keep_places()
        with self._database.read() as transaction:
            yield transaction

    def _keep_places(self) -> None:
        if self._layouts:
            self._places = {
                asked: self._places.get(asked, {})
                | {node.target: (node.x, node.y) for node in layout.nodes}
                for asked, layout in self._layouts.items()
            }
            self._layouts = {}

    def _kb_ids(self, transaction: Transaction, kbs: Sequence[str] | None) -> list[str] | None:
        if kbs is None:
            return None
        names = [kbs] if isinstance(kbs, str) else kbs
        return [knowledge_bases.get(transaction, name).id for name in names]

    def _steps(
        self, transaction: Transaction, walk: Sequence[tuple[Target, int, Edge | None]]
    ) -> list[Step]:
        labels = target_rows.labels(transaction, [target for target, _, _ in walk])
        ids = [edge.id for _, _, edge in walk if edge is not None]
        by_id = {each.id: each for each in relations.of(transaction, ids)}
        return [
            Step(
                target,
                *labels[target],
                depth,
                None if edge is None else by_id[edge.id],
                edge is None or edge.target == target,
            )
            for target, depth, edge in walk
        ]

    def __repr__(self) -> str:
        return "<Graph: entities, relations, gaps and suggestions of a workspace>"
