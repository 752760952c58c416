"""Entities: name subjects, and edits by people.

Rebuilding the graph changes only rows without ``by_hand``. Callers pass the entity that they saw as
``seen``, to detect changes by others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from kbkit import models
from kbkit.errors import ConflictError, NotFoundError, VersionConflictError
from kbkit.models import SubjectKind
from kbkit.stores.catalog.database import Transaction, containing
from kbkit.stores.catalog.schema import chunks
from kbkit.stores.catalog.subjects import CANONICAL, COUNTED, OWN, SubjectName, ends_by_hand, sweep
from kbkit.stores.catalog.subjects import aliases as alias_names
from kbkit.stores.catalog.workspace_schema import entities, merges, relations, subjects

_KIND = SubjectKind.ENTITY.value
_ROOTS = sa.select(subjects.c.id, subjects.c.alias_of)


def aliases_of(transaction: Transaction, ids: Collection[str] | None = None) -> dict[str, str]:
    """Map aliases, by default all, to their entities."""
    # only entities have aliases; with a condition on the kind, or IS NOT NULL, SQLite would read
    # all subjects
    if ids is None:
        return transaction.mapping(_ROOTS.where(subjects.c.alias_of > ""))
    rows = transaction.rows_in(_ROOTS, subjects.c.id, ids)
    return {row.id: row.alias_of for row in rows if row.alias_of}


def roots_of(transaction: Transaction, ids: Collection[str]) -> dict[str, str]:
    """Map the subjects among some ids to themselves, and aliases to their entities."""
    rows = transaction.rows_in(_ROOTS, subjects.c.id, ids)
    return {row.id: row.alias_of or row.id for row in rows}


def find(transaction: Transaction, name: SubjectName) -> str | None:
    canonical = sa.func.coalesce(subjects.c.alias_of, subjects.c.id)
    query = sa.select(canonical).outerjoin(entities, entities.c.subject_id == canonical)
    is_match = subjects.c.kind == _KIND, subjects.c.id.in_([name.name, name.id])
    alive = entities.c.deleted_at.is_(None)
    return transaction.execute(query.where(*is_match, alive).order_by(subjects.c.id)).scalar()


def group(transaction: Transaction, ids: Collection[str]) -> dict[str, str]:
    """Map entities and their aliases to the entities."""
    rows = transaction.rows_in(_ROOTS, subjects.c.alias_of, ids)
    return {id_: id_ for id_ in ids} | {row.id: row.alias_of for row in rows}


def get(transaction: Transaction, entity_id: str) -> models.Entity:
    matches = entities_of(transaction, [entity_id])
    if not matches:
        raise NotFoundError(f"no entity with id {entity_id!r}")
    return matches[0]


def entities_of(
    transaction: Transaction, ids: Sequence[str], *, counted: bool = True
) -> list[models.Entity]:
    rows = {row.id: row for row in transaction.rows_in(_WITH_ID, subjects.c.id, ids)}
    ordered = [rows[id_] for id_ in ids if id_ in rows]
    return _with_counts(transaction, ordered, counted=counted)


def list_entities(
    transaction: Transaction,
    *,
    like: str = "",
    types: Collection[str] = (),
    kb_ids: Collection[str] | None = None,
    limit: int | None = None,
) -> list[models.Entity]:
    """List entities, the most mentioned first."""
    mentioned = COUNTED.where(OWN.c.kind == _KIND)
    if kb_ids is not None:
        mentioned = mentioned.where(chunks.c.kb_id.in_(list(kb_ids)))
    counted = mentioned.subquery()
    query = _LISTED.join(counted, counted.c.canonical == subjects.c.id, isouter=kb_ids is None)
    if kb_ids is None:
        # entities without chunks are listed if a document defines them or a person made them
        of_entity = relations.c.source_kind == _KIND, relations.c.source_id == subjects.c.id
        is_definition = relations.c.name == "defined_in", relations.c.weight > 0
        defined = sa.exists().where(*of_entity, *is_definition)
        by_person = entities.c.by_hand | subjects.c.id.in_(ends_by_hand())
        query = query.where(counted.c.chunks.is_not(None) | defined | by_person)
    if like:
        matches = containing(OWN.c.name, like)
        query = query.where(subjects.c.id.in_(sa.select(CANONICAL).where(matches)))
    if types:
        query = query.where(entities.c.type.in_(list(types)))
    order = (sa.func.coalesce(counted.c.chunks, 0).desc(), subjects.c.name, subjects.c.id)
    return _with_counts(transaction, transaction.execute(query.order_by(*order).limit(limit)).all())


def ids_by_hand(transaction: Transaction) -> set[str]:
    return set(transaction.scalars(sa.select(entities.c.subject_id).where(entities.c.by_hand)))


def create(
    transaction: Transaction,
    name: SubjectName,
    values: Mapping[str, Any],
    aliases: Iterable[SubjectName],
    *,
    made_by: str,
) -> models.Entity:
    """Create an entity by hand, or restore a deleted one."""
    existing = find(transaction, name)
    if existing is not None:
        entity = get(transaction, existing)
        raise ConflictError(
            f"{name.name!r} already names the entity {entity.name!r}; change that one, or choose "
            "another name"
        )
    _add_subject(transaction, name, None)
    _put(transaction, name.id, made_by, values)
    _set_aliases(transaction, name.id, aliases)
    return get(transaction, name.id)


def update(
    transaction: Transaction,
    entity_id: str,
    values: Mapping[str, Any],
    *,
    name: SubjectName | None,
    aliases: Iterable[SubjectName] | None,
    expected: models.Entity | None,
    made_by: str,
) -> models.Entity:
    """Change some values of an entity, and its name and aliases unless ``None``."""
    _check_seen(transaction, entity_id, expected)
    _put(transaction, entity_id, made_by, values)
    if aliases is not None:
        _set_aliases(transaction, entity_id, aliases)
    if name is not None:
        if name.id != entity_id:
            _add_subject(transaction, name, entity_id)
        transaction.update(subjects, subjects.c.id == entity_id, name=name.name)
    return get(transaction, entity_id)


def delete(
    transaction: Transaction, entity_id: str, *, seen: models.Entity | None, made_by: str
) -> None:
    _check_seen(transaction, entity_id, seen)
    _put(transaction, entity_id, made_by, {"deleted_at": datetime.now(UTC)})


def _check_seen(transaction: Transaction, entity_id: str, expected: models.Entity | None) -> None:
    current = get(transaction, entity_id)
    if expected is not None:
        check_unchanged(current.name, current.updated_at, current.made_by, expected.updated_at)


def check_unchanged(
    what: str, changed: datetime | None, by: str, expected: datetime | None
) -> None:
    if changed != expected:
        who = f" by {by}" if by else ""
        when = f" at {changed:%Y-%m-%d %H:%M:%S} UTC" if changed else ""
        raise VersionConflictError(
            f"{what!r} was changed{who}{when}, after you read it; read it again and "
            "repeat your change"
        )


NODES = (
    sa.select(subjects.c.id, subjects.c.name, subjects.c.alias_of, *entities.c)
    .select_from(subjects)
    .outerjoin(entities, entities.c.subject_id == subjects.c.id)
)
"""Query: subjects with their entities, also deleted ones and aliases."""
_EXISTING = NODES.where(entities.c.deleted_at.is_(None))
_LISTED = _EXISTING.where(subjects.c.kind == _KIND, subjects.c.alias_of.is_(None))
# expressions, because for columns SQLite would read all entities
_WITH_ID = _EXISTING.where(
    subjects.c.kind.concat("") == _KIND, sa.func.coalesce(subjects.c.alias_of, "") == ""
)


def _with_counts(
    transaction: Transaction, rows: Sequence[Any], *, counted: bool = True
) -> list[models.Entity]:
    ids = [row.id for row in rows]
    names = alias_names(transaction, ids)
    members = transaction.is_in(OWN.c.id, ids) | transaction.is_in(OWN.c.alias_of, ids)
    rows_of_counts = transaction.execute(COUNTED.where(members)) if ids and counted else ()
    counts = {id_: (in_chunks, in_documents) for id_, in_chunks, in_documents in rows_of_counts}
    return [
        models.Entity(
            id=row.id,
            name=row.name,
            type=row.type or "",
            aliases=names.get(row.id, ()),
            description=row.description or "",
            properties=row.properties or {},
            chunks=counts.get(row.id, (0, 0))[0],
            documents=counts.get(row.id, (0, 0))[1],
            made_by=row.made_by or "",
            by_hand=bool(row.by_hand),
            updated_at=row.updated_at,
        )
        for row in rows
    ]


def _put(transaction: Transaction, entity_id: str, made_by: str, values: Mapping[str, Any]) -> None:
    signed = {"made_by": made_by, "by_hand": True, "updated_at": datetime.now(UTC)}
    new_values = {"deleted_at": None, **values, **signed}
    of_entity = entities.c.subject_id == entity_id
    if not transaction.execute(entities.update().where(of_entity).values(new_values)).rowcount:
        empty = {"type": "", "description": "", "properties": {}}
        transaction.insert_one(entities, subject_id=entity_id, **empty | new_values)


def _add_subject(transaction: Transaction, name: SubjectName, alias_of: str | None) -> None:
    row = transaction.first([subjects.c.alias_of], subjects.c.id == name.id)
    if row is None:
        transaction.insert_one(
            subjects, id=name.id, kind=_KIND, key=name.key, name=name.name, alias_of=alias_of
        )
    elif alias_of is not None and row.alias_of != alias_of:
        if find(transaction, name) is not None:
            raise ConflictError(
                f"{name.name!r} already names another entity; merge the two, or choose another name"
            )
        members = (subjects.c.id == name.id) | (subjects.c.alias_of == name.id)
        transaction.update(subjects, members, alias_of=alias_of)
    elif alias_of is None:
        of_subject = subjects.c.id == name.id
        transaction.update(subjects, of_subject, name=name.name, alias_of=None)


def _set_aliases(transaction: Transaction, entity_id: str, aliases: Iterable[SubjectName]) -> None:
    new_aliases = {alias.id: alias for alias in aliases if alias.id != entity_id}
    query = sa.select(subjects.c.id, subjects.c.name).where(subjects.c.alias_of == entity_id)
    stored_names = transaction.mapping(query)
    removed_ids = [id_ for id_ in stored_names if id_ not in new_aliases]
    merged = sa.select(merges.c.merged_id).where(
        merges.c.merged_id.in_(removed_ids), merges.c.kept_id == entity_id, merges.c.applied
    )
    for id_ in transaction.scalars(merged):
        raise ConflictError(f"{stored_names[id_]!r} was merged into this entity; undo that instead")
    transaction.update(subjects, subjects.c.id.in_(removed_ids), alias_of=None)
    sweep(transaction, removed_ids)
    for id_, alias in new_aliases.items():
        if id_ not in stored_names:
            _add_subject(transaction, alias, entity_id)
