"""Write documents with their chunks, terms, vectors and outbox entries; delete them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from kbkit import models
from kbkit.models.values import from_dict
from kbkit.stores.catalog import (
    chunk_annotations,
    knowledge_bases,
    outbox,
    reading,
    subjects,
    summaries,
)
from kbkit.stores.catalog.database import CHUNK_COLUMNS, DOCUMENT_COLUMNS, Transaction, alive
from kbkit.stores.catalog.schema import (
    chunks,
    deleted_documents,
    documents,
    pages,
    sources,
    vectors,
)
from kbkit.stores.catalog.summaries import NewSummary


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document to store, whose type and tags already include `labels` by a person."""

    document: models.Document
    chunks: Sequence[NewChunk]
    source_id: str | None
    run_id: int | None
    labels: models.Labels
    is_index: bool = False
    summary: NewSummary | None = None


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """State of a stored document, which decides whether to store it again."""

    content_hash: str
    state: models.DocumentState
    labels: models.Labels


@dataclass(frozen=True, slots=True)
class ChunkChanges:
    """Numbers of added and removed chunks."""

    added: int = 0
    removed: int = 0


def ids_by_uri(transaction: Transaction, kb_id: str, uris: Collection[str]) -> dict[str, str]:
    """Map URIs to ids, which are derived from the first URI and do not change with it."""
    # no covering index has the source, so SQLite looks up each URI instead of walking over all
    columns = documents.c.uri, documents.c.id, documents.c.source_id
    given = documents.c.kb_id == kb_id, transaction.is_in(documents.c.uri, uris)
    return {row.uri: row.id for row in transaction.execute(sa.select(*columns).where(*given))}


def stored_versions(
    transaction: Transaction, document_ids: Collection[str]
) -> dict[str, StoredVersion]:
    columns = documents.c
    labels = columns.given_type, columns.given_tags
    query = sa.select(columns.id, columns.content_hash, columns.state, *labels)
    return {
        row.id: StoredVersion(row.content_hash, models.DocumentState(row.state), labels_of(row))
        for row in transaction.execute(query.where(transaction.is_in(columns.id, document_ids)))
    }


def labels(transaction: Transaction, kb_id: str, uri: str) -> models.Labels:
    """Return a document's labels; empty for unknown URIs."""
    columns = documents.c.given_type, documents.c.given_tags
    row = transaction.first(columns, documents.c.kb_id == kb_id, documents.c.uri == uri)
    return models.Labels() if row is None else labels_of(row)


def replace_documents(
    transaction: Transaction, kb_id: str, new: Sequence[NewDocument], packed: Mapping[str, bytes]
) -> ChunkChanges:
    """Store documents, replacing earlier versions; unchanged chunks keep row and vector."""
    if not new:
        return ChunkChanges()
    stored = sa.select(documents.c.id, documents.c.document_type, documents.c.tags).where(
        transaction.is_in(documents.c.id, [entry.document.id for entry in new])
    )
    before = {row.id: row for row in transaction.execute(stored)}
    fresh = [entry for entry in new if entry.document.id not in before]
    existing = [entry for entry in new if entry.document.id in before]
    transaction.insert(documents, [_values(kb_id, entry) for entry in fresh])
    changes = [_values(kb_id, entry) for entry in existing]
    for values in changes:
        del values["kb_id"], values["uri"]
    transaction.update_each(documents, ["id"], changes)
    _forget_derived(transaction, [entry.document.id for entry in existing])
    added = [chunk for entry in fresh for chunk in entry.chunks]
    relabelled: dict[str, int | None] = {}
    removed = 0
    for entry in existing:
        row, document = before[entry.document.id], entry.document
        new_chunks, unchanged, dropped = _difference(transaction, kb_id, document.id, entry.chunks)
        added += new_chunks
        removed += dropped
        if (row.document_type, row.tags) != (document.document_type, list(document.tags)):
            relabelled |= unchanged
    _add_chunks(transaction, kb_id, added, packed)
    _add_summaries(transaction, kb_id, new)
    outbox.add(transaction, kb_id, relabelled)
    knowledge_bases.touch(transaction, kb_id)
    return ChunkChanges(added=len(added), removed=removed)


def _add_summaries(transaction: Transaction, kb_id: str, new: Sequence[NewDocument]) -> None:
    # those with the answer of a language model are made again with it, after the ingest
    expanded = summaries.expansions_of(transaction, [entry.document.id for entry in new])
    plain = {
        entry.document.id: entry.summary
        for entry in new
        if entry.summary and entry.document.id not in expanded
    }
    summaries.put(transaction, kb_id, summaries.REVISION, plain)


def _forget_derived(transaction: Transaction, document_ids: Sequence[str]) -> None:
    summaries.remove(transaction, document_ids)
    subjects.remove_names(transaction, document_ids)
    chunk_annotations.remove_of_documents(transaction, document_ids)


