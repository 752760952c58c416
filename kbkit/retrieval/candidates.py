"""Candidates: the chunks that either leg finds for a query, and what ranking reads of them.

A snapshot of the knowledge base gives them fastest. Where there is none of the catalog's version
(while documents are being stored, say), FTS5 and the catalog give them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding.base import Matrix, Vector
from kbkit.models import Filters, Mode
from kbkit.retrieval.bm25 import CorpusStatistics, bm25_scores, impacts
from kbkit.stores.catalog import corpus
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.ratings import Totals
from kbkit.stores.snapshots.snapshot import Snapshot
from kbkit.stores.vector_index import Answer, VectorIndex
from kbkit.text import analyzer

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]
_SCAN_LIMIT = 8_000_000
"""Numbers that a scan reads in less time than Chroma takes to answer: 31,000 vectors of 256.

Measured with queries that were not asked before: a scan of 20,000 took 0.4 to 2 ms, as the machine
was busy or not, Chroma 2.2 to 3.
"""

_BEST_DOCUMENTS = 30
"""Documents that bring their best chunk, by their cards and by their words."""

Mask = NDArray[np.bool_]
Postings = tuple[NDArray[np.int32], NDArray[np.uint16]]


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    """A query as both legs of one knowledge base read it.

    Attributes:
        terms: Analyzer terms of the query, each once.
        language: Of the analyzer.
        vector: Of the query; ``None`` where nothing is asked of the dense leg.
        mode: Which legs take part.
        size: Candidates of each leg that are ranked.
        limit: Hits that are wanted, which may be more.
        filters: What a document must be.
        card_vector: Of the query as cards are embedded; ``None`` where they have no part.
        card_embedder: Fingerprint of what embedded it.
    """

    terms: tuple[str, ...]
    language: str
    vector: Vector | None
    mode: Mode
    size: int
    limit: int
    filters: Filters
    card_vector: Vector | None = None
    card_embedder: str = ""

    def sizes(self, chunks: int) -> tuple[int, int]:
        """`size`, and what each leg gives in all, where there are so many chunks."""
        return min(self.size, chunks), min(max(self.size, self.limit), chunks)


@dataclass(frozen=True, slots=True)
class WholeDocuments:
    """What the documents of some candidates say as a whole.

    Attributes:
        which: The document of each candidate, shape ``(n,)``: an index into what follows.
        counts: How often each query term stands in each document.
        lengths: Number of terms of each.
        statistics: Of all documents of the knowledge base.
        card: Cosine of the query and the card of each, shape ``(documents,)``.
        embedder: Fingerprint of what embedded the cards; ``""`` where cards have no part.
    """

    which: Rows
    counts: Sequence[Mapping[str, int]]
    lengths: Sequence[int]
    statistics: CorpusStatistics
    card: Scores
    embedder: str

    def bm25(self, statistics: CorpusStatistics | None = None) -> Scores:
        """BM25 of each candidate's document, by other statistics where some are given."""
        scores = bm25_scores(self.counts, self.lengths, statistics or self.statistics)
        return np.asarray(scores[self.which], np.float64)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Chunks, by column. The first ``ranked`` ones are ranked, the others fill up behind them.

    Attributes:
        seqs: ``chunks.seq``, shape ``(n,)``.
        ranked: How many of them are candidates proper.
        document_ids: The document of each.
        sizes: Number of chunks of that document, shape ``(n,)``.
        title: Share of the query's terms that its title has, 0 to 1, shape ``(n,)``.
        heading: Share of them that the headings above each chunk have, that title aside.
        lengths: Number of terms of each.
        counts: How often each query term stands in each.
        vectors: Shape ``(n, dimensions)``.
        statistics: Of all chunks of the knowledge base.
        pages: What the documents say as a whole; ``None`` where no snapshot tells.
    """

    seqs: Rows
    ranked: int
    document_ids: Sequence[str]
    sizes: Rows
    title: Scores
    heading: Scores
    lengths: Sequence[int]
    counts: Sequence[Mapping[str, int]]
    vectors: Matrix
    statistics: CorpusStatistics
    pages: WholeDocuments | None = None


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
        lexical = _bm25_of_all(snapshot, postings, statistics, mask)
        matching = np.flatnonzero(lexical)
        found = matching[top_indices(lexical[matching], most)]
    to_ask = not scan_is_faster(snapshot) and mask is None and vectors.is_open(row)
    if vector is not None and to_ask:
        dense = _nearest_by_chroma(snapshot, vectors.ask(row, vector, size), vector, size)
    if vector is not None and len(dense) < most:
        # behind what Chroma found, so that a longer list begins like a shorter one
        dense = np.concatenate([dense, _nearest_by_scan(snapshot, vector, most, mask)])
    documents = _DocumentScores.of(snapshot, postings, query)
    chosen, ranked = merge_legs(
        dense, found, size, documents.best_rows(snapshot, vector, lexical, mask)
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
        counts=_counts_of(postings, chosen),
        vectors=snapshot.vectors[chosen],
        statistics=statistics,
        pages=documents.of_candidates(snapshot, owners),
    )


def filter_mask(
    transaction: Transaction,
    row: KnowledgeBaseRow,
    snapshot: Snapshot,
    filters: Filters,
    totals: Totals,
) -> Mask | None:
    """Which rows of a snapshot filters let through; ``None`` where there are no filters."""
    if not filters:
        return None
    matching = corpus.matching_documents(transaction, row.id, filters)
    documents = np.array([known in matching for known in snapshot.document_ids], np.bool_)
    mask = documents[snapshot.owners] if len(documents) else np.zeros(0, np.bool_)
    least = filters.min_rating
    if least is not None:
        good = [
            known in totals.documents and totals.documents[known].average >= least
            for known in snapshot.document_ids
        ]
        rated = np.array(good, np.bool_)[snapshot.owners] if good else mask
        places = np.searchsorted(snapshot.seqs, np.array(list(totals.chunks), np.int64))
        rated[places] = [total.average >= least for total in totals.chunks.values()]
        mask &= rated
    return _chunk_mask(transaction, row, snapshot, filters, mask)


def _chunk_mask(
    transaction: Transaction,
    row: KnowledgeBaseRow,
    snapshot: Snapshot,
    filters: Filters,
    mask: Mask,
) -> Mask:
    """What is left of a mask by the conditions that are of chunks rather than documents."""
    if filters.heading:
        words = filters.heading.casefold()
        having = np.array([words in text.casefold() for text in snapshot.heading_texts], np.bool_)
        mask = mask & having[snapshot.headings] if len(having) else mask
    if filters.page:
        seqs = corpus.seqs_on_pages(transaction, row.id, filters.page)
        mask = mask & np.isin(snapshot.seqs, np.array(seqs, np.int64))
    return mask


def scan_is_faster(snapshot: Snapshot) -> bool:
    """Whether a scan of all vectors takes less time than asking Chroma."""
    return snapshot.vectors.size <= _SCAN_LIMIT


def _nearest_by_chroma(snapshot: Snapshot, answer: Answer, vector: Vector, most: int) -> Rows:
    """Rows of the nearest chunks, best first: of those that Chroma names and those new to it.

    None where Chroma named too few, as when another process has deleted what it names.
    """
    named = snapshot.rows_of(answer.ids)
    first = int(np.searchsorted(snapshot.seqs, answer.known, "right"))
    if len(named) < min(most, first):
        return named[:0]
    new = first + top_indices(snapshot.vectors[first:] @ vector, most)
    rows = np.array(sorted({*named.tolist(), *new.tolist()}), np.int64)
    return rows[top_indices(snapshot.vectors[rows] @ vector, most)]


def _nearest_by_scan(snapshot: Snapshot, vector: Vector, most: int, mask: Mask | None) -> Rows:
    """Rows of the nearest chunks, best first, by a full scan.

    The way for few vectors, until Chroma is open, and for filters, which make Chroma many times
    slower.
    """
    if mask is None:
        return top_indices(snapshot.vectors @ vector, most)
    rows = np.flatnonzero(mask)
    return rows[top_indices(snapshot.vectors[rows] @ vector, most)]


def _bm25_of_all(
    snapshot: Snapshot,
    postings: Mapping[str, Postings],
    statistics: CorpusStatistics,
    mask: Mask | None,
) -> NDArray[np.float32]:
    """BM25 of every chunk, 0 for those that may be no candidates."""
    scores = np.zeros(len(snapshot), np.float32)
    for term, (rows, counts) in postings.items():
        lengths = snapshot.lengths[rows]
        scores[rows] += impacts(counts, lengths, snapshot.average_length, statistics.idf(term))
    if mask is not None:
        scores *= mask
    return scores


@dataclass(frozen=True, slots=True)
class _DocumentScores:
    """What each document of a snapshot says to a query as a whole.

    Attributes:
        counts: By term, how often it stands in each document.
        statistics: Of the documents.
        page: BM25 of each.
        card: Cosine of the query and the card of each; the mean of the others for one without.
        embedder: Of the cards; ``""`` where they have no part.
    """

    counts: Mapping[str, NDArray[np.int64]]
    statistics: CorpusStatistics
    page: NDArray[np.float32]
    card: NDArray[np.float32]
    embedder: str

    @classmethod
    def of(
        cls, snapshot: Snapshot, postings: Mapping[str, Postings], query: EncodedQuery
    ) -> _DocumentScores:
        """Score all documents."""
        number, lengths = len(snapshot.document_ids), snapshot.document_lengths
        held = int(np.count_nonzero(lengths))
        average = float(lengths.sum()) / held if held else 0.0
        counts = {
            term: np.bincount(snapshot.owners[rows], times, number).astype(np.int64)
            for term, (rows, times) in postings.items()
            if query.mode is not Mode.DENSE
        }
        frequencies = {term: int(np.count_nonzero(found)) for term, found in counts.items()}
        statistics = CorpusStatistics(held, average, frequencies)
        page = np.zeros(number, np.float32)
        for term, found in counts.items():
            there = np.flatnonzero(found)
            idf = statistics.idf(term)
            page[there] += impacts(found[there], lengths[there], average, idf)
        card, embedder = np.zeros(number, np.float32), ""
        # cards may have been embedded anew since the query was
        if query.card_vector is not None and query.card_embedder == snapshot.card_embedder:
            embedder = snapshot.card_embedder
            card = snapshot.card_vectors @ query.card_vector
            known = card != 0  # zeros are of those that have none; to read them all takes longer
            card[~known] = card[known].mean() if known.any() else 0.0
        return cls(counts, statistics, page, card, embedder)

    def best_rows(
        self,
        snapshot: Snapshot,
        vector: Vector | None,
        lexical: NDArray[np.float32],
        mask: Mask | None,
    ) -> Rows:
        """The best chunk of each of the documents that are best as a whole."""
        open_ = snapshot.sizes > 0
        if mask is not None:
            open_ = np.bincount(snapshot.owners[mask], minlength=len(open_)) > 0
        best = np.zeros(len(open_), np.bool_)
        for scores in (self.page, self.card):
            there = np.flatnonzero(open_ & (scores > 0))
            best[there[top_indices(scores[there], _BEST_DOCUMENTS)]] = True
        rows = np.flatnonzero(
            best[snapshot.owners] if mask is None else best[snapshot.owners] & mask
        )
        own = lexical[rows] / max(float(lexical.max(initial=0.0)), 1e-9)
        if vector is not None:
            cosines = np.maximum(snapshot.vectors[rows] @ vector, 0.0)
            own = own + cosines / max(float(cosines.max(initial=0.0)), 1e-9)
        order = np.lexsort((-own, snapshot.owners[rows]))
        _, first = np.unique(snapshot.owners[rows][order], return_index=True)
        return np.asarray(rows[order[first]], np.int64)

    def of_candidates(self, snapshot: Snapshot, owners: NDArray[np.int32]) -> WholeDocuments:
        """What is known of the documents of some candidates."""
        documents, which = np.unique(owners, return_inverse=True)
        counts: list[dict[str, int]] = [{} for _ in range(len(documents))]
        for term, found in self.counts.items():
            for i, times in enumerate(found[documents].tolist()):
                if times:
                    counts[i][term] = times
        return WholeDocuments(
            which=np.asarray(which, np.int64),
            counts=counts,
            lengths=snapshot.document_lengths[documents].tolist(),
            statistics=self.statistics,
            card=self.card[documents].astype(np.float64),
            embedder=self.embedder,
        )


def top_indices(scores: NDArray[np.float32], most: int) -> Rows:
    """Indexes of the highest scores, best first; equal ones keep their order."""
    if most < len(scores):
        least = np.partition(scores, len(scores) - most)[len(scores) - most]
        above = np.flatnonzero(scores >= least)
    else:
        above = np.arange(len(scores))
    return above[np.argsort(-scores[above], kind="stable")][:most]


def merge_legs(dense: Rows, found: Rows, size: int, others: Rows | None = None) -> tuple[Rows, int]:
    """The candidates of both legs, each once: first the ``size`` best of either, then the rest.

    The legs take turns with the rest, so that a longer list begins like a shorter one. A leg may
    name a chunk again. ``others`` stand with the best.
    """
    legs = [list(dict.fromkeys(leg.tolist())) for leg in (dense, found)]
    more = () if others is None else others.tolist()
    ranked = sorted({*legs[0][:size], *legs[1][:size], *more})
    there = {*ranked, None}
    turns = chain.from_iterable(zip_longest(legs[0][size:], legs[1][size:]))
    rest = [row for row in dict.fromkeys(turns) if row not in there]
    return np.array(ranked + rest, np.int64), len(ranked)


def _counts_of(postings: Mapping[str, Postings], chosen: Rows) -> list[dict[str, int]]:
    """How often each term stands in each row."""
    counts: list[dict[str, int]] = [{} for _ in range(len(chosen))]
    for term, (rows, times) in postings.items():
        places = np.searchsorted(rows, chosen)
        places[places == len(rows)] = 0
        there = np.flatnonzero(rows[places] == chosen)
        for i, count in zip(there.tolist(), times[places[there]].tolist(), strict=True):
            counts[i][term] = count
    return counts


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
