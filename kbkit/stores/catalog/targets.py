"""What relations are between: whether it is there, and what it is called.

Functions of the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from kbkit.errors import NotFoundError
from kbkit.models import DocumentState, Target, TargetKind
from kbkit.stores.catalog import entities
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.entries_schema import entries as entries_table
from kbkit.stores.catalog.knowledge_schema import entities as entity_rows
from kbkit.stores.catalog.knowledge_schema import subjects
from kbkit.stores.catalog.packing import in_parts
from kbkit.stores.catalog.schema import chunks, documents, knowledge_bases

_TABLES = {
    TargetKind.ENTRY: sa.select(entries_table.c.id),
    TargetKind.CHUNK: sa.select(chunks.c.id)
    .join(knowledge_bases, knowledge_bases.c.id == chunks.c.kb_id)
    .where(knowledge_bases.c.deleted_at.is_(None)),
    TargetKind.DOCUMENT: sa.select(documents.c.id)
    .join(knowledge_bases, knowledge_bases.c.id == documents.c.kb_id)
    .where(
        knowledge_bases.c.deleted_at.is_(None), documents.c.state != DocumentState.GONE.value
    ),
}  # fmt: skip


def check_target(transaction: Transaction, target: Target) -> None:
    """Whether there is a target; files are taken at their word.

    Raises:
        NotFoundError: There is none.
    """
    if target.kind is TargetKind.ENTITY:
        entities.get(transaction, target.id)
        return
    if target.kind in _TABLES and target not in present(transaction, [target]):
        raise NotFoundError(f"no {target.kind.value} with id {target.id!r}")


def present(transaction: Transaction, targets: Collection[Target]) -> set[Target]:
    """Those of some targets that are there; files are taken at their word."""
    found = {target for target in targets if target.kind not in (*_TABLES, TargetKind.ENTITY)}
    for kind, query in _TABLES.items():
        ids = [target.id for target in targets if target.kind is kind]
        for part in in_parts(ids):
            rows = transaction.execute(query.where(query.selected_columns[0].in_(part)))
            found |= {Target(kind, known) for known in rows.scalars()}
    named = [target.id for target in targets if target.kind is TargetKind.ENTITY]
    for part in in_parts(named):
        # an id tells the kind; a condition on it would have SQLite read all entities
        query = (
            sa.select(subjects.c.id)
            .outerjoin(entity_rows, entity_rows.c.subject_id == subjects.c.id)
            .where(subjects.c.id.in_(part), entity_rows.c.deleted_at.is_(None))
        )
        rows = transaction.execute(query)
        found |= {Target(TargetKind.ENTITY, known) for known in rows.scalars()}
    return found


def labels(transaction: Transaction, targets: Collection[Target]) -> dict[Target, tuple[str, str]]:
    """What targets are called, and what they are: the type of an entity, else their kind."""
    found = {target: (target.id, target.kind.value) for target in targets}
    queries = {
        TargetKind.ENTITY: sa.select(subjects.c.id, subjects.c.name, entity_rows.c.type).outerjoin(
            entity_rows, entity_rows.c.subject_id == subjects.c.id
        ),
        TargetKind.DOCUMENT: sa.select(documents.c.id, documents.c.title),
        TargetKind.ENTRY: sa.select(entries_table.c.id, entries_table.c.title),
        TargetKind.CHUNK: sa.select(chunks.c.id, documents.c.title, chunks.c.heading_path).join(
            documents, documents.c.id == chunks.c.document_id
        ),
    }
    for kind, query in queries.items():
        ids = [target.id for target in targets if target.kind is kind]
        for part in in_parts(ids):
            for row in transaction.execute(query.where(query.selected_columns[0].in_(part))):
                name, shown = row[1], kind.value
                if kind is TargetKind.CHUNK:
                    name = " > ".join(row.heading_path) or name
                elif kind is TargetKind.ENTITY:
                    shown = row.type or TargetKind.ENTITY.value
                found[Target(kind, row.id)] = (name, shown)
    return found
