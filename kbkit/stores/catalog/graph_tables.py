"""Graphs of knowledge bases in memory, shared by queries."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import sqlalchemy as sa

from kbkit.models import SubjectKind, TargetKind
from kbkit.stores.catalog import entities
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.schema import chunks, documents, knowledge_bases
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
from kbkit.stores.catalog.workspace_schema import entities as entity_rows

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
    gone = entities.deleted(transaction)
    edges = _edges(transaction, kb_id, aliases)
    described = _named(transaction, kb_id)
    ends = {end for edge in edges for end in (edge.source_id, edge.target_id)}
    roots = {aliases[id_] for id_ in described.keys() & aliases.keys()}
    roots |= ends | (described.keys() - aliases.keys())
    more = (roots | {each for each, root in aliases.items() if root in roots}) - described.keys()
    described |= _described(transaction, more)
    others: dict[str, list[str]] = {}
    for each in sorted(aliases.keys() & described.keys()):
        others.setdefault(aliases[each], []).append(each)
    rows: dict[str, int] = {}
    listed: list[EntityRow] = []
    for id_ in sorted((roots & described.keys()) - gone):
        own, below = described[id_], others.get(id_)
        if below:
            count = own.chunks + sum(described[each].chunks for each in below)
            names = tuple(sorted(described[each].name for each in below))
            own = own._replace(aliases=names, chunks=count)
        rows[id_] = len(listed)
        listed.append(own)
    defined: dict[int, list[int]] = {}
    for entity_id, seq in _definitions(transaction, kb_id):
        row = rows.get(aliases.get(entity_id, entity_id))
        if row is not None:
            defined.setdefault(row, []).append(seq)
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
        links=_links(transaction, kb_id),
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


def _edges(transaction: Transaction, kb_id: str, aliases: Mapping[str, str]) -> list[_Edge]:
    """Read relations with evidence in a knowledge base, and those made by hand.

    Of relations that merged aliases make equal, the strongest counts.
    """
    supported = (
        sa.select(relation_evidence.c.relation_id)
        .join(chunks, chunks.c.seq == relation_evidence.c.chunk_seq)
        .where(chunks.c.kb_id == kb_id)
    )
    table = relations.c
    query = sa.select(table.id, table.source_id, table.name, table.target_id, table.weight).where(
        table.source_kind == _ENTITY,
        table.target_kind == _ENTITY,
        table.deleted_at.is_(None),
        table.weight > 0,  # 0 if only chunks in the trash support it
        table.by_hand | table.id.in_(supported),
    )
    best: dict[tuple[str, str, str], _Edge] = {}
    for id_, source, name, target, weight in transaction.execute(query):
        ends = aliases.get(source, source), aliases.get(target, target)
        if ends[0] == ends[1]:
            continue
        key = (ends[0], name, ends[1])
        if key not in best or best[key].weight < weight:
            best[key] = _Edge(id_, ends[0], name, ends[1], weight)
    return sorted(best.values(), key=lambda edge: (-edge.weight, edge.id))


_DESCRIBED = (
    subjects.c.id,
    subjects.c.name,
    entity_rows.c.type,
    entity_rows.c.description,
    entity_rows.c.by_hand,
)


def _named(transaction: Transaction, kb_id: str) -> dict[str, EntityRow]:
    counted = (
        sa.select(
            annotation_subjects.c.subject_id,
            sa.func.count(sa.distinct(annotation_subjects.c.chunk_seq)).label("chunks"),
        )
        .join(chunks, chunks.c.seq == annotation_subjects.c.chunk_seq)
        .where(chunks.c.kb_id == kb_id)
        .group_by(annotation_subjects.c.subject_id)
        .subquery()
    )
    query = (
        sa.select(*_DESCRIBED, counted.c.chunks)
        .join(counted, counted.c.subject_id == subjects.c.id)
        .outerjoin(entity_rows, entity_rows.c.subject_id == subjects.c.id)
        .where(subjects.c.kind == SubjectKind.ENTITY.value)
    )
    return {row[0]: _entity(row) for row in transaction.execute(query)}


def _described(transaction: Transaction, ids: Collection[str]) -> dict[str, EntityRow]:
    query = (
        sa.select(*_DESCRIBED, sa.literal(0))
        .outerjoin(entity_rows, entity_rows.c.subject_id == subjects.c.id)
        .where(transaction.is_in(subjects.c.id, list(ids)))
    )
    return {row[0]: _entity(row) for row in transaction.execute(query)} if ids else {}


def _entity(row: Sequence[Any]) -> EntityRow:
    id_, name, kind, description, by_hand, count = row
    return EntityRow(id_, name, kind or "", (description or "") if by_hand else "", (), count)


def _definitions(transaction: Transaction, kb_id: str) -> list[tuple[str, int]]:
    query = (
        sa.select(relations.c.source_id, relation_evidence.c.chunk_seq)
        .join(relation_evidence, relation_evidence.c.relation_id == relations.c.id)
        .join(chunks, chunks.c.seq == relation_evidence.c.chunk_seq)
        .where(
            relations.c.name == "defined_in",
            relations.c.source_kind == _ENTITY,
            relations.c.deleted_at.is_(None),
            relations.c.weight > 0,
            chunks.c.kb_id == kb_id,
        )
        .order_by(relation_evidence.c.chunk_seq)
    )
    return [(row[0], row[1]) for row in transaction.execute(query)]


def _links(transaction: Transaction, kb_id: str) -> list[tuple[str, str, float]]:
    here = sa.select(documents.c.id).where(documents.c.kb_id == kb_id)
    ids = set(transaction.scalars(here))
    table = relations.c
    query = sa.select(table.source_id, table.target_id, table.weight).where(
        table.source_kind == _DOCUMENT,
        table.target_kind == _DOCUMENT,
        table.deleted_at.is_(None),
        table.weight > 0,
    )
    rows = transaction.execute(query)
    return [(row[0], row[1], row[2]) for row in rows if row[0] in ids and row[1] in ids]


_LONG = 0.08
"""Processor seconds from which changes by documents are read in the background."""
_OUTDATED = -1
"""Matches no number of changes, so that the next query checks the graph."""
_PAUSE = 199
"""Pause after reading a graph, as a multiple of that time, because it slows down searches."""


@dataclass(slots=True)
class GraphTables:
    """Caches the graphs of knowledge bases.

    Edits by people show at once. Changes of large graphs by documents are read in the background.
    """

    database: Database
    _graphs: dict[str, tuple[int, GraphTable]] = field(default_factory=dict)
    _took: dict[str, tuple[float, float]] = field(default_factory=dict)
    _renewing: set[str] = field(default_factory=set)
    _reading: threading.Lock = field(default_factory=threading.Lock)

    def get(self, kb_id: str) -> GraphTable:
        # read before the graph, so that the next call notices later changes
        changes = self.database.changes()
        cached = self._graphs.get(kb_id)
        if cached is not None and cached[0] == changes:
            return cached[1]
        with self._reading:
            cached = self._graphs.get(kb_id)
            if cached is None or cached[0] != changes:
                with self.database.read() as transaction:
                    graph = self._checked(transaction, kb_id, cached[1] if cached else None)
                cached = self._graphs[kb_id] = changes, graph
            return cached[1]

    def is_held(self, kb_id: str) -> bool:
        cached = self._graphs.get(kb_id)
        return cached is not None and cached[0] == self.database.changes()

    def _checked(
        self, transaction: Transaction, kb_id: str, graph: GraphTable | None
    ) -> GraphTable:
        if graph is None:
            return self._read(transaction, kb_id)
        if self._took[kb_id][0] > _LONG:
            if not is_edited(graph.signature, edits(transaction)):
                self._renew_in_background(kb_id)
                return graph
        elif graph.signature == signature(transaction, kb_id):
            return graph
        return self._read(transaction, kb_id)

    def _read(self, transaction: Transaction, kb_id: str) -> GraphTable:
        began = time.thread_time()
        graph = read(transaction, kb_id)
        self._took[kb_id] = time.thread_time() - began, time.monotonic()
        return graph

    def _renew_in_background(self, kb_id: str) -> None:
        if kb_id in self._renewing:
            return
        self._renewing.add(kb_id)
        took, when = self._took[kb_id]
        later = max(0.0, when + _PAUSE * took - time.monotonic())
        timer = threading.Timer(later, self._renew, (kb_id,))
        timer.daemon, timer.name = True, "kbkit-graph"
        timer.start()

    def _renew(self, kb_id: str) -> None:
        changes, graph = _OUTDATED, self._graphs[kb_id][1]
        try:
            since = self.database.changes()
            with contextlib.suppress(Exception):  # deleted meanwhile, or the process ends
                with self.database.read() as transaction:
                    if graph.signature != signature(transaction, kb_id):
                        graph = self._read(transaction, kb_id)
                changes = since
        finally:
            # before the result is stored, so that a change in between renews it again
            self._renewing.discard(kb_id)
            with self._reading:
                self._graphs[kb_id] = changes, graph

    def naming(self, graph: GraphTable, rows: Collection[int]) -> Mapping[int, Sequence[int]]:
        if not graph.naming.keys() >= set(rows):
            with self.database.read() as transaction:
                name_chunks(transaction, graph, rows)
        return graph.naming
