"""The knowledge graph of a workspace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit import models
from kbkit.errors import NotFoundError
from kbkit.graph import as_frame, as_json, as_networkx, write
from kbkit.graph.building import build_waiting
from kbkit.graph.drawing import Place, Selection, drawing, find_reachable, shortest_path
from kbkit.graph.editing import Editing, Named
from kbkit.graph.gaps import find_gaps, suggestions
from kbkit.retrieval.query import distance_of
from kbkit.retrieval.searching import hit_of
from kbkit.runtime.validation import check_integer, check_member, check_text, explain_calls
from kbkit.stores.catalog import entities, graph_edits, knowledge_bases, reading, relations
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.graph import first_chunks, named_entities
from kbkit.stores.catalog.graph_reading import definitions
from kbkit.stores.stores import Stores

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from kbkit.stores.catalog.relations import Edge

_PLACES = 10
"""Passages read per entity, to find its definition."""
MAX_DRAWN = 2_000
"""Maximum nodes of a layout."""


@explain_calls
class Graph(Editing):
    """Entities of a workspace and their relations; ``workspace.graph``.

    Each method first updates the graph from changed documents.
    """

    def __init__(self, stores: Stores, rater: str) -> None:
        super().__init__(stores, rater)
        self._stores = stores
        self._read_version = -1
        # the last of each selection: version, layout, and places of nodes since the first
        self._layouts: dict[
            Selection, tuple[int, models.GraphLayout, dict[models.Target, Place]]
        ] = {}

    def entities(
        self,
        query: str = "",
        *,
        type: str | Sequence[str] = (),
        kbs: Sequence[str] | None = None,
        limit: int = 50,
    ) -> list[models.Entity]:
        """List entities, the most mentioned first.

        Args:
            query: Part of the name, in any case; by default any.
            type: Only these types (see `kbkit.models.EntityType`).
            kbs: Only entities mentioned in these knowledge bases.
            limit: Maximum number of entities.

        Raises:
            ConfigError: An argument is invalid.
            NotFoundError: A knowledge base does not exist.
        """
        check_integer("limit", limit, 1)
        types = tuple(check_text("type", name) for name in _several(type))
        like = " ".join(check_text("query", query).split())
        with self._read() as transaction:
            ids = self._kb_ids(transaction, kbs)
            return entities.list_entities(
                transaction, like=like, types=types, kb_ids=ids, limit=limit
            )

    def entity(self, entity: str) -> models.Entity:
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
    ) -> list[models.Relation]:
        """List relations, the strongest first.

        Args:
            target: Only relations with this end, in a form of `relate`.
            name: Only this name.
            by: Only by this person, or by ``kbkit``.
            limit: Maximum number of relations.

        Raises:
            NotFoundError: The target does not exist.
        """
        check_integer("limit", limit, 1)
        with self._read() as transaction:
            end = None if target is None else self._target(transaction, target)
            return relations.list_relations(
                transaction, target=end, name=name, made_by=by, limit=limit
            )

    def relation(self, source: Named, name: str, target: Named) -> models.Relation:
        """Return a relation by its ends, to change or delete it; see `relate` for their forms.

        Raises:
            NotFoundError: The relation or an end does not exist.
        """
        with self._read() as transaction:
            ends = self._target(transaction, source), self._target(transaction, target)
            for candidate in relations.list_relations(transaction, target=ends[0], name=name):
                if (candidate.source, candidate.target) == ends:
                    return candidate
        raise NotFoundError(
            f"{source} has no relation {name!r} to {target}; list the relations to see all"
        )

    def neighbors(
        self, target: Named, *, depth: int = 1, relation: str | Sequence[str] = (), limit: int = 50
    ) -> list[models.Step]:
        """List targets that relations connect with a target, the nearest and strongest first.

        Args:
            target: Start, in a form of `relate`.
            depth: Maximum number of relations to follow, 1 to 5.
            relation: Only relations of these names.
            limit: Maximum number of results.

        Raises:
            ConfigError: An argument is invalid.
            NotFoundError: The target does not exist.
        """
        check_integer("depth", depth, 1, 5)
        check_integer("limit", limit, 1)
        with self._read() as transaction:
            start = self._target(transaction, target)
            kinds = _several(relation)
            edges = partial(relations.edges, transaction, names=kinds)
            walk = find_reachable(edges, start, depth, limit)
            return self._steps(transaction, walk)

    def passages(self, target: Named, *, limit: int = 5) -> list[models.Hit]:
        """List passages that define a target, then passages that mention it.

        Raises:
            ConfigError: The limit is not positive.
            NotFoundError: The target does not exist.
        """
        check_integer("limit", limit, 1)
        with self._read() as transaction:
            kbs = {row.id: row.name for row in knowledge_bases.rows(transaction)}
            return _passages(transaction, kbs, self._target(transaction, target), limit)

    def path(self, source: Named, target: Named) -> list[models.Step]:
        """Find the path of few and strong relations between two targets.

        Returns:
            The start and each step; empty if nothing connects the two.

        Raises:
            NotFoundError: A target does not exist.
        """
        with self._read() as transaction:
            ends = self._target(transaction, source), self._target(transaction, target)
            walk = shortest_path(relations.edges(transaction), *ends)
            return self._steps(transaction, walk)

    def gaps(
        self,
        *,
        kind: str | models.GapKind | None = None,
        kbs: Sequence[str] | None = None,
        limit: int = 10,
    ) -> list[models.Gap]:
        """List gaps in the documentation by kind, the most important first.

        Args:
            kind: Only this kind: ``missing`` (a linked note that does not exist), ``undescribed``
                (mentioned by several documents, described by none), ``unlinked`` (described, but
                mentioned nowhere else), ``unanswered`` (badly rated questions), ``unreached`` (a
                document without names), ``orphan`` (no relations).
            kbs: Only these knowledge bases; by default all.
            limit: Maximum number of gaps per kind.

        Raises:
            ConfigError: An argument is invalid.
            NotFoundError: A knowledge base does not exist.
        """
        check_integer("limit", limit, 1)
        kinds = (
            tuple(models.GapKind) if kind is None else (check_member("kind", kind, models.GapKind),)
        )
        with self._read() as transaction:
            ids = self._kb_ids(transaction, kbs)
            ids = sorted(knowledge_bases.ids(transaction)) if ids is None else ids
            return find_gaps(transaction, ids, kinds, limit)

    def suggestions(self, *, limit: int = 20) -> list[models.MergeSuggestion]:
        """List pairs of entities that may be one, the surest first; `merge` or `refuse` them.

        Raises:
            ConfigError: The limit is not positive.
        """
        check_integer("limit", limit, 1)
        with self._read() as transaction:
            mentioned, _ = named_entities(transaction, knowledge_bases.ids(transaction))
            decided = graph_edits.decided_pairs(transaction)
        return suggestions(mentioned, decided)[:limit]

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
        """Compute node sizes and positions; deterministic.

        With the same arguments, nodes keep their places, also after changes of the graph.

        Args:
            around: Centre, in a form of `relate`; by default the most connected entities.
            depth: Maximum distance in relations, 1 to 5.
            type: Only nodes of these types, also ``document``; by default entities of any type.
            relation: Only relations of these names.
            kbs: Only relations from these knowledge bases or by a person.
            limit: Maximum number of nodes, at most 2,000.

        Raises:
            ConfigError: An argument is invalid.
            NotFoundError: A target or a knowledge base does not exist.
        """
        check_integer("depth", depth, 1, 5)
        check_integer("limit", limit, 1, MAX_DRAWN)
        starts = [around] if isinstance(around, str | models.Target | models.Entity) else around
        with self._read() as transaction:
            targets = tuple(self._target(transaction, start) for start in starts)
            ids = self._kb_ids(transaction, kbs)
            kb_ids = None if ids is None else tuple(ids)
            types, names = _several(type), _several(relation)
            selection = Selection(targets, depth, types, names, kb_ids, limit)
            version, layout, places = self._layouts.get(selection, (-1, models.GraphLayout(), {}))
            if version != self._read_version:
                layout = drawing(transaction, selection, places)
                places |= {node.target: (node.x, node.y) for node in layout.nodes}
                self._layouts[selection] = self._read_version, layout, places
            return layout

    def to_json(self) -> dict[str, Any]:
        """Return all relations and their ends as JSON values (``nodes`` and ``edges``)."""
        with self._read() as transaction:
            all_relations = relations.list_relations(transaction)
            by_hand = entities.entities_of(transaction, sorted(entities.ids_by_hand(transaction)))
            ends = [end for item in all_relations for end in (item.source, item.target)]
            ends += [models.Target(models.TargetKind.ENTITY, item.id) for item in by_hand]
            labels = relations.labels(transaction, list(dict.fromkeys(ends)))
            return as_json(all_relations, labels)

    def to_networkx(self) -> nx.MultiDiGraph:
        """Return all relations as a directed networkx graph; nodes are named by kind and id."""
        return as_networkx(self.to_json())

    def export(self, path: str | Path) -> Path:
        """Write all relations to a ``.graphml`` or ``.json`` file, overwriting it.

        GraphML is for Gephi, yEd and others. Control characters, invalid in XML, become U+FFFD.

        Raises:
            ConfigError: The path has another suffix.
            WorkspaceError: The file cannot be written.
        """
        return write(Path(path), self.to_json())

    def to_frame(self) -> pd.DataFrame:
        """Return all relations as a DataFrame, the strongest first, indexed by number."""
        return as_frame(self.to_json())

    @contextmanager
    def _read(self) -> Iterator[Transaction]:
        """Update the graph, and return a transaction that reads it."""
        changes = self._database.changes()
        if changes != self._read_version:
            build_waiting(self._stores)
            self._read_version = changes
        with self._database.read() as transaction:
            yield transaction

    def _kb_ids(self, transaction: Transaction, kbs: Sequence[str] | None) -> list[str] | None:
        if kbs is None:
            return None
        return [knowledge_bases.get(transaction, name).id for name in _several(kbs)]

    def _steps(
        self, transaction: Transaction, walk: Sequence[tuple[models.Target, int, Edge | None]]
    ) -> list[models.Step]:
        labels = relations.labels(transaction, [target for target, _, _ in walk])
        ids = [edge.id for _, _, edge in walk if edge is not None]
        by_id = {relation.id: relation for relation in relations.relations_of(transaction, ids)}
        steps = []
        for target, depth, edge in walk:
            is_forward = edge is None or edge.target == target
            relation = by_id[edge.id] if edge else None
            steps.append(models.Step(target, *labels[target], depth, relation, is_forward))
        return steps

    def __repr__(self) -> str:
        return "<Graph: entities, relations, gaps and suggestions of a workspace>"


def _several(values: str | Sequence[str]) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) else tuple(values)


def _passages(
    transaction: Transaction, kbs: Mapping[str, str], target: models.Target, limit: int
) -> list[models.Hit]:
    places: list[tuple[int, str]] = []
    ids = [target.id]
    if target.kind is models.TargetKind.ENTITY:
        entity = entities.get(transaction, target.id)
        spellings = {entity.name, *entity.aliases}
        defining = definitions(transaction, [target.id])[target.id][:_PLACES]
        chunks = reading.get_chunks(transaction, [seq for seq, _ in defining])
        places = [(seq, kb_id) for seq, kb_id in defining if seq in chunks and kb_id in kbs]
        places = sorted(places, key=lambda each: distance_of(chunks[each[0]][0], spellings))[:1]
    if target.kind is not models.TargetKind.CHUNK:
        ids = first_chunks(transaction, target.kind, target.id, limit)
    places += reading.places_by_id(transaction, ids).values()
    chunks = reading.get_chunks(transaction, [seq for seq, _ in places])
    kb_names = {seq: kbs[kb_id] for seq, kb_id in places if kb_id in kbs}
    return [hit_of(kb, *chunks[seq]) for seq, kb in kb_names.items()][:limit]
