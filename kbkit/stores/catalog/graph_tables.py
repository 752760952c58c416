"""Graphs of knowledge bases in memory, shared by queries."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import NamedTuple

import sqlalchemy as sa

from kbkit import models
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


@dataclass(frozen=True, eq=False)
class GraphTable:
    """Entities in a knowledge base and their relations.

    Attributes:
        entities: By id, also by the ids of aliases; `description` only if a person wrote it, and
            `chunks` in this knowledge base.
        relations: Strongest first; includes all relations made by hand.
        definitions: ``chunks.seq`` of defining chunks, by entity id.
        links: Links between documents.
    """

    _database: Database
    entities: Mapping[str, models.Entity]
    relations: Sequence[Edge]
    definitions: Mapping[str, Sequence[int]]
    links: Sequence[Edge]
    _naming: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @cached_property
    def related(self) -> Mapping[str, Sequence[Edge]]:
        """Relations by entity id, strongest first."""
        by_end: dict[str, list[Edge]] = {}
        for relation in self.relations:
            for end in {relation.source.id, relation.target.id}:
                by_end.setdefault(end, []).append(relation)
        return by_end

    @cached_property
    def linked(self) -> Mapping[str, Sequence[tuple[str, float]]]:
        """Linked documents in both directions, with the weight of each link.

        A weight is divided by the square root of all weights at the linked document.
        """
        outgoing: defaultdict[str, float] = defaultdict(float)
        incoming: defaultdict[str, float] = defaultdict(float)
        links = [(edge.source.id, edge.target.id, edge.weight) for edge in self.links]
        for source, target, weight in links:
            outgoing[source] += weight
            incoming[target] += weight
        by_document: dict[str, list[tuple[str, float]]] = {}
        for source, target, weight in links:
            by_document.setdefault(source, []).append((target, weight / incoming[target] ** 0.5))
            by_document.setdefault(target, []).append((source, weight / outgoing[source] ** 0.5))
        return by_document

    def naming(self, ids: Collection[str]) -> Mapping[str, Sequence[int]]:
        """Return ``chunks.seq`` of mentioning chunks by entity id, read once for each entity."""
        missing = set(ids) - self._naming.keys()
        if missing:
            roots = {id_: one.id for id_, one in self.entities.items() if one.id in missing}
            table = annotation_subjects.c
            query = sa.select(table.subject_id, table.chunk_seq)
            chunks_of: dict[str, set[int]] = {id_: set() for id_ in missing}
            with self._database.read() as transaction:
                mentions = query.where(transaction.is_in(table.subject_id, list(roots)))
                for subject_id, seq in transaction.execute(mentions):
                    chunks_of[roots[subject_id]].add(seq)
            self._naming.update({id_: tuple(sorted(seqs)) for id_, seqs in chunks_of.items()})
        return self._naming


def read(transaction: Transaction, database: Database, kb_id: str) -> GraphTable:
    edges: defaultdict[tuple[TargetKind, TargetKind], list[Edge]] = defaultdict(list)
    for edge in relations.edges(transaction, kb_ids=[kb_id]):
        edges[edge.source.kind, edge.target.kind].append(edge)
    entity_edges = sorted(edges[_ENTITY, _ENTITY], key=lambda edge: (-edge.weight, edge.id))
    aliases = entities.aliases_of(transaction)
    counts: Counter[str] = Counter()
    for id_, count in chunk_counts(transaction, IS_ENTITY, chunks.c.kb_id == kb_id).items():
        counts[aliases.get(id_, id_)] += count
    ids = {*counts, *(end.id for edge in entity_edges for end in (edge.source, edge.target))}
    by_id = {
        entity.id: replace(
            entity,
            description=entity.description if entity.by_hand else "",
            chunks=counts[entity.id],
        )
        for entity in entities.entities_of(transaction, sorted(ids), counted=False)
    }
    by_id |= {alias: by_id[root] for alias, root in aliases.items() if root in by_id}
    defined_in = {
        edge.id: edge.source.id for edge in edges[_ENTITY, _DOCUMENT] if edge.name == "defined_in"
    }
    evidence = relation_evidence.c
    query = sa.select(evidence.relation_id, evidence.chunk_seq).order_by(evidence.chunk_seq)
    definitions: dict[str, list[int]] = {}
    defining = query.where(transaction.is_in(evidence.relation_id, defined_in))
    for relation_id, seq in transaction.execute(defining):
        definitions.setdefault(defined_in[relation_id], []).append(seq)
    return GraphTable(database, by_id, entity_edges, definitions, edges[_DOCUMENT, _DOCUMENT])


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
        graph = read(transaction, self.database, kb_id)
        took = time.thread_time() - began
        due = time.monotonic() + _PAUSE * took if took > _LONG else 0.0
        self._cache[kb_id] = _CachedGraph(graph, changes, _last_edit(transaction), due)
        return graph

    def _renew(self, kb_id: str) -> None:
        with suppress(Exception):  # deleted meanwhile, or the process ends
            changes = self.database.changes()
            self.database.look_up(self._read, kb_id, changes)


def _last_edit(transaction: Transaction) -> int | None:
    return transaction.execute(sa.select(sa.func.max(graph_edits.c.id))).scalar()
