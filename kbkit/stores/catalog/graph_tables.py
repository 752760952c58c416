"""Graphs of knowledge bases in memory, shared by queries."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import sqlalchemy as sa

from kbkit.models import TargetKind
from kbkit.stores.catalog import entities, relations
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.relations import Edge
from kbkit.stores.catalog.schema import chunks
from kbkit.stores.catalog.subjects import IS_ENTITY, chunk_counts
from kbkit.stores.catalog.workspace_schema import (
    annotation_subjects,
    graph_edits,
    relation_evidence,
)

_ENTITY, _DOCUMENT = TargetKind.ENTITY, TargetKind.DOCUMENT


class EntityRow(NamedTuple):
    """An entity; `description` only if a person wrote it."""

    id: str
    name: str
    type: str
    description: str
    aliases: tuple[str, ...]
    chunks: int


class RelationRow(NamedTuple):
    """A relation; `source` and `target` are rows of entities."""

    id: int
    source: int
    name: str
    target: int
    weight: float


@dataclass(frozen=True, eq=False)
class GraphTable:
    """Entities in a knowledge base and their relations.

    Attributes:
        rows: Row of each entity by id, and by the ids of its aliases.
        relations: Strongest first; includes all relations made by hand.
        definitions: ``chunks.seq`` of defining chunks, by entity row.
        links: Source id, target id and weight of links between documents.
        naming: ``chunks.seq`` of mentioning chunks by entity row, filled by `GraphTables.naming`.
    """

    entities: Sequence[EntityRow]
    rows: Mapping[str, int]
    relations: Sequence[RelationRow]
    definitions: Mapping[int, Sequence[int]]
    links: Sequence[tuple[str, str, float]]
    naming: dict[int, tuple[int, ...]] = field(default_factory=dict)

    @cached_property
    def related(self) -> Mapping[int, Sequence[RelationRow]]:
        """Relations by entity row, strongest first."""
        by_end: dict[int, list[RelationRow]] = {}
        for relation in self.relations:
            for end in {relation.source, relation.target}:
                by_end.setdefault(end, []).append(relation)
        return by_end

    @cached_property
    def linked(self) -> Mapping[str, Sequence[tuple[str, float]]]:
        """Linked documents in both directions, with the weight of each link.

        A weight is divided by the square root of all weights at the linked document.
        """
        outgoing: dict[str, float] = {}
        incoming: dict[str, float] = {}
        for source, target, weight in self.links:
            outgoing[source] = outgoing.get(source, 0.0) + weight
            incoming[target] = incoming.get(target, 0.0) + weight
        by_document: dict[str, list[tuple[str, float]]] = {}
        for source, target, weight in self.links:
            by_document.setdefault(source, []).append((target, weight / incoming[target] ** 0.5))
            by_document.setdefault(target, []).append((source, weight / outgoing[source] ** 0.5))
        return by_document


def read(transaction: Transaction, kb_id: str) -> GraphTable:
    edges: defaultdict[tuple[TargetKind, TargetKind], list[Edge]] = defaultdict(list)
    for edge in relations.edges(transaction, kb_ids=[kb_id]):
        edges[edge.source.kind, edge.target.kind].append(edge)
    entity_edges = sorted(edges[_ENTITY, _ENTITY], key=lambda edge: (-edge.weight, edge.id))
    aliases = entities.aliases_of(transaction)
    counts: Counter[str] = Counter()
    for id_, count in chunk_counts(transaction, IS_ENTITY, chunks.c.kb_id == kb_id).items():
        counts[aliases.get(id_, id_)] += count
    ids = {*counts, *(end.id for edge in entity_edges for end in (edge.source, edge.target))}
    entity_rows = [
        EntityRow(
            entity.id,
            entity.name,
            entity.type,
            entity.description if entity.by_hand else "",
            entity.aliases,
            counts[entity.id],
        )
        for entity in entities.entities_of(transaction, sorted(ids), counted=False)
    ]
    rows = {entity.id: row for row, entity in enumerate(entity_rows)}
    rows |= {alias: rows[root] for alias, root in aliases.items() if root in rows}
    defining = [edge for edge in edges[_ENTITY, _DOCUMENT] if edge.name == "defined_in"]
    return GraphTable(
        entities=entity_rows,
        rows=rows,
        relations=[
            RelationRow(edge.id, rows[edge.source.id], edge.name, rows[edge.target.id], edge.weight)
            for edge in entity_edges
        ],
        definitions=_definitions(transaction, defining, rows),
        links=[(e.source.id, e.target.id, e.weight) for e in edges[_DOCUMENT, _DOCUMENT]],
    )


def _definitions(
    transaction: Transaction, defining: Sequence[Edge], rows: Mapping[str, int]
) -> dict[int, list[int]]:
    row_of = {edge.id: rows[edge.source.id] for edge in defining if edge.source.id in rows}
    table = relation_evidence.c
    query = sa.select(table.relation_id, table.chunk_seq).order_by(table.chunk_seq)
    definitions: dict[int, list[int]] = {}
    for id_, seq in transaction.execute(query.where(transaction.is_in(table.relation_id, row_of))):
        definitions.setdefault(row_of[id_], []).append(seq)
    return definitions


_LONG = 0.04
"""CPU seconds from which a graph is large: changes by documents are read in the background."""
_PAUSE = 199
"""Pause after reading a large graph, as a multiple of that time, because it slows down searches."""


class _CachedGraph(NamedTuple):
    graph: GraphTable
    changes: int
    edits: int | None
    due: float
    """When a large graph may be read again; 0 for a small one."""


@dataclass(slots=True)
class GraphTables:
    """Caches the graphs of knowledge bases.

    Edits by people are visible at once. Other changes of large graphs are read in the background.
    """

    database: Database
    _cache: dict[str, _CachedGraph] = field(default_factory=dict)
    _reading: threading.Lock = field(default_factory=threading.Lock)

    def get(self, kb_id: str) -> GraphTable:
        # read before the graph, so that the next call notices later changes
        changes = self.database.changes()
        cached = self._cache.get(kb_id)
        if cached is not None and cached.changes == changes:
            return cached.graph
        with self._reading, self.database.read() as transaction:
            cached = self._cache.get(kb_id)
            if cached is None or cached.edits != _last_edit(transaction):
                return self._read(transaction, kb_id, changes)
            if not cached.due and cached.changes != changes:
                return self._read(transaction, kb_id, changes)
            if cached.due and time.monotonic() >= cached.due:
                self._cache[kb_id] = cached._replace(due=math.inf)
                task = partial(self._renew, kb_id)
                threading.Thread(target=task, name="kbkit-graph", daemon=True).start()
            return cached.graph

    def _read(self, transaction: Transaction, kb_id: str, changes: int) -> GraphTable:
        began = time.thread_time()
        graph = read(transaction, kb_id)
        took = time.thread_time() - began
        due = time.monotonic() + _PAUSE * took if took > _LONG else 0.0
        self._cache[kb_id] = _CachedGraph(graph, changes, _last_edit(transaction), due)
        return graph

    def _renew(self, kb_id: str) -> None:
        with suppress(Exception):  # deleted meanwhile, or the process ends
            changes = self.database.changes()
            self.database.look_up(self._read, kb_id, changes)

    def naming(self, graph: GraphTable, rows: Collection[int]) -> Mapping[int, Sequence[int]]:
        """Return ``chunks.seq`` of mentioning chunks by entity row, read once for each row."""
        missing = set(rows) - graph.naming.keys()
        if missing:
            ids = {id_: row for id_, row in graph.rows.items() if row in missing}
            table = annotation_subjects.c
            query = sa.select(table.subject_id, table.chunk_seq)
            chunks_of: dict[int, set[int]] = {row: set() for row in missing}
            with self.database.read() as transaction:
                mentions = query.where(transaction.is_in(table.subject_id, list(ids)))
                for subject_id, seq in transaction.execute(mentions):
                    chunks_of[ids[subject_id]].add(seq)
            graph.naming.update({row: tuple(sorted(seqs)) for row, seqs in chunks_of.items()})
        return graph.naming


def _last_edit(transaction: Transaction) -> int | None:
    return transaction.execute(sa.select(sa.func.max(graph_edits.c.id))).scalar()
