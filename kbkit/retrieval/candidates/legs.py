"""The retrievers: vectors and words of chunks, summaries and words of documents, questions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kbkit.models import Mode
from kbkit.retrieval.bm25 import CorpusStatistics
from kbkit.retrieval.candidates.base import (
    Candidates,
    Corpus,
    EncodedQuery,
    Mask,
    Postings,
    Rows,
    merge_legs,
)
from kbkit.retrieval.candidates.beside import beside
from kbkit.retrieval.candidates.documents import CardScores, DocumentScores
from kbkit.retrieval.candidates.graph import document_starts, graph_scores
from kbkit.retrieval.candidates.learned import learned_rows, learned_scores
from kbkit.retrieval.candidates.words import ChunkWords
from kbkit.text import analyzer


def find_candidates(corpus: Corpus, query: EncodedQuery, mask: Mask | None = None) -> Candidates:
    """Run all retrievers for a query."""
    chunks, of_language = corpus.chunks, analyzer(query.language)
    postings = corpus.postings(query.terms)
    statistics = CorpusStatistics(
        chunks=len(chunks),
        average_length=chunks.average_length,
        document_frequencies={term: len(rows) for term, (rows, _) in postings.items()},
    )
    size, most = query.sizes(len(chunks))
    by_words = query.mode is not Mode.DENSE

    def frequency(word: str) -> int:
        known = statistics.document_frequencies
        return min((known.get(term, 0) for term in of_language.query_terms(word)), default=0)

    by_meaning = query.vector is not None and bool(query.vector.any())
    nearest = beside(
        lambda: corpus.nearest(size, most, mask), worth=by_meaning and corpus.scans_long
    )
    cards = beside(lambda: CardScores.of(chunks, query, mask), worth=corpus.scans_long)
    words = ChunkWords(chunks, postings if by_words else {}, statistics, mask)
    found, scores = words.best(most)
    documents = DocumentScores.of_words(chunks, postings if by_words and query.pages else {})
    dense = nearest() if by_meaning else np.zeros(0, np.int64)
    documents = documents.with_cards(cards())
    learned = learned_scores(query, documents)
    graph = None
    if query.graph is not None:
        near = np.concatenate([dense[:size], found[:size]])
        starts = document_starts(chunks, documents, near, corpus.cosines(near), words.of(near))
        graph = graph_scores(query.text, query.graph, chunks, starts, frequency)
    related = None if graph is None else graph.documents
    others = [
        documents.best_rows(
            chunks,
            corpus.cosines,
            words.of,
            float(scores.max(initial=0.0)),
            mask=mask,
            related=related,
        ),
        learned_rows(learned, chunks, mask),
    ]
    if graph is not None:
        others.append(graph.rows(mask))
    chosen, ranked = merge_legs(dense, found, size, np.concatenate(others))
    owners = chunks.owners[chosen]
    title, heading = corpus.coverage(chosen, query.terms)
    return Candidates(
        seqs=chunks.seqs[chosen],
        ranked=ranked,
        document_ids=[chunks.document_ids[i] for i in owners.tolist()],
        sizes=chunks.sizes[owners],
        title=title,
        heading=heading,
        lengths=chunks.lengths[chosen].tolist(),
        counts=_counts_of(postings, chosen),
        vectors=corpus.vectors(chosen),
        statistics=statistics,
        pages=documents.of_candidates(chunks, owners),
        learned=learned,
        graph=None if graph is None else graph.of(chosen, owners),
    )


def _counts_of(postings: Mapping[str, Postings], chosen: Rows) -> list[dict[str, int]]:
    counts: list[dict[str, int]] = [{} for _ in range(len(chosen))]
    for term, (rows, times) in postings.items():
        places = np.searchsorted(rows, chosen.astype(rows.dtype))
        places[places == len(rows)] = 0
        there = np.flatnonzero(rows[places] == chosen)
        for i, count in zip(there.tolist(), times[places[there]].tolist(), strict=True):
            counts[i][term] = count
    return counts
