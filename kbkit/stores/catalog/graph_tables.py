"""Graphs of knowledge bases in memory, shared by queries."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import sqlalchemy as sa

from kbkit.models import TargetKind
from kbkit.stores.catalog import entities
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.relations import LISTED, is_supported
from kbkit.stores.catalog.schema import chunks, documents, knowledge_bases
from kbkit.stores.catalog.subjects import IS_ENTITY, chunk_counts
from kbkit.stores.catalog.workspace_schema import (
    annotation_subjects,
    built_graphs,
    graph_edits,
    related_chunks,
    relation_evidence,
    relations,
    subjects,
)
from kbkit.stores.catalog.workspace_schema import annotations as annotation_rows

_ENTITY, _DOCUMENT = TargetKind.ENTITY.value, TargetKind.DOCUMENT.value

Signature = tuple[Any, ...]
"""Signature of a table, to detect changes."""


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
        naming: ``chunks.seq`` of mentioning chunks by entity row, filled by `name_chunks`.
    """

    signature: Signature
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


def signature(transaction: Transaction, kb_id: str) -> Signature:
    low, high = sa.func.min, sa.func.max
    return (
        *_numbers(
            transaction, high(knowledge_bases.c.version), where=knowledge_bases.c.id == kb_id
        ),
        *_numbers(transaction, high(built_graphs.c.version), where=built_graphs.c.kb_id == kb_id),
        *_numbers(transaction, where=annotation_rows.c.kb_id == kb_id),
        *_numbers(
            transaction,
            low(related_chunks.c.digest),
            high(related_chunks.c.digest),
            where=related_chunks.c.kb_id == kb_id,
        ),
        *_numbers(transaction, high(relations.c.id)),
        *edits(transaction),
    )


def edits(transaction: Transaction) -> Signature:
    return _numbers(transaction, sa.func.max(graph_edits.c.id))


def is_edited(seen: Signature, now: Signature) -> bool:
    """Whether people edited the graph since a signature; ``now`` comes from `edits`."""
    return seen[-len(now) :] != now


def _numbers(
    transaction: Transaction,
    *columns: sa.ColumnElement[Any],
    where: sa.ColumnElement[bool] | None = None,
) -> Signature:
    query = sa.select(sa.func.count(), *columns)
    return tuple(transaction.execute(query if where is None else query.where(where)).one())


def read(transaction: Transaction, kb_id: str) -> GraphTable:
    seen = signature(transaction, kb_id)
    aliases = entities.aliases_of(transaction)
    edges, links = _edges(transaction, kb_id, aliases)
    counts = chunk_counts(transaction, IS_ENTITY, chunks.c.kb_id == kb_id)
    roots = {aliases.get(id_, id_) for id_ in counts}
    roots.update(end for edge in edges for end in (edge.source_id, edge.target_id))
    below: dict[str, list[str]] = {}
    for each, root in aliases.items():
        if root in roots:
            below.setdefault(root, []).append(each)
    own = transaction.is_in(subjects.c.id, roots.union(*below.values()))
    described = {row.id: row for row in transaction.execute(entities.NODES.where(own))}
    rows: dict[str, int] = {}
    listed: list[EntityRow] = []
    for id_ in sorted(roots & described.keys()):
        row, others = described[id_], below.get(id_, ())
        if row.deleted_at is None:
            rows[id_] = len(listed)
            entity = EntityRow(
                id_,
                row.name,
                row.type or "",
                (row.description or "") if row.by_hand else "",
                tuple(sorted(described[each].name for each in others)),
                sum(counts.get(each, 0) for each in (id_, *others)),
            )
            listed.append(entity)
    defined: dict[int, list[int]] = {}
    for entity_id, seq in _definitions(transaction, kb_id):
        place = rows.get(aliases.get(entity_id, entity_id))
        if place is not None:
            defined.setdefault(place, []).append(seq)
    return GraphTable(
        signature=seen,
        entities=listed,
        rows=rows | {each: rows[root] for each, root in aliases.items() if root in rows},
        relations=[
            RelationRow(edge.id, rows[edge.source_id], edge.name, rows[edge.target_id], edge.weight)
            for edge in edges
            if edge.source_id in rows and edge.target_id in rows
        ],
        definitions=defined,
        links=links,
    )


def name_chunks(transaction: Transaction, graph: GraphTable, rows: Collection[int]) -> None:
    missing = {row for row in rows if row not in graph.naming}
    if not missing:
        return
    ids = {id_: row for id_, row in graph.rows.items() if row in missing}
    table = annotation_subjects.c
    query = sa.select(table.subject_id, table.chunk_seq).where(
        transaction.is_in(table.subject_id, list(ids))
    )
    chunks_of: dict[int, set[int]] = {row: set() for row in missing}
    for subject_id, seq in transaction.execute(query):
        chunks_of[ids[subject_id]].add(seq)
    graph.naming.update({row: tuple(sorted(seqs)) for row, seqs in chunks_of.items()})