def _values(kb_id: str, entry: NewDocument) -> dict[str, Any]:
    document = entry.document
    return {
        **{column.name: getattr(document, column.name) for column in DOCUMENT_COLUMNS},
        "metadata": dict(document.metadata),
        "kb_id": kb_id,
        "source_id": entry.source_id,
        "run_id": entry.run_id,
        "is_index": entry.is_index,
        "given_type": entry.labels.document_type,
        "given_tags": None if entry.labels.tags is None else list(entry.labels.tags),
    }


@dataclass(frozen=True, slots=True)
class Touch:
    """A check of an unchanged or unreadable document; ``None`` keeps the fetch time."""

    document_id: str
    state: models.DocumentState
    fetched_at: datetime | None
    run_id: int | None


def touch_documents(transaction: Transaction, touches: Iterable[Touch]) -> None:
    rows: list[dict[str, Any]] = []
    for touch in touches:
        rows.append({"id": touch.document_id, "state": touch.state.value, "run_id": touch.run_id})
        if touch.fetched_at is not None:
            rows[-1]["fetched_at"] = touch.fetched_at
    transaction.update_each(documents, ["id"], rows)


def describe_documents(transaction: Transaction, kb_id: str, lines: Mapping[str, str]) -> None:
    """Replace descriptions by document id; delete the summaries."""
    rows = [{"id": document_id, "description": line} for document_id, line in lines.items()]
    transaction.update_each(documents, ["id"], rows)
    summaries.remove(transaction, lines)
    knowledge_bases.touch(transaction, kb_id)


def retire_document(transaction: Transaction, kb_id: str, document_id: str) -> ChunkChanges:
    """Mark a document as gone and remove its chunks; keep text and ratings."""
    query = sa.select(chunks.c.seq, chunks.c.id).where(chunks.c.document_id == document_id)
    rows = transaction.execute(query).all()
    _remove_chunks(transaction, kb_id, rows)
    _forget_derived(transaction, [document_id])
    # without a hash, so that a returning document is stored in full
    gone = {"state": models.DocumentState.GONE.value, "content_hash": ""}
    transaction.update(documents, documents.c.id == document_id, **gone)
    knowledge_bases.touch(transaction, kb_id)
    return ChunkChanges(removed=len(rows))


def delete_document(transaction: Transaction, kb_id: str, document_id: str) -> None:
    reading.get_document(transaction, kb_id, document_id)
    row = transaction.execute(sa.select(*_COLUMNS).where(documents.c.id == document_id)).one()
    forget_deleted(transaction, kb_id, [row.uri])
    values = {**row._mapping, "deleted_at": datetime.now(UTC)}
    transaction.insert_one(deleted_documents, **values)
    retire_document(transaction, kb_id, document_id)
    transaction.delete(documents, documents.c.id == document_id)


def document_ids(transaction: Transaction, kb_id: str, source_id: str | None = None) -> list[str]:
    query = sa.select(documents.c.id).where(*alive(kb_id))
    if source_id is not None:
        query = query.where(documents.c.source_id == source_id)
    return transaction.scalars(query.order_by(documents.c.uri))


def origin(transaction: Transaction, document_id: str) -> tuple[str | None, int | None]:
    """Return source and run of a document; ``None`` if it was added by hand."""
    query = sa.select(documents.c.source_id, documents.c.run_id)
    row = transaction.execute(query.where(documents.c.id == document_id)).one()
    return row.source_id, row.run_id


def unseen_documents(transaction: Transaction, source_id: str, run_id: int) -> list[str]:
    """Return the ids of a source's documents that a run did not find and that are not gone yet."""
    query = sa.select(documents.c.id).where(documents.c.source_id == source_id)
    is_there = documents.c.state != models.DocumentState.GONE.value
    was_unseen = sa.func.coalesce(documents.c.run_id, 0) != run_id
    return transaction.scalars(query.where(is_there, was_unseen))


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk to store; `terms` are joined by spaces."""

    chunk: models.Chunk
    terms: str
    length: int
    embed_hash: str


def staying(transaction: Transaction, new_chunks: Sequence[NewChunk]) -> set[str]:
    by_id = {item.chunk.id: (item.terms, item.embed_hash) for item in new_chunks}
    query = sa.select(chunks.c.id, chunks.c.terms, chunks.c.embed_hash)
    rows = transaction.execute(query.where(transaction.is_in(chunks.c.id, by_id)))
    return {row.id for row in rows if by_id[row.id] == (row.terms, row.embed_hash)}


def _difference(
    transaction: Transaction, kb_id: str, document_id: str, new_chunks: Sequence[NewChunk]
) -> tuple[list[NewChunk], dict[str, int | None], int]:
    """Remove chunks that the document no longer has, and move those that remain.

    Returns:
        New chunks, ``seq`` by id of those that remain, and the number of removed ones.
    """
    columns = (chunks.c[name] for name in ("seq", "id", "terms", "embed_hash", *_PLACE))
    query = sa.select(*columns).where(chunks.c.document_id == document_id)
    stored_rows = {row.id: row for row in transaction.execute(query)}
    added: list[NewChunk] = []
    moved: list[dict[str, Any]] = []
    unchanged: dict[str, int | None] = {}
    for item in new_chunks:
        row = stored_rows.get(item.chunk.id)
        if row is None or (row.terms, row.embed_hash) != (item.terms, item.embed_hash):
            added.append(item)
            continue
        del stored_rows[item.chunk.id]
        place = {name: getattr(item.chunk, name) for name in _PLACE}
        if any(getattr(row, name) != value for name, value in place.items()):
            moved.append({"seq": row.seq, **place})
        unchanged[row.id] = row.seq
    _remove_chunks(transaction, kb_id, list(stored_rows.values()))
    transaction.update_each(chunks, ["seq"], moved)
    return added, unchanged, len(stored_rows)


_PLACE = ("position", "start", "end", "anchor", "page")
"""Columns that may change without changing the chunk's id or vector."""


