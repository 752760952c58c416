"""Learned questions: good ratings of a chunk count for similar queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding.base import Matrix, Vector
from kbkit.stores.catalog.questions import QuestionVectors
from kbkit.text import analyzer

_ALIKE = 0.5
"""Similarity from 0 to 1 below which two questions are unrelated. Chosen on questions about Python
and SQLite: unrelated questions about one manual have 0.3, one of twenty above 0.5."""


@dataclass(frozen=True, slots=True)
class LearnedQuestions:
    """The learned questions of one knowledge base, ready to be compared with queries.

    Attributes:
        texts: Questions, as `fold_query` returns them.
        lengths: Number of terms of each.
        postings: By term, questions that contain it.
        which: Question of each pair of question and chunk.
        seqs: And the chunk's ``seq``.
        embedder: Fingerprint of the embedder of `vectors`.
        vectors: One vector a question, or zeros; shape ``(questions, dimensions)``.
    """

    texts: Sequence[str]
    lengths: NDArray[np.int64]
    postings: Mapping[str, NDArray[np.int64]]
    which: NDArray[np.int64]
    seqs: NDArray[np.int64]
    embedder: str
    vectors: Matrix

    @classmethod
    def of(
        cls, asked: Mapping[str, Sequence[int]], embedded: QuestionVectors, language: str
    ) -> LearnedQuestions:
        """Prepare questions, given with the chunks they were rated for."""
        terms = [_terms(language, text) for text in asked]
        postings: dict[str, list[int]] = {}
        for number, found in enumerate(terms):
            for term in found:
                postings.setdefault(term, []).append(number)
        pairs = [(number, seq) for number, seqs in enumerate(asked.values()) for seq in seqs]
        dimensions = next((len(vector) for vector in embedded.vectors.values()), 0)
        none = np.zeros(dimensions, np.float32)
        vectors = np.array([embedded.vectors.get(text, none) for text in asked], np.float32)
        return cls(
            texts=tuple(asked),
            lengths=np.array([len(found) for found in terms], np.int64),
            postings={term: np.array(found, np.int64) for term, found in postings.items()},
            which=np.array([number for number, _ in pairs], np.int64),
            seqs=np.array([seq for _, seq in pairs], np.int64),
            embedder=embedded.embedder,
            vectors=vectors.reshape(len(terms), dimensions),
        )

    def scores(
        self, terms: Sequence[str], vector: Vector | None = None, usual: float = 0.0, but: str = ""
    ) -> dict[int, float]:
        """Score the similarity of a query to each chunk's rated questions, by ``seq``.

        Two questions are alike by the share of their terms that both have (Dice, *Measures of the
        Amount of Ecologic Association Between Species*, 1945) or by the cosine of their vectors,
        whichever is more. Of several questions of one chunk the one that is most alike counts, so
        that many of them add no more than one.

        Args:
            terms: Analyzer terms of the query, each once; empty if words do not count.
            vector: Query vector by `embedder`.
            usual: Usual cosine with unrelated questions.
            but: A question that is left out.

        Returns:
            From above 0 to 1, which is the same question; chunks without any are left out.
        """
        alike = np.zeros(len(self.texts))
        if terms:
            shared = np.zeros(len(self.texts))
            for term in terms:
                if term in self.postings:
                    shared[self.postings[term]] += 1
            alike = 2 * shared / (len(terms) + self.lengths)
        if vector is not None and self.vectors.shape[1] == len(vector):
            cosines = np.einsum("ij,j->i", self.vectors, vector).astype(np.float64)
            alike = np.maximum(alike, (cosines - usual) / max(1 - usual, 1e-9))
        if but in self.texts:
            alike[self.texts.index(but)] = 0.0
        strength = np.clip((alike - _ALIKE) / (1 - _ALIKE), 0.0, 1.0)
        found: dict[int, float] = {}
        for pair in np.flatnonzero(strength[self.which] > 0).tolist():
            seq, value = int(self.seqs[pair]), float(strength[self.which[pair]])
            found[seq] = max(found.get(seq, 0.0), value)
        return found


@lru_cache(maxsize=20_000)  # each rating adds one question to many that were there
def _terms(language: str, text: str) -> tuple[str, ...]:
    return tuple(analyzer(language).query_terms(text))
