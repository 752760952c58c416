"""Texts of language models about documents. Functions of the caller's transaction."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from kbkit.models import Document
from kbkit.stores.catalog import knowledge_bases, summaries
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.schema import documents, expansions


@dataclass(frozen=True, slots=True)
class ExpansionRow:
    """Text of a language model about a document; `model` includes the version of the prompt."""

    text_hash: str
    model: str
    summary: str
    questions: tuple[str, ...]


def put(
    transaction: Transaction, kb_id: str, document: Document, row: ExpansionRow, description: str
) -> bool:
    same = (documents.c.id == document.id) & (documents.c.content_hash == document.content_hash)
    if transaction.execute(sa.select(documents.c.id).where(same)).first() is None:
        return False
    if not document.description:
        undescribed = documents.update().where(same, documents.c.description == "")
        transaction.execute(undescribed.values(description=description))
        knowledge_bases.touch(transaction, kb_id)
    transaction.execute(expansions.delete().where(expansions.c.document_id == document.id))
    transaction.execute(
        expansions.insert().values(
            document_id=document.id,
            kb_id=kb_id,
            text_hash=row.text_hash,
            model=row.model,
            summary=row.summary,
            questions=list(row.questions),
        )
    )
    summaries.outdate(transaction, [document.id])
    return True


def of(transaction: Transaction, document_ids: Collection[str]) -> dict[str, ExpansionRow]:
    query = sa.select(expansions).where(transaction.is_in(expansions.c.document_id, document_ids))
    return {
        row.document_id: ExpansionRow(row.text_hash, row.model, row.summary, tuple(row.questions))
        for row in transaction.execute(query)
    }


def keys(transaction: Transaction, kb_id: str) -> dict[str, tuple[str, str]]:
    query = sa.select(expansions.c.document_id, expansions.c.text_hash, expansions.c.model)
    rows = transaction.execute(query.where(expansions.c.kb_id == kb_id))
    return {row.document_id: (row.text_hash, row.model) for row in rows}


def remove(transaction: Transaction, kb_id: str, described: Collection[str]) -> int:
    document_ids = list(keys(transaction, kb_id))
    transaction.execute(expansions.delete().where(expansions.c.kb_id == kb_id))
    summaries.outdate(transaction, document_ids)
    if described:
        gone = documents.update().where(transaction.is_in(documents.c.id, described))
        transaction.execute(gone.values(description=""))
        knowledge_bases.touch(transaction, kb_id)
    return len(document_ids)
