"""A query encoder fitted to one knowledge base: a query's vector is a sum of table rows.

A ridge regression from the terms of each chunk to its vector gives each term a vector E[t]. The
vector of a query is ``sum of idf[t] ** 0.75 * E[t] M`` over its terms, scaled to length 1. That
takes microseconds and needs neither model nor network, for any embedder.

Each chunk is a row: ``(1 + ln tf) * idf`` of its first 256 terms, scaled to length 1; the target is
its vector minus the mean of all. Its title and headings are another row with the same target and
weight 0.7 squared, since headings are worded like questions. The penalty of a term is ``lambda * s
* sqrt(c[t])``, where c is the sum of squares of its column and s makes lambda comparable between
knowledge bases.

With enough chunks, static vectors of terms are added, mapped into the space of the chunks' vectors
(`kbkit.embedding.regression.map_words`), for words that occur in few chunks.

M is ``C ** -0.25`` for the covariance C of the chunks' vectors. The regression favours directions
of large variance, which separate subjects; M restores directions that separate passages of one
subject.

Sources: Hoerl and Kennard, "Ridge Regression" (1970), with Tikhonov's prior; "ltc" weights of
Salton and Buckley, "Term-weighting approaches in automatic text retrieval" (1988); M is half-way to
Su et al., "Whitening Sentence Representations" (2021), for queries only.
"""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import Any

import numpy as np

from kbkit.embedding import Matrix, Vector, regression
from kbkit.errors import EmbedderError

MAX_QUERY_ROWS = 64
"""Maximum rows in the sum for a query: reading more from memory takes too long."""
PRIOR_BELOW = 500
"""Number of chunks below which a prior helps (nDCG@10 +5 points at 50, +2 at 200, 0 at 600).

With more chunks, added static vectors of words help.
"""

FIT_REVISION = 1
"""Version of the fit; raise it to fit again."""
_MAX_VOCABULARY = 100_000  # the most frequent terms; keeps the table below 80 MB
_IDF_POWER = 0.75  # below 1, since common words matter in questions
_WORD_SHARE = 0.6  # of word vectors in a row, relative to 1 for the regression
_WORDS_IDF_POWER = 0.25  # smaller, since words rare in the chunks may be common ("folder")
_LAMBDA = 1.2  # with 0.8 or 1.6, nDCG@10 of questions about manuals differs by 0.002


@dataclass(frozen=True, slots=True, eq=False)
class FittedEncoder:
    """A table of term vectors that turns a query's terms into a vector.

    Attributes:
        embedder: Fingerprint of the fitted model.
        vectors: Rows of the terms, with idf; float32, shape ``(len(terms), dimensions)``.
        report: Report of the fit as JSON values.
    """

    embedder: str
    terms: tuple[str, ...]
    vectors: Matrix
    report: Mapping[str, Any]
    _rows: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.terms):
            raise EmbedderError(
                f"a query encoder of {len(self.terms)} terms has a table of shape "
                f"{self.vectors.shape}; fit it again"
            )
        rows = {term: row for row, term in enumerate(self.terms)}
        object.__setattr__(self, "_rows", rows)

    @property
    def dimensions(self) -> int:
        return int(self.vectors.shape[1])

    def encode(self, terms: Iterable[str]) -> Vector:
        row_of = self._rows
        distinct = dict.fromkeys(islice(terms, regression.MAX_TERMS))
        rows = list(islice((row_of[term] for term in distinct if term in row_of), MAX_QUERY_ROWS))
        if not rows:
            return np.zeros(self.dimensions, np.float32)
        total: Vector = np.add.reduce(self.vectors.take(rows, axis=0), axis=0)
        norm = float(np.sqrt(total @ total))
        return total / np.float32(norm) if norm > 0 else total


def fit(
    vectors: Matrix,
    chunk_terms: Sequence[Sequence[str]],
    *,
    embedder: str,
    heading_terms: Sequence[Sequence[str]] = (),
    prior: Mapping[str, Vector] = MappingProxyType({}),
    words: Mapping[str, Vector] = MappingProxyType({}),
) -> FittedEncoder:
    from scipy.sparse import diags, vstack

    if not np.isfinite(vectors).all():
        raise EmbedderError("a vector has numbers that are not finite; embed again")
    terms, df = regression.build_vocabulary(chunk_terms, _MAX_VOCABULARY)
    if not terms:
        raise EmbedderError("no chunk contains a term to fit a query encoder to")
    vocabulary = {term: row for row, term in enumerate(terms)}
    idf = np.log1p((len(vectors) - df + 0.5) / (df + 0.5))
    centred = np.asarray(vectors, np.float32) - np.mean(vectors, axis=0, dtype=np.float32)
    design, targets = regression.term_matrix(chunk_terms, vocabulary, idf), centred
    general = regression.map_words(words, vocabulary, design, centred)
    groups = regression.group_headings(heading_terms, centred)
    if groups is not None:
        headings, means, weights = groups
        rows = diags(weights) @ regression.term_matrix(headings, vocabulary, idf)
        design = vstack([design, rows], format="csr", dtype=np.float32)
        targets = np.concatenate([centred, weights[:, None] * means])
    start = regression.fit_prior(prior, vocabulary, df, design, targets)
    penalty = _penalty(design, _LAMBDA, empty=1.0)
    solved = start + regression.ridge(design, targets - design @ start, penalty)
    metric = regression.partial_whitening(centred)
    table = _scale(solved, idf, _IDF_POWER, metric)
    word_table = _scale(general, idf, _WORDS_IDF_POWER, metric)
    if (size := _size(design, word_table)) > 0:
        table = table + word_table * (_WORD_SHARE * _size(design, table) / size)
    report = {
        "chunks": len(vectors),
        "terms": len(terms),
        "headings": groups is not None,
        "prior": bool(prior),
        "words": bool(words),
        "lambda": _LAMBDA,
    }
    return FittedEncoder(embedder, tuple(terms), table, report)


