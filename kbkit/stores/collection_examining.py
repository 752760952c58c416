"""Whether a collection of a vector store holds each id and each vector that the catalog has."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kbkit.errors import StoreUnreachableError, WorkspaceError
from kbkit.stores.catalog import corpus, outbox
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.vector_store import CatalogVectors, MissingCollectionError, VectorStore

_NEAR = 0.999
"""Cosine of two vectors that are the same but for rounding."""
_ASKED = 50
"""Vectors that are asked for, whose neighbours must be near."""
_FOUND = 0.9
"""Share of these that an index has to find; it is approximate."""


def faults(store: VectorStore, transaction: Transaction, row: KnowledgeBaseRow) -> Iterator[str]:
    """What a collection lacks, in words; what waits in the outbox is none of it.

    Raises:
        StoreUnreachableError: The store is away.
    """
    if isinstance(store, CatalogVectors):
        return
    try:
        yield from _faults(store, transaction, row)
    except StoreUnreachableError:
        raise
    except MissingCollectionError as error:
        yield f"its index of vectors is missing: {error}"
    except WorkspaceError as error:
        yield f"its index of vectors cannot be read ({error})"


def _faults(store: VectorStore, transaction: Transaction, row: KnowledgeBaseRow) -> Iterator[str]:
    waiting = outbox.waiting(transaction, row.id)
    expected = set(corpus.chunk_seqs(transaction, row.id)) if row.applied_seq else set()
    expected = {int(seq) for seq in expected if seq <= row.applied_seq}
    if not expected:
        return
    seen: set[int] = set()
    wrong = more = 0
    for ids, vectors in store.items(row.collection):
        known = corpus.seqs_by_id(transaction, ids)
        there = [place for place, each in enumerate(ids) if each in known]
        more += sum(each not in known and each not in waiting for each in ids)
        if not there:
            continue
        seqs = [known[ids[place]] for place in there]
        seen.update(seqs)
        own = corpus.vectors_of(transaction, row.dimensions, seqs)
        if vectors.shape[1] != row.dimensions:
            wrong += len(there)
            continue
        held = vectors[there]
        lengths = np.linalg.norm(held, axis=1) * np.linalg.norm(own, axis=1)
        near = np.einsum("ij,ij->i", held, own) >= _NEAR * lengths
        fresh = np.array([ids[place] in waiting for place in there])
        wrong += int(np.count_nonzero(~near & ~fresh))
    lacks = expected - seen - set(corpus.seqs_by_id(transaction, sorted(waiting)).values())
    if lacks:
        yield f"its index of vectors lacks {len(lacks):,} of {len(expected):,} chunks"
    if more:
        yield f"its index of vectors has {more:,} chunks that are gone"
    if wrong:
        yield f"its index of vectors has another vector of {wrong:,} chunks"
    if not lacks and not wrong:
        yield from _unfound(store, transaction, row, sorted(seen & expected))


def _unfound(
    store: VectorStore, transaction: Transaction, row: KnowledgeBaseRow, seqs: list[int]
) -> Iterator[str]:
    """Whether asking finds what is there: a graph that fell apart still counts well."""
    asked = seqs[:: max(1, len(seqs) // _ASKED)]
    vectors = corpus.vectors_of(transaction, row.dimensions, asked)
    vectors = vectors[np.linalg.norm(vectors, axis=1) > 0]
    found = 0
    for vector in vectors:
        known = corpus.seqs_by_id(transaction, store.nearest(row.collection, vector, 5))
        near = corpus.vectors_of(transaction, row.dimensions, list(known.values()))
        found += bool(len(near)) and bool((near @ vector >= _NEAR).any())
    if found < _FOUND * len(vectors):
        yield (
            f"its index of vectors finds {found:,} of {len(vectors):,} chunks asked for by their "
            "own vectors"
        )
