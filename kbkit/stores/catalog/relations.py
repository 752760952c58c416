"""Relations between targets, with their evidence; labels of targets.

The weight is ``s / (1 + s)``, where s is the sum over the evidence, unless a person set it.
A deleted relation keeps its row, so that no rebuild restores it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from kbkit import models
from kbkit.errors import ConflictError, NotFoundError
from kbkit.models import DocumentState, Target, TargetKind
from kbkit.stores.catalog import entities, reading
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.schema import chunks, documents, knowledge_bases
from kbkit.stores.catalog.workspace_schema import ENDS, relation_evidence, relations, subjects
from kbkit.stores.catalog.workspace_schema import entities as entity_rows
from kbkit.stores.catalog.workspace_schema import entries as entries_table


class Edge(NamedTuple):
    """A relation for graph walks; aliases are replaced by their entity."""

    id: int
    source: Target
    name: str
    target: Target
    weight: float


LISTED = relations.c.deleted_at.is_(None) & (relations.c.weight > 0)
"""Undeleted relations with support outside the trash."""
_EVIDENCE = 5
_PLAIN = ("id", "name", "weight", "made_by", "created_at", "seen_at", "note", "by_hand")
EDGE = [relations.c[name] for name in ("id", *ENDS, "weight")]


def visible(transaction: Transaction, rows: Sequence[Any]) -> list[Edge]:
    """Return edges between existing targets, of rows with the columns of an `Edge`.

    Aliases are replaced by their entity; of relations that become equal the strongest counts.
    """
    ids = {id_ for row in rows for id_ in (row.source_id, row.target_id)}
    aliases = entities.aliases_of(transaction, ids)
    candidates = []
    for id_, source_kind, source_id, name, target_kind, target_id, weight in rows:
        source = _end(source_kind, source_id, aliases)
        target = _end(target_kind, target_id, aliases)
        candidates.append(Edge(id_, source, name, target, weight))
    ends = {end for edge in candidates for end in (edge.source, edge.target)}
    existing = present(transaction, ends)
    best: dict[tuple[Target, str, Target], Edge] = {}
    for edge in candidates:
        key = (edge.source, edge.name, edge.target)
        is_visible = edge.source != edge.target and {edge.source, edge.target} <= existing
        if is_visible and (key not in best or best[key].weight < edge.weight):
            best[key] = edge
    return list(best.values())


def at_targets(transaction: Transaction, targets: Collection[Target]) -> sa.ColumnElement[bool]:
    kinds: dict[TargetKind, set[str]] = {}
    for target in targets:
        kinds.setdefault(target.kind, set()).add(target.id)
    if TargetKind.ENTITY in kinds:
        kinds[TargetKind.ENTITY] = set(entities.group(transaction, kinds[TargetKind.ENTITY]))
    table = relations.c
    ends = (table.source_kind, table.source_id), (table.target_kind, table.target_id)
    conditions = (
        sa.and_(kind_column == kind.value, transaction.is_in(id_column, list(ids)))
        for kind, ids in kinds.items()
        for kind_column, id_column in ends
    )
    return sa.or_(sa.false(), *conditions)


def edges(
    transaction: Transaction,
    targets: Collection[Target] | None = None,
    *,
    names: Collection[str] = (),
    kb_ids: Collection[str] | None = None,
) -> list[Edge]:
    """List relations of a graph, or those at some targets; see `visible`."""
    query = sa.select(*EDGE).where(LISTED)
    if targets is not None:
        query = query.where(at_targets(transaction, targets))
    if names:
        query = query.where(relations.c.name.in_(list(names)))
    if kb_ids is not None:
        query = query.where(has_support(chunks.c.kb_id.in_(list(kb_ids))))
    return visible(transaction, transaction.execute(query).all())


def has_support(of_chunks: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Whether a relation is made by hand, or some chunks support it."""
    evidence = relation_evidence.c
    supports = evidence.relation_id == relations.c.id, chunks.c.seq == evidence.chunk_seq
    return relations.c.by_hand | sa.exists().where(*supports, of_chunks)


