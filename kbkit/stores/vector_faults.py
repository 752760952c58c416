"""Compare a vector collection with the catalog."""

from collections.abc import Iterator

import numpy as np

from kbkit.stores.backend import CollectionError, VectorStore
from kbkit.stores.catalog import corpus, outbox
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow

_SAME = 0.999
"""Minimum cosine of vectors that differ only by rounding."""


def faults(store: VectorStore, transaction: Transaction, row: KnowledgeBaseRow) -> list[str]:
    """Compare a collection with the catalog; pending changes are not faults."""
    if type(store) is VectorStore:
        return []
    try:
        return list(_faults(store, transaction, row))
    except CollectionError as error:
        return [f"its index of vectors cannot be read ({error})"]


def _faults(store: VectorStore, transaction: Transaction, row: KnowledgeBaseRow) -> Iterator[str]:
    waiting = outbox.waiting(transaction, row.id)
    expected = set(corpus.chunk_seqs(transaction, row.id)) if row.applied_seq else set()
    expected = {int(seq) for seq in expected if seq <= row.applied_seq}
    if not expected:
        return
    seen: set[int] = set()
    wrong = extra = 0
    for ids, vectors in store.items(row.collection):
        seq_of = corpus.seqs_by_id(transaction, ids)
        indexed = [place for place, each in enumerate(ids) if each in seq_of]
        extra += sum(each not in seq_of and each not in waiting for each in ids)
        if not indexed:
            continue
        seqs = [seq_of[ids[place]] for place in indexed]
        seen.update(seqs)
        in_catalog = corpus.vectors_of(transaction, row.dimensions, seqs)
        if vectors.shape[1] != row.dimensions:
            wrong += len(indexed)
            continue
        in_index = vectors[indexed]
        lengths = np.linalg.norm(in_index, axis=1) * np.linalg.norm(in_catalog, axis=1)
        is_close = np.einsum("ij,ij->i", in_index, in_catalog) >= _SAME * lengths
        is_pending = np.array([ids[place] in waiting for place in indexed])
        wrong += int(np.count_nonzero(~is_close & ~is_pending))
    missing = expected - seen - set(corpus.seqs_by_id(transaction, sorted(waiting)).values())
    if missing:
        yield f"its index of vectors lacks {len(missing):,} of {len(expected):,} chunks"
    if extra:
        yield f"its index of vectors has {extra:,} chunks that are gone"
    if wrong:
        yield f"its index of vectors has wrong vectors for {wrong:,} chunks"