def _scale(table: Matrix, idf: Vector, power: float, metric: Matrix) -> Matrix:
    return np.asarray((table * idf[:, None] ** power) @ metric, np.float32)


def _size(design: Any, table: Matrix) -> np.float32:
    weight = np.asarray(design.power(2).sum(axis=0), np.float32).ravel()
    squares = np.einsum("ij,ij->i", table, table)
    return np.float32(np.sqrt(weight @ squares / weight.sum()))


def _penalty(design: Any, strength: float, *, empty: float) -> Matrix:
    columns = np.asarray(design.power(2).sum(axis=0), np.float32).ravel()
    relative = np.sqrt(np.where(columns > 0, columns, np.float32(empty)))
    # the mean diagonal of the kernel X diag(1 / sqrt(c)) X' is the unit of lambda
    scale = float((design.power(2) @ (1 / relative)).mean()) or 1.0
    return (strength * scale * relative).astype(np.float32)


TEXTS_REVISION = 1
"""Version of the fit; raise it to fit again."""
MAX_HEADINGS = 2_000
MAX_WINDOWS = 2_000
"""Word sequences to embed; 4,000 more did not help."""
MAX_WORDS = 10_000
"""Most frequent words, to embed."""
_MIN_WORDS, _MAX_WORDS = 4, 10  # of a window
_MAX_LENGTH = 120  # characters of a text
_MAX_TEXT_TERMS = 40_000
_TEXT_IDF_POWER = 0.5
_MEAN_SHARE = 0.6
_TEXTS_LAMBDA = 1.0
_EMPTY_COLUMN = 1e-3  # sum of squares of a column without texts, for its penalty
_SPACE = re.compile(r"\s+")


def choose_texts(headings: Iterable[str], chunks: Sequence[str]) -> list[str]:
    sample = random.Random(0)  # noqa: S311 - the same texts each time
    distinct = list(dict.fromkeys(filter(None, (_line(heading) for heading in headings))))
    texts = sample.sample(distinct, min(len(distinct), MAX_HEADINGS))
    for text in sample.sample(chunks, min(len(chunks), MAX_WINDOWS)):
        words = text.split()
        length = min(sample.randint(_MIN_WORDS, _MAX_WORDS), len(words))
        start = sample.randint(0, len(words) - length)
        texts.append(_line(" ".join(words[start : start + length])))
    return list(dict.fromkeys(filter(None, texts)))


def _line(text: str) -> str:
    return _SPACE.sub(" ", text).strip()[:_MAX_LENGTH]


def fit_to_texts(
    vectors: Matrix,
    terms: Sequence[Sequence[str]],
    *,
    chunk_terms: Sequence[Sequence[str]],
    words: Mapping[str, Vector],
    embedder: str,
) -> FittedEncoder:
    """Fit a query encoder to a model's vectors of short texts, for where the model cannot run.

    It predicts the summary model's vector of a question from the question's terms. The model embeds
    headings and word sequences of the chunks. A ridge regression, with the model's vectors of
    single words as prior, fits term vectors E such that

    ``y - m = sum of w[t] E[t] / sum of w[t]``, with ``w[t] = idf ** 0.5``

    for the vector y of a text, where m is the mean of all y. A query's vector is the direction of
    ``sum of w[t] (E[t] + 0.6 m)``. Without m, common terms would dominate; with all of m, average
    summaries would rank first.
    """
    from scipy.sparse import csr_matrix

    names, df = regression.build_vocabulary([*chunk_terms, *terms], _MAX_TEXT_TERMS)
    if not names:
        raise EmbedderError("no text contains a term to fit a query encoder to")
    vocabulary = {term: row for row, term in enumerate(names)}
    number = len(chunk_terms) + len(terms)
    weights = np.log1p((number - df + 0.5) / (df + 0.5)) ** _TEXT_IDF_POWER
    rows_of_texts = [
        np.array(sorted({vocabulary[term] for term in text_terms if term in vocabulary}), np.int64)
        for text_terms in terms
    ]
    starts = np.cumsum([0, *map(len, rows_of_texts)])
    columns = np.concatenate([np.zeros(0, np.int64), *rows_of_texts])
    shares = [weights[rows] / weights[rows].sum() for rows in rows_of_texts if len(rows)]
    values = np.concatenate([np.zeros(0, np.float32), *shares]).astype(np.float32)
    design = csr_matrix((values, columns, starts), shape=(len(rows_of_texts), len(names)))
    mean = vectors.mean(axis=0)
    targets = np.asarray(vectors - mean, np.float32)
    start = regression.fit_prior(words, vocabulary, np.sqrt(df), design, targets)
    penalty = _penalty(design, _TEXTS_LAMBDA, empty=_EMPTY_COLUMN)
    table = start + regression.ridge(design, targets - design @ start, penalty)
    rows = (table + np.float32(_MEAN_SHARE) * mean) * weights[:, None]
    report = {
        "texts": len(terms),
        "terms": len(names),
        "words": len(words),
        "lambda": _TEXTS_LAMBDA,
    }
    return FittedEncoder(embedder, tuple(names), rows.astype(np.float32), report)
