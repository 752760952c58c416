"""Store evidence, weights and entities of a graph.

A reading transaction finds the differences, which takes time in proportion to the graph. A writing
one checks them again and stores them, because others may write in between.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import sqlalchemy as sa

from kbkit.models import SubjectKind
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.graph import CO_OCCURS, ChunkRelation
from kbkit.stores.catalog.schema import chunks, knowledge_bases
from kbkit.stores.catalog.subjects import SubjectName, ends_by_hand
from kbkit.stores.catalog.subjects import add as add_subjects
from kbkit.stores.catalog.workspace_schema import (
    ENDS,
    annotation_subjects,
    entities,
    related_chunks,
    relation_evidence,
    relations,
    subjects,
)

Evidence = tuple[int, int]
"""Id of a relation, and ``chunks.seq`` of a chunk that supports it."""
Described = Mapping[str, tuple[str, str]]
"""Type and description of entities, by id."""

BUILDER = "kbkit"
"""Author of relations read from documents."""
_EQUAL = 1e-9
"""Weights that differ by less are equal."""
_Number = TypeVar("_Number", float, sa.ColumnElement[float])


def put(
    transaction: Transaction, kb_id: str, read: Mapping[int, str], facts: Sequence[ChunkRelation]
) -> None:
    existing = transaction.existing(chunks.c.seq, read)
    counted = sa.exists().where(
        relations.c.id == relation_evidence.c.relation_id, relations.c.name == CO_OCCURS
    )
    of_chunks = transaction.is_in(relation_evidence.c.chunk_seq, read)
    transaction.delete(relation_evidence, of_chunks, ~counted)
    add_evidence(transaction, facts)
    rows = [{"chunk_seq": seq, "kb_id": kb_id, "digest": read[seq]} for seq in sorted(existing)]
    transaction.put(related_chunks, rows)


def co_occurrence_changes(
    transaction: Transaction, kb_id: str, facts: Sequence[ChunkRelation]
) -> tuple[list[Evidence], list[ChunkRelation]]:
    query = (
        sa.select(relation_evidence, relations.c.source_id, relations.c.target_id)
        .join(relations, relations.c.id == relation_evidence.c.relation_id)
        .join(chunks, chunks.c.seq == relation_evidence.c.chunk_seq)
        .where(chunks.c.kb_id == kb_id, relations.c.name == CO_OCCURS)
    )
    facts_by_key = {(fact.seq, fact.source_id, fact.target_id): fact for fact in facts}
    outdated: list[Evidence] = []
    for row in transaction.execute(query):
        key = (row.chunk_seq, row.source_id, row.target_id)
        if key in facts_by_key and abs(facts_by_key[key].weight - row.weight) < _EQUAL:
            del facts_by_key[key]
        else:
            outdated.append((row.relation_id, row.chunk_seq))
    return outdated, list(facts_by_key.values())


def drop_evidence(transaction: Transaction, removed: Sequence[Evidence]) -> None:
    table = relation_evidence.c
    is_one = table.relation_id == sa.bindparam("relation"), table.chunk_seq == sa.bindparam("seq")
    rows = [{"relation": relation_id, "seq": seq} for relation_id, seq in removed]
    transaction.execute(relation_evidence.delete().where(*is_one), rows)


def unsettled_ids(transaction: Transaction) -> list[int]:
    return [row.id for row in transaction.execute(_select_unsettled(transaction))]


def settle(transaction: Transaction, ids: Sequence[int] | None = None) -> None:
    """Recompute weights from evidence; delete relations without any, unless made by hand.

    Evidence in the trash has no weight, but stays, so that undelete restores it.
    """
    rows = transaction.execute(_select_unsettled(transaction, ids)).all()
    unsupported = [row.id for row in rows if row.total is None]
    transaction.delete(relations, transaction.is_in(relations.c.id, unsupported))
    changed = [
        {"id": row.id, "weight": weight_of(row.total)} for row in rows if row.total is not None
    ]
    transaction.update_each(relations, ["id"], changed)


def _select_unsettled(
    transaction: Transaction, ids: Sequence[int] | None = None
) -> sa.Select[tuple[int, float | None]]:
    deleted = sa.select(knowledge_bases.c.id).where(knowledge_bases.c.deleted_at.is_not(None))
    trashed = transaction.scalars(deleted)
    weight: sa.ColumnElement[float] = relation_evidence.c.weight
    if trashed:
        in_trash = sa.select(chunks.c.seq).where(chunks.c.kb_id.in_(trashed))
        weight = sa.case((relation_evidence.c.chunk_seq.in_(in_trash), 0.0), else_=weight)
    summed = sa.select(relation_evidence.c.relation_id, sa.func.sum(weight).label("total"))
    own = ~relations.c.by_hand
    if ids is not None:
        summed = summed.where(relation_evidence.c.relation_id.in_(ids))
        own &= relations.c.id.in_(ids)
    totals = summed.group_by(relation_evidence.c.relation_id).subquery()
    total = totals.c.total
    return (
        sa.select(relations.c.id, total)
        .outerjoin(totals, totals.c.relation_id == relations.c.id)
        .where(own, total.is_(None) | (sa.func.abs(weight_of(total) - relations.c.weight) > _EQUAL))
    )


def weight_of(total: _Number) -> _Number:
    return total / (1 + total)


def differing_entities(transaction: Transaction, kb_id: str, described: Described) -> list[str]:
    """Return the ids of entities that `put_entities` would change, sorted."""
    added, changed, removed = _entity_changes(transaction, kb_id, described)
    return sorted({*added, *changed, *removed})


def put_entities(
    transaction: Transaction,
    kb_id: str,
    described: Described,
    ids: Sequence[str],
    names: Iterable[SubjectName],
) -> None:
    """Store entity descriptions from documents, except where people wrote one.

    Deletes descriptions of entities that are no longer mentioned or defined.
    """
    added, changed, removed = _entity_changes(transaction, kb_id, described, ids)
    add_subjects(transaction, names)
    existing = transaction.existing(subjects.c.id, added)
    now = datetime.now(UTC)
    rows = {
        id_: {"subject_id": id_, "type": kind, "description": text, "updated_at": now}
        for id_, (kind, text) in described.items()
    }
    unsigned = {"properties": {}, "made_by": "", "by_hand": False}
    transaction.insert(entities, [rows[id_] | unsigned for id_ in added if id_ in existing])
    transaction.update_each(entities, ["subject_id"], [rows[id_] for id_ in changed])
    transaction.delete(entities, transaction.is_in(entities.c.subject_id, removed))


def _entity_changes(
    transaction: Transaction, kb_id: str, described: Described, ids: Sequence[str] | None = None
) -> tuple[list[str], list[str], list[str]]:
    table = entities.c
    query = sa.select(table.subject_id, table.type, table.description, table.by_hand)
    used = sa.exists().where(annotation_subjects.c.subject_id == table.subject_id)
    unused = sa.select(table.subject_id).where(
        ~table.by_hand, ~used, table.subject_id.not_in(ends_by_hand(ids))
    )
    if ids is not None:
        query, unused = (each.where(table.subject_id.in_(ids)) for each in (query, unused))
    rows = {row.subject_id: row for row in transaction.execute(query)}
    elsewhere = _defined_elsewhere(transaction, kb_id, ids)
    candidates = described.keys() if ids is None else [id_ for id_ in ids if id_ in described]
    changed = [
        id_
        for id_ in candidates
        if id_ in rows
        and not rows[id_].by_hand
        and (rows[id_].type, rows[id_].description) != described[id_]
        and (described[id_][1] or id_ not in elsewhere)
    ]
    removed = [
        id_ for id_ in transaction.scalars(unused) if id_ not in described and id_ not in elsewhere
    ]
    return [id_ for id_ in candidates if id_ not in rows], changed, removed


def put_aliases(transaction: Transaction, aliases: Sequence[tuple[SubjectName, str]]) -> None:
    changes = alias_changes(transaction, dict(aliases))
    add_subjects(transaction, changes)
    for name, id_ in changes.items():
        transaction.update(subjects, subjects.c.id == name.id, alias_of=id_)


def alias_changes(
    transaction: Transaction, aliases: Mapping[SubjectName, str]
) -> dict[SubjectName, str]:
    """Return the aliases of a recipe that are not stored yet.

    Leaves out names that are already used for another entity, and entities that people changed.
    """
    by_id = {name.id: (name, id_of_entity) for name, id_of_entity in aliases.items() if name.key}
    ids = {*by_id, *(id_of_entity for _, id_of_entity in by_id.values())}
    of_subjects = sa.select(subjects.c.id, subjects.c.alias_of)
    roots = transaction.mapping(of_subjects.where(transaction.is_in(subjects.c.id, ids)))
    of_entities = sa.select(entities.c.subject_id, entities.c.by_hand)
    by_hand = transaction.mapping(of_entities.where(transaction.is_in(entities.c.subject_id, ids)))
    used_ids = by_hand.keys() | transaction.existing(annotation_subjects.c.subject_id, ids)
    changes: dict[SubjectName, str] = {}
    for id_, (name, id_of_entity) in by_id.items():
        target = roots.get(id_of_entity) or id_of_entity
        is_new = id_ not in used_ids and roots.get(id_) is None
        if is_new and id_of_entity in roots and target != id_ and not by_hand.get(target):
            changes[name] = target
    return changes


def _defined_elsewhere(transaction: Transaction, kb_id: str, ids: Sequence[str] | None) -> set[str]:
    query = (
        sa.select(relations.c.source_id)
        .join(relation_evidence, relation_evidence.c.relation_id == relations.c.id)
        .join(chunks, chunks.c.seq == relation_evidence.c.chunk_seq)
        .where(
            relations.c.source_kind == SubjectKind.ENTITY.value,
            relations.c.name == "defined_in",
            chunks.c.kb_id != kb_id,
        )
        .distinct()
    )
    if ids is not None:
        query = query.where(relations.c.source_id.in_(ids))
    return set(transaction.scalars(query))


def add_evidence(transaction: Transaction, facts: Sequence[ChunkRelation]) -> None:
    """Store evidence; skip chunks that no longer exist."""
    existing = transaction.existing(chunks.c.seq, {fact.seq for fact in facts})
    weights: defaultdict[tuple[tuple[str, ...], int], float] = defaultdict(float)
    for fact in facts:
        if fact.seq in existing:
            weights[fact[1:6], fact.seq] += fact.weight
    keys = dict.fromkeys(key for key, _ in weights)
    id_of = _ids(transaction, keys)
    now = datetime.now(UTC)
    missing = [key for key in keys if key not in id_of]
    if missing:
        plain = {"weight": 0.0, "made_by": BUILDER, "by_hand": False, "note": ""}
        defaults = plain | {"created_at": now, "seen_at": now}
        rows = [dict(zip(ENDS, key, strict=True)) | defaults for key in missing]
        transaction.insert(relations, rows)
        id_of |= _ids(transaction, missing)
    evidence = [
        {"relation_id": id_of[key], "chunk_seq": seq, "weight": weight}
        for (key, seq), weight in weights.items()
    ]
    transaction.insert(relation_evidence, evidence)


def _ids(transaction: Transaction, keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    key_set = set(keys)
    table, sources = relations.c, sorted({key[1] for key in key_set})
    query = sa.select(table.id, *(table[name] for name in ENDS)).where(
        table.source_kind.in_(["entity", "document"]), transaction.is_in(table.source_id, sources)
    )
    rows = map(tuple, transaction.execute(query))
    return {row[1:]: row[0] for row in rows if row[1:] in key_set}
