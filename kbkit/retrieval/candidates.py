"""Queries, masks of filters, and candidates: the chunks that retrievers find for a query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding import Matrix, Vector
from kbkit.models import Filters
from kbkit.models.annotations import SubjectKind
from kbkit.recipes import RetrievalSpec
from kbkit.retrieval.encoder_fitting import LearnedQuestions
from kbkit.retrieval.fusion import NEAR_SUMMARY, CorpusStatistics, bm25_scores
from kbkit.retrieval.query import Query, QueryVector
from kbkit.stores.catalog import chunk_annotations, corpus, reading, subjects
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.graph_reading import GraphReader
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.ratings import Totals
from kbkit.stores.catalog.subjects import SubjectName
from kbkit.stores.snapshots.segments import SegmentedSnapshot
from kbkit.stores.snapshots.snapshot import Postings
from kbkit.text import subject_key

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    """A query for the retrievers of one knowledge base.

    Attributes:
        retrieval: Settings of the ranking: the query's, else the recipe's.
        terms: Distinct analyzer terms of the query.
        vector: Query vector; ``None`` without dense retrieval.
        note: A note for the reader about that vector.
        graph: ``None`` without weight.
        summary: Future of the query vector for summaries; ``None`` if they do not count.
        summary_embedder: Fingerprint of its embedder.
        questions: Learned questions, if they count.
    """

    query: Query
    retrieval: RetrievalSpec
    language: str
    terms: tuple[str, ...]
    vector: Vector | None
    note: str = ""
    graph: GraphReader | None = None
    summary: Future[QueryVector] | None = None
    summary_embedder: str = ""
    questions: LearnedQuestions | None = None

    @property
    def summary_query(self) -> QueryVector:
        """The query vector for document summaries, if any, and a note about it; waits for it."""
        return self.summary.result() if self.summary else QueryVector()


@dataclass(frozen=True, slots=True)
class TermCounts:
    """Counts of a query's terms in some texts, with statistics of all texts."""

    counts: Sequence[Mapping[str, int]]
    lengths: Sequence[int]
    statistics: CorpusStatistics

    def bm25(self, statistics: CorpusStatistics) -> Scores:
        """Return the BM25 scores of the texts, shape ``(n,)``."""
        return bm25_scores(self.counts, self.lengths, statistics)


@dataclass(frozen=True, slots=True)
class CandidatePool:
    """A knowledge base's candidates for a query, shape ``(n,)``.

    The first ``ranked`` ones are ranked, the others follow.

    Attributes:
        seqs: ``chunks.seq``.
        vectors: Shape ``(n, dimensions)``.
        words: Query terms in each chunk.
        pages: Query terms in each of their documents.
        which: Index of each chunk's document in ``pages``.
        embedder: Fingerprint of the summaries' embedder; ``""`` if they do not count.
        columns: `Features` by name.
    """

    kb: str
    language: str
    retrieval: RetrievalSpec
    terms: tuple[str, ...]
    seqs: Rows
    ranked: int
    document_ids: Sequence[str]
    vectors: Matrix
    words: TermCounts
    pages: TermCounts
    which: Rows
    embedder: str
    columns: Mapping[str, Scores]
    notes: tuple[str, ...] = ()

    def with_words(
        self, chunks: CorpusStatistics | None = None, documents: CorpusStatistics | None = None
    ) -> CandidatePool:
        """Add the columns of words; given statistics replace its own."""
        chunks, documents = chunks or self.words.statistics, documents or self.pages.statistics
        columns = {
            "bm25": self.words.bm25(chunks),
            "bm25_full": np.full(len(self.seqs), chunks.full(self.terms)),
            "page": self.pages.bm25(documents)[self.which],
            "page_full": np.full(len(self.seqs), documents.full(self.terms)),
            "summary_full": np.full(len(self.seqs), NEAR_SUMMARY),
        }
        return replace(self, columns={**self.columns, **columns})


def cosines(vectors: Matrix, vector: Vector) -> NDArray[np.float32]:
    """Return the cosines of unit vectors and a query vector, shape ``(len(vectors),)``.

    A matrix product would be spread over all cores: on a busy machine, a scan of 20,000 took 12 ms
    instead of 2.4. Also, the result for a vector must not depend on other candidates.
    """
    if not len(vectors):  # without chunks, the dimensions do not match
        return np.zeros(0, np.float32)
    return np.asarray(np.vecdot(vectors, vector))


def places_in(ascending: NDArray[Any], wanted: NDArray[Any]) -> tuple[Rows, Rows]:
    """Return the indexes of the numbers that an ascending array has, and their places there."""
    # convert the shorter array, otherwise numpy converts the longer one
    places = np.searchsorted(ascending, wanted.astype(ascending.dtype))
    places[places == len(ascending)] = 0
    indexes = np.flatnonzero(ascending[places] == wanted) if len(ascending) else places[:0]
    return indexes, places[indexes]