class _Edge(NamedTuple):
    id: int
    source_id: str
    name: str
    target_id: str
    weight: float


def _edges(
    transaction: Transaction, kb_id: str, aliases: Mapping[str, str]
) -> tuple[list[_Edge], list[tuple[str, str, float]]]:
    """Read relations of entities and links with evidence in a knowledge base, or made by hand.

    Of relations that merged aliases make equal, the strongest counts.
    """
    here = set(transaction.scalars(sa.select(documents.c.id).where(documents.c.kb_id == kb_id)))
    table = relations.c
    query = sa.select(
        table.source_kind, table.id, table.source_id, table.name, table.target_id, table.weight
    ).where(
        table.source_kind == table.target_kind,
        table.source_kind.in_([_ENTITY, _DOCUMENT]),
        LISTED,
        is_supported([kb_id]),
    )
    best: dict[tuple[str, str, str], _Edge] = {}
    links: list[tuple[str, str, float]] = []
    for kind, *values in transaction.execute(query):
        edge = _Edge(*values)
        source, target = edge.source_id, edge.target_id
        if kind == _DOCUMENT:
            if source in here and target in here:
                links.append((source, target, edge.weight))
            continue
        source, target = aliases.get(source, source), aliases.get(target, target)
        key = (source, edge.name, target)
        if source != target and (key not in best or best[key].weight < edge.weight):
            best[key] = edge._replace(source_id=source, target_id=target)
    return sorted(best.values(), key=lambda edge: (-edge.weight, edge.id)), links


def _definitions(transaction: Transaction, kb_id: str) -> list[tuple[str, int]]:
    query = (
        sa.select(relations.c.source_id, relation_evidence.c.chunk_seq)
        .join(relation_evidence, relation_evidence.c.relation_id == relations.c.id)
        .join(chunks, chunks.c.seq == relation_evidence.c.chunk_seq)
        .where(
            relations.c.name == "defined_in",
            relations.c.source_kind == _ENTITY,
            LISTED,
            chunks.c.kb_id == kb_id,
        )
        .order_by(relation_evidence.c.chunk_seq)
    )
    return [(row[0], row[1]) for row in transaction.execute(query)]


_LONG = 0.08
"""Processor seconds from which changes by documents are read in the background."""
_PAUSE = 199
"""Pause after reading a large graph, as a multiple of that time, because it slows down searches."""


class _Held(NamedTuple):
    graph: GraphTable
    changes: int
    due: float
    """When a large graph may be read again; 0 for a small one."""


@dataclass(slots=True)
class GraphTables:
    """Caches the graphs of knowledge bases.

    Edits by people show at once. Changes of large graphs by documents are read in the background.
    """

    database: Database
    _held: dict[str, _Held] = field(default_factory=dict)
    _reading: threading.Lock = field(default_factory=threading.Lock)

    def get(self, kb_id: str) -> GraphTable:
        # read before the graph, so that the next call notices later changes
        changes = self.database.changes()
        held = self._held.get(kb_id)
        if held is not None and held.changes == changes:
            return held.graph
        with self._reading, self.database.read() as transaction:
            held = self._held.get(kb_id)
            if held is not None and not is_edited(held.graph.signature, edits(transaction)):
                if held.due:
                    if time.monotonic() >= held.due:
                        self._held[kb_id] = held._replace(due=math.inf)
                        task = partial(self._renew, kb_id)
                        threading.Thread(target=task, name="kbkit-graph", daemon=True).start()
                    return held.graph
                if held.graph.signature == signature(transaction, kb_id):
                    self._held[kb_id] = held._replace(changes=changes)
                    return held.graph
            return self._read(transaction, kb_id, changes)

    def _read(self, transaction: Transaction, kb_id: str, changes: int) -> GraphTable:
        began = time.thread_time()
        graph = read(transaction, kb_id)
        took = time.thread_time() - began
        due = time.monotonic() + _PAUSE * took if took > _LONG else 0.0
        self._held[kb_id] = _Held(graph, changes, due)
        return graph

    def _renew(self, kb_id: str) -> None:
        with suppress(Exception):  # deleted meanwhile, or the process ends
            changes = self.database.changes()
            with self.database.read() as transaction:
                self._read(transaction, kb_id, changes)

    def naming(self, graph: GraphTable, rows: Collection[int]) -> Mapping[int, Sequence[int]]:
        if not graph.naming.keys() >= set(rows):
            with self.database.read() as transaction:
                name_chunks(transaction, graph, rows)
        return graph.naming
