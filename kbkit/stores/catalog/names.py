"""Names in documents, gazetteers and merges of entities. Functions of a transaction."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from kbkit.errors import ConflictError, NotFoundError
from kbkit.models import Document, DocumentState, EntityType, Name, Target, TargetKind
from kbkit.stores.catalog import entities
from kbkit.stores.catalog.database import DOCUMENT_COLUMNS, Transaction, alive, place_of
from kbkit.stores.catalog.reading import document_of
from kbkit.stores.catalog.schema import chunks, documents, knowledge_bases
from kbkit.stores.catalog.workspace_schema import (
    document_names,
    gazetteers,
    merges,
    named_documents,
    subjects,
)
from kbkit.stores.catalog.workspace_schema import entities as entity_rows
from kbkit.stores.catalog.workspace_schema import entries as entries_table

_ROWS, _FIELDS = "\x1e", "\x1f"
"""Separators of spellings and names, which contain no control characters."""


class GivenName(NamedTuple):
    """A name in documents with its most frequent type; `defined` counts definitions."""

    name: str
    type: EntityType
    confirmed: bool
    documents: int
    defined: int


def unread(transaction: Transaction, kb_id: str, revision: int, limit: int) -> list[Document]:
    current = sa.select(named_documents.c.document_id).where(
        named_documents.c.document_id == documents.c.id, named_documents.c.revision == revision
    )
    rows = transaction.execute(
        sa.select(*DOCUMENT_COLUMNS).where(*alive(kb_id), ~current.exists()).limit(limit)
    )
    return [document_of(row) for row in rows]


def put(
    transaction: Transaction,
    kb_id: str,
    revision: int,
    read: Iterable[tuple[Document, Sequence[Name]]],
) -> None:
    by_id = {document.id: (document.content_hash, names_found) for document, names_found in read}
    rows = transaction.execute(
        sa.select(documents.c.id, documents.c.content_hash).where(
            transaction.is_in(documents.c.id, list(by_id))
        )
    )
    same = [row.id for row in rows if by_id[row.id][0] == row.content_hash]
    remove(transaction, same)
    names = [
        {
            "document_id": document_id,
            "kb_id": kb_id,
            "name": name.name,
            "type": name.type.value,
            "defines": name.defines,
            "anchor": name.anchor,
            "confirmed": name.confirmed,
        }
        for document_id in same
        for name in {name.name: name for name in by_id[document_id][1]}.values()
    ]
    transaction.insert(document_names, names)
    transaction.insert(
        named_documents,
        [
            {"document_id": document_id, "kb_id": kb_id, "revision": revision}
            for document_id in same
        ],
    )


def remove(transaction: Transaction, document_ids: Collection[str]) -> None:
    if document_ids:
        for table in (document_names, named_documents):
            transaction.delete(table, transaction.is_in(table.c.document_id, document_ids))


def given(transaction: Transaction, kb_id: str) -> list[GivenName]:
    """List the names in a knowledge base, sorted."""
    table = document_names.c
    rows = transaction.execute(
        sa.select(
            table.name,
            table.type,
            sa.func.max(sa.cast(table.confirmed, sa.Integer)),
            sa.func.count(),
            sa.func.sum(sa.cast(table.defines, sa.Integer)),
        )
        .where(table.kb_id == kb_id)
        .group_by(table.name, table.type)
        .order_by(table.name)
    )
    by_name: dict[str, list[tuple[str, bool, int, int]]] = {}
    for name, kind, confirmed, count, defined in rows:
        by_name.setdefault(name, []).append((kind, bool(confirmed), int(count), int(defined)))
    return [
        GivenName(
            name,
            EntityType(max(counts, key=lambda each: (each[3], each[2], each[0]))[0]),
            any(confirmed for _, confirmed, _, _ in counts),
            sum(count for _, _, count, _ in counts),
            sum(defined for _, _, _, defined in counts),
        )
        for name, counts in by_name.items()
    ]


def defining(transaction: Transaction, kb_id: str, names: Collection[str]) -> set[str]:
    table = document_names.c
    wanted = [name.lower() for name in names]
    rows = transaction.execute(
        sa.select(table.document_id).where(
            table.kb_id == kb_id, table.defines, sa.func.lower(table.name).in_(wanted)
        )
    )
    return set(rows.scalars())


def defined_in(
    transaction: Transaction, kb_ids: Collection[str], names: Collection[str], limit: int
) -> list[tuple[str, int, str]]:
    table = document_names.c
    headings = sa.cast(chunks.c.heading_path, sa.Text)
    below = [
        (table.name == name)
        & (place_of(sa.func.lower(headings), json.dumps(name)[1:-1].lower()) > 0)
        for name in names
    ]
    query = (
        sa.select(table.name, chunks.c.seq, chunks.c.kb_id, sa.func.length(headings))
        .join(documents, documents.c.id == chunks.c.document_id)
        .join(document_names, table.document_id == documents.c.id)
        .where(
            table.kb_id.in_(list(kb_ids)),
            table.name.in_(list(names)),
            table.defines,
            documents.c.state != DocumentState.GONE.value,
            sa.or_((table.anchor != "") & (chunks.c.anchor == table.anchor), *below),
        )
        .distinct()
        .order_by(sa.func.length(headings), chunks.c.seq)
    )
    return [(row.name, row.seq, row.kb_id) for row in transaction.execute(query.limit(limit))]


def annotated_with(transaction: Transaction, kb_id: str) -> dict[str, tuple[str, ...]]:
    """Map spellings to the names that chunks were last searched for."""
    query = sa.select(gazetteers.c.names).where(gazetteers.c.kb_id == kb_id)
    stored = transaction.execute(query).scalar()
    text = zlib.decompress(stored).decode("utf-8", "surrogatepass") if stored else ""
    rows = (row.split(_FIELDS) for row in text.split(_ROWS) if row)
    return {spelling: tuple(names) for spelling, *names in rows}


def packed(surfaces: Mapping[str, Sequence[str]]) -> bytes:
    text = _ROWS.join(_FIELDS.join((spelling, *names)) for spelling, names in surfaces.items())
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 1)


def note_annotated(transaction: Transaction, kb_id: str, surfaces: bytes) -> None:
    transaction.delete(gazetteers, gazetteers.c.kb_id == kb_id)
    transaction.insert_one(gazetteers, kb_id=kb_id, names=surfaces)


def merge(transaction: Transaction, kept_id: str, merged_id: str, *, made_by: str) -> None:
    """Make the entity ``merged_id`` an alias of ``kept_id``."""
    _check(transaction, kept_id, merged_id)
    below = sa.select(subjects.c.id).where(subjects.c.alias_of == merged_id)
    moved = sorted(transaction.scalars(below))
    _decide(transaction, kept_id, merged_id, applied=True, moved=moved, made_by=made_by)
    transaction.update(subjects, subjects.c.id.in_([merged_id, *moved]), alias_of=kept_id)


def refuse(transaction: Transaction, kept_id: str, merged_id: str, *, made_by: str) -> None:
    """Record that two entities differ, so that merging them is not suggested again."""
    _check(transaction, kept_id, merged_id)
    _decide(transaction, kept_id, merged_id, applied=False, moved=[], made_by=made_by)


def undo(transaction: Transaction, pair: tuple[str, str]) -> None:
    for row in of_pair(transaction, pair):
        if row.applied:
            kept = transaction.execute(
                sa.select(subjects.c.alias_of).where(subjects.c.id == row.kept_id)
            ).scalar_one()
            if kept is not None:
                raise ConflictError(
                    "the entity that was kept has been merged into another since; undo that first"
                )
            transaction.update(
                subjects,
                subjects.c.id.in_(row.moved),
                subjects.c.alias_of == row.kept_id,
                alias_of=row.merged_id,
            )
            transaction.update(
                subjects,
                subjects.c.id == row.merged_id,
                subjects.c.alias_of == row.kept_id,
                alias_of=None,
            )
        _forget(transaction, row.kept_id, row.merged_id)


def of_pair(transaction: Transaction, pair: Sequence[str]) -> list[Any]:
    both = merges.c.kept_id.in_(pair) & merges.c.merged_id.in_(pair)
    return list(transaction.execute(sa.select(*merges.c).where(both)).all())


def put_back(transaction: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
    """Restore earlier decisions."""
    transaction.insert(merges, list(rows))


def decided(transaction: Transaction) -> set[frozenset[str]]:
    rows = transaction.execute(sa.select(merges.c.kept_id, merges.c.merged_id))
    return {frozenset((row.kept_id, row.merged_id)) for row in rows}


def _check(transaction: Transaction, kept_id: str, merged_id: str) -> None:
    aliases = entities.aliases_of(transaction)
    if aliases.get(kept_id, kept_id) == aliases.get(merged_id, merged_id):
        raise ConflictError("the two are one entity already")
    for each in (kept_id, merged_id):
        if each in aliases:
            raise NotFoundError(f"{each!r} is another name of an entity; name that entity itself")
        entities.get(transaction, each)


def _decide(
    transaction: Transaction,
    kept_id: str,
    merged_id: str,
    *,
    applied: bool,
    moved: list[str],
    made_by: str,
) -> None:
    _forget(transaction, kept_id, merged_id)
    _forget(transaction, merged_id, kept_id)
    transaction.insert_one(
        merges,
        kept_id=kept_id,
        merged_id=merged_id,
        applied=applied,
        moved=moved,
        made_by=made_by,
        decided_at=datetime.now(UTC),
    )


def _forget(transaction: Transaction, kept_id: str, merged_id: str) -> None:
    transaction.delete(merges, merges.c.kept_id == kept_id, merges.c.merged_id == merged_id)


_TABLES = {
    TargetKind.ENTRY: sa.select(entries_table.c.id),
    TargetKind.CHUNK: sa.select(chunks.c.id)
    .join(knowledge_bases, knowledge_bases.c.id == chunks.c.kb_id)
    .where(knowledge_bases.c.deleted_at.is_(None)),
    TargetKind.DOCUMENT: sa.select(documents.c.id)
    .join(knowledge_bases, knowledge_bases.c.id == documents.c.kb_id)
    .where(knowledge_bases.c.deleted_at.is_(None), documents.c.state != DocumentState.GONE.value),
}


def check_target(transaction: Transaction, target: Target) -> None:
    """Raise `NotFoundError` if a target does not exist; files are not checked."""
    if target.kind is TargetKind.ENTITY:
        entities.get(transaction, target.id)
        return
    if target.kind in _TABLES and target not in present(transaction, [target]):
        raise NotFoundError(f"no {target.kind.value} with id {target.id!r}")


def present(transaction: Transaction, targets: Collection[Target]) -> set[Target]:
    """Return the targets that exist; files are not checked."""
    existing = {target for target in targets if target.kind not in (*_TABLES, TargetKind.ENTITY)}
    for kind, query in _TABLES.items():
        ids = [target.id for target in targets if target.kind is kind]
        if ids:
            rows = transaction.execute(
                query.where(transaction.is_in(query.selected_columns[0], ids))
            )
            existing |= {Target(kind, id_) for id_ in rows.scalars()}
    named = [target.id for target in targets if target.kind is TargetKind.ENTITY]
    # no condition on the kind, for which SQLite would read all entities
    query = (
        sa.select(subjects.c.id)
        .outerjoin(entity_rows, entity_rows.c.subject_id == subjects.c.id)
        .where(transaction.is_in(subjects.c.id, named), entity_rows.c.deleted_at.is_(None))
    )
    rows = transaction.execute(query)
    return existing | {Target(TargetKind.ENTITY, id_) for id_ in rows.scalars()}


def labels(transaction: Transaction, targets: Collection[Target]) -> dict[Target, tuple[str, str]]:
    """Map targets to label and kind (the type of an entity)."""
    label_of = {target: (target.id, target.kind.value) for target in targets}
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
        own = transaction.is_in(query.selected_columns[0], ids)
        for row in transaction.execute(query.where(own)) if ids else ():
            name, shown = row[1], kind.value
            if kind is TargetKind.CHUNK:
                name = " > ".join(row.heading_path) or name
            elif kind is TargetKind.ENTITY:
                shown = row.type or TargetKind.ENTITY.value
            label_of[Target(kind, row.id)] = (name, shown)
    return label_of