def has_ends(values: Sequence[str]) -> sa.ColumnElement[bool]:
    return sa.and_(*(relations.c[name] == value for name, value in zip(ENDS, values, strict=True)))


def relate(
    transaction: Transaction, ends: Sequence[str], *, weight: float, note: str, made_by: str
) -> models.Relation:
    """Create or change a relation by hand, or restore a deleted one; `ends` are its `ENDS`."""
    now = datetime.now(UTC)
    signed = {"made_by": made_by, "by_hand": True, "seen_at": now, "deleted_at": None}
    new_values = {"weight": weight, "note": note, **signed}
    row = transaction.first(relations.c, has_ends(ends))
    if row is None:
        row_values = dict(zip(ENDS, ends, strict=True)) | new_values
        return get(transaction, transaction.insert_one(relations, created_at=now, **row_values))
    is_of_another = row.deleted_at is None and row.by_hand and row.made_by != made_by
    if is_of_another and (row.weight, row.note) != (weight, note):
        when = f"{row.seen_at:%Y-%m-%d %H:%M:%S} UTC"
        raise ConflictError(
            f"{row.made_by or 'somebody'} made this relation at {when}, with weight "
            f"{row.weight:g} and note {row.note!r}; to change it, delete it first"
        )
    transaction.update(relations, relations.c.id == row.id, **new_values)
    return get(transaction, row.id)


def get(transaction: Transaction, relation_id: int) -> models.Relation:
    matches = relations_of(transaction, [relation_id])
    if not matches:
        raise NotFoundError(f"no relation with id {relation_id!r}")
    return matches[0]


def relations_of(transaction: Transaction, ids: Sequence[int]) -> list[models.Relation]:
    """Return relations in the order of their ids, with their best evidence."""
    query = sa.select(*relations.c).where(transaction.is_in(relations.c.id, ids), LISTED)
    rows = {row.id: row for row in transaction.execute(query)}
    supporting = (
        sa.select(relation_evidence.c.relation_id, chunks.c.id)
        .join(chunks, chunks.c.seq == relation_evidence.c.chunk_seq)
        .join(knowledge_bases, knowledge_bases.c.id == chunks.c.kb_id)
        .where(transaction.is_in(relation_evidence.c.relation_id, rows))
        .where(knowledge_bases.c.deleted_at.is_(None))
        .order_by(relation_evidence.c.weight.desc(), chunks.c.id)
    )
    support = transaction.grouped(supporting)
    aliases = entities.aliases_of(transaction)
    ordered = [_relation(rows[id_], aliases, support.get(id_, ())) for id_ in ids if id_ in rows]
    names = labels(transaction, {end for item in ordered for end in (item.source, item.target)})
    return [
        replace(item, source_name=names[item.source][0], target_name=names[item.target][0])
        for item in ordered
    ]


def list_relations(
    transaction: Transaction,
    *,
    target: Target | None = None,
    name: str | None = None,
    made_by: str | None = None,
    limit: int | None = None,
) -> list[models.Relation]:
    """List relations, strongest first."""
    query = sa.select(*EDGE).where(LISTED)
    if target is not None:
        query = query.where(at_targets(transaction, [target]))
    if name is not None:
        query = query.where(relations.c.name == name)
    if made_by is not None:
        query = query.where(relations.c.made_by == made_by)
    rows = transaction.execute(query.order_by(relations.c.weight.desc(), relations.c.id)).all()
    return relations_of(transaction, [edge.id for edge in visible(transaction, rows)][:limit])


def delete(transaction: Transaction, expected: models.Relation, *, made_by: str) -> None:
    before = get(transaction, expected.id)
    entities.check_unchanged(before.name, before.seen_at, before.made_by, expected.seen_at)
    now = datetime.now(UTC)
    changes = {"deleted_at": now, "seen_at": now, "by_hand": True, "made_by": made_by}
    transaction.update(relations, relations.c.id == expected.id, **changes)


