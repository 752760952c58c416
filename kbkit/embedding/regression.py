"""Features and targets of the query encoder's regression; see `kbkit.embedding.fitted`."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, count, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding import Embedder, Matrix, Vector

MAX_TERMS = 256
"""Maximum terms of a chunk or query."""
_HEADING_WEIGHT = 0.7
_WHITENING_POWER = -0.25  # of the covariance: 0 changes nothing, -0.5 whitens fully
_SHRINKAGE = 0.1  # added to all variances, in mean variances: few chunks estimate them badly


def partial_whitening(centred: Matrix) -> Matrix:
    covariance = (centred.T @ centred).astype(np.float64) / max(1, len(centred))
    variances, directions = np.linalg.eigh(covariance)
    variances = np.maximum(variances, 0.0) + _SHRINKAGE * variances.mean()
    if not variances.all():  # all chunks are alike
        return np.eye(len(variances), dtype=np.float32)
    return np.asarray((directions * variances**_WHITENING_POWER) @ directions.T, np.float32)


def build_vocabulary(
    texts: Sequence[Sequence[str]], limit: int
) -> tuple[list[str], NDArray[np.float32]]:
    """Return the most frequent terms with their document frequencies."""
    distinct = dict.fromkeys(chain.from_iterable(terms[:MAX_TERMS] for terms in texts))
    numbers = dict(zip(distinct, count(), strict=False))
    columns, _, _ = _count_terms(texts, numbers)
    frequencies = np.bincount(columns, minlength=len(numbers))
    order = np.argsort(-frequencies, kind="stable")[:limit]
    names = list(numbers)
    return [names[number] for number in order.tolist()], frequencies[order].astype(np.float32)


def _count_terms(
    texts: Iterable[Sequence[str]], vocabulary: Mapping[str, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    term_lists = [terms[:MAX_TERMS] for terms in texts]
    ends = np.cumsum([0, *map(len, term_lists)])
    columns = np.fromiter(
        map(vocabulary.get, chain.from_iterable(term_lists), repeat(-1)), np.int64, int(ends[-1])
    )
    rows = np.repeat(np.arange(len(term_lists)), np.diff(ends))
    is_known = columns >= 0
    keys = rows[is_known] * len(vocabulary) + columns[is_known]
    _, firsts, counts = np.unique(keys, return_index=True, return_counts=True)
    order = np.argsort(firsts)
    keys = keys[firsts[order]]
    starts = np.searchsorted(keys // max(1, len(vocabulary)), np.arange(len(term_lists) + 1))
    return keys % max(1, len(vocabulary)), counts[order], starts


def term_matrix(
    texts: Iterable[Sequence[str]], vocabulary: Mapping[str, int], idf: NDArray[np.float32]
) -> Any:
    """Return one row per text: ``(1 + ln tf) * idf``, normalized."""
    from scipy.sparse import csr_matrix

    columns, counts, starts = _count_terms(texts, vocabulary)
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    values = (1 + np.log(counts.astype(np.float32))) * idf[columns]
    norms = np.sqrt(np.bincount(rows, values.astype(np.float64) ** 2, len(starts) - 1))
    norms[norms == 0] = 1.0
    values = (values / norms[rows]).astype(np.float32)
    return csr_matrix((values, columns, starts), shape=(len(starts) - 1, len(vocabulary)))


def group_headings(
    headings: Sequence[Sequence[str]], centred: Matrix
) -> tuple[list[tuple[str, ...]], Matrix, NDArray[np.float32]] | None:
    """Return distinct headings, the mean targets of their chunks, and their weights.

    A row of weight ``w * sqrt(k)`` with the mean as target equals k rows of weight w.
    """
    groups: dict[tuple[str, ...], int] = {}
    numbers = np.array([groups.setdefault(tuple(terms), len(groups)) for terms in headings], int)
    if not any(groups):
        return None
    counts = np.bincount(numbers).astype(np.float32)
    means = np.zeros((len(groups), centred.shape[1]), np.float32)
    np.add.at(means, numbers, centred)
    means /= counts[:, None]
    weights = np.where([bool(terms) for terms in groups], np.sqrt(counts), 0) * _HEADING_WEIGHT
    return list(groups), means, weights.astype(np.float32)


def fit_prior(
    prior: Mapping[str, Vector],
    vocabulary: Mapping[str, int],
    df: NDArray[np.float32],
    design: Any,
    targets: Matrix,
) -> Matrix:
    """Return the prior as a table, centred and scaled to fit the targets best."""
    start = np.zeros((len(vocabulary), targets.shape[1]), np.float32)
    if rows := [row for term, row in vocabulary.items() if term in prior]:
        vectors = np.stack([prior[term] for term in vocabulary if term in prior])
        start[rows] = vectors - np.average(vectors, axis=0, weights=df[rows])
    guess = design @ start
    size = float((guess * guess).sum())
    start *= np.float32(max(0.0, float((guess * targets).sum())) / size if size > 0 else 0.0)
    return start


_HEAVY = 600  # columns of the design that the preconditioner solves together
_BLOCK = 96  # targets solved at once; more fit the processor's cache less well
_MAX_STEPS = 60
_TOLERANCE = 0.03  # of the residual, relative to its start; a smaller one changes no ranking


def ridge(design: Any, targets: Matrix, penalty: Matrix) -> Matrix:
    """Return E that minimizes ``|X E - Y|^2 + sum_t penalty_t |E_t|^2``."""
    transposed = design.T.tocsr()
    solve = _preconditioner(design, penalty)
    result = np.empty((design.shape[1], targets.shape[1]), np.float32)
    for start in range(0, targets.shape[1], _BLOCK):
        columns = slice(start, start + _BLOCK)
        rhs = transposed @ np.ascontiguousarray(targets[:, columns], np.float32)
        result[:, columns] = _conjugate_gradients(design, transposed, penalty, rhs, solve)
    return result


def _preconditioner(design: Any, penalty: Matrix) -> Callable[[Matrix], Matrix]:
    """Return an approximate inverse of ``X'X + diag(p)``."""
    from scipy.linalg import cho_factor, cho_solve

    weight = np.asarray(design.power(2).sum(axis=0), np.float32).ravel()
    inverse: Matrix = np.reciprocal(weight + penalty)[:, None]
    heavy = np.sort(np.argsort(-weight, kind="stable")[:_HEAVY])
    heavy_columns = design[:, heavy]
    block: Matrix = (heavy_columns.T @ heavy_columns).toarray()
    # the added term keeps a nearly singular block definite despite rounding
    block[np.diag_indices_from(block)] += penalty[heavy] + 1e-5 * weight[heavy]
    factor = cho_factor(block, lower=True, overwrite_a=True, check_finite=False)

    def solve(rhs: Matrix) -> Matrix:
        solved = inverse * rhs
        solved[heavy] = cho_solve(factor, rhs[heavy], check_finite=False)
        return solved

    return solve


