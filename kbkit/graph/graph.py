"""The knowledge graph of a workspace, as people look at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbkit.arguments import explained
from kbkit.graph.editing import Editing, Named
from kbkit.graph.walking import shortest_path, widened
from kbkit.models import Entity, Relation, Step, Target
from kbkit.stores.catalog import entities, knowledge_bases, relations
from kbkit.stores.catalog.database import Transaction
from kbkit.validation import check_integer, check_text

if TYPE_CHECKING:
    from kbkit.stores.catalog.relations import Edge


@explained
class Graph(Editing):
    """Entities of a workspace and the relations between them; ``workspace.graph``."""

    def entities(
        self,
        query: str = "",
        *,
        type: str | Sequence[str] = (),
        kbs: Sequence[str] | None = None,
        limit: int = 50,
    ) -> list[Entity]:
        """Entities, those first that most chunks name.

        Args:
            query: A part of their name, in capitals or not; by default any.
            type: Of these types (see `kbkit.models.EntityType`), by default any.
            kbs: Only those that chunks of these knowledge bases name.
            limit: Most entities.

        Raises:
            ConfigError: An argument has a wrong value.
            NotFoundError: There is no such knowledge base.
        """
        check_integer("limit", limit, 1)
        types = (type,) if isinstance(type, str) else tuple(type)
        with self._database.read() as transaction:
            ids = self._kb_ids(transaction, kbs)
            return entities.listed(
                transaction,
                like=" ".join(check_text("query", query).split()),
                types=types,
                kb_ids=ids,
                limit=limit,
            )

    def entity(self, entity: str) -> Entity:
        """One entity by its id or one of its names.

        Raises:
            NotFoundError: There is none; the message names those that are written alike.
        """
        with self._database.read() as transaction:
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
            target: Only those that begin or end there; named as in `relate`.
            name: Only of this name.
            by: Only by this person, or by what finds them (``kbkit``).
            limit: Most relations.

        Raises:
            NotFoundError: There is no such target.
        """
        check_integer("limit", limit, 1)
        with self._database.read() as transaction:
            end = None if target is None else self._target(transaction, target)
            return relations.listed(transaction, target=end, name=name, made_by=by, limit=limit)

    def neighbors(
        self,
        target: Named,
        *,
        depth: int = 1,
        relation: str | Sequence[str] = (),
        limit: int = 50,
    ) -> list[Step]:
        """What relations lead to from something, the nearest and strongest first.

        Args:
            target: Where to begin; named as in `relate`.
            depth: How many relations to follow, 1 to 5.
            relation: Only those of these names, by default of any.
            limit: Most that are returned.

        Raises:
            ConfigError: An argument has a wrong value.
            NotFoundError: There is no such target.
        """
        check_integer("depth", depth, 1, 5)
        check_integer("limit", limit, 1)
        names = (relation,) if isinstance(relation, str) else tuple(relation)
        with self._database.read() as transaction:
            start = self._target(transaction, target)
            found = widened(
                lambda ends: relations.edges(transaction, at=ends, names=names),
                start,
                depth,
                limit,
            )
            return self._steps(transaction, found)

    def path(self, source: Named, target: Named) -> list[Step]:
        """How two things hang together: the way between them of few and strong relations.

        Returns:
            The start, and what each relation leads to; empty where nothing connects the two.

        Raises:
            NotFoundError: One of them is not there.
        """
        with self._database.read() as transaction:
            ends = self._target(transaction, source), self._target(transaction, target)
            found = shortest_path(relations.edges(transaction), *ends)
            return self._steps(transaction, found)

    def _kb_ids(self, transaction: Transaction, kbs: Sequence[str] | None) -> list[str] | None:
        if kbs is None:
            return None
        names = [kbs] if isinstance(kbs, str) else kbs
        return [knowledge_bases.get(transaction, name).id for name in names]

    def _steps(
        self, transaction: Transaction, found: Sequence[tuple[Target, int, Edge | None]]
    ) -> list[Step]:
        """What a walk came to, as people see it."""
        labels = relations.labels(transaction, [target for target, _, _ in found])
        ids = [edge.id for _, _, edge in found if edge is not None]
        by_id = {each.id: each for each in relations.of(transaction, ids)}
        return [
            Step(
                target,
                *labels[target],
                depth,
                None if edge is None else by_id[edge.id],
                edge is None or edge.target == target,
            )
            for target, depth, edge in found
        ]

    def __repr__(self) -> str:
        return "<Graph: entities, relations, gaps and suggestions of a workspace>"
