"""MiniLM computed by numpy, for the first questions of a process.

To open the model with onnxruntime takes longer than to compute a dozen questions here, where its
weights are mapped and unpacked as they are needed; whoever asks more often is better served by
onnxruntime, which takes a quarter of the time for each.

The transformer is that of Devlin et al., "BERT" (2018), with the norms behind the sums; its gelu is
Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016), with the error function by formula
7.1.26 of Abramowitz and Stegun, "Handbook of Mathematical Functions" (1964), within 2e-7.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from kbkit.embedding.base import Matrix
from kbkit.embedding.minilm import Layer, Norm, Product, Weights

_HEADS = 12
_ALONE = 4 * 65_536
"""Multiplications of a product that OpenBLAS makes in one thread: with more, others of its threads
would wait for further ones with the processor in hand, long after."""
_LEAST = 1e-12
"""Added to variances, as BERT does."""
_ERF_STEP = 0.3275911
_ERF = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)


def token_vectors(weights: Weights, ids: Sequence[int]) -> Matrix:
    """What the model makes of a text.

    Args:
        weights: Those of MiniLM.
        ids: Its tokens, those of its start and end with them.

    Returns:
        A row for each token; shape ``(tokens, 384)``.
    """
    rows = weights.words[ids] * weights.word_scales[ids, None]
    rows += weights.places[: len(ids)] * weights.place_scales[: len(ids), None]
    rows = _normed(rows + weights.kind, weights.norm)
    for layer in weights.layers:
        rows = _normed(
            rows + _product(_attended(rows, layer), layer.attention), layer.attention_norm
        )
        hidden = _product(rows, layer.up)
        hidden *= 0.5 + 0.5 * _erf(hidden / sqrt(2))
        rows = _normed(rows + _product(hidden, layer.down), layer.norm)
    return rows


def _attended(rows: Matrix, layer: Layer) -> Matrix:
    """What each token takes over from all."""
    split = _product(rows, layer.inputs).reshape(len(rows), 3, _HEADS, -1)
    queries, keys, values = split.transpose(1, 2, 0, 3)  # each of shape (heads, tokens, width)
    weights = queries @ keys.transpose(0, 2, 1) / sqrt(queries.shape[2])
    weights = np.exp(weights - weights.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    attended: Matrix = (weights @ values).transpose(1, 0, 2).reshape(rows.shape)
    return attended


def _product(rows: Matrix, product: Product) -> Matrix:
    found = np.empty((len(rows), len(product.values)), np.float32)
    step = max(1, _ALONE // rows.size)
    for start in range(0, len(product.values), step):
        part = product.values[start : start + step].astype(np.float32)
        np.matmul(rows, part.T, out=found[:, start : start + step])
    found *= product.scales
    found += product.biases
    return found


def _normed(rows: Matrix, norm: Norm) -> Matrix:
    rows = rows - rows.mean(axis=1, keepdims=True)
    rows /= np.sqrt(np.square(rows).mean(axis=1, keepdims=True) + _LEAST)
    rows *= norm.weights
    rows += norm.biases
    return rows


def _erf(numbers: Matrix) -> Matrix:
    sizes = np.abs(numbers)
    step = 1 / (1 + _ERF_STEP * sizes)
    series = np.zeros_like(step)
    for factor in _ERF:
        series = (series + np.float32(factor)) * step
    found: Matrix = np.copysign(1 - series * np.exp(-sizes * sizes), numbers)
    return found