def _conjugate_gradients(
    design: Any, transposed: Any, penalty: Matrix, rhs: Matrix, solve: Callable[[Matrix], Matrix]
) -> Matrix:
    """Solve for some columns; overwrites `rhs`, since memory access takes most of the time."""
    solution, spare = np.zeros_like(rhs), np.empty_like(rhs)
    residual = rhs
    direction = solve(residual)
    size = initial = _dots(residual, direction)
    for _ in range(_MAX_STEPS):
        # strict: a constant target has size 0 and is solved
        unsolved = size > initial * _TOLERANCE**2
        if not unsolved.any():
            break
        image = transposed @ (design @ direction)
        image += np.multiply(penalty[:, None], direction, out=spare)
        step = _ratio(size, _dots(direction, image))
        solution += np.multiply(step, direction, out=spare)
        residual -= np.multiply(step, image, out=spare)
        solved = solve(residual)
        before, size = size, _dots(residual, solved)
        direction *= _ratio(size, before)
        direction += solved
    return solution


def _dots(a: Matrix, b: Matrix) -> Matrix:
    return np.asarray(np.einsum("ij,ij->j", a, b))


def _ratio(a: Matrix, b: Matrix) -> Matrix:
    return np.asarray(np.divide(a, b, out=np.zeros_like(a), where=b > 0))


_PENALTY = 0.05  # of the map, in mean variances
_WORD = re.compile(r"\w+")


def term_vectors(
    embedder: Embedder,
    texts: Iterable[str],
    terms_of: Callable[[str], Sequence[str]],
    limit: int | None = None,
) -> dict[str, Vector]:
    """Return the model's vector of each term, from the term's most frequent form."""
    counts = Counter(word for text in texts for word in _WORD.findall(text))
    forms: dict[str, str] = {}
    for word, _ in counts.most_common():
        if len(forms) == limit:
            break
        terms = terms_of(word)
        if len(terms) == 1:
            forms.setdefault(terms[0], word)
    return dict(zip(forms, embedder.embed_passages(list(forms.values())), strict=True))


def map_words(
    words: Mapping[str, Vector], vocabulary: Mapping[str, int], design: Any, targets: Matrix
) -> Matrix:
    """Map word vectors S into the space of chunk vectors, by a ridge regression of Y on ``X S``."""
    rows = [row for term, row in vocabulary.items() if term in words]
    if not rows:
        return np.zeros((len(vocabulary), targets.shape[1]), np.float32)
    vectors = np.stack([words[term] for term in vocabulary if term in words])
    table = np.zeros((len(vocabulary), vectors.shape[1]), np.float32)
    table[rows] = vectors
    passages = np.asarray(design @ table, np.float32)
    passages -= passages.mean(axis=0)
    products = (passages.T @ passages).astype(np.float64)
    # never singular, even if all chunks have the same words
    products[np.diag_indices_from(products)] += _PENALTY * products.trace() / len(products) + 1e-9
    weights = np.linalg.solve(products, (passages.T @ targets).astype(np.float64))
    return np.asarray(table @ weights.astype(np.float32))
