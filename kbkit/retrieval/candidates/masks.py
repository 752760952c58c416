"""Masks of filters."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kbkit.models import Filters, SubjectKind
from kbkit.retrieval.candidates.base import Mask
from kbkit.stores.catalog import chunk_annotations, corpus, subjects
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.ratings import Totals
from kbkit.stores.catalog.subjects import SubjectName
from kbkit.stores.snapshots.chunk_table import ChunkTable
from kbkit.stores.snapshots.segments import SegmentedSnapshot
from kbkit.stores.snapshots.snapshot import Snapshot
from kbkit.text.subject_keys import subject_key

_LASTING = ("document_type", "tags", "source", "path", "version", "heading", "page")
"""Conditions that depend only on the version."""
_KEPT = 32
"""Cached masks; one for a million chunks takes a megabyte."""


@dataclass(slots=True)
class FilterMasks:
    """The filter masks of one knowledge base, cached while they are valid.

    Masks for `_LASTING` conditions are valid for a version of the knowledge base, the others until
    the next commit.
    """

    _made: OrderedDict[tuple[int, int, Filters], Mask] = field(default_factory=OrderedDict)
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def get(
        self,
        transaction: Transaction,
        row: KnowledgeBaseRow,
        chunks: ChunkTable,
        filters: Filters,
        totals: Totals,
        *,
        changes: int,
    ) -> Mask | None:
        """Return the mask of filters; ``None`` without filters."""
        if not filters:
            return None
        lasting = Filters(**{name: getattr(filters, name) for name in _LASTING})
        passing = replace(filters, **{name: getattr(Filters(), name) for name in _LASTING})
        merged: Mask | None = None
        for part, until in ((lasting, -1), (passing, changes)):
            key = (row.version, until, part)
            with self._mutex:
                mask = self._made.get(key)
                if mask is not None:
                    self._made.move_to_end(key)
            if mask is None:
                mask = filter_mask(transaction, row, chunks, part, totals)
                if mask is not None:
                    self._keep(key, mask)
            if mask is not None:
                merged = mask if merged is None else merged & mask
        return merged

    def _keep(self, key: tuple[int, int, Filters], mask: Mask) -> None:
        mask.flags.writeable = False
        with self._mutex:
            if any(key[0] > made[0] for made in self._made):  # drop masks of older versions
                self._made.clear()
            self._made[key] = mask
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)


def filter_mask(
    transaction: Transaction,
    row: KnowledgeBaseRow,
    chunks: ChunkTable,
    filters: Filters,
    totals: Totals,
) -> Mask | None:
    """Return the mask of filters; ``None`` without filters."""
    if not filters:
        return None
    matching = corpus.matching_documents(transaction, row.id, filters)
    documents = np.array([document_id in matching for document_id in chunks.document_ids], np.bool_)
    mask = documents[chunks.owners] if len(documents) else np.zeros(0, np.bool_)
    least = filters.min_rating
    if least is not None:
        good = [
            document_id in totals.documents and totals.documents[document_id].average >= least
            for document_id in chunks.document_ids
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
    if filters.heading:
        words = filters.heading.casefold()
        if isinstance(chunks, Snapshot | SegmentedSnapshot):
            mask = mask & chunks.headed(lambda text: words in text.casefold())
        else:
            named = corpus.headings_of(transaction, chunks.seqs.tolist())
            mask = mask & np.array([words in text.casefold() for _, text in named], np.bool_)
    if filters.page:
        seqs = corpus.seqs_on_pages(transaction, row.id, filters.page)
        mask = mask & np.isin(chunks.seqs, np.array(seqs, np.int64))
    for annotated in _annotated(transaction, row, filters):
        mask = mask & np.isin(chunks.seqs, np.array(annotated, np.int64))
    return mask


def _annotated(
    transaction: Transaction, row: KnowledgeBaseRow, filters: Filters
) -> Iterator[Sequence[int]]:
    if filters.frame:
        yield chunk_annotations.seqs_with_frame(transaction, row.id, filters.frame)
    kinds = [(name, tuple(SubjectKind)) for name in filters.subject]
    kinds += [(name, (SubjectKind.ENTITY,)) for name in filters.entity]
    for name, among in kinds:
        ids = [SubjectName(kind, subject_key(kind, name), name).id for kind in among]
        yield subjects.chunk_seqs(transaction, ids, kb_id=row.id)
