"""Candidates out of the catalog and its lexical index, where there is no snapshot."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from kbkit.models import Mode
from kbkit.retrieval.bm25 import CorpusStatistics
from kbkit.retrieval.candidates.base import Candidates, EncodedQuery, Scores, merge_legs
from kbkit.stores.catalog import corpus
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.vector_index import VectorIndex
from kbkit.text import analyzer


def catalog_candidates(
    transaction: Transaction, query: EncodedQuery, row: KnowledgeBaseRow, vectors: VectorIndex
) -> Candidates:
    """Candidates out of the catalog; filters are not heeded."""
    chunks, length = corpus.corpus_size(transaction, row.id)
    size, most = query.sizes(chunks)
    frequencies = transaction.lexical.document_frequencies(row.id, query.terms)
    dense: list[int] = []
    if query.vector is not None:
        dense = vectors.nearest(transaction, row, query.vector, size)
    if query.vector is not None and most > size:  # apart, so that those before stay the same
        dense += vectors.nearest(transaction, row, query.vector, most)
    found: list[int] = []
    if query.mode is not Mode.DENSE:
        found = transaction.lexical.candidates(row.id, frequencies, most)
    seqs, ranked = merge_legs(np.array(dense, np.int64), np.array(found, np.int64), size)
    rows = corpus.candidates(transaction, row.id, row.dimensions, seqs.tolist())
    sizes = corpus.sizes_of(transaction, {c.document_id for c in rows})
    return Candidates(
        seqs=np.array([c.seq for c in rows], np.int64),
        ranked=ranked,
        document_ids=[c.document_id for c in rows],
        sizes=np.array([sizes[c.document_id] for c in rows], np.int64),
        title=_term_coverage([c.title for c in rows], query),
        heading=_term_coverage([c.heading for c in rows], query),
        lengths=[c.length for c in rows],
        counts=[_counted(c.terms, frequencies) for c in rows],
        vectors=np.array([c.vector for c in rows], np.float32).reshape(len(rows), row.dimensions),
        statistics=CorpusStatistics(chunks, length / chunks if chunks else 0.0, frequencies),
    )


def _term_coverage(texts: Sequence[str], query: EncodedQuery) -> Scores:
    """Share of the query's terms that stand in each text."""
    terms = frozenset(query.terms)
    of = analyzer(query.language).terms
    return np.array([len(terms.intersection(of(t))) for t in texts]) / max(1, len(terms))


def _counted(terms: str, kept: Collection[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for term in terms.split(" "):
        if term in kept:
            counts[term] = counts.get(term, 0) + 1
    return counts
