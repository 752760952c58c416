"""Answers queries: candidates from each knowledge base, exact scores, one ranking."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import sqlalchemy as sa

from kbkit.embedding.base import Embedder, Vector
from kbkit.errors import ConfigError, EmbedderError
from kbkit.models import Chunk, Document, Filters, Hit, Hits, Mode
from kbkit.recipes import KnowledgeBaseConfig, RetrievalSpec
from kbkit.retrieval.bm25 import bm25_scores
from kbkit.retrieval.candidates import (
    Candidates,
    View,
    Wanted,
    from_catalog,
    from_snapshot,
    is_small,
)
from kbkit.retrieval.encoding import Encoded, QueryEncoding
from kbkit.retrieval.fusion import Scores, rating_prior
from kbkit.retrieval.postprocess import postprocessed, seen
from kbkit.retrieval.ranking import Pool, Ranked, rank
from kbkit.retrieval.snippet import Snippet
from kbkit.stores import contents, ratings, registry
from kbkit.stores.database import Database
from kbkit.stores.ratings import Total, Totals
from kbkit.stores.registry import KnowledgeBaseRow
from kbkit.stores.snapshots import Snapshots
from kbkit.stores.vectors import VectorIndex
from kbkit.stores.warming import Warmer
from kbkit.text import REVISION, analyzer

LONGEST_QUERY = 10_000
"""Characters of a query that are read; the rest is left out."""


_NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked.

    Attributes:
        text: A question or some words.
        limit: Most hits.
        mode: Which legs take part.
        filters: What a document must be.
        settings: Used in place of the knowledge bases' own.
    """

    text: str
    limit: int = 10
    mode: Mode = Mode.HYBRID
    filters: Filters = _NO_FILTERS
    settings: RetrievalSpec | None = None

    @classmethod
    def of(
        cls,
        text: str,
        limit: int = 10,
        mode: str | Mode = Mode.HYBRID,
        filters: Filters | Mapping[str, Any] | None = None,
        settings: RetrievalSpec | None = None,
    ) -> Query:
        """Check what somebody asks.

        Raises:
            ConfigError: The text is empty, or limit, mode or a filter is wrong.
        """
        if not isinstance(text, str):
            raise ConfigError(f"query={text!r}: ask with a text")
        if not text.strip():
            raise ConfigError("the query is empty; ask for something")
        try:
            mode = Mode(mode)
        except ValueError:
            modes = ", ".join(Mode)
            raise ConfigError(f"mode={mode!r}: not known; choose one of {modes}") from None
        if settings is not None and not isinstance(settings, RetrievalSpec):
            raise ConfigError(f"settings={settings!r}: give a RetrievalSpec")
        limit = _whole(limit)
        # lone surrogates, as broken bytes of a command line become, can be neither stored nor read
        text = text if len(text) <= LONGEST_QUERY else text.strip()[:LONGEST_QUERY]
        text = text.encode("utf-8", "replace").decode()
        return cls(text, limit, mode, Filters.of(filters), settings)


def _whole(limit: Any) -> int:
    """A limit that is a whole number of any kind, as numpy's are too."""
    try:
        if isinstance(limit, bool | np.bool_):
            raise TypeError
        number = operator.index(limit)
    except TypeError:
        raise ConfigError(f"limit={limit!r}: give a whole number, 1 or more") from None
    if number < 1:
        raise ConfigError(f"limit={number}: ask for 1 hit or more")
    return number


@dataclass(slots=True)
class Retriever:
    """Finds candidates in one knowledge base as it is in the catalog at that moment.

    Attributes:
        embedder: Gives what embeds queries of a knowledge base that the catalog has like this.
    """

    database: Database
    vectors: VectorIndex
    snapshots: Snapshots
    warmer: Warmer
    kb_id: str
    embedder: Callable[[KnowledgeBaseRow], Embedder]
    _encoding: QueryEncoding = field(init=False)
    _known: KnowledgeBaseRow | None = None
    _config: tuple[object, KnowledgeBaseConfig] | None = None

    def __post_init__(self) -> None:
        self._encoding = QueryEncoding(self.database, self.embedder)

    def pool(self, query: Query) -> Pool:
        """The candidates for a query.

        Raises:
            EmbedderError: The embedder failed.
            NotFoundError: The knowledge base was deleted.
        """
        while True:
            known = self._known
            encoded = Encoded()
            if query.mode is not Mode.LEXICAL and known is not None:
                try:
                    encoded = self._encode(known, query)
                except EmbedderError:
                    if self._renewed().embedder == known.embedder:
                        raise
                    continue  # another process has changed the embedder
            # the vector comes first, since a model may take long
            with self.database.read() as connection:
                if known is None:
                    row = registry.get_by_id(connection, self.kb_id)
                else:
                    row = registry.renewed(connection, known)
                self._known = row
                if known is not None and known.embedder == row.embedder:
                    return self._pool(connection, row, query, encoded)

    def _renewed(self) -> KnowledgeBaseRow:
        with self.database.read() as connection:
            self._known = registry.get_by_id(connection, self.kb_id)
        return self._known

    def _encode(self, row: KnowledgeBaseRow, query: Query) -> Encoded:
        config = self._configuration(row)
        settings = query.settings or config.retrieval
        terms = analyzer(config.language).query_terms(query.text)
        return self._encoding.encode(row, settings, query.mode, query.text, terms)

    def _pool(
        self, connection: sa.Connection, row: KnowledgeBaseRow, query: Query, encoded: Encoded
    ) -> Pool:
        config = self._configuration(row)
        settings = query.settings or config.retrieval
        wanted = Wanted(
            terms=tuple(analyzer(config.language).query_terms(query.text)),
            vector=encoded.vector,
            mode=query.mode,
            size=settings.candidates,
            limit=seen(settings.postprocessors, query.limit),
            filters=query.filters,
        )
        totals = ratings.totals(connection, row.id)
        snapshot = self.snapshots.get(row)
        ready = snapshot is not None and (is_small(snapshot) or self.vectors.is_open(row))
        self.warmer.searched(row.id, ready=ready)
        view = View(connection, row, self.vectors, totals)
        if snapshot is None and query.filters:
            snapshot = self.snapshots.made(connection, row)
        if snapshot is None:
            candidates = from_catalog(view, wanted)
        else:
            candidates = from_snapshot(view, snapshot, wanted)
        return Pool(
            kb=row.name,
            language=config.language,
            settings=settings,
            terms=wanted.terms,
            candidates=candidates,
            columns=_columns(candidates, wanted, totals, config.language),
            notes=tuple(note for note in (encoded.note, _outdated(row)) if note),
        )

    def chunks(self, seqs: Sequence[int]) -> dict[int, tuple[Chunk, Document]]:
        """Chunks with their documents, by ``seq``; those that have gone meanwhile are missing."""
        with self.database.read() as connection:
            return contents.get_chunks(connection, seqs)

    def _configuration(self, row: KnowledgeBaseRow) -> KnowledgeBaseConfig:
        """The configuration in a row of the catalog, read when it has changed."""
        if self._config is None or self._config[0] != row.config:
            self._config = (row.config, KnowledgeBaseConfig.model_validate(row.config))
        return self._config[1]