def counts_in(postings: Mapping[str, Postings], rows: NDArray[Any]) -> list[dict[str, int]]:
    counts: list[dict[str, int]] = [{} for _ in range(len(rows))]
    for term, (term_rows, times) in postings.items():
        indexes, places = places_in(term_rows, rows)
        for i, count in zip(indexes.tolist(), times[places].tolist(), strict=True):
            counts[i][term] = count
    return counts


_GROUP = 64
"""Group size for partial sorting."""


def top_indices(scores: NDArray[np.floating[Any]], limit: int) -> Rows:
    """Return indexes of the highest scores, best first; equal ones keep their order."""
    candidates = np.flatnonzero(scores >= lowest_of_best(scores, limit))
    return candidates[np.argsort(-scores[candidates], kind="stable")][:limit]


def lowest_of_best(scores: NDArray[np.floating[Any]], limit: int) -> Any:
    """Return the lowest of the ``limit`` highest scores, or of all if there are fewer.

    The lowest of the ``limit`` best maxima of groups is a lower bound, so scores below it need no
    sorting. With a million scores, this takes a tenth of the time.
    """
    groups = len(scores) // _GROUP
    if 0 < limit < groups:
        highest = scores[: groups * _GROUP].reshape(_GROUP, groups).max(axis=0)
        scores = scores[scores >= np.partition(highest, groups - limit)[groups - limit]]
    place = max(0, len(scores) - max(1, limit))
    return np.partition(scores, place)[place] if len(scores) else 0.0


def merge_candidates(
    dense: Rows, lexical: Rows, size: int, others: Rows | None = None
) -> tuple[Rows, int]:
    """Merge the ``size`` best of each retriever and ``others``, then the remaining candidates.

    These alternate, so that a longer list begins with the shorter one. Duplicates are allowed.
    """
    dense_rows, lexical_rows = (list(dict.fromkeys(rows.tolist())) for rows in (dense, lexical))
    extra = () if others is None else others.tolist()
    ranked = sorted({*dense_rows[:size], *lexical_rows[:size], *extra})
    ranked_set = {*ranked, None}
    alternating = chain.from_iterable(zip_longest(dense_rows[size:], lexical_rows[size:]))
    unranked = [row for row in dict.fromkeys(alternating) if row not in ranked_set]
    return np.array(ranked + unranked, np.int64), len(ranked)


Found = TypeVar("Found")
_THREADS = ThreadPoolExecutor(8, thread_name_prefix="kbkit-retrievers")
"""Two for each of four concurrent searches."""


def beside(find: Callable[[], Found], *, worth: bool) -> Callable[[], Found]:
    """Return a function that returns the result; if ``worth``, a thread starts computing it."""
    return _THREADS.submit(find).result if worth else find


def filter_mask(
    transaction: Transaction,
    row: KnowledgeBaseRow,
    chunks: SegmentedSnapshot,
    filters: Filters,
    totals: Totals,
) -> Mask:
    matching = reading.matching_documents(transaction, row.id, filters)
    documents = np.array([document_id in matching for document_id in chunks.document_ids], np.bool_)
    mask = documents[chunks.owners] if len(documents) else np.zeros(0, np.bool_)
    threshold = filters.min_rating
    if threshold is not None:
        passing = [
            document_id in totals.documents and totals.documents[document_id].average >= threshold
            for document_id in chunks.document_ids
        ]
        well_rated = np.array(passing, np.bool_)[chunks.owners] if passing else mask
        places = np.searchsorted(chunks.seqs, np.array(list(totals.chunks), np.int64))
        well_rated[places] = [total.average >= threshold for total in totals.chunks.values()]
        mask &= well_rated
    if filters.heading:
        words = filters.heading.casefold()
        mask &= chunks.match_headings(lambda text: words in text.casefold())
    for seqs in _matching_seqs(transaction, row, filters):
        mask &= np.isin(chunks.seqs, np.array(seqs, np.int64))
    return mask


def _matching_seqs(
    transaction: Transaction, row: KnowledgeBaseRow, filters: Filters
) -> Iterator[Sequence[int]]:
    if filters.page:
        yield corpus.seqs_on_pages(transaction, row.id, filters.page)
    if filters.frame:
        yield chunk_annotations.seqs_with_frame(transaction, row.id, filters.frame)
    kinds = [(name, tuple(SubjectKind)) for name in filters.subject]
    kinds += [(name, (SubjectKind.ENTITY,)) for name in filters.entity]
    for name, kinds_of_name in kinds:
        ids = [SubjectName(kind, subject_key(kind, name), name).id for kind in kinds_of_name]
        yield subjects.chunk_seqs(transaction, ids, kb_id=row.id)
