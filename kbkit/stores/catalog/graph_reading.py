"""The part of a graph that a query needs, read from the database."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from kbkit import models
from kbkit.models import TargetKind
from kbkit.stores.catalog import entities, relations
from kbkit.stores.catalog.database import Database, Transaction, alive
from kbkit.stores.catalog.relations import EDGE, LISTED, Edge, has_support
from kbkit.stores.catalog.schema import chunks, documents
from kbkit.stores.catalog.workspace_schema import annotation_subjects, relation_evidence
from kbkit.stores.catalog.workspace_schema import relations as relation_rows

_relation, _evidence = relation_rows.c, relation_evidence.c
_ENTITY, _DOCUMENT = TargetKind.ENTITY.value, TargetKind.DOCUMENT.value
_OF_KBS = chunks.c.kb_id.in_(sa.bindparam("kb_ids", expanding=True))
_MENTIONS = (
    sa.select(annotation_subjects.c.subject_id, annotation_subjects.c.chunk_seq)
    .join(chunks, chunks.c.seq == annotation_subjects.c.chunk_seq)
    .where(_OF_KBS)
)
_DEFINITIONS = (
    sa.select(_relation.source_id, chunks.c.seq, chunks.c.kb_id)
    .join(relation_evidence, _evidence.relation_id == _relation.id)
    .join(chunks, chunks.c.seq == _evidence.chunk_seq)
    .where(LISTED, _relation.source_kind == _ENTITY, _relation.name == "defined_in")
    .order_by(chunks.c.seq)
)
_RELATED = {
    f"{end}_id": sa.select(*EDGE).where(
        LISTED, _relation[f"{end}_kind"] == _ENTITY, has_support(_OF_KBS)
    )
    for end in ("source", "target")
}
"""Queries by the end with the entity; with both kinds, SQLite would read all relations."""


def related(
    transaction: Transaction, ids: Collection[str], kb_ids: Sequence[str]
) -> dict[str, list[Edge]]:
    """Return relations with entities by entity id, the strongest first."""
    by_end: dict[str, list[Edge]] = {id_: [] for id_ in ids}
    roots = entities.group(transaction, ids)
    rows = [
        row
        for end, query in _RELATED.items()
        for row in transaction.rows_in(query, _relation[end], roots, kb_ids=kb_ids)
        if row.source_kind == row.target_kind
    ]
    edges = relations.visible(transaction, rows)
    for edge in sorted(edges, key=lambda edge: (-edge.weight, edge.id)):
        for end in {edge.source.id, edge.target.id} & by_end.keys():
            by_end[end].append(edge)
    return by_end


def definitions(transaction: Transaction, ids: Collection[str]) -> dict[str, list[tuple[int, str]]]:
    """Return ``chunks.seq`` and knowledge base of defining chunks by entity id, ascending."""
    roots = entities.group(transaction, ids)
    found: dict[str, list[tuple[int, str]]] = {id_: [] for id_ in ids}
    for id_, *place in transaction.rows_in(_DEFINITIONS, _relation.source_id, roots):
        found[roots[id_]].append((place[0], place[1]))
    return found


_LINKS = "links"
_LONG = 0.04  # CPU seconds of reading from which cached values are reused after changes
_REUSED = 199  # time for which they are reused, as a multiple of that of reading
_MAX_CACHED = 2_000


class _Cached(NamedTuple):
    value: Any
    changes: int
    due: float


@dataclass(frozen=True, slots=True, eq=False)
class GraphReader:
    """Reads entities of a knowledge base and their relations.

    Mentions and links are cached; relations are read each time, so that edits show at once.
    """

    _database: Database
    _kb_id: str
    _cache: dict[str, _Cached] = field(default_factory=dict)

    def entities(self, ids: Collection[str]) -> dict[str, models.Entity]:
        """Return entities that the knowledge base mentions or relates, also by ids of aliases.

        `chunks` are those in this knowledge base, and `description` is only that by a person.
        """
        roots = self._database.look_up(entities.roots_of, ids)
        naming = self.mentions(set(roots.values()))
        if silent := [id_ for id_, seqs in naming.items() if not len(seqs)]:
            related_ids = [id_ for id_, edges in self.related(silent).items() if edges]
            naming = {id_: seqs for id_, seqs in naming.items() if len(seqs) or id_ in related_ids}
        if not naming:
            return {}
        by_id = {
            entity.id: replace(
                entity,
                description=entity.description if entity.by_hand else "",
                chunks=len(naming[entity.id]),
            )
            for entity in self._database.look_up(
                entities.entities_of, sorted(naming), counted=False
            )
        }
        return {id_: by_id[root] for id_, root in roots.items() if root in by_id}

    def mentions(self, ids: Collection[str]) -> Mapping[str, NDArray[np.int64]]:
        """Return ``chunks.seq`` of mentioning chunks by entity id, ascending."""
        return self._cached(ids, self._read_mentions)

    def related(self, ids: Collection[str]) -> dict[str, list[Edge]]:
        return self._database.look_up(related, ids, [self._kb_id])

    def definitions(self, ids: Collection[str]) -> dict[str, list[tuple[int, str]]]:
        return self._database.look_up(definitions, ids)

    def linked(self) -> Mapping[str, Sequence[tuple[str, float]]]:
        """Return linked documents by document, in both directions, with the weight of each link.

        A weight is divided by the square root of all weights at the linked document.
        """
        return self._cached([_LINKS], self._read_links)[_LINKS]

    def _read_links(
        self, transaction: Transaction, _keys: Collection[str]
    ) -> Mapping[str, Mapping[str, Sequence[tuple[str, float]]]]:
        existing = sa.select(documents.c.id).where(*alive(self._kb_id))
        query = sa.select(_relation.source_id, _relation.target_id, _relation.weight).where(
            *(LISTED, _relation.source_kind == _DOCUMENT, _relation.target_kind == _DOCUMENT),
            *(end.in_(existing) for end in (_relation.source_id, _relation.target_id)),
        )
        links = transaction.execute(query).all()
        outgoing, incoming = Counter[str](), Counter[str]()
        for source, target, weight in links:
            outgoing[source] += weight
            incoming[target] += weight
        by_document: dict[str, list[tuple[str, float]]] = {}
        for source, target, weight in links:
            by_document.setdefault(source, []).append((target, weight / incoming[target] ** 0.5))
            by_document.setdefault(target, []).append((source, weight / outgoing[source] ** 0.5))
        return {_LINKS: by_document}

    def _read_mentions(
        self, transaction: Transaction, ids: Collection[str]
    ) -> Mapping[str, NDArray[np.int64]]:
        roots = entities.group(transaction, ids)
        seqs: dict[str, list[int]] = {id_: [] for id_ in ids}
        subject_id = annotation_subjects.c.subject_id
        for id_, seq in transaction.rows_in(_MENTIONS, subject_id, roots, kb_ids=[self._kb_id]):
            seqs[roots[id_]].append(seq)
        return {id_: np.unique(np.array(each, np.int64)) for id_, each in seqs.items()}

    def _cached(
        self,
        keys: Collection[str],
        read: Callable[[Transaction, Collection[str]], Mapping[str, Any]],
    ) -> Mapping[str, Any]:
        """Return values from the cache; read the others, and cache them until a change."""
        # read first, so that the next call sees later changes
        changes, now, began = self._database.changes(), time.monotonic(), time.thread_time()
        cached = {key: each for key in keys if (each := self._cache.get(key))}
        values = {k: c.value for k, c in cached.items() if c.changes == changes or now < c.due}
        if missing := set(keys) - values.keys():
            new = self._database.look_up(read, missing)
            took = time.thread_time() - began
            due = now + _REUSED * took if took > _LONG else 0.0
            if len(self._cache) > _MAX_CACHED:
                self._cache.clear()
            self._cache.update({key: _Cached(new[key], changes, due) for key in missing})
            values |= new
        return values
