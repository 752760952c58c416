"""Vectors of the questions that people rated chunks well for, made as soon as they are rated."""

from __future__ import annotations

import numpy as np

from kbkit.embedding.base import Embedder
from kbkit.stores.catalog import knowledge_bases, questions
from kbkit.stores.catalog.database import Database


def embed_questions(database: Database, kb_id: str, embedder: Embedder) -> None:
    """Embed the questions that have no vector yet.

    Args:
        database: The catalog.
        kb_id: The knowledge base.
        embedder: Of its cards, with which queries are compared too.

    Raises:
        EmbedderError: The embedder failed.
        NotFoundError: The knowledge base was deleted.
    """
    fingerprint = embedder.fingerprint
    with database.read() as transaction:
        lacking = questions.lacking(transaction, kb_id, fingerprint)
    if not lacking:
        return
    vectors = np.array([embedder.embed_query(question) for question in lacking], np.float32)
    with database.write() as transaction:
        knowledge_bases.get_by_id(transaction, kb_id)
        questions.put(transaction, kb_id, fingerprint, lacking, vectors)
