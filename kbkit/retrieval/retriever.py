"""Answers a query over one knowledge base: two legs of candidates, exact scores, one ranking."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

import numpy as np
import sqlalchemy as sa

from kbkit.embedding.base import Embedder, Vector
from kbkit.errors import ConfigError
from kbkit.models import Chunk, Document, Hit, Hits, Mode, ScoreParts
from kbkit.recipes import KnowledgeBaseConfig
from kbkit.retrieval.bm25 import CorpusStatistics, bm25_scores
from kbkit.retrieval.fusion import convex, ranking
from kbkit.retrieval.snippet import snippet
from kbkit.stores import catalog, lexical, registry
from kbkit.stores.catalog import Candidate
from kbkit.stores.database import Database
from kbkit.stores.registry import KnowledgeBaseRow
from kbkit.stores.vectors import VectorIndex
from kbkit.text import Analyzer, analyzer

LONGEST_QUERY = 10_000
"""Characters of a query that are read; the rest is left out."""


@dataclass(slots=True)
class Retriever:
    """Searches one knowledge base as it is in the catalog at that moment."""

    database: Database
    vectors: VectorIndex
    kb_id: str
    embedder: Embedder
    _sizes: dict[int, tuple[int, int]] = field(default_factory=dict)
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def search(self, query: str, limit: int = 10, mode: str | Mode = Mode.HYBRID) -> Hits:
        """The chunks that answer a query, best first.

        Args:
            query: A question or some words.
            limit: Most hits, 1 or more.
            mode: ``hybrid``, ``dense`` or ``lexical``.

        Raises:
            ConfigError: The query is empty, or limit or mode is wrong.
            EmbedderError: The embedder failed.
            NotFoundError: The knowledge base was deleted.
        """
        start = time.perf_counter()
        mode = check_query(query, limit, mode)
        query = query[:LONGEST_QUERY]
        vector = None if mode is Mode.LEXICAL else self.embedder.embed_query(query)
        with self.database.read() as connection:
            row = registry.get_by_id(connection, self.kb_id)
            config = KnowledgeBaseConfig.model_validate(row.config)
            analyze = analyzer(config.language)
            terms = analyze.terms(query)
            pool = max(config.retrieval.candidates, limit)
            frequencies = lexical.document_frequencies(connection, self.kb_id, terms)
            ids, seqs = ([], []) if vector is None else self.vectors.nearest(
                connection, row, vector, pool
            )  # fmt: skip
            if mode is not Mode.DENSE:
                seqs = seqs + lexical.candidates(connection, self.kb_id, frequencies, pool)
            candidates = catalog.candidates(
                connection, self.kb_id, row.dimensions, seqs=seqs, ids=ids
            )
            statistics = self._statistics(connection, row, frequencies)
            weight = _WEIGHTS.get(mode, config.retrieval.dense_weight)
            parts = _scores(candidates, vector, terms, statistics, weight)
            best = [i for i in ranking(parts) if parts[i].dense + parts[i].lexical > 0][:limit]
            found = catalog.get_chunks(connection, [candidates[i].seq for i in best])
        hits = tuple(
            _hit(
                row.name,
                *found[candidates[i].seq],
                parts=parts[i],
                terms=terms,
                analyze=analyze,
            )
            for i in best
        )
        return Hits(query, hits, time.perf_counter() - start)

    def _statistics(
        self, connection: sa.Connection, row: KnowledgeBaseRow, frequencies: dict[str, int]
    ) -> CorpusStatistics:
        with self._mutex:
            if row.version not in self._sizes:
                self._sizes = {row.version: catalog.corpus_size(connection, row.id)}
            chunks, length = self._sizes[row.version]
        return CorpusStatistics(chunks, length / chunks if chunks else 0.0, frequencies)


_WEIGHTS = {Mode.DENSE: 1.0, Mode.LEXICAL: 0.0}
"""Dense weight of the modes that use one leg."""


def _scores(
    candidates: list[Candidate],
    vector: Vector | None,
    terms: list[str],
    statistics: CorpusStatistics,
    dense_weight: float,
) -> list[ScoreParts]:
    cosine = np.zeros(len(candidates))
    if vector is not None and candidates:
        cosine = (np.stack([c.vector for c in candidates]) @ vector).astype(np.float64)
    bm25 = bm25_scores(
        terms, [c.terms for c in candidates], [c.length for c in candidates], statistics
    )
    return convex(cosine, bm25, dense_weight)


def _hit(
    kb: str,
    chunk: Chunk,
    document: Document,
    *,
    parts: ScoreParts,
    terms: list[str],
    analyze: Analyzer,
) -> Hit:
    return Hit(
        kb=kb,
        score=parts.dense + parts.lexical,
        parts=parts,
        chunk=chunk,
        uri=document.uri,
        title=document.title,
        document_type=document.document_type,
        tags=document.tags,
        snippet=snippet(chunk.text, terms, analyze),
        fetched_at=document.fetched_at,
    )


def check_query(query: str, limit: int, mode: str | Mode) -> Mode:
    """Check what a search was asked.

    Raises:
        ConfigError: The query is empty, or limit or mode is wrong.
    """
    if not query.strip():
        raise ConfigError("the query is empty; ask for something")
    if limit < 1:
        raise ConfigError(f"limit={limit}: ask for 1 hit or more")
    try:
        return Mode(mode)
    except ValueError:
        modes = ", ".join(Mode)
        raise ConfigError(f"mode={mode!r}: not known; choose one of {modes}") from None
