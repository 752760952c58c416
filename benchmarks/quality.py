"""How well kbkit finds what answers a question, beside its single legs, RRF and peers.

nDCG@10 over every corpus of ``../shared/eval``: pages of the Python documentation, abstracts of
SciFact and Cranfield, passages of Chroma's chunking corpora. All systems embed with the same
static model, and all but llama-index search kbkit's chunks.

Run from the project's root: ``python benchmarks/quality.py [CORPUS ...] [--minilm]``. With
``--minilm`` chunks are embedded by MiniLM (slow: minutes for SciFact, an hour for Python's
documentation), and queries by MiniLM and by the encoder that is fitted to its vectors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import _peers
import numpy as np
from _corpora import Corpus, Place, bench_folder, corpora, report, table

from kbkit.knowledge_base import handle_of
from kbkit.models import Hits
from kbkit.recipes import AnyEmbedding, OnnxEmbedding, RetrievalSpec, StaticEmbedding
from kbkit.retrieval.query import Query

HITS = 100
"""Passages read to find ten different pages."""


def places(hits: Hits) -> list[Place]:
    return [Place(hit.uri, hit.chunk.start, hit.chunk.end) for hit in hits]


def kbkit_search(corpus: Corpus, mode: str, **settings: object) -> _peers.Search:
    spec = RetrievalSpec.model_validate({**corpus.kb.spec.retrieval.model_dump(), **settings})
    return lambda query, limit: places(
        corpus.kb.search(query, limit=limit, mode=mode, retrieval=spec)
    )


def reciprocal_ranks(corpus: Corpus) -> _peers.Search:
    """Reciprocal rank fusion of the same candidates (Cormack, Clarke and Buettcher, 2009)."""

    def search(query: str, limit: int) -> list[Place]:
        pool = handle_of(corpus.kb).retriever.pool(Query.of(query, limit))
        total = np.zeros(len(pool.candidates.seqs))
        for leg in ("cosine", "bm25"):
            ranks = np.empty(len(total))
            ranks[np.argsort(-pool.columns[leg], kind="stable")] = np.arange(len(total))
            total += 1 / (61 + ranks)
        order = np.argsort(-total, kind="stable")[:limit]
        seqs = [int(pool.candidates.seqs[i]) for i in order]
        chunks = handle_of(corpus.kb).retriever.chunks(seqs)
        return [Place(chunks[s][1].uri, chunks[s][0].start, chunks[s][0].end) for s in seqs]

    return search


def systems(
    corpus: Corpus, embedding: AnyEmbedding, folder: Path
) -> dict[str, Callable[[], _peers.Search]]:
    """What is compared, made when its turn comes."""
    found: dict[str, Callable[[], _peers.Search]] = {
        "kbkit, hybrid (default)": lambda: kbkit_search(corpus, "hybrid"),
        "kbkit, dense leg": lambda: kbkit_search(corpus, "dense"),
        "kbkit, lexical leg": lambda: kbkit_search(corpus, "lexical"),
        "reciprocal rank fusion of both": lambda: reciprocal_ranks(corpus),
    }
    if isinstance(embedding, OnnxEmbedding):

        def fitted(mode: str) -> _peers.Search:
            corpus.kb.chunks.fit_query_encoder()
            return kbkit_search(corpus, mode, query_encoder="fitted")

        found["kbkit, hybrid, fitted query encoder"] = lambda: fitted("hybrid")
        found["kbkit, dense leg, fitted query encoder"] = lambda: fitted("dense")
        return found
    home = folder / f"peers-{corpus.name}"
    chunks = _peers.Chunks(corpus.kb, embedding)
    return found | {
        "llama-index + Chroma": lambda: _peers.llama_index_chroma(chunks, home),
        "Chroma": lambda: _peers.chroma_alone(chunks, home),
        "rank-bm25": lambda: _peers.rank_bm25_alone(chunks),
        "bm25s": lambda: _peers.bm25s_alone(chunks),
        "numpy, exact cosine": lambda: _peers.numpy_scan(chunks),
    }


def main() -> None:
    names = [name for name in sys.argv[1:] if not name.startswith("-")]
    minilm = "--minilm" in sys.argv
    embedding: AnyEmbedding = OnnxEmbedding(preset="minilm") if minilm else StaticEmbedding()
    figures: dict[str, dict[str, float]] = {}
    with bench_folder() as folder:
        for corpus in corpora(folder, embedding, names):
            for system, made in systems(corpus, embedding, folder).items():
                search = made()
                scores = [q.ndcg(search(q.text, HITS)) for q in corpus.questions]
                figures.setdefault(system, {})[corpus.name] = float(np.mean(scores))
    heads = list(dict.fromkeys(name for row in figures.values() for name in row))
    rows = [
        [system, *(f"{row[name]:.4f}" if name in row else "" for name in heads)]
        for system, row in figures.items()
    ]
    if rows:
        report("quality-minilm" if minilm else "quality", table(["nDCG@10", *heads], rows))


if __name__ == "__main__":
    main()
