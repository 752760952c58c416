"""Stored answers of annotating language models. Functions of the caller's transaction.

An answer was paid for: it stays when annotations are renewed, or a chunk goes and comes again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from kbkit.stores.catalog import knowledge_bases
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_schema import annotator_answers
from kbkit.stores.catalog.schema import chunks

_columns = annotator_answers.c


def put(
    transaction: Transaction, kb_id: str, answers: Mapping[str, tuple[str, Sequence[Any]]]
) -> None:
    knowledge_bases.get_by_id(transaction, kb_id)
    stored = of(transaction, kb_id, answers)
    rows = [
        {"kb_id": kb_id, "key": key, "chunk_id": chunk_id, "statements": list(statements)}
        for key, (chunk_id, statements) in answers.items()
        if key not in stored
    ]
    transaction.insert(annotator_answers, rows)


def of(transaction: Transaction, kb_id: str, keys: Collection[str]) -> dict[str, list[Any]]:
    query = sa.select(_columns.key, _columns.statements).where(
        _columns.kb_id == kb_id, transaction.is_in(_columns.key, list(keys))
    )
    return {row.key: row.statements for row in transaction.execute(query)}


def remove_unused(transaction: Transaction) -> int:
    """Delete answers about chunks that are gone; return their number."""
    there = sa.exists().where(chunks.c.id == _columns.chunk_id)
    return transaction.execute(annotator_answers.delete().where(~there)).rowcount
