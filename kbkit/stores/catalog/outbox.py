"""Pending changes of the vector index, a numbered log of removed chunks, and the trash.

A deleted knowledge base keeps its rows under an invalid name; see `writing` for documents.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from kbkit import models
from kbkit.errors import ConflictError, NotFoundError
from kbkit.stores.backend import VectorPayload, suffix_of
from kbkit.stores.catalog import chunk_annotations, graph_writing
from kbkit.stores.catalog import knowledge_bases as knowledge_base_rows
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow, change
from kbkit.stores.catalog.schema import (
    chunks,
    deleted_documents,
    documents,
    dropped_collections,
    knowledge_bases,
    outbox,
    sources,
    vectors,
)
from kbkit.stores.catalog.schema import removed_chunks as log


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A chunk to store, or to remove if `vector` (packed) is ``None``."""

    id: int
    chunk_id: str
    seq: int | None
    vector: bytes | None
    payload: VectorPayload | None


def add(transaction: Transaction, kb_id: str, chunks: Mapping[str, int | None]) -> None:
    rows = [
        {"kb_id": kb_id, "chunk_seq": s, "chunk_id": chunk_id} for chunk_id, s in chunks.items()
    ]
    transaction.insert(outbox, rows)


def holds(transaction: Transaction, kb_id: str, count: int) -> bool:
    query = sa.select(outbox.c.id).where(outbox.c.kb_id == kb_id)
    return transaction.execute(query.limit(1).offset(count - 1)).first() is not None


def waiting(transaction: Transaction, kb_id: str) -> set[str]:
    return set(transaction.scalars(sa.select(outbox.c.chunk_id).where(outbox.c.kb_id == kb_id)))


def oldest(
    transaction: Transaction, kb_id: str, limit: int, *, payloads: bool
) -> list[OutboxEntry]:
    columns: list[Any] = [outbox.c.id, outbox.c.chunk_id, outbox.c.chunk_seq, vectors.c.vector]
    tables = outbox.outerjoin(vectors, vectors.c.chunk_seq == outbox.c.chunk_seq)
    if payloads:
        columns += [
            chunks.c.text,
            chunks.c.document_id,
            documents.c.document_type,
            documents.c.uri,
            # plain JSON, because `Json` refuses NULL, which the outer join may give
            sa.type_coerce(documents.c.tags, sa.JSON).label("tags"),
        ]
        tables = tables.outerjoin(chunks, chunks.c.seq == outbox.c.chunk_seq).outerjoin(
            documents, documents.c.id == chunks.c.document_id
        )
    query = sa.select(*columns).select_from(tables).where(outbox.c.kb_id == kb_id)
    rows = transaction.execute(query.order_by(outbox.c.id).limit(limit))
    return [
        OutboxEntry(row.id, row.chunk_id, row.chunk_seq, row.vector, _payload(row)) for row in rows
    ]


def _payload(row: Any) -> VectorPayload | None:
    if row.vector is None or "text" not in row._fields:
        return None
    shown = {name: getattr(row, name) for name in ("document_id", "document_type", "uri")}
    return VectorPayload(row.text, shown | {"tags": list(row.tags)})


def take(transaction: Transaction, row: KnowledgeBaseRow, entries: Sequence[OutboxEntry]) -> int:
    """Remove applied entries, which must be the oldest; return the new ``applied_seq``."""
    applied = max([row.applied_seq, *(entry.seq or 0 for entry in entries)])
    transaction.delete(outbox, outbox.c.kb_id == row.id, outbox.c.id <= entries[-1].id)
    change(transaction, row.id, applied_seq=applied)
    return applied


def applied_seqs(transaction: Transaction) -> dict[str, int]:
    query = sa.select(knowledge_bases.c.collection, knowledge_bases.c.applied_seq)
    return transaction.mapping(query)


def restart(transaction: Transaction, row: KnowledgeBaseRow, suffix: str | None = None) -> None:
    """Start an empty collection, queue all chunks for it, and mark the old one to be dropped.

    Other processes notice the new name.
    """
    if suffix is None:
        suffix = suffix_of(row.collection)
    transaction.insert_one(dropped_collections, name=row.collection)
    begin(transaction, row, suffix)


def begin(transaction: Transaction, row: KnowledgeBaseRow, suffix: str = "") -> None:
    """Start a collection as `restart` does, without dropping the old one."""
    name = ".".join(filter(None, (row.name, uuid4().hex[:8], suffix)))
    change(transaction, row.id, collection=name, applied_seq=0)
    transaction.delete(outbox, outbox.c.kb_id == row.id)
    names, columns = ["kb_id", "chunk_seq", "chunk_id"], (chunks.c.kb_id, chunks.c.seq, chunks.c.id)
    query = sa.select(*columns).where(chunks.c.kb_id == row.id).order_by(chunks.c.seq)
    transaction.execute(outbox.insert().from_select(names, query))


def dropped_names(transaction: Transaction) -> list[str]:
    return transaction.scalars(sa.select(dropped_collections.c.name))


