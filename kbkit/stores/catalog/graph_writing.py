"""Keeps what a rebuild of the graph read: evidence, the weights that follow from it, entities.

Functions of the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.graph import CO_OCCURS, Fact, entity_names, texts
from kbkit.stores.catalog.knowledge_schema import (
    annotation_subjects,
    entities,
    related_chunks,
    relation_evidence,
    relations,
    subjects,
)
from kbkit.stores.catalog.packing import in_parts
from kbkit.stores.catalog.schema import chunks, knowledge_bases
from kbkit.stores.catalog.subjects import SubjectName, ends_by_hand

BUILDER = "kbkit"
"""Who made a relation that no person made."""


def put(
    transaction: Transaction, kb_id: str, read: Mapping[int, str], facts: Iterable[Fact]
) -> None:
    """Keep what chunks say in place of what they said.

    Args:
        transaction: A writing transaction.
        kb_id: The knowledge base.
        read: With what each was read, by ``chunks.seq``; those that went meanwhile are left out.
        facts: What they say, but for co-occurrence.
    """
    there: set[int] = set()
    for part in in_parts(sorted(read)):
        query = sa.select(chunks.c.seq).where(chunks.c.seq.in_(part))
        there |= set(transaction.execute(query).scalars())
        counted = sa.exists().where(
            relations.c.id == relation_evidence.c.relation_id, relations.c.name == CO_OCCURS
        )
        transaction.execute(
            relation_evidence.delete().where(
                relation_evidence.c.chunk_seq.in_(part),
                ~counted,
            )
        )
        transaction.execute(related_chunks.delete().where(related_chunks.c.chunk_seq.in_(part)))
    _add(transaction, [fact for fact in facts if fact.seq in there])
    if there:
        transaction.execute(
            related_chunks.insert(),
            [{"chunk_seq": seq, "kb_id": kb_id, "digest": read[seq]} for seq in sorted(there)],
        )


def put_co_occurrence(transaction: Transaction, kb_id: str, facts: Sequence[Fact]) -> None:
    """Keep which entities of a knowledge base stand together, in place of which did."""
    query = (
        sa.select(
            relation_evidence.c.relation_id,
            relation_evidence.c.chunk_seq,
            relation_evidence.c.weight,
            relations.c.source_id,
            relations.c.target_id,
        )
        .join(relations, relations.c.id == relation_evidence.c.relation_id)
        .join(chunks, chunks.c.seq == relation_evidence.c.chunk_seq)
        .where(chunks.c.kb_id == kb_id, relations.c.name == CO_OCCURS)
    )
    wanted = {(fact.seq, fact.source_id, fact.target_id): fact for fact in facts}
    gone: dict[int, list[int]] = {}
    for row in transaction.execute(query):
        key = (row.chunk_seq, row.source_id, row.target_id)
        if key in wanted and abs(wanted[key].weight - row.weight) < 1e-9:
            del wanted[key]
        else:
            gone.setdefault(row.relation_id, []).append(row.chunk_seq)
    for relation_id, seqs in gone.items():
        transaction.execute(
            relation_evidence.delete().where(
                relation_evidence.c.relation_id == relation_id,
                relation_evidence.c.chunk_seq.in_(seqs),
            )
        )
    there = set(texts(transaction, sorted({fact.seq for fact in wanted.values()})))
    _add(transaction, [fact for fact in wanted.values() if fact.seq in there])


def settle(transaction: Transaction, ids: Sequence[int] | None = None) -> None:
    """Have weights follow from the evidence that is left; what has none goes, unless by hand.

    Evidence in the trash weighs nothing, but is there when it comes back.

    Args:
        transaction: A writing transaction.
        ids: Only of these relations; by default of all.
    """
    deleted = sa.select(knowledge_bases.c.id).where(knowledge_bases.c.deleted_at.is_not(None))
    trashed = list(transaction.execute(deleted).scalars())
    weight: sa.ColumnElement[float] = relation_evidence.c.weight
    if trashed:
        in_trash = sa.select(chunks.c.seq).where(chunks.c.kb_id.in_(trashed))
        weight = sa.case((relation_evidence.c.chunk_seq.in_(in_trash), 0.0), else_=weight)
    total = sa.select(relation_evidence.c.relation_id, sa.func.sum(weight).label("s")).group_by(
        relation_evidence.c.relation_id
    )
    own = ~relations.c.by_hand
    if ids is not None:
        total = total.where(relation_evidence.c.relation_id.in_(ids))
        own &= relations.c.id.in_(ids)
    summed = total.subquery()
    query = (
        sa.select(relations.c.id, relations.c.weight, summed.c.s)
        .outerjoin(summed, summed.c.relation_id == relations.c.id)
        .where(own)
    )
    gone: list[int] = []
    changed: list[dict[str, Any]] = []
    for row in transaction.execute(query):
        if row.s is None:
            gone.append(row.id)
        elif abs(weight_of(row.s) - row.weight) > 1e-9:
            changed.append({"known": row.id, "new": weight_of(row.s)})
    for part in in_parts(gone):
        transaction.execute(relations.delete().where(relations.c.id.in_(part)))
    if changed:
        transaction.execute(
            relations.update()
            .where(relations.c.id == sa.bindparam("known"))
            .values(weight=sa.bindparam("new")),
            changed,
        )


def weight_of(total: float) -> float:
    """The weight of a relation whose evidence adds up to a number, 0 or above."""
    return total / (1 + total)


def put_entities(
    transaction: Transaction, kb_id: str, described: Mapping[str, tuple[str, str]]
) -> None:
    """Keep what the documents of a knowledge base say that entities are; what a person said stays.

    An entity that nothing names or defines any more is forgotten.

    Args:
        transaction: A writing transaction.
        kb_id: The knowledge base.
        described: Type and description of each of its entities, by id.
    """
    table = entities.c
    query = sa.select(table.subject_id, table.type, table.description, table.by_hand)
    rows = {row.subject_id: row for row in transaction.execute(query)}
    elsewhere = _defined_elsewhere(transaction, kb_id)
    there = set(entity_names(transaction))
    now = datetime.now(UTC)
    new: list[dict[str, Any]] = []
    changed: list[dict[str, Any]] = []
    for known, (type_, description) in described.items():
        if known not in rows:
            if known in there:
                new.append({"subject_id": known, "type": type_, "description": description,
                            "properties": {}, "made_by": "", "by_hand": False,
                            "updated_at": now})  # fmt: skip
            continue
        row = rows[known]
        if row.by_hand or (row.type, row.description) == (type_, description):
            continue
        if description or known not in elsewhere:
            changed.append({"known": known, "said_type": type_, "said": description, "now": now})
    if new:
        transaction.execute(entities.insert(), new)
    if changed:
        transaction.execute(
            entities.update()
            .where(table.subject_id == sa.bindparam("known"), ~table.by_hand)
            .values(
                type=sa.bindparam("said_type"),
                description=sa.bindparam("said"),
                updated_at=sa.bindparam("now"),
            ),
            changed,
        )
    gone = [known for known in rows if known not in described and known not in elsewhere]
    used = sa.exists().where(annotation_subjects.c.subject_id == table.subject_id)
    related = ends_by_hand()
    for part in in_parts(gone):
        transaction.execute(
            entities.delete().where(
                table.subject_id.in_(part), ~table.by_hand, ~used, table.subject_id.not_in(related)
            )
        )


def put_aliases(transaction: Transaction, aliases: Mapping[SubjectName, str]) -> None:
    """Have other names lead to entities, as a recipe says.

    A name that is spoken of as something of its own is left, and so is an entity that a person
    changed: what that is called is theirs to say.

    Args:
        transaction: A writing transaction.
        aliases: The id of an entity by another name of it.
    """
    wanted = {name.id: (name, known) for name, known in aliases.items() if name.key}
    by_hand, taken = set[str](), set[str]()
    there: dict[str, str | None] = {}
    for part in in_parts(sorted({*wanted, *(known for _, known in wanted.values())})):
        query = sa.select(subjects.c.id, subjects.c.alias_of).where(subjects.c.id.in_(part))
        there |= {row.id: row.alias_of for row in transaction.execute(query)}
        own = sa.select(entities.c.subject_id, entities.c.by_hand).where(
            entities.c.subject_id.in_(part)
        )
        for row in transaction.execute(own):
            taken.add(row.subject_id)
            by_hand |= {row.subject_id} if row.by_hand else set()
        spoken = sa.select(annotation_subjects.c.subject_id).where(
            annotation_subjects.c.subject_id.in_(part)
        )
        taken |= set(transaction.execute(spoken.distinct()).scalars())
    canonical = {known: of or known for known, of in there.items()}
    new: list[dict[str, Any]] = []
    for id_, (name, known) in wanted.items():
        target = canonical.get(known)
        if target is None or target in by_hand or target == id_ or id_ in taken:
            continue
        if id_ not in there:
            new.append({"id": id_, "kind": name.kind.value, "key": name.key,
                        "name": name.name, "alias_of": target})  # fmt: skip
        elif there[id_] is None:
            own_row = subjects.c.id == id_
            transaction.execute(subjects.update().where(own_row).values(alias_of=target))
    if new:
        transaction.execute(subjects.insert(), new)


def _defined_elsewhere(transaction: Transaction, kb_id: str) -> set[str]:
    """Ids of the entities that documents of other knowledge bases define."""
    query = (
        sa.select(relations.c.source_id)
        .join(relation_evidence, relation_evidence.c.relation_id == relations.c.id)
        .join(chunks, chunks.c.seq == relation_evidence.c.chunk_seq)
        .where(relations.c.name == "defined_in", chunks.c.kb_id != kb_id)
        .distinct()
    )
    return set(transaction.execute(query).scalars())


def _add(transaction: Transaction, facts: Sequence[Fact]) -> None:
    """Keep evidence of relations, made where they are missing; that of one chunk adds up."""
    weights: dict[tuple[tuple[str, ...], int], float] = {}
    for fact in facts:
        key = (fact[1:6], fact.seq)
        weights[key] = weights.get(key, 0.0) + fact.weight
    wanted = dict.fromkeys(key for key, _ in weights)
    known = _ids(transaction, wanted)
    now = datetime.now(UTC)
    missing = [key for key in wanted if key not in known]
    if missing:
        columns = ("source_kind", "source_id", "name", "target_kind", "target_id")
        same = {"weight": 0.0, "made_by": BUILDER, "by_hand": False, "note": "", "created_at": now,
                "seen_at": now}  # fmt: skip
        rows = [dict(zip(columns, key, strict=True)) | same for key in missing]
        transaction.execute(relations.insert(), rows)
        known |= _ids(transaction, missing)
    if weights:
        transaction.execute(
            relation_evidence.insert(),
            [
                {"relation_id": known[key], "chunk_seq": seq, "weight": weight}
                for (key, seq), weight in weights.items()
            ],
        )


def _ids(transaction: Transaction, keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    """The numbers of relations by their ends and names, of those that there are."""
    wanted = set(keys)
    found: dict[tuple[str, ...], int] = {}
    for row in _from(transaction, sorted({key[1] for key in wanted})):
        if row[1:] in wanted:
            found[row[1:]] = row[0]
    return found


def _from(transaction: Transaction, source_ids: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    table = relations.c
    query = sa.select(
        table.id, table.source_kind, table.source_id, table.name, table.target_kind, table.target_id
    )
    for part in in_parts(source_ids):
        for row in transaction.execute(
            query.where(table.source_kind.in_(["entity", "document"]), table.source_id.in_(part))
        ):
            yield tuple(row)
