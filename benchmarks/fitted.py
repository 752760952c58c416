"""Compare the fitted query encoder with the models that it stands in for.

nDCG@10 on SciFact and Cranfield of ``../shared/eval``, each abstract one chunk, by vectors alone
and by kbkit's fusion. Cosines and BM25 of all chunks are computed, so that no index matters. The
model's own term vectors as a prior are shown for a part of the smaller collection: they cost an
embedding a term and are meant for few chunks.

Run from the project's root: ``python benchmarks/fitted.py [CORPUS ...]``. Takes minutes, most of
them for MiniLM.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from _corpora import EVAL, collection, report, table
from numpy.typing import NDArray

from kbkit.embedding import Embedder, Matrix, Vector, open_embedder
from kbkit.embedding.fitted import PRIOR_BELOW, FittedEncoder, fit
from kbkit.embedding.regression import term_vectors
from kbkit.ingest.cutting import embedded_text
from kbkit.recipes import (
    AnyEmbedding,
    KnowledgeBaseSpec,
    OnnxEmbedding,
    RetrievalSpec,
    StaticEmbedding,
)
from kbkit.retrieval.fusion import (
    CorpusStatistics,
    Features,
    Weights,
    fuse,
    length_norms,
    word_scores,
)
from kbkit.text.analysis import analyzer

DEPTH = 10
EMBEDDINGS: dict[str, AnyEmbedding] = {
    "WordLlama": StaticEmbedding(),
    "MiniLM": OnnxEmbedding(preset="minilm"),
}
DEFAULTS = {label: KnowledgeBaseSpec(embedding=one).retrieval for label, one in EMBEDDINGS.items()}
PART = 200
"""Number of abstracts in the small knowledge base."""


@dataclass(frozen=True, slots=True)
class Collection:
    """Abstracts, questions, and the grades of each question's abstracts by their number."""

    titles: list[str]
    texts: list[str]
    questions: list[str]
    grades: list[dict[int, float]]

    def part(self, size: int) -> Collection:
        """Return some of the abstracts and the questions that they answer."""
        keep = np.sort(np.random.default_rng(0).permutation(len(self.texts))[:size]).tolist()
        place = {old: new for new, old in enumerate(keep)}
        left = [{place[i]: g for i, g in one.items() if i in place} for one in self.grades]
        asked = [q for q, one in zip(self.questions, left, strict=True) if one]
        titles = [self.titles[i] for i in keep]
        return Collection(titles, [self.texts[i] for i in keep], asked, [g for g in left if g])


def read(name: str) -> Collection:
    documents, asked, graded = collection(name)
    rows = {document["id"]: row for row, document in enumerate(documents)}
    return Collection(
        [document["title"] for document in documents],
        [embedded_text(document["title"], (), document["text"]) for document in documents],
        [one["text"] for one in asked],
        [
            {rows[key]: grade for key, grade in graded[one["id"]].items() if key in rows}
            for one in asked
        ],
    )


class Lexical:
    """Terms of a collection, with BM25 and title scores for a question."""

    def __init__(self, collection: Collection) -> None:
        terms_of = analyzer("english").terms
        self.terms = [terms_of(text) for text in collection.texts]
        self.titles = [terms_of(title) for title in collection.titles]
        self.questions = [terms_of(question) for question in collection.questions]
        self.lengths = np.array([len(terms) for terms in self.terms], np.int32)
        postings: dict[str, dict[int, int]] = defaultdict(dict)
        for row, terms in enumerate(self.terms):
            for term, count in Counter(terms).items():
                postings[term][row] = count
        self._postings = {
            term: (np.fromiter(found, np.int64), np.fromiter(found.values(), np.uint16))
            for term, found in postings.items()
        }
        average = float(self.lengths.mean())
        frequencies = {term: len(rows) for term, rows in postings.items()}
        self._statistics = CorpusStatistics(len(self.terms), average, frequencies)
        self._norms = length_norms(self.lengths, average)

    def bm25(self, question: Sequence[str]) -> NDArray[np.float64]:
        terms = sorted({term for term in question if term in self._postings})
        postings = {term: self._postings[term] for term in terms}
        return word_scores(postings, self._norms, self._statistics).astype(np.float64)

    def title(self, question: Sequence[str]) -> NDArray[np.float64]:
        """Return the share of the question's terms in each abstract's title."""
        wanted = set(question)
        shares = [len(wanted.intersection(title)) / max(1, len(wanted)) for title in self.titles]
        return np.array(shares)


def ndcg(scores: NDArray[np.float64], grades: Mapping[int, float]) -> float:
    discounts = 1 / np.log2(np.arange(DEPTH) + 2)
    best = np.argsort(-scores, kind="stable")[:DEPTH]
    gains = np.array([grades.get(int(row), 0.0) for row in best])
    ideal = np.array(sorted(grades.values(), reverse=True)[:DEPTH])
    return float(gains @ discounts[: len(gains)] / (ideal @ discounts[: len(ideal)]))