def ends(transaction: Transaction, relation_id: int) -> tuple[str, ...]:
    """Return the stored `ENDS` of a relation, without replacing aliases."""
    get(transaction, relation_id)
    query = sa.select(*(relations.c[name] for name in ENDS))
    return tuple(transaction.execute(query.where(relations.c.id == relation_id)).one())


def _end(kind_value: str, id_: str, aliases: Mapping[str, str]) -> Target:
    kind = TargetKind(kind_value)
    return Target(kind, aliases.get(id_, id_) if kind is TargetKind.ENTITY else id_)


def _relation(row: Any, aliases: Mapping[str, str], evidence: Sequence[str]) -> models.Relation:
    return models.Relation(
        source=_end(row.source_kind, row.source_id, aliases),
        target=_end(row.target_kind, row.target_id, aliases),
        evidence=tuple(evidence[:_EVIDENCE]),
        **{name: getattr(row, name) for name in _PLAIN},
    )


_TARGETS: dict[TargetKind, sa.Select[Any]] = {
    TargetKind.ENTRY: sa.select(entries_table.c.id, entries_table.c.title),
    TargetKind.CHUNK: sa.select(chunks.c.id, documents.c.title, chunks.c.heading_path)
    .join(documents, documents.c.id == chunks.c.document_id)
    .join(knowledge_bases, knowledge_bases.c.id == chunks.c.kb_id)
    .where(knowledge_bases.c.deleted_at.is_(None)),
    TargetKind.DOCUMENT: sa.select(documents.c.id, documents.c.title)
    .join(knowledge_bases, knowledge_bases.c.id == documents.c.kb_id)
    .where(knowledge_bases.c.deleted_at.is_(None), documents.c.state != DocumentState.GONE.value),
    # no condition on the kind, for which SQLite would read all entities
    TargetKind.ENTITY: sa.select(subjects.c.id, subjects.c.name, entity_rows.c.type)
    .outerjoin(entity_rows, entity_rows.c.subject_id == subjects.c.id)
    .where(entity_rows.c.deleted_at.is_(None)),
}
"""Queries for the ids and names of targets that exist; files are not checked."""


def present(transaction: Transaction, targets: Collection[Target]) -> set[Target]:
    """Return the targets that exist; files are not checked."""
    existing = {target for target in targets if target.kind not in _TARGETS}
    return existing.union(target for target, _ in _target_names(transaction, targets))


def find_target(transaction: Transaction, name: str) -> Target | None:
    """Resolve an id, slug or URI: an entry first, then a chunk or document."""
    entry = reading.find_entry(transaction, name)
    query = sa.select(documents.c.id).where(documents.c.uri == name)
    query = query.join(knowledge_bases, knowledge_bases.c.id == documents.c.kb_id)
    by_uri = query.order_by(knowledge_bases.c.name)
    candidates = [Target(TargetKind.ENTRY, entry)] if entry else []
    candidates += [Target(TargetKind.CHUNK, name), Target(TargetKind.DOCUMENT, name)]
    candidates += [Target(TargetKind.DOCUMENT, id_) for id_ in transaction.scalars(by_uri)]
    existing = present(transaction, candidates)
    return next((target for target in candidates if target in existing), None)


def _target_names(
    transaction: Transaction, targets: Collection[Target]
) -> Iterator[tuple[Target, Any]]:
    for kind, query in _TARGETS.items():
        ids = [target.id for target in targets if target.kind is kind]
        for row in transaction.rows_in(query, query.selected_columns[0], ids) if ids else ():
            yield Target(kind, row.id), row


def labels(transaction: Transaction, targets: Collection[Target]) -> dict[Target, tuple[str, str]]:
    """Map targets to label and kind (the type of an entity)."""
    label_of = {target: (target.id, target.kind.value) for target in targets}
    for target, row in _target_names(transaction, targets):
        name, label_kind = row[1], target.kind.value
        if target.kind is TargetKind.CHUNK:
            name = " > ".join(row.heading_path) or name
        elif target.kind is TargetKind.ENTITY:
            label_kind = row.type or label_kind
        label_of[target] = (name, label_kind)
    return label_of
