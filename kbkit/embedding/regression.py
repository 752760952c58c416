"""Features and targets of the query encoder's regression.

`kbkit.embedding.fitted` says what each is for, and names the sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding.base import Matrix, Vector

MAX_TERMS = 256
"""Terms used of a chunk or query."""
_HEADING_WEIGHT = 0.7
_WHITENING_POWER = -0.25
"""Power of the covariance: 0 leaves queries as the regression makes them, -0.5 whitens them."""
_SHRINKAGE = 0.1
"""Mean variances added to every direction's, as those of few chunks are not known well."""


def partial_whitening(centred: Matrix) -> Matrix:
    covariance = (centred.T @ centred).astype(np.float64) / max(1, len(centred))
    variances, directions = np.linalg.eigh(covariance)
    variances = np.maximum(variances, 0.0) + _SHRINKAGE * variances.mean()
    if not variances.all():  # all chunks are alike
        return np.eye(len(variances), dtype=np.float32)
    metric: Matrix = ((directions * variances**_WHITENING_POWER) @ directions.T).astype(np.float32)
    return metric


def build_vocabulary(
    texts: Sequence[Sequence[str]], most: int
) -> tuple[list[str], NDArray[np.float32]]:
    """Return the most frequent terms with their document frequencies."""
    known = dict.fromkeys(chain.from_iterable(terms[:MAX_TERMS] for terms in texts))
    numbers = dict(zip(known, count(), strict=False))
    columns, _, _ = _count_terms(texts, numbers)
    frequencies = np.bincount(columns, minlength=len(numbers))
    order = np.argsort(-frequencies, kind="stable")[:most]
    names = list(numbers)
    return [names[number] for number in order.tolist()], frequencies[order].astype(np.float32)


def _count_terms(
    texts: Iterable[Sequence[str]], vocabulary: Mapping[str, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    read = [terms[:MAX_TERMS] for terms in texts]
    ends = np.cumsum([0, *map(len, read)])
    columns = np.fromiter(
        map(vocabulary.get, chain.from_iterable(read), repeat(-1)), np.int64, int(ends[-1])
    )
    rows = np.repeat(np.arange(len(read)), np.diff(ends))
    known = columns >= 0
    keys = rows[known] * len(vocabulary) + columns[known]
    _, firsts, counts = np.unique(keys, return_index=True, return_counts=True)
    order = np.argsort(firsts)
    keys = keys[firsts[order]]
    starts = np.searchsorted(keys // max(1, len(vocabulary)), np.arange(len(read) + 1))
    return keys % max(1, len(vocabulary)), counts[order], starts


def term_matrix(
    texts: Iterable[Sequence[str]], vocabulary: Mapping[str, int], idf: NDArray[np.float32]
) -> Any:
    """Return a row a text: ``(1 + ln tf) * idf``, normalized."""
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
    """Distinct headings, the mean target of their chunks, and the weight of their row.

    One row of weight ``w * sqrt(k)`` and the mean as its target leaves the regression as k rows
    of weight w would.
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
    """The prior as a table: centred, as the targets are, and scaled so that it fits them best."""
    start = np.zeros((len(vocabulary), targets.shape[1]), np.float32)
    known = [(row, prior[term]) for term, row in vocabulary.items() if term in prior]
    if known:
        rows = np.array([row for row, _ in known])
        found = np.stack([vector for _, vector in known])
        start[rows] = found - np.average(found, axis=0, weights=df[rows])
    guess = design @ start
    size = float((guess * guess).sum())
    start *= np.float32(max(0.0, float((guess * targets).sum())) / size if size > 0 else 0.0)
    return start
