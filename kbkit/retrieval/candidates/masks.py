"""Which chunks filters let through."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kbkit.models import Filters
from kbkit.retrieval.candidates.base import Mask
from kbkit.stores.catalog import corpus
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.ratings import Totals
from kbkit.stores.snapshots.chunk_table import ChunkTable
from kbkit.stores.snapshots.snapshot import Snapshot


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
    return mask
