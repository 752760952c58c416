"""Document summaries, their vectors, and texts by language models about documents.

Storing a document deletes its summary; the end of an ingest creates a new one. Searches use static
vectors (``summary_embedder``) until the model has embedded all summaries.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from kbkit.models import Document, DocumentState
from kbkit.stores.catalog.database import Transaction, alive, unpack
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow, change, get_by_id, touch
from kbkit.stores.catalog.reading import documents_of
from kbkit.stores.catalog.schema import (
    documents,
    expansions,
    knowledge_bases,
    summaries,
    summary_vectors,
)

REVISION = 2
"""Version of `kbkit.ingest.cutting.summary_text`; raise it to make summaries again."""


@dataclass(frozen=True, slots=True)
class NewSummary:
    """A summary to store; `content_hash` is that of the document."""

    content_hash: str
    text: str
    embed_hash: str


@dataclass(frozen=True, slots=True)
class SummaryVectors:
    """Unit vectors of summaries, one row per document."""

    embedder: str
    document_ids: Sequence[str]
    vectors: NDArray[np.float32]


_SAME_TEXT = (summary_vectors.c.kb_id == summaries.c.kb_id) & (
    summary_vectors.c.embed_hash == summaries.c.embed_hash
)
_WITH_VECTORS = summaries.join(summary_vectors, _SAME_TEXT)


def outdated_documents(
    transaction: Transaction, kb_id: str, revision: int, limit: int, ids: Collection[str] | None
) -> list[Document]:
    current = sa.select(summaries.c.document_id).where(
        summaries.c.document_id == documents.c.id, summaries.c.revision >= revision
    )
    # ids first, from an index: few documents match, and reading texts is slow
    query = sa.select(documents.c.id).where(*alive(kb_id), ~current.exists()).limit(limit)
    if ids is not None:
        query = query.where(documents.c.id.in_(ids))
    return documents_of(transaction, transaction.scalars(query))


def put(transaction: Transaction, kb_id: str, revision: int, new: Mapping[str, NewSummary]) -> int:
    """Store summaries by document id, except those of changed documents; count them."""
    query = sa.select(documents.c.id, documents.c.content_hash).where(
        transaction.is_in(documents.c.id, list(new)), documents.c.state != DocumentState.GONE.value
    )
    hashes = transaction.mapping(query)
    version = get_by_id(transaction, kb_id).summaries_version + 1
    of_all = {"kb_id": kb_id, "revision": revision, "version": version}
    rows = [
        {"document_id": document_id, "text": summary.text, "embed_hash": summary.embed_hash}
        | of_all
        for document_id, summary in new.items()
        if hashes.get(document_id) == summary.content_hash
    ]
    transaction.put(summaries, rows)
    return len(rows)


def remove(transaction: Transaction, document_ids: Collection[str]) -> None:
    if document_ids:
        transaction.delete(summaries, transaction.is_in(summaries.c.document_id, document_ids))


def outdate(transaction: Transaction, document_ids: Collection[str]) -> None:
    """Mark summaries as outdated; searches use them until they are renewed."""
    if document_ids:
        transaction.update(
            summaries, transaction.is_in(summaries.c.document_id, document_ids), revision=-1
        )


def texts(transaction: Transaction, kb_id: str) -> dict[str, str]:
    return transaction.mapping(
        sa.select(summaries.c.document_id, summaries.c.text).where(summaries.c.kb_id == kb_id)
    )


def lacking(
    transaction: Transaction, kb_id: str, embedder: str, ids: Collection[str] | None = None
) -> dict[str, str]:
    embedded = sa.exists().where(
        *_is_of(kb_id, embedder), summary_vectors.c.embed_hash == summaries.c.embed_hash
    )
    query = sa.select(summaries.c.embed_hash, summaries.c.text)
    if ids is not None:
        query = query.where(summaries.c.document_id.in_(ids))
    return transaction.mapping(query.where(summaries.c.kb_id == kb_id, ~embedded))


def counts(transaction: Transaction, kb_id: str, embedder: str) -> tuple[int, int]:
    total = transaction.count(documents, *alive(kb_id))
    return total, total - transaction.count(_WITH_VECTORS, *_is_of(kb_id, embedder))


def add_vectors(
    transaction: Transaction, kb_id: str, embedder: str, packed: Mapping[str, bytes]
) -> None:
    query = sa.select(summary_vectors.c.embed_hash).where(
        *_is_of(kb_id, embedder), transaction.is_in(summary_vectors.c.embed_hash, list(packed))
    )
    version = get_by_id(transaction, kb_id).summaries_version + 1
    existing = set(transaction.scalars(query))  # possibly from another process
    of_all = {"kb_id": kb_id, "embedder": embedder, "version": version}
    new = ((key, vector) for key, vector in packed.items() if key not in existing)
    rows = [{"embed_hash": key, "vector": vector, **of_all} for key, vector in new]
    transaction.insert(summary_vectors, rows)


def has_changes(transaction: Transaction, row: KnowledgeBaseRow) -> bool:
    """Whether something was stored that searches do not see yet."""
    return any(
        transaction.scalars(
            sa.select(table.c.version)
            .where(table.c.kb_id == row.id, table.c.version > row.summaries_version)
            .limit(1)
        )
        for table in (summaries, summary_vectors)
    )


def show_changes(transaction: Transaction, kb_id: str, **columns: str) -> None:
    """Let searches see what was stored since the last call."""
    change(transaction, kb_id, summaries_version=knowledge_bases.c.summaries_version + 1, **columns)


def search_with(transaction: Transaction, kb_id: str, embedder: str, model: str) -> None:
    show_changes(transaction, kb_id, summary_embedder=embedder, summary_model=model)
    if embedder == model and not counts(transaction, kb_id, model)[1]:
        used = sa.select(summaries.c.embed_hash).where(summaries.c.kb_id == kb_id)
        columns = summary_vectors.c
        is_unused = (columns.embedder != model) | columns.embed_hash.not_in(used)
        transaction.delete(summary_vectors, columns.kb_id == kb_id, is_unused)


_VECTORS = sa.select(summaries.c.document_id, summary_vectors.c.vector)


def vectors_of(
    transaction: Transaction, row: KnowledgeBaseRow, document_ids: Collection[str] | None = None
) -> SummaryVectors:
    query = _VECTORS.select_from(_WITH_VECTORS).where(*_is_of(row.id, row.summary_embedder))
    if document_ids is not None:
        query = query.where(transaction.is_in(summaries.c.document_id, document_ids))
    return _unpacked(row, transaction.mapping(query))


def changed_since(transaction: Transaction, row: KnowledgeBaseRow, version: int) -> SummaryVectors:
    """Return vectors that changed after a version; zeros for summaries without one."""
    has_vector = _SAME_TEXT & (summary_vectors.c.embedder == row.summary_embedder)
    changed_hashes = sa.select(summary_vectors.c.embed_hash).where(
        summary_vectors.c.kb_id == row.id, summary_vectors.c.version > version
    )
    # two queries, so that each uses an index
    of_text = _VECTORS.select_from(summaries.outerjoin(summary_vectors, has_vector)).where(
        summaries.c.kb_id == row.id, summaries.c.version > version
    )
    of_vector = _VECTORS.select_from(summaries.join(summary_vectors, has_vector)).where(
        summaries.c.kb_id == row.id, summaries.c.embed_hash.in_(changed_hashes)
    )
    return _unpacked(row, transaction.mapping(of_text) | transaction.mapping(of_vector))


def _unpacked(row: KnowledgeBaseRow, packed: Mapping[str, bytes | None]) -> SummaryVectors:
    width = max((len(vector) // 2 for vector in packed.values() if vector), default=0)
    vectors = np.zeros((len(packed), width), np.float32)
    with_vector = [i for i, vector in enumerate(packed.values()) if vector]
    vectors[with_vector] = unpack([vector for vector in packed.values() if vector], width)
    return SummaryVectors(row.summary_embedder if packed else "", list(packed), vectors)


def _is_of(kb_id: str, embedder: str) -> tuple[sa.ColumnElement[bool], ...]:
    return summary_vectors.c.kb_id == kb_id, summary_vectors.c.embedder == embedder


@dataclass(frozen=True, slots=True)
class ExpansionRow:
    """Text by a language model about a document; `model` includes the version of the prompt."""

    text_hash: str
    model: str
    summary: str
    questions: tuple[str, ...]


def put_expansion(
    transaction: Transaction, kb_id: str, document: Document, row: ExpansionRow, description: str
) -> bool:
    get_by_id(transaction, kb_id)
    match = (documents.c.id == document.id) & (documents.c.content_hash == document.content_hash)
    if transaction.first([documents.c.id], match) is None:
        return False
    if not document.description:
        undescribed = documents.c.description == ""
        transaction.update(documents, match, undescribed, description=description)
        touch(transaction, kb_id)
    transaction.delete(expansions, expansions.c.document_id == document.id)
    values = asdict(row) | {"questions": list(row.questions)}
    transaction.insert_one(expansions, document_id=document.id, kb_id=kb_id, **values)
    outdate(transaction, [document.id])
    return True


def expansions_of(
    transaction: Transaction, document_ids: Collection[str]
) -> dict[str, ExpansionRow]:
    query = sa.select(expansions).where(transaction.is_in(expansions.c.document_id, document_ids))
    return {
        row.document_id: ExpansionRow(row.text_hash, row.model, row.summary, tuple(row.questions))
        for row in transaction.execute(query)
    }


def expansion_keys(transaction: Transaction, kb_id: str) -> dict[str, tuple[str, str]]:
    query = sa.select(expansions.c.document_id, expansions.c.text_hash, expansions.c.model)
    rows = transaction.execute(query.where(expansions.c.kb_id == kb_id))
    return {row.document_id: (row.text_hash, row.model) for row in rows}


def remove_expansions(transaction: Transaction, kb_id: str, described: Collection[str]) -> int:
    document_ids = list(expansion_keys(transaction, kb_id))
    transaction.delete(expansions, expansions.c.kb_id == kb_id)
    outdate(transaction, document_ids)
    if described:
        transaction.update(documents, transaction.is_in(documents.c.id, described), description="")
        touch(transaction, kb_id)
    return len(document_ids)
