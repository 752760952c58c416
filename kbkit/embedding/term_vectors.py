"""Vectors of single words from an embedding model.

They tell a query encoder what a knowledge base alone cannot: that a reader's "folder" is what the
documentation calls a directory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kbkit.embedding.base import Embedder, Matrix, Vector

_PENALTY = 0.05
"""Penalty of the map, in mean variances."""
_WORD = re.compile(r"\w+")


def term_vectors(
    embedder: Embedder,
    texts: Iterable[str],
    terms_of: Callable[[str], Sequence[str]],
    most: int | None = None,
) -> dict[str, Vector]:
    """The model's own vector of each term.

    A stem is no word, so that what is embedded is the term's commonest form. It takes 2 to 3 ms a
    term with a small transformer, and 0.05 with static vectors.
    """
    counts = Counter(word for text in texts for word in _WORD.findall(text))
    forms: dict[str, str] = {}
    for word, _ in counts.most_common():
        if len(forms) == most:
            break
        terms = terms_of(word)
        if len(terms) == 1:
            forms.setdefault(terms[0], word)
    return dict(zip(forms, embedder.embed_passages(list(forms.values())), strict=True))


def map_words(
    words: Mapping[str, Vector], vocabulary: Mapping[str, int], design: Any, targets: Matrix
) -> Matrix:
    """Map word vectors into the space of chunk vectors.

    The map W makes the sum of a chunk's words, mapped, most like the chunk's own vector: a ridge
    regression of `targets` on ``X S``, less its mean, where S has the vectors of the words.
    """
    known = [(row, words[term]) for term, row in vocabulary.items() if term in words]
    if not known:
        return np.zeros((len(vocabulary), targets.shape[1]), np.float32)
    table = np.zeros((len(vocabulary), len(known[0][1])), np.float32)
    table[[row for row, _ in known]] = np.stack([vector for _, vector in known])
    passages = np.asarray(design @ table, np.float32)
    passages -= passages.mean(axis=0)
    products = (passages.T @ passages).astype(np.float64)
    # never singular, even where all chunks have the same words
    products[np.diag_indices_from(products)] += _PENALTY * products.trace() / len(products) + 1e-9
    weights = np.linalg.solve(products, (passages.T @ targets).astype(np.float64))
    result: Matrix = table @ weights.astype(np.float32)
    return result
