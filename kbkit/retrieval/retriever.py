"""Find and score the candidates of one knowledge base."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from kbkit.errors import EmbedderError, NotFoundError
from kbkit.models import Chunk, Document, Filters, Mode, RatingTotal
from kbkit.recipes import KnowledgeBaseSpec, StaticEmbedding
from kbkit.retrieval.candidates import CandidatePool, EncodedQuery, Mask, filter_mask
from kbkit.retrieval.corpora import SnapshotCorpus, find_candidates
from kbkit.retrieval.encoder_fitting import LearnedQuestions
from kbkit.retrieval.fusion import rating_prior
from kbkit.retrieval.query import (
    KnowledgeBaseEmbedders,
    Query,
    QueryEncoder,
    QueryVector,
    encode_for_summaries,
)
from kbkit.stores.catalog import corpus, knowledge_bases, ratings, reading
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.graph_reading import GraphReader
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow, spec_of
from kbkit.stores.catalog.ratings import Totals
from kbkit.stores.snapshots import near_chunks
from kbkit.stores.snapshots.segments import SegmentedSnapshot
from kbkit.stores.stores import Stores
from kbkit.text.analysis import REVISION, analyzer

_MAX_SECONDS = 0.25
_turn = threading.Lock()
"""Held while a search computes: threads that compete for the GIL are slower than one."""
_LASTING = ("document_type", "tags", "source", "path", "version", "heading", "page")
"""Conditions that depend only on the version."""
_MAX_MASKS = 32
"""Cached masks; one for a million chunks takes a megabyte."""
_MAX_PASSAGES = 1_000  # cached until the database changes


@contextmanager
def search_slot() -> Iterator[None]:
    """Wait for other searches to compute; continue after `_MAX_SECONDS` in any case."""
    acquired = _turn.acquire(timeout=_MAX_SECONDS)
    try:
        yield
    finally:
        if acquired:
            _turn.release()


@dataclass(frozen=True, slots=True)
class _State:
    """The state of a knowledge base after a number of database changes.

    Attributes:
        rated: Version, largest rating id and number of ratings; if equal, so are the ratings.
    """

    changes: int
    row: KnowledgeBaseRow
    spec: KnowledgeBaseSpec
    totals: Totals
    rated: tuple[int, ...]
    indexes: frozenset[str]
    question_vectors: int = 0
    questions: LearnedQuestions | None = None
    passages: dict[int, tuple[Chunk, Document]] = field(default_factory=dict)

    def encodes_like(self, other: _State) -> bool:
        return self.spec is other.spec and self.row.embedder == other.row.embedder


@dataclass(slots=True)
class Retriever:
    """Finds candidates in the current version of one knowledge base."""

    stores: Stores
    kb_id: str
    embedders: KnowledgeBaseEmbedders
    graph: Callable[[], GraphReader]
    _query_encoder: QueryEncoder = field(init=False)
    _masks: Mapping[tuple[int, int, Filters], Mask] = field(default_factory=dict)
    _versions: tuple[int, set[str]] | None = None
    _last_state: _State | None = None

    def __post_init__(self) -> None:
        self._query_encoder = QueryEncoder(self.stores.database, self.embedders)

    def pool(self, query: Query) -> CandidatePool:
        while True:
            earlier = self._state()
            try:
                encoded = self._encode(earlier, query)  # before `search_slot`: may be slow
            except EmbedderError:
                if self._state().encodes_like(earlier):
                    raise
                continue  # another process changed the embedder
            with search_slot():
                state, snapshot, mask = self._latest(query.filters)
                if not state.encodes_like(earlier):
                    continue
                if encoded.retrieval.learned_weight:
                    encoded = replace(encoded, questions=state.questions)
                is_fast = snapshot.is_small or near_chunks.is_coded(snapshot)
                ready = snapshot.is_merged and (is_fast or self.stores.vectors.is_open(state.row))
                self.stores.warmer.record_search(self.kb_id, ready=ready)
                pool = self._pool(state, snapshot, encoded, mask)
            # otherwise summaries were embedded again after the query
            if pool.embedder == encoded.summary_embedder or encoded.summary_query.vector is None:
                return pool

    def neighbour_pool(self, chunk_id: str, query: Query) -> CandidatePool:
        state, snapshot, mask = self._latest(query.filters)
        rows = snapshot.rows_of([chunk_id])
        if not len(rows):
            raise NotFoundError(f"no chunk with id {chunk_id!r}")
        language = state.spec.language
        terms = tuple(analyzer(language).query_terms(query.text))
        query = replace(query, limit=query.limit + 1)
        vector = snapshot.vectors_of(rows)[0]
        encoded = EncodedQuery(query, state.spec.retrieval, language, terms, vector)
        return self._pool(state, snapshot, encoded, mask)

    def frequency(self, word: str) -> int:
        """Count chunks that contain all terms of a word."""
        state, snapshot, _ = self._latest(Filters())
        terms = analyzer(state.spec.language).query_terms(word)
        postings = snapshot.holding(terms)
        return min((len(postings[term][0]) if term in postings else 0 for term in terms), default=0)

    def versions(self) -> set[str]:
        """Return the versions of its documents; see `kbkit.models.Filters`."""
        current, cached = self._state().row.version, self._versions
        if cached is None or cached[0] != current:
            versions = self.stores.database.look_up(reading.versions, self.kb_id)
            cached = self._versions = current, versions
        return cached[1]

    def is_there(self) -> bool:
        try:
            self._state()
        except NotFoundError:
            return False
        return True

    def chunks(self, seqs: Sequence[int]) -> dict[int, tuple[Chunk, Document]]:
        """Return chunks with their documents by ``seq``; deleted ones are missing."""
        if not self.is_there():
            return {}  # the chunks of a deleted knowledge base are still in the trash
        cached = self._state().passages
        found = {seq: cached[seq] for seq in seqs if seq in cached}
        if missing := [seq for seq in seqs if seq not in found]:
            found |= (read := self.stores.database.chunks(missing))
            cached.update(read if len(cached) < _MAX_PASSAGES else ())
        return found

    def _state(self) -> _State:
        """Return the current state, cached until the database changes."""
        # read first, so that the next call sees later changes
        changes = self.stores.database.changes()
        state = self._last_state
        if state is None or state.changes != changes:
            state = self._last_state = self.stores.database.look_up(self._read_state, changes)
        return state

    def _read_state(self, transaction: Transaction, changes: int) -> _State:
        row = knowledge_bases.get_by_id(transaction, self.kb_id)
        previous = self._last_state
        settings = row.config, row.embedder
        is_same = previous is not None and (previous.row.config, previous.row.embedder) == settings
        spec = previous.spec if previous and is_same else spec_of(row)
        if row.waits and not is_same:  # static vectors are in use, so use their weights
            spec = spec.with_embedding(StaticEmbedding())
        rated = (row.version, *ratings.extent(transaction, row.id))
        totals = self._totals(transaction, rated)
        state = _State(changes, row, spec, totals, rated, corpus.indexes(transaction, row.id))
        if not (totals.chunks and spec.learning.questions):
            return state
        count = ratings.count_questions(transaction, row.id)
        if previous and is_same and (previous.rated, previous.question_vectors) == (rated, count):
            return replace(state, question_vectors=count, questions=previous.questions)
        learned = LearnedQuestions.of(
            ratings.learned_questions(transaction, row.id),
            ratings.question_vectors_of(transaction, row.id),
            spec.language,
        )
        return replace(state, question_vectors=count, questions=learned if learned.texts else None)

    def _totals(self, transaction: Transaction, rated: tuple[int, ...]) -> Totals:
        previous = self._last_state
        if not rated[-1]:
            return Totals({}, {})
        # the document of an entry may have been replaced without a new version
        if previous and previous.rated == rated and not previous.totals.documents:
            return previous.totals
        return ratings.totals(transaction, self.kb_id)

    def _encode(self, state: _State, query: Query) -> EncodedQuery:
        retrieval = query.settings(state.spec.retrieval)
        language = state.spec.language
        terms = tuple(analyzer(language).query_terms(query.text))
        summary, embedded, graph = None, QueryVector(), None
        if query.mode is not Mode.LEXICAL:
            if retrieval.summary_weight:
                summary = encode_for_summaries(self.embedders, state.row, query.text)
            embedded = self._query_encoder.encode(state.row, query, retrieval, terms)
        if query.mode is Mode.HYBRID and retrieval.graph_weight:
            graph = self.graph()
        return EncodedQuery(
            query,
            retrieval,
            language,
            terms,
            embedded.vector,
            note=embedded.note,
            graph=graph,
            summary=summary,
            summary_embedder=state.row.summary_embedder,
        )

    def _latest(self, filters: Filters) -> tuple[_State, SegmentedSnapshot, Mask | None]:
        """Return the state, its snapshot and the mask of filters."""
        state = self._state()
        snapshot = self.stores.snapshots.cached(state.row)
        if snapshot is not None and not filters:
            return state, snapshot, None
        with self.stores.snapshots.read(self.kb_id) as (transaction, snapshot):
            state = self._read_state(transaction, state.changes)
            mask = self._mask(transaction, state, snapshot, filters)
        return state, snapshot, mask

    def _mask(
        self, transaction: Transaction, state: _State, snapshot: SegmentedSnapshot, filters: Filters
    ) -> Mask | None:
        """Return the mask of filters, cached while it is valid; ``None`` without filters.

        Masks of only `_LASTING` conditions are valid for a version of the knowledge base, others
        until the next commit.
        """
        if not filters:
            return None
        row = state.row
        lasting = Filters(**{name: getattr(filters, name) for name in _LASTING})
        key = (row.version, -1 if filters == lasting else state.changes, filters)
        mask = self._masks.get(key)
        if mask is None:
            mask = filter_mask(transaction, row, snapshot, filters, state.totals)
            mask.flags.writeable = False
        others = {k: v for k, v in self._masks.items() if k != key and k[0] >= row.version}
        # replaced as a whole, since other threads read it
        self._masks = dict([*others.items(), (key, mask)][-_MAX_MASKS:])
        return mask

    def _pool(
        self, state: _State, snapshot: SegmentedSnapshot, encoded: EncodedQuery, mask: Mask | None
    ) -> CandidatePool:
        chunk_corpus = SnapshotCorpus(snapshot, state.row, self.stores.vectors, encoded.vector)
        pool = find_candidates(chunk_corpus, encoded, mask)
        totals, nothing = state.totals, RatingTotal(0, 0.0)
        rated = [
            totals.chunks.get(seq) or totals.documents.get(document) or nothing
            for seq, document in zip(pool.seqs.tolist(), pool.document_ids, strict=True)
        ]
        indexes = [document_id in state.indexes for document_id in pool.document_ids]
        columns = {"rating": rating_prior(rated), "index": np.array(indexes, np.float64)}
        notes = (encoded.note, encoded.summary_query.note, *_notes(state.row, encoded))
        return replace(pool, columns={**pool.columns, **columns}, notes=tuple(filter(None, notes)))


def _notes(row: KnowledgeBaseRow, encoded: EncodedQuery) -> Iterator[str]:
    if row.analyzer != REVISION:
        yield (
            f"{row.name}: an older kbkit indexed its words, so some are not found; "
            f"`kbkit refresh {row.name}` indexes them again"
        )
    if encoded.summary and row.summary_embedder != row.summary_model:
        yield (
            f"{row.name}: the summaries of its documents are not embedded by the model yet; "
            f"search is better after that (`kbkit improve {row.name}` waits for it)"
        )