def forget_dropped(transaction: Transaction, names: Sequence[str]) -> None:
    transaction.delete(dropped_collections, dropped_collections.c.name.in_(names))


_MIN_ENTRIES = 100_000
"""Newest entries that a knowledge base keeps."""


def note_removed(transaction: Transaction, kb_id: str, seqs: Collection[int]) -> None:
    transaction.insert(log, [{"kb_id": kb_id, "chunk_seq": seq} for seq in seqs])


def removed_since(transaction: Transaction, kb_id: str, last: int) -> tuple[list[int], int] | None:
    """Return chunks removed after an entry, and the last entry; ``None`` if some are unknown."""
    query = sa.select(log.c.id, log.c.chunk_seq).where(log.c.kb_id == kb_id, log.c.id >= last)
    entries = transaction.execute(query.order_by(log.c.id)).all()
    if last and (not entries or entries[0].id != last):
        return None
    seqs = [entry.chunk_seq for entry in entries if entry.id > last]
    return None if None in seqs else (seqs, entries[-1].id if entries else last)


def last_removed(transaction: Transaction, kb_id: str) -> int:
    """Return the number of the last entry; 0 for none."""
    query = sa.select(sa.func.coalesce(sa.func.max(log.c.id), 0)).where(log.c.kb_id == kb_id)
    return int(transaction.execute(query).scalar_one())


def is_removal_log_long(transaction: Transaction, kb_id: str) -> bool:
    """Whether the oldest entries should be deleted."""
    return transaction.count(log, log.c.kb_id == kb_id) > 2 * _MIN_ENTRIES


def forget_oldest_removals(transaction: Transaction, kb_id: str) -> None:
    query = sa.select(log.c.id).where(log.c.kb_id == kb_id).order_by(log.c.id.desc())
    first = transaction.execute(query.offset(_MIN_ENTRIES).limit(1)).scalar_one_or_none()
    if first is not None:
        transaction.delete(log, log.c.kb_id == kb_id, log.c.id < first)
        transaction.update(log, log.c.id == first, chunk_seq=None)


def put_knowledge_base(transaction: Transaction, row: KnowledgeBaseRow) -> None:
    """Move a knowledge base to the trash; mark its collection to be dropped."""
    transaction.insert_one(dropped_collections, name=row.collection)
    name = f"{row.name}.{row.id[:8]}"  # names of knowledge bases have no dot
    knowledge_base_rows.change(transaction, row.id, name=name, deleted_at=datetime.now(UTC))
    graph_writing.settle(transaction)


def knowledge_bases_in_trash(transaction: Transaction) -> list[models.DeletedKnowledgeBase]:
    columns = knowledge_bases.c
    of_kb = documents.c.kb_id == columns.id, documents.c.state != "gone"
    count = sa.select(sa.func.count()).select_from(documents).where(*of_kb).scalar_subquery()
    shown = columns.id, columns.name, columns.description, columns.deleted_at, count
    query = sa.select(*shown).where(columns.deleted_at.is_not(None))
    rows = transaction.execute(query.order_by(columns.deleted_at.desc()))
    return [
        models.DeletedKnowledgeBase(row[0], row[1].rpartition(".")[0], row[2], row[4], row[3])
        for row in rows
    ]


def undelete_knowledge_base(transaction: Transaction, name: str, to: str) -> KnowledgeBaseRow:
    """Restore the last deleted knowledge base with a name, or the one whose id starts with it."""
    in_trash = knowledge_bases_in_trash(transaction)
    matches = [kb for kb in in_trash if kb.name == name]
    matches += [kb for kb in in_trash if len(name) > 7 and kb.id.startswith(name)]
    if not matches:
        names = ", ".join(dict.fromkeys(kb.name for kb in in_trash)) or "none"
        raise NotFoundError(f"no knowledge base named {name!r} in the trash; there are: {names}")
    to = to or matches[0].name
    if to in knowledge_base_rows.names(transaction):
        raise ConflictError(
            f"a knowledge base named {to!r} exists; choose another name for the restored one"
        )
    knowledge_base_rows.change(transaction, matches[0].id, name=to, deleted_at=None)
    graph_writing.settle(transaction)
    row = knowledge_base_rows.get(transaction, to)
    forget_dropped(transaction, [row.collection])
    restart(transaction, row)
    return row


def empty(transaction: Transaction) -> tuple[int, list[str]]:
    """Empty the trash; return the number of documents and the ids of knowledge bases.

    Documents of existing sources keep a row without text, so that no refresh restores them.
    """
    kb_ids = [kb.id for kb in knowledge_bases_in_trash(transaction)]
    transaction.delete(knowledge_bases, knowledge_bases.c.id.in_(kb_ids))
    columns = deleted_documents.c
    count = transaction.count(deleted_documents, columns.content != "")
    source_ids = sa.select(sources.c.id)
    transaction.delete(
        deleted_documents, sa.or_(columns.source_id.is_(None), columns.source_id.not_in(source_ids))
    )
    transaction.update(deleted_documents, content="", metadata={})
    chunk_annotations.remove_unused_answers(transaction)
    return count, kb_ids
