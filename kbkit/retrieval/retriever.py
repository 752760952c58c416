"""Answers queries: two legs of candidates from each knowledge base, exact scores, one ranking."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import sqlalchemy as sa

from kbkit.embedding.base import Embedder, Vector
from kbkit.errors import ConfigError
from kbkit.models import Chunk, Document, Hit, Hits, Mode, ScoreParts
from kbkit.recipes import KnowledgeBaseConfig
from kbkit.retrieval.bm25 import CorpusStatistics, bm25_scores
from kbkit.retrieval.fusion import Scores, Weights, fuse, ranking
from kbkit.retrieval.snippet import snippet
from kbkit.stores import contents, lexical, registry
from kbkit.stores.contents import Candidate
from kbkit.stores.database import Database
from kbkit.stores.registry import KnowledgeBaseRow
from kbkit.stores.vectors import VectorIndex
from kbkit.text import Analyzer, analyzer

LONGEST_QUERY = 10_000
"""Characters of a query that are read; the rest is left out."""

_DENSE_WEIGHTS = {Mode.DENSE: 1.0, Mode.LEXICAL: 0.0}
"""Of the modes that use one leg."""


@dataclass(frozen=True, slots=True)
class Pool:
    """The candidates that one knowledge base has for a query, scored.

    Attributes:
        cosine: Of query and candidates, shape ``(n,)``.
        bm25: Of the candidates, shape ``(n,)``.
        title: Share of the query's terms in the candidates' titles, shape ``(n,)``.
    """

    retriever: Retriever
    kb: str
    config: KnowledgeBaseConfig
    terms: list[str]
    candidates: list[Candidate]
    cosine: Scores
    bm25: Scores
    title: Scores


@dataclass(slots=True)
class Retriever:
    """Finds candidates in one knowledge base as it is in the catalog at that moment."""

    database: Database
    vectors: VectorIndex
    kb_id: str
    embedder: Embedder
    _sizes: dict[int, tuple[int, int]] = field(default_factory=dict)
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def pool(self, query: str, limit: int, mode: Mode) -> Pool:
        """The candidates for a query.

        Raises:
            EmbedderError: The embedder failed.
            NotFoundError: The knowledge base was deleted.
        """
        vector = None if mode is Mode.LEXICAL else self.embedder.embed_query(query)
        with self.database.read() as connection:
            row = registry.get_by_id(connection, self.kb_id)
            config = KnowledgeBaseConfig.model_validate(row.config)
            terms = analyzer(config.language).terms(query)
            size = max(config.retrieval.candidates, limit)
            frequencies = lexical.document_frequencies(connection, self.kb_id, terms)
            ids: list[str] = []
            seqs: list[int] = []
            if vector is not None:
                ids, seqs = self.vectors.nearest(connection, row, vector, size)
            if mode is not Mode.DENSE:
                seqs += lexical.candidates(connection, self.kb_id, frequencies, size)
            candidates = contents.candidates(
                connection, self.kb_id, row.dimensions, seqs=seqs, ids=ids
            )
            statistics = self._statistics(connection, row, frequencies)
        return Pool(
            retriever=self,
            kb=row.name,
            config=config,
            terms=terms,
            candidates=candidates,
            cosine=_cosines(candidates, vector),
            bm25=bm25_scores(
                terms, [c.terms for c in candidates], [c.length for c in candidates], statistics
            ),
            title=_title_shares(candidates, terms, analyzer(config.language)),
        )

    def chunks(self, seqs: Sequence[int]) -> dict[int, tuple[Chunk, Document]]:
        """Chunks with their documents, by ``seq``; those that have gone meanwhile are missing."""
        with self.database.read() as connection:
            return contents.get_chunks(connection, seqs)

    def _statistics(
        self, connection: sa.Connection, row: KnowledgeBaseRow, frequencies: dict[str, int]
    ) -> CorpusStatistics:
        with self._mutex:
            if row.version not in self._sizes:
                self._sizes = {row.version: contents.corpus_size(connection, row.id)}
            chunks, length = self._sizes[row.version]
        return CorpusStatistics(chunks, length / chunks if chunks else 0.0, frequencies)


def search(
    retrievers: Sequence[Retriever], query: str, limit: int = 10, mode: str | Mode = Mode.HYBRID
) -> Hits:
    """The chunks that answer a query, best first, out of one knowledge base or several.

    Candidates of all knowledge bases are normalised together, so that a score means the same
    whichever it comes from.

    Args:
        retrievers: One a knowledge base.
        query: A question or some words.
        limit: Most hits, 1 or more.
        mode: ``hybrid``, ``dense`` or ``lexical``.

    Raises:
        ConfigError: The query is empty, or limit or mode is wrong.
        EmbedderError: An embedder failed.
        NotFoundError: A knowledge base was deleted.
    """
    start = time.perf_counter()
    mode = _checked(query, limit, mode)
    # lone surrogates, as broken bytes of a command line become, can be neither stored nor read
    query = query[:LONGEST_QUERY].encode("utf-8", "replace").decode()
    pools = [retriever.pool(query, limit, mode) for retriever in retrievers]
    ranked = _ranked(pools, mode)[:limit]
    found = {
        id(pool): pool.retriever.chunks([c.seq for p, c, _ in ranked if p is pool])
        for pool in pools
    }
    hits = tuple(
        _hit(pool, *found[id(pool)][candidate.seq], parts)
        for pool, candidate, parts in ranked
        if candidate.seq in found[id(pool)]
    )
    return Hits(query, hits, time.perf_counter() - start)


def _ranked(pools: Sequence[Pool], mode: Mode) -> list[tuple[Pool, Candidate, ScoreParts]]:
    """All candidates of all pools, best first."""
    if not pools:
        return []
    settings = pools[0].config.retrieval
    weights = Weights(
        dense=_DENSE_WEIGHTS.get(mode, settings.dense_weight),
        document=settings.document_weight,
        title=settings.title_weight,
    )
    owners = [(pool, candidate) for pool in pools for candidate in pool.candidates]
    documents = [candidate.document_id for _, candidate in owners]
    parts = fuse(
        np.concatenate([pool.cosine for pool in pools]),
        np.concatenate([pool.bm25 for pool in pools]),
        np.concatenate([pool.title for pool in pools]),
        documents,
        weights,
    )
    order = ranking(parts, documents, settings.per_document)
    return [(*owners[i], parts[i]) for i in order]


def _cosines(candidates: Sequence[Candidate], vector: Vector | None) -> Scores:
    if vector is None or not candidates:
        return np.zeros(len(candidates))
    return (np.stack([c.vector for c in candidates]) @ vector).astype(np.float64)


def _title_shares(
    candidates: Sequence[Candidate], terms: Sequence[str], analyze: Analyzer
) -> Scores:
    """Share of the distinct query terms that stand in each candidate's title."""
    wanted = set(terms)
    if not wanted:
        return np.zeros(len(candidates))
    shares = {
        title: len(wanted.intersection(analyze.terms(title))) / len(wanted)
        for title in {candidate.title for candidate in candidates}
    }
    return np.array([shares[candidate.title] for candidate in candidates], dtype=np.float64)


def _hit(pool: Pool, chunk: Chunk, document: Document, parts: ScoreParts) -> Hit:
    return Hit(
        kb=pool.kb,
        score=parts.total,
        parts=parts,
        chunk=chunk,
        uri=document.uri,
        title=document.title,
        document_type=document.document_type,
        tags=document.tags,
        snippet=snippet(chunk.text, pool.terms, analyzer(pool.config.language)),
        fetched_at=document.fetched_at,
    )


def _checked(query: str, limit: int, mode: str | Mode) -> Mode:
    if not query.strip():
        raise ConfigError("the query is empty; ask for something")
    if limit < 1:
        raise ConfigError(f"limit={limit}: ask for 1 hit or more")
    try:
        return Mode(mode)
    except ValueError:
        modes = ", ".join(Mode)
        raise ConfigError(f"mode={mode!r}: not known; choose one of {modes}") from None