def _add_chunks(
    transaction: Transaction, kb_id: str, added: Sequence[NewChunk], packed: Mapping[str, bytes]
) -> None:
    if not added:
        return
    numbered = list(enumerate(added, transaction.reserve_seqs(len(added))))
    rows = [
        {
            **{column.name: getattr(item.chunk, column.name) for column in CHUNK_COLUMNS},
            **{name: getattr(item, name) for name in ("terms", "length", "embed_hash")},
            "seq": seq,
            "kb_id": kb_id,
        }
        for seq, item in numbered
    ]
    transaction.insert(chunks, rows)
    new_vectors = [{"chunk_seq": seq, "vector": packed[item.embed_hash]} for seq, item in numbered]
    transaction.insert(vectors, new_vectors)
    outbox.add(transaction, kb_id, {item.chunk.id: seq for seq, item in numbered})


def _remove_chunks(transaction: Transaction, kb_id: str, rows: Sequence[Any]) -> None:
    """Remove chunks; each row has ``seq`` and ``id``."""
    if not rows:
        return
    seqs = [row.seq for row in rows]
    transaction.delete(chunks, transaction.is_in(chunks.c.seq, seqs))
    outbox.add(transaction, kb_id, {row.id: None for row in rows})
    outbox.note_removed(transaction, kb_id, seqs)


_COLUMNS = [documents.c[each.name] for each in deleted_documents.c if each.name in documents.c]


@dataclass(frozen=True, slots=True)
class TrashedDocument:
    """A deleted document; without content if the trash was emptied."""

    id: str
    source_id: str | None
    document: models.SourceDocument
    labels: models.Labels


def forget_deleted(transaction: Transaction, kb_id: str, uris: Collection[str]) -> None:
    if uris:
        columns = deleted_documents.c
        transaction.delete(deleted_documents, columns.kb_id == kb_id, columns.uri.in_(list(uris)))


def owners_of_deleted(
    transaction: Transaction, kb_id: str, uris: Iterable[str]
) -> dict[str, tuple[str, str | None]]:
    """Map URIs of deleted documents to their ids and sources."""
    columns = deleted_documents.c
    query = sa.select(columns.uri, columns.id, columns.source_id).where(columns.kb_id == kb_id)
    rows = transaction.execute(query.where(transaction.is_in(columns.uri, list(uris))))
    return {row.uri: (row.id, row.source_id) for row in rows}


def list_deleted(transaction: Transaction, kb_id: str) -> list[models.DeletedDocument]:
    columns = deleted_documents.c
    rows = transaction.execute(
        sa.select(columns.id, columns.uri, columns.title, columns.document_type, columns.deleted_at)
        .where(columns.kb_id == kb_id, columns.content != "")
        .order_by(columns.deleted_at.desc(), columns.uri)
    )
    return [models.DeletedDocument(**row._mapping) for row in rows]


def get_deleted(
    transaction: Transaction, kb_id: str, names: Collection[str]
) -> TrashedDocument | None:
    """Return the deleted document with one of these ids or URIs."""
    columns = deleted_documents.c
    row = transaction.execute(
        sa.select(deleted_documents, sources.c.id.label("source"))
        .outerjoin(sources, sources.c.id == columns.source_id)
        .where(columns.kb_id == kb_id, sa.or_(columns.id.in_(names), columns.uri.in_(names)))
    ).first()
    if row is None:
        return None
    return TrashedDocument(
        row.id, row.source, from_dict(models.SourceDocument, dict(row._mapping)), labels_of(row)
    )


def labels_of(row: Any) -> models.Labels:
    return models.Labels(
        None if row.given_type is None else models.DocumentType(row.given_type),
        None if row.given_tags is None else tuple(row.given_tags),
    )


def read_again(transaction: Transaction, source_id: str | None, uri: str) -> None:
    """Make the next refresh read a page even if the server reports no change."""
    of_page = sa.or_(pages.c.document_uri == uri, pages.c.url == uri)
    transaction.delete(pages, pages.c.source_id == source_id, of_page)
