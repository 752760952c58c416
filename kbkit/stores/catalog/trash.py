"""The trash of deleted documents and knowledge bases.

Deleted documents move to another table. A deleted knowledge base keeps its rows under an invalid
name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from kbkit.errors import ConflictError, NotFoundError
from kbkit.models import DeletedDocument, DeletedKnowledgeBase, DocumentType, Labels, SourceDocument
from kbkit.stores.catalog import chunk_annotations, graph_writing, outbox
from kbkit.stores.catalog import knowledge_bases as bases
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.schema import (
    deleted_documents,
    documents,
    dropped_collections,
    knowledge_bases,
    pages,
    sources,
)

_COLUMNS = [documents.c[each.name] for each in deleted_documents.c if each.name in documents.c]


@dataclass(frozen=True, slots=True)
class TrashedDocument:
    """A deleted document; without content if the trash was emptied."""

    id: str
    source_id: str | None
    document: SourceDocument
    labels: Labels


def put(transaction: Transaction, kb_id: str, document_id: str) -> None:
    row = transaction.execute(sa.select(*_COLUMNS).where(documents.c.id == document_id)).one()
    forget(transaction, kb_id, [row.uri])
    values = {**row._mapping, "deleted_at": datetime.now(UTC)}
    transaction.insert_one(deleted_documents, **values)


def forget(transaction: Transaction, kb_id: str, uris: Collection[str]) -> None:
    if uris:
        transaction.delete(
            deleted_documents,
            deleted_documents.c.kb_id == kb_id,
            deleted_documents.c.uri.in_(list(uris)),
        )


def owners(
    transaction: Transaction, kb_id: str, uris: Iterable[str]
) -> dict[str, tuple[str, str | None]]:
    """Map URIs of deleted documents to their ids and sources."""
    columns = deleted_documents.c
    rows = transaction.execute(
        sa.select(columns.uri, columns.id, columns.source_id).where(
            columns.kb_id == kb_id, transaction.is_in(columns.uri, list(uris))
        )
    )
    return {row.uri: (row.id, row.source_id) for row in rows}


def listed(transaction: Transaction, kb_id: str) -> list[DeletedDocument]:
    columns = deleted_documents.c
    rows = transaction.execute(
        sa.select(columns.id, columns.uri, columns.title, columns.document_type, columns.deleted_at)
        .where(columns.kb_id == kb_id, columns.content != "")
        .order_by(columns.deleted_at.desc(), columns.uri)
    )
    return [DeletedDocument(**row._mapping) for row in rows]


def get(transaction: Transaction, kb_id: str, document: str) -> TrashedDocument:
    columns = deleted_documents.c
    row = transaction.execute(
        sa.select(deleted_documents, sources.c.id.label("source"))
        .outerjoin(sources, sources.c.id == columns.source_id)
        .where(columns.kb_id == kb_id, sa.or_(columns.id == document, columns.uri == document))
    ).first()
    if row is None:
        raise NotFoundError(f"the trash holds no document with id or URI {document!r}")
    return TrashedDocument(
        row.id,
        row.source,
        SourceDocument(
            row.uri,
            row.title,
            row.content,
            DocumentType(row.document_type),
            tuple(row.tags),
            row.metadata,
        ),
        labels_of(row),
    )


def labels_of(row: Any) -> Labels:
    return Labels(
        None if row.given_type is None else DocumentType(row.given_type),
        None if row.given_tags is None else tuple(row.given_tags),
    )


def read_again(transaction: Transaction, source_id: str | None, uri: str) -> None:
    """Make the next refresh read a page even if the server reports no change."""
    transaction.delete(
        pages,
        pages.c.source_id == source_id,
        sa.or_(pages.c.document_uri == uri, pages.c.url == uri),
    )


def put_knowledge_base(transaction: Transaction, row: KnowledgeBaseRow) -> None:
    """Move a knowledge base to the trash; mark its collection to be dropped."""
    transaction.insert_one(dropped_collections, name=row.collection)
    name = f"{row.name}.{row.id[:8]}"  # names of knowledge bases have no dot
    bases.change(transaction, row.id, name=name, deleted_at=datetime.now(UTC))
    graph_writing.settle(transaction)


def knowledge_bases_in_trash(transaction: Transaction) -> list[DeletedKnowledgeBase]:
    columns = knowledge_bases.c
    count = (
        sa.select(sa.func.count())
        .select_from(documents)
        .where(documents.c.kb_id == columns.id, documents.c.state != "gone")
        .scalar_subquery()
    )
    rows = transaction.execute(
        sa.select(columns.id, columns.name, columns.description, columns.deleted_at, count)
        .where(columns.deleted_at.is_not(None))
        .order_by(columns.deleted_at.desc())
    )
    return [
        DeletedKnowledgeBase(row[0], row[1].rpartition(".")[0], row[2], row[4], row[3])
        for row in rows
    ]


def undelete_knowledge_base(transaction: Transaction, name: str, to: str) -> KnowledgeBaseRow:
    """Restore the last deleted knowledge base with a name, or the one whose id starts with it."""
    in_trash = knowledge_bases_in_trash(transaction)
    deleted = next((kb for kb in in_trash if kb.name == name), None)
    deleted = deleted or next(
        (kb for kb in in_trash if len(name) > 7 and kb.id.startswith(name)), None
    )
    if deleted is None:
        names = ", ".join(dict.fromkeys(kb.name for kb in in_trash)) or "nothing"
        raise NotFoundError(f"the trash holds no knowledge base named {name!r}, but {names}")
    to = to or deleted.name
    if to in bases.names(transaction):
        raise ConflictError(
            f"a knowledge base named {to!r} exists; choose another name for the one that comes back"
        )
    bases.change(transaction, deleted.id, name=to, deleted_at=None)
    graph_writing.settle(transaction)
    row = bases.get(transaction, to)
    outbox.forget_dropped(transaction, [row.collection])
    outbox.restart(transaction, row)
    return row


def empty(transaction: Transaction) -> tuple[int, list[str]]:
    """Empty the trash; return the number of documents and the ids of knowledge bases.

    Documents of existing sources keep a row without text, so that no refresh restores them.
    """
    gone = [kb.id for kb in knowledge_bases_in_trash(transaction)]
    for kb_id in gone:
        transaction.lexical.drop(kb_id)
    transaction.delete(knowledge_bases, knowledge_bases.c.id.in_(gone))
    columns = deleted_documents.c
    count = transaction.count(deleted_documents, columns.content != "")
    source_ids = sa.select(sources.c.id)
    transaction.delete(
        deleted_documents, sa.or_(columns.source_id.is_(None), columns.source_id.not_in(source_ids))
    )
    transaction.execute(deleted_documents.update().values(content="", metadata={}))
    chunk_annotations.remove_unused_answers(transaction)
    return count, gone