def _outdated(row: KnowledgeBaseRow) -> str:
    if row.analyzer == REVISION:
        return ""
    return (
        f"{row.name}: an older kbkit indexed its words, so some are not found; "
        f"`kbkit refresh {row.name}` indexes them again"
    )


def search(retrievers: Sequence[Retriever], query: Query) -> Hits:
    """The chunks that answer a query, best first, out of one knowledge base or several.

    Candidates of all knowledge bases are normalised together, so that a score means the same
    whichever it comes from.

    Args:
        retrievers: One a knowledge base.
        query: What is asked.

    Raises:
        EmbedderError: An embedder failed.
        NotFoundError: A knowledge base was deleted.
        PostprocessorError: A postprocessor cannot be opened, or failed.
    """
    start = time.perf_counter()
    pools = [retriever.pool(query) for retriever in retrievers]
    settings = query.settings or (pools[0].settings if pools else None)
    last = settings.postprocessors if settings else ()
    ranked = rank(pools, seen(last, query.limit), query.mode, settings)
    found = [
        retriever.chunks([place.seq for place in ranked if place.pool is pool])
        for retriever, pool in zip(retrievers, pools, strict=True)
    ]
    by_pool = {id(pool): chunks for pool, chunks in zip(pools, found, strict=True)}
    hits = [
        _hit(place, *by_pool[id(place.pool)][place.seq])
        for place in ranked
        if place.seq in by_pool[id(place.pool)]
    ]
    shown = postprocessed(hits, query.text, last, query.limit)
    notes = tuple(dict.fromkeys(note for pool in pools for note in pool.notes))
    return Hits(query.text, shown, time.perf_counter() - start, notes)


def _columns(
    candidates: Candidates, wanted: Wanted, totals: Totals, language: str
) -> dict[str, Scores]:
    average, raters = _rated(candidates, totals)
    return {
        "cosine": _cosines(candidates, wanted.vector),
        "bm25": bm25_scores(candidates.counts, candidates.lengths, candidates.statistics),
        "title": _shares(candidates.titles, wanted.terms, language),
        "heading": _shares(candidates.headings, wanted.terms, language),
        "rating": rating_prior(average, raters),
        "sizes": candidates.sizes.astype(np.float64),
    }


def _cosines(candidates: Candidates, vector: Vector | None) -> Scores:
    if vector is None:
        return np.zeros(len(candidates.seqs))
    # unlike BLAS, the same for the same vector whatever else is a candidate
    return np.asarray(np.einsum("ij,j->i", candidates.vectors, vector), np.float64)


def _shares(texts: Sequence[str], terms: Sequence[str], language: str) -> Scores:
    """Share of the query's terms that stand in each text."""
    wanted = frozenset(terms)
    if not wanted:
        return np.zeros(len(texts))
    return np.array([len(wanted & _terms_of(text, language)) for text in texts]) / len(wanted)


@lru_cache(maxsize=100_000)
def _terms_of(text: str, language: str) -> frozenset[str]:
    return frozenset(analyzer(language).terms(text))


def _rated(candidates: Candidates, totals: Totals) -> tuple[Scores, Scores]:
    """Average and number of the ratings of each candidate, or of its document where it has none."""
    count = len(candidates.seqs)
    if not totals.chunks and not totals.documents:
        return np.zeros(count), np.zeros(count)
    nothing = Total(0, 0.0)
    found = [
        totals.chunks.get(int(seq)) or totals.documents.get(document) or nothing
        for seq, document in zip(candidates.seqs, candidates.document_ids, strict=True)
    ]
    return (
        np.array([total.average for total in found], np.float64),
        np.array([total.raters for total in found], np.float64),
    )


def _hit(place: Ranked, chunk: Chunk, document: Document) -> Hit:
    return Hit(
        kb=place.pool.kb,
        score=place.parts.total,
        parts=place.parts,
        chunk=chunk,
        uri=document.uri,
        title=document.title,
        document_type=document.document_type,
        tags=document.tags,
        fetched_at=document.fetched_at,
        cut=Snippet(chunk.text, place.pool.terms, place.pool.language),
    )
