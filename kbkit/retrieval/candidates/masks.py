"""Which chunks filters let through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kbkit.models import Filters, SubjectKind
from kbkit.retrieval.candidates.base import Mask
from kbkit.stores.catalog import chunk_annotations, corpus, subjects
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.ratings import Totals
from kbkit.stores.catalog.subjects import SubjectName
from kbkit.stores.snapshots.chunk_table import ChunkTable
from kbkit.stores.snapshots.snapshot import Snapshot
from kbkit.text.subject_keys import subject_key


def filter_mask(
    transaction: Transaction,
    row: KnowledgeBaseRow,
    chunks: ChunkTable,
    filters: Filters,
    totals: Totals,
) -> Mask | None:
    """Which chunks filters let through; ``None`` where there are no filters."""
    if not filters:
        return None
    matching = corpus.matching_documents(transaction, row.id, filters)
    documents = np.array([known in matching for known in chunks.document_ids], np.bool_)
    mask = documents[chunks.owners] if len(documents) else np.zeros(0, np.bool_)
    least = filters.min_rating
    if least is not None:
        good = [
            known in totals.documents and totals.documents[known].average >= least
            for known in chunks.document_ids
        ]
        rated = np.array(good, np.bool_)[chunks.owners] if good else mask
        places = np.searchsorted(chunks.seqs, np.array(list(totals.chunks), np.int64))
        rated[places] = [total.average >= least for total in totals.chunks.values()]
        mask &= rated
    return _chunk_mask(transaction, row, chunks, filters, mask)


def _chunk_mask(
    transaction: Transaction,
    row: KnowledgeBaseRow,
    chunks: ChunkTable,
    filters: Filters,
    mask: Mask,
) -> Mask:
    """What is left of a mask by the conditions that are of chunks rather than documents."""
    if filters.heading:
        words = filters.heading.casefold()
        if isinstance(chunks, Snapshot):
            texts: Sequence[str] = chunks.heading_texts
        else:
            named = corpus.headings_of(transaction, chunks.seqs.tolist())
            texts = [heading for _, heading in named]
        having = np.array([words in text.casefold() for text in texts], np.bool_)
        if isinstance(chunks, Snapshot) and len(having):
            having = having[chunks.headings]
        mask = mask & having
    if filters.page:
        seqs = corpus.seqs_on_pages(transaction, row.id, filters.page)
        mask = mask & np.isin(chunks.seqs, np.array(seqs, np.int64))
    for annotated in _annotated(transaction, row, filters):
        mask = mask & np.isin(chunks.seqs, np.array(annotated, np.int64))
    return mask


def _annotated(
    transaction: Transaction, row: KnowledgeBaseRow, filters: Filters
) -> Iterator[Sequence[int]]:
    """``seq`` of the chunks that each condition lets through which is of annotations."""
    if filters.frame:
        yield chunk_annotations.seqs_with_frame(transaction, row.id, filters.frame)
    kinds = [(name, tuple(SubjectKind)) for name in filters.subject]
    kinds += [(name, (SubjectKind.ENTITY,)) for name in filters.entity]
    for name, among in kinds:
        ids = [SubjectName(kind, subject_key(kind, name), name).id for kind in among]
        yield subjects.chunk_seqs(transaction, ids, kb_id=row.id)
