"""Relations between any two targets, with the chunks that support them. Functions of a transaction.

A weight is ``s / (1 + s)``, s being the sum over its evidence: more evidence, more weight, below 1.
That of a relation which a person made or changed is what the person says. A deleted one keeps its
row, so that no rebuild brings it back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from kbkit.errors import ConflictError, NotFoundError
from kbkit.models import Relation, Target, TargetKind
from kbkit.stores.catalog import entities
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.edges import at_targets, visible_ids
from kbkit.stores.catalog.knowledge_schema import relation_evidence, relations
from kbkit.stores.catalog.packing import in_parts
from kbkit.stores.catalog.schema import chunks, knowledge_bases
from kbkit.stores.catalog.targets import check_target


def relate(
    transaction: Transaction,
    source: Target,
    name: str,
    target: Target,
    *,
    weight: float,
    note: str,
    made_by: str,
    expected: datetime | None = None,
) -> Relation:
    """Make a relation by hand, or change what is said of one; a deleted one comes back.

    Args:
        transaction: A writing transaction.
        source: Where it begins.
        name: What it says of the two.
        target: Where it ends.
        weight: How strong it is, above 0 to 1.
        note: Anything else to say.
        made_by: Who makes it.
        expected: Its ``seen_at`` when it was looked at.

    Raises:
        NotFoundError: An end is not there.
        ConflictError: A person made it already, and ``expected`` is not when that was.
    """
    for end in (source, target):
        check_target(transaction, end)
    values = {
        "source_kind": source.kind.value, "source_id": source.id, "name": name,
        "target_kind": target.kind.value, "target_id": target.id,
    }  # fmt: skip
    now = datetime.now(UTC)
    said = {
        "weight": weight, "note": note, "made_by": made_by, "by_hand": True, "seen_at": now,
        "deleted_at": None,
    }  # fmt: skip
    same = sa.and_(*(relations.c[column] == value for column, value in values.items()))
    row = transaction.execute(sa.select(*relations.c).where(same)).first()
    if row is None:
        made = relations.insert().values(**values, **said, created_at=now)
        known = transaction.execute(made.returning(relations.c.id)).scalar_one()
        return get(transaction, known)
    there = row.deleted_at is None
    if there and row.by_hand and expected is None and (row.weight, row.note) != (weight, note):
        when = f"{row.seen_at:%Y-%m-%d %H:%M:%S} UTC"
        raise ConflictError(
            f"{row.made_by or 'somebody'} made this relation at {when}, with weight "
            f"{row.weight:g} and note {row.note!r}; to change it, look at it and hand over its "
            "`seen_at` as `expected`"
        )
    if expected is not None:
        entities.check_unchanged(name, row.seen_at, row.made_by, expected)
    transaction.execute(relations.update().where(relations.c.id == row.id).values(**said))
    return get(transaction, row.id)


def get(transaction: Transaction, relation_id: int) -> Relation:
    """One relation by its number.

    Raises:
        NotFoundError: There is none, or a person deleted it.
    """
    found = of(transaction, [relation_id])
    if not found:
        raise NotFoundError(f"no relation with id {relation_id!r}")
    return found[0]


def of(transaction: Transaction, ids: Sequence[int], evidence: int = 5) -> list[Relation]:
    """Some relations by number, in that order, each with its best evidence.

    Ends that were merged into an entity stand as that entity.
    """
    rows: dict[int, Any] = {}
    for part in in_parts(ids):
        query = sa.select(*relations.c).where(relations.c.id.in_(part), _THERE)
        rows |= {row.id: row for row in transaction.execute(query)}
    support: dict[int, list[str]] = {}
    for part in in_parts(list(rows)):
        query = (
            sa.select(relation_evidence.c.relation_id, chunks.c.id)
            .join(chunks, chunks.c.seq == relation_evidence.c.chunk_seq)
            .join(knowledge_bases, knowledge_bases.c.id == chunks.c.kb_id)
            .where(relation_evidence.c.relation_id.in_(part))
            .where(knowledge_bases.c.deleted_at.is_(None))
            .order_by(relation_evidence.c.weight.desc(), chunks.c.id)
        )
        for relation_id, chunk_id in transaction.execute(query):
            listed_ = support.setdefault(relation_id, [])
            if len(listed_) < evidence:
                listed_.append(chunk_id)
    aliases = entities.aliases_of(transaction)
    return [
        _relation(rows[known], aliases, support.get(known, ())) for known in ids if known in rows
    ]


def listed(
    transaction: Transaction,
    *,
    target: Target | None = None,
    name: str | None = None,
    made_by: str | None = None,
    limit: int | None = None,
) -> list[Relation]:
    """Relations, the strongest first.

    Args:
        transaction: Reads.
        target: Only those that begin or end there, or at what was merged into it.
        name: Only of this name.
        made_by: Only by this person, or by what finds them.
        limit: Most relations.
    """
    query = sa.select(relations.c.id).where(_THERE)
    if target is not None:
        query = query.where(at_targets(transaction, [target]))
    if name is not None:
        query = query.where(relations.c.name == name)
    if made_by is not None:
        query = query.where(relations.c.made_by == made_by)
    ids = list(
        transaction.execute(query.order_by(relations.c.weight.desc(), relations.c.id)).scalars()
    )
    visible = visible_ids(transaction, ids)
    return of(transaction, [known for known in ids if known in visible][:limit])


def delete(transaction: Transaction, seen: Relation, *, made_by: str) -> None:
    """Delete a relation, as it was seen, for good: no rebuild brings it back, but `relate` does.

    Raises:
        NotFoundError: There is no such relation.
        ConflictError: Somebody changed it meanwhile.
    """
    before = get(transaction, seen.id)
    entities.check_unchanged(before.name, before.seen_at, before.made_by, seen.seen_at)
    now = datetime.now(UTC)
    transaction.execute(
        relations.update()
        .where(relations.c.id == seen.id)
        .values(deleted_at=now, seen_at=now, by_hand=True, made_by=made_by)
    )


def ends(transaction: Transaction, relation_id: int) -> tuple[str, ...]:
    """Kind and id of the source, name, kind and id of the target of a relation as it is kept.

    Raises:
        NotFoundError: There is none, or a person deleted it.
    """
    get(transaction, relation_id)
    columns = ("source_kind", "source_id", "name", "target_kind", "target_id")
    query = sa.select(*(relations.c[name] for name in columns))
    return tuple(transaction.execute(query.where(relations.c.id == relation_id)).one())


_THERE = relations.c.deleted_at.is_(None) & (relations.c.weight > 0)
"""Of relations that are not deleted, those that more than the trash supports."""


def _relation(row: Any, aliases: Mapping[str, str], evidence: Sequence[str]) -> Relation:
    """The relation of a row; ends that are other names of an entity are that entity."""

    def end(kind: str, known: str) -> Target:
        of = TargetKind(kind)
        return Target(of, aliases.get(known, known) if of is TargetKind.ENTITY else known)

    return Relation(
        id=row.id,
        source=end(row.source_kind, row.source_id),
        name=row.name,
        target=end(row.target_kind, row.target_id),
        weight=row.weight,
        evidence=tuple(evidence),
        made_by=row.made_by,
        created_at=row.created_at,
        seen_at=row.seen_at,
        note=row.note,
        by_hand=row.by_hand,
    )
