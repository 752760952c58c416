"""Fit the query encoder of a knowledge base."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding import Embedder, Matrix, Vector, fitted
from kbkit.embedding.regression import MAX_TERMS, term_vectors
from kbkit.embedding.static import StaticEmbedder
from kbkit.errors import EmbedderError, ImpossibleError
from kbkit.recipes import KnowledgeBaseSpec
from kbkit.stores.catalog import corpus, database, knowledge_bases, ratings, reading
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow, spec_of
from kbkit.stores.catalog.ratings import EncoderTarget, QuestionVectors
from kbkit.text.analysis import REVISION, analyzer

_MADE_BY: Mapping[EncoderTarget, str] = {
    "chunks": f"{fitted.FIT_REVISION}.{REVISION}",
    "summaries": f"{fitted.TEXTS_REVISION}.{REVISION}",
}
"""Fingerprint of a fit: method and analyzer."""
_CHANGED_SHARE = 0.2
"""Share of added or removed chunks above which an encoder is outdated."""
_LOCAL = ("static", "onnx")
"""Types of embedders that embed single words at no cost."""
_REMOTE = ("llama-index",)
"""Types of embedders that may use the network, so that an encoder must be ready."""


def is_due(transaction: Transaction, row: KnowledgeBaseRow) -> bool:
    """Whether a knowledge base needs a new query encoder.

    It has one if its recipe says ``query_encoder: fitted`` or its embedder may use the network. A
    new one is due when a fifth of the chunks or the fitting method changed.
    """
    config = spec_of(row)
    is_used = config.retrieval.query_encoder == "fitted" or config.embedding.chosen.type in _REMOTE
    return is_used and is_outdated(transaction, row)


def is_outdated(
    transaction: Transaction, row: KnowledgeBaseRow, target: EncoderTarget = "chunks"
) -> bool:
    count = corpus.count_chunks(transaction, row.id)
    if not count:
        return False
    state = ratings.encoder_state(transaction, row.id, target)
    embedder = row.embedder if target == "chunks" else row.summary_embedder
    if state is None or state.embedder != embedder:
        return True
    if state.report.get("made_by") != _MADE_BY[target]:
        return True
    last_seq = int(state.report.get("last_seq", 0))
    added = corpus.count_chunks(transaction, row.id, after=last_seq)
    removed = state.chunks + added - count
    reembedded = 0
    if target == "chunks":
        reembedded = corpus.count_changed_vectors(transaction, row.id, state.version)
    return max(added, removed, reembedded) > _CHANGED_SHARE * state.chunks


def fit_encoder(
    database: Database, kb_id: str, embedder: Callable[[KnowledgeBaseRow], Embedder]
) -> Mapping[str, Any]:
    with database.read() as transaction:
        row = knowledge_bases.get_by_id(transaction, kb_id)
        config = spec_of(row)
        corpus = _read(transaction, row, analyzer(config.language).terms)
    if not corpus.terms:
        raise ImpossibleError(f"{row.name}: has no chunks to fit a query encoder to; add documents")
    embedding = config.embedding.chosen
    prior: Mapping[str, Vector] = {}
    words: Mapping[str, Vector] = {}
    with suppress(EmbedderError):  # optional; the report states whether they were used
        if len(corpus.terms) >= fitted.PRIOR_BELOW:
            if embedding.type != "static":  # its chunk vectors contain the word vectors
                words = _term_vectors(database, row, config, StaticEmbedder())
        elif embedding.type in _LOCAL:
            prior = _term_vectors(database, row, config, embedder(row))
    encoder = fitted.fit(
        corpus.vectors,
        corpus.terms,
        embedder=row.embedder,
        heading_terms=corpus.headings,
        prior=prior,
        words=words,
    )
    return _save(database, row, corpus, encoder, "chunks")


def fit_summary_encoder(database: Database, kb_id: str, model: Embedder) -> Mapping[str, Any]:
    """Fit and store a query encoder for document summaries, for machines without their model.

    The model embeds some thousand words and short texts, which takes up to a minute.
    """
    with database.read() as transaction:
        row = knowledge_bases.get_by_id(transaction, kb_id)
        terms_of = analyzer(spec_of(row).language).terms
        chunk_corpus = _read(transaction, row, terms_of)
        chunks = list(reading.iter_chunks(transaction, kb_id))
    texts = fitted.choose_texts(
        (chunk.heading_path[-1] for chunk in chunks if chunk.heading_path),
        [chunk.text for chunk in chunks],
    )
    encoder = fitted.fit_to_texts(
        model.embed_passages(texts),
        [terms_of(text) for text in texts],
        chunk_terms=chunk_corpus.terms,
        words=term_vectors(model, (chunk.text for chunk in chunks), terms_of, fitted.MAX_WORDS),
        embedder=model.fingerprint,
    )
    return _save(database, row, chunk_corpus, encoder, "summaries")


@dataclass(frozen=True, slots=True)
class _Corpus:
    vectors: Matrix
    terms: Sequence[Sequence[str]]
    headings: Sequence[Sequence[str]]
    last_seq: int


def _save(
    database: Database,
    row: KnowledgeBaseRow,
    corpus: _Corpus,
    encoder: fitted.FittedEncoder,
    target: EncoderTarget,
) -> Mapping[str, Any]:
    report = {**encoder.report, "last_seq": corpus.last_seq, "made_by": _MADE_BY[target]}
    now, count = datetime.now(UTC), len(corpus.terms)
    state = ratings.EncoderState(encoder.embedder, now, row.version, count, report)
    stored = ratings.EncoderRow(state, encoder.terms, encoder.vectors)
    with database.write() as transaction:
        knowledge_bases.get_by_id(transaction, row.id)
        ratings.save_encoder(transaction, row.id, stored, target)
    return report


def _read(
    transaction: Transaction, row: KnowledgeBaseRow, terms_of: Callable[[str], Sequence[str]]
) -> _Corpus:
    """Read all chunks. Equal terms share one object, because there are millions."""
    interned: dict[str, str] = {}
    heading_terms: dict[str, Sequence[str]] = {}
    packed: list[bytes] = []
    terms: list[list[str]] = []
    headings: list[Sequence[str]] = []
    last_seq = 0
    for chunk in corpus.iter_indexed(transaction, row.id):
        chunk_terms = chunk.terms.split(" ", MAX_TERMS)[:MAX_TERMS] if chunk.terms else []
        terms.append(list(map(interned.setdefault, chunk_terms, chunk_terms)))
        heading = f"{chunk.title}\n{reading.heading_text(chunk.title, chunk.heading_path)}"
        if heading not in heading_terms:
            heading_terms[heading] = [interned.setdefault(term, term) for term in terms_of(heading)]
        headings.append(heading_terms[heading])
        packed.append(chunk.vector)
        last_seq = chunk.seq
    return _Corpus(database.unpack(packed, row.dimensions), terms, headings, last_seq)


def _term_vectors(
    database: Database, row: KnowledgeBaseRow, config: KnowledgeBaseSpec, embedder: Embedder
) -> dict[str, Vector]:
    with database.read() as transaction:
        texts = (chunk.text for chunk in reading.iter_chunks(transaction, row.id))
        return term_vectors(embedder, texts, analyzer(config.language).terms)


_ALIKE = 0.5
"""Similarity, 0 to 1, below which two questions count as unrelated. Measured on questions about
Python and SQLite: unrelated ones about one manual have 0.3, and one in twenty above 0.5."""


@dataclass(frozen=True, slots=True)
class LearnedQuestions:
    """The learned questions of one knowledge base.

    Attributes:
        texts: Questions, as `fold_query` returns them.
        lengths: Number of terms of each question.
        postings: Indexes of questions by term.
        seqs: ``chunks.seq`` of the chunks that each question was rated for.
        embedder: Fingerprint of the embedder of `vectors`.
        vectors: Vectors of the questions, or zeros; shape ``(questions, dimensions)``.
    """

    texts: Sequence[str]
    lengths: NDArray[np.int64]
    postings: Mapping[str, NDArray[np.int64]]
    seqs: Sequence[Sequence[int]]
    embedder: str
    vectors: Matrix

    @classmethod
    def of(
        cls, questions: Mapping[str, Sequence[int]], embedded: QuestionVectors, language: str
    ) -> LearnedQuestions:
        """Prepare questions from the ``chunks.seq`` that they were rated for."""
        terms = [_terms(language, text) for text in questions]
        postings: dict[str, list[int]] = {}
        for number, values in enumerate(terms):
            for term in values:
                postings.setdefault(term, []).append(number)
        dimensions = next((len(vector) for vector in embedded.vectors.values()), 0)
        none = np.zeros(dimensions, np.float32)
        vectors = np.array([embedded.vectors.get(text, none) for text in questions], np.float32)
        return cls(
            texts=tuple(questions),
            lengths=np.array([len(values) for values in terms], np.int64),
            postings={term: np.array(values, np.int64) for term, values in postings.items()},
            seqs=tuple(questions.values()),
            embedder=embedded.embedder,
            vectors=vectors.reshape(len(terms), dimensions),
        )

    def scores(
        self, terms: Sequence[str], vector: Vector | None = None, usual: float = 0.0, but: str = ""
    ) -> dict[int, float]:
        """Score the similarity of a query to each chunk's rated questions, by ``seq``, up to 1.

        The similarity of two questions is the larger of the share of common terms (Dice, *Measures
        of the Amount of Ecologic Association Between Species*, 1945) and the cosine of their
        vectors. The most similar question of a chunk counts; chunks with a score of 0 are left out.

        Args:
            terms: Distinct analyzer terms of the query; empty to ignore words.
            vector: Query vector by `embedder`.
            usual: Usual cosine of unrelated questions.
            but: A question to ignore.
        """
        similarity = np.zeros(len(self.texts))
        if terms:
            shared = np.zeros(len(self.texts))
            for term in terms:
                if term in self.postings:
                    shared[self.postings[term]] += 1
            similarity = 2 * shared / (len(terms) + self.lengths)
        if vector is not None and self.vectors.shape[1] == len(vector):
            cosines = np.einsum("ij,j->i", self.vectors, vector).astype(np.float64)
            similarity = np.maximum(similarity, (cosines - usual) / max(1 - usual, 1e-9))
        if but in self.texts:
            similarity[self.texts.index(but)] = 0.0
        strength = np.clip((similarity - _ALIKE) / (1 - _ALIKE), 0.0, 1.0)
        scored: dict[int, float] = {}
        for number in np.flatnonzero(strength).tolist():
            for seq in self.seqs[number]:
                scored[seq] = max(scored.get(seq, 0.0), float(strength[number]))
        return scored


@lru_cache(maxsize=20_000)  # a rating adds at most one question to many
def _terms(language: str, text: str) -> tuple[str, ...]:
    return tuple(analyzer(language).query_terms(text))