def quality(
    collection: Collection, lexical: Lexical, vectors: Matrix, queries: Matrix, spec: RetrievalSpec
) -> tuple[float, float]:
    """Return nDCG@10 in per cent by vectors alone and by fusion with the weights of `spec`."""
    weights = Weights(
        spec.dense_weight,
        spec.document_weight,
        spec.title_weight,
        spec.heading_weight,
        rating=0,
        summary=0,
        page=0,
    )
    none = np.zeros(len(vectors))
    documents, sizes = np.arange(len(vectors)), np.ones(len(vectors), np.int64)
    results = []
    for query, terms, grades in zip(queries, lexical.questions, collection.grades, strict=True):
        cosine = (vectors @ query).astype(np.float64)
        features = Features(
            cosine,
            lexical.bm25(terms),
            lexical.title(terms),
            none,
            none,
            documents,
            sizes,
            *[none] * 8,
        )
        results.append((ndcg(cosine, grades), ndcg(fuse(features, weights).total, grades)))
    dense, hybrid = np.mean(results, axis=0) * 100
    return float(dense), float(hybrid)


def timed(embed: Callable[[], Vector], rounds: int = 20) -> float:
    """Return the microseconds of the fastest round."""
    spans = []
    for _ in range(rounds):
        began = time.perf_counter()
        embed()
        spans.append(time.perf_counter() - began)
    return min(spans) * 1e6


def rows_of(
    name: str, collection: Collection, vectors: Mapping[str, Matrix], models: Mapping[str, Embedder]
) -> list[list[str]]:
    lexical = Lexical(collection)
    rows = []

    def add(what: str, label: str, fitted_in: str, queries: Matrix, micros: float) -> None:
        dense, hybrid = quality(collection, lexical, vectors[label], queries, DEFAULTS[label])
        rows.append([name, what, f"{dense:.1f}", f"{hybrid:.1f}", fitted_in, f"{micros:.0f}"])
        print(rows[-1], file=sys.stderr)

    question, terms = collection.questions[0], lexical.questions[0]
    for label in ("WordLlama", "MiniLM"):
        model = models[label]
        queries = model.embed_passages(collection.questions)
        micros = timed(lambda model=model: model.embed_query(question))  # type: ignore[misc]
        add(f"{label} on both sides", label, "", queries, micros)
    terms_of = analyzer("english").terms

    def of_words(label: str) -> Mapping[str, Vector]:
        return term_vectors(models[label], collection.texts, terms_of)

    ways: list[tuple[str, Callable[[], FittedEncoder]]] = [
        ("MiniLM, queries fitted, chunks alone", lambda: fitted(lexical, vectors["MiniLM"])),
        (
            "the same with WordLlama's vectors of words",
            lambda: fitted(lexical, vectors["MiniLM"], words=of_words("WordLlama")),
        ),
    ]
    if len(collection.texts) < 4 * PRIOR_BELOW:
        ways.append(
            (
                "drawn to the model's own term vectors",
                lambda: fitted(lexical, vectors["MiniLM"], prior=of_words("MiniLM")),
            )
        )
    for label, way in ways:
        began = time.process_time()
        encoder = way()
        seconds = f"{time.process_time() - began:.1f}"
        queries = np.stack([encoder.encode(asked) for asked in lexical.questions])
        micros = timed(lambda encoder=encoder: encoder.encode(terms))  # type: ignore[misc]
        add(label, "MiniLM", seconds, queries, micros)
    return rows


def fitted(
    lexical: Lexical,
    vectors: Matrix,
    prior: Mapping[str, Vector] | None = None,
    words: Mapping[str, Vector] | None = None,
) -> FittedEncoder:
    return fit(
        vectors,
        lexical.terms,
        embedder="minilm",
        heading_terms=lexical.titles,
        prior=prior or {},
        words=words or {},
    )


def main() -> None:
    names = sys.argv[1:] or ["cranfield", "scifact"]
    models = {label: open_embedder(one.chosen) for label, one in EMBEDDINGS.items()}
    rows: list[list[str]] = []
    for name in names:
        if not (EVAL / name / "qrels.tsv").is_file():
            print(f"{EVAL / name}: no test collection there, left out")
            continue
        whole = read(name)
        vectors = {label: model.embed_passages(whole.texts) for label, model in models.items()}
        rows += rows_of(f"{name}, {len(whole.texts)}", whole, vectors, models)
        if len(whole.texts) < 4 * PRIOR_BELOW:
            part = whole.part(PART)
            kept = {text: row for row, text in enumerate(whole.texts)}
            chosen = [kept[text] for text in part.texts]
            some = {label: found[chosen] for label, found in vectors.items()}
            rows += rows_of(f"{name}, {PART} of them", part, some, models)
    head = ["chunks", "vectors and queries", "dense", "hybrid", "fit, CPU s", "query, µs"]
    if rows:
        report("fitted", ["nDCG@10 in per cent", "", *table(head, rows)])


if __name__ == "__main__":
    main()
