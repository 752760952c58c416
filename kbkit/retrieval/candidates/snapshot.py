"""Candidates out of a snapshot."""

from __future__ import annotations

import numpy as np

from kbkit.models import Mode
from kbkit.retrieval.bm25 import CorpusStatistics
from kbkit.retrieval.candidates.base import Candidates, EncodedQuery, Mask, merge_legs, top_indices
from kbkit.retrieval.candidates.chunks import (
    ChunkCosines,
    bm25_of_all,
    counts_of,
    nearest_by_chroma,
    nearest_by_scan,
    scan_is_faster,
)
from kbkit.retrieval.candidates.documents import DocumentScores
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.snapshots.snapshot import Snapshot
from kbkit.stores.vector_index import VectorIndex


def snapshot_candidates(
    snapshot: Snapshot,
    query: EncodedQuery,
    row: KnowledgeBaseRow,
    vectors: VectorIndex,
    mask: Mask | None = None,
) -> Candidates:
    """Candidates out of a snapshot.

    Args:
        snapshot: Of the knowledge base, of its version.
        query: What is asked.
        row: The knowledge base.
        vectors: Its collection is among these.
        mask: Which rows of the snapshot may be candidates; see `filter_mask`.
    """
    numbers = snapshot.numbers(query.terms)
    postings = {term: snapshot.postings(number) for term, number in numbers.items()}
    statistics = CorpusStatistics(
        chunks=len(snapshot),
        average_length=snapshot.average_length,
        document_frequencies={term: len(rows) for term, (rows, _) in postings.items()},
    )
    size, most = query.sizes(len(snapshot))
    dense = found = np.zeros(0, np.int64)
    vector = query.vector if query.vector is not None and query.vector.any() else None
    lexical = np.zeros(len(snapshot), np.float32)
    if query.mode is not Mode.DENSE:
        lexical = bm25_of_all(snapshot, postings, statistics, mask)
        matching = np.flatnonzero(lexical)
        found = matching[top_indices(lexical[matching], most)]
    to_ask = not scan_is_faster(snapshot) and mask is None and vectors.is_open(row)
    near = ChunkCosines(snapshot, vector)
    if vector is not None and to_ask:
        dense = nearest_by_chroma(snapshot, vectors.ask(row, vector, size), near, size)
    if vector is not None and len(dense) < most:
        # behind what Chroma found, so that a longer list begins like a shorter one
        dense = np.concatenate([dense, nearest_by_scan(near, most, mask)])
    documents = DocumentScores.of(snapshot, postings, query)
    chosen, ranked = merge_legs(
        dense, found, size, documents.best_rows(snapshot, near, lexical, mask)
    )
    owners, headings = snapshot.owners[chosen], snapshot.headings[chosen]
    whole = max(1, len(query.terms))
    held = numbers.values()
    return Candidates(
        seqs=snapshot.seqs[chosen],
        ranked=ranked,
        document_ids=[snapshot.document_ids[i] for i in owners.tolist()],
        sizes=snapshot.sizes[owners],
        title=snapshot.title_terms.holding(held, owners) / whole,
        heading=snapshot.heading_terms.holding(held, headings) / whole,
        lengths=snapshot.lengths[chosen].tolist(),
        counts=counts_of(postings, chosen),
        vectors=snapshot.vectors[chosen],
        statistics=statistics,
        pages=documents.of_candidates(snapshot, owners),
    )
