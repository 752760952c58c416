"""A query encoder for short texts, where the model cannot run.

It predicts the summary model's vector of a question from the question's terms. The model embeds
headings and word sequences of the chunks. A ridge regression, with the model's vectors of single
words as prior, fits term vectors E such that

``y - m = sum of w[t] E[t] / sum of w[t]``, with ``w[t] = idf ** 0.5``

for the vector y of a text, where m is the mean of all y. A query's vector is the direction of ``sum
of w[t] (E[t] + 0.6 m)``, a sum of table rows as in `kbkit.embedding.fitted`. Without m, common
terms would dominate; with all of m, average summaries would rank first.

Source: Hoerl and Kennard, "Ridge Regression" (1970), with a prior (Tikhonov).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from itertools import count

import numpy as np

from kbkit.embedding.base import Matrix, Vector
from kbkit.embedding.files import file_version
from kbkit.embedding.fitted import FittedEncoder
from kbkit.embedding.models import DIMENSIONS, minilm_files, minilm_weights, token_vectors
from kbkit.embedding.onnx import MAX_LENGTH, OnnxEmbedder, encoded, minilm_fingerprint, tokenizer_of
from kbkit.embedding.regression import build_vocabulary, ridge, word_prior
from kbkit.errors import EmbedderError
from kbkit.recipes import OnnxEmbedding

TEXTS_REVISION = 1
"""Version of the fit; raise it to fit again."""
MAX_HEADINGS = 2_000
MAX_WINDOWS = 2_000
"""Word sequences to embed; 4,000 more did not help."""
MAX_WORDS = 10_000
"""Most frequent words, to embed."""
_MIN_WORDS, _MAX_WORDS = 4, 10  # of a window
_MAX_LENGTH = 120  # characters of a text
_MAX_VOCABULARY = 40_000
_IDF_POWER = 0.5
_MEAN_SHARE = 0.6
_LAMBDA = 1.0
_EMPTY_COLUMN = 1e-3  # sum of squares of a column without texts, for its penalty
_SPACE = re.compile(r"\s+")


def choose_texts(headings: Iterable[str], chunks: Sequence[str]) -> list[str]:
    sample = random.Random(0)  # noqa: S311 - the same texts each time
    distinct = list(dict.fromkeys(filter(None, (_line(heading) for heading in headings))))
    chosen = sample.sample(distinct, min(len(distinct), MAX_HEADINGS))
    for text in sample.sample(chunks, min(len(chunks), MAX_WINDOWS)):
        words = text.split()
        length = min(sample.randint(_MIN_WORDS, _MAX_WORDS), len(words))
        start = sample.randint(0, len(words) - length)
        chosen.append(_line(" ".join(words[start : start + length])))
    return list(dict.fromkeys(filter(None, chosen)))


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
    """Fit a query encoder to a model's vectors of short texts."""
    from scipy.sparse import csr_matrix

    if len(vectors) != len(terms):
        raise EmbedderError(f"{len(terms)} texts have vectors of shape {vectors.shape}")
    names, df = build_vocabulary([*chunk_terms, *terms], _MAX_VOCABULARY)
    if not names:
        raise EmbedderError("no text contains a term to fit a query encoder to")
    vocabulary = {term: row for row, term in enumerate(names)}
    number = len(chunk_terms) + len(terms)
    weights = np.log1p((number - df + 0.5) / (df + 0.5)) ** _IDF_POWER
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
    start = word_prior(words, vocabulary, np.sqrt(df), vectors.shape[1])
    guess = design @ start
    size = float((guess * guess).sum())
    fit = np.float32(float((guess * targets).sum()) / size if size > 0 else 0.0)
    start, guess = start * fit, guess * fit
    squares = np.asarray(design.power(2).sum(axis=0), np.float32).ravel()
    relative = np.sqrt(np.where(squares > 0, squares, _EMPTY_COLUMN)).astype(np.float32)
    scale = float((design.power(2) @ (1 / relative)).mean()) or 1.0
    penalty = (_LAMBDA * scale * relative).astype(np.float32)
    table = start + ridge(design, targets - guess, penalty)
    rows = (table + np.float32(_MEAN_SHARE) * mean) * weights[:, None]
    report = {"texts": len(terms), "terms": len(names), "words": len(words), "lambda": _LAMBDA}
    return FittedEncoder(embedder, tuple(names), rows.astype(np.float32), report)


_NUMPY_QUERIES = 4  # opening an onnxruntime session takes as long as a dozen queries in numpy


class MiniLmEmbedder:
    """MiniLM, the default. Thread-safe.

    numpy embeds the first few queries, onnxruntime the others and passages; their vectors are equal
    to three digits.
    """

    dimensions = DIMENSIONS
    batch_size = OnnxEmbedder.batch_size

    def __init__(self, spec: OnnxEmbedding) -> None:
        self._spec = spec
        self.fingerprint = minilm_fingerprint()
        path = minilm_files()[1]
        self._tokenizer = tokenizer_of(path, file_version(path), MAX_LENGTH)
        self._queries = count()
        if find_spec("onnxruntime") is None:
            _ = self._model  # raises the error

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return self._model.embed_passages(texts)

    def embed_query(self, text: str) -> Vector:
        if (
            not text
            or text.isspace()
            or "_model" in vars(self)
            or next(self._queries) >= _NUMPY_QUERIES
        ):
            return self._model.embed_query(text)
        (tokens,) = encoded(self._tokenizer, [text])
        vector: Vector = token_vectors(minilm_weights(), tokens.ids).mean(axis=0)
        vector /= np.linalg.norm(vector)
        return vector

    @cached_property
    def _model(self) -> OnnxEmbedder:
        return OnnxEmbedder(self._spec)
