"""MiniLM as the browsers of a site's readers run it: its weights as files, in the built site.

``assets/transformer.js`` reads them:

- ``vocabulary.txt``: the tokens in order, a line each.
- ``embeddings.bin``: what is added to the rows of words.
- ``layer-N.bin``: the matrices of a layer, in the order in which they are used.
- ``words-N.bin``: the rows of neighbouring tokens; a query reads those of its own.

A file begins with its numbers of 32 bits, for each matrix first the scales, then the biases, and
ends with the steps of its matrices, of 8 bits; all are little endian.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding.minilm import Layer, Weights, minilm_vocabulary, minilm_weights

WORDS = 64
"""Tokens whose rows are in one file: 25 kB, of which a query reads some ten."""
LONGEST = 256
"""Tokens of a text that are read."""
_LICENSE = Path(__file__).parents[1] / "assets" / "minilm-license.txt"


def write_browser_model(folder: Path) -> str:
    """Write the files into a folder whose name says what they are.

    Args:
        folder: In which it lies.

    Returns:
        Its name.

    Raises:
        EmbedderError: The model is not installed, or is not what it should be.
    """
    files = dict(_files(minilm_weights()))
    digest = hashlib.blake2b(digest_size=8)
    for name, data in files.items():
        digest.update(f"{name} {len(data)}\n".encode() + data)
    target = folder / digest.hexdigest()
    target.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (target / name).write_bytes(data)
    return target.name


def _files(weights: Weights) -> Iterator[tuple[str, bytes]]:
    """Every file by name."""
    yield "LICENSE.txt", _LICENSE.read_bytes()
    yield "vocabulary.txt", "\n".join(minilm_vocabulary()).encode()
    norm = weights.norm
    numbers = [weights.kind, norm.weights, norm.biases, weights.place_scales[:LONGEST]]
    yield "embeddings.bin", _packed(numbers, [weights.places[:LONGEST]])
    for number, layer in enumerate(weights.layers):
        yield f"layer-{number}.bin", _layer(layer)
    for number, start in enumerate(range(0, len(weights.words), WORDS)):
        part = slice(start, start + WORDS)
        yield f"words-{number}.bin", _packed([weights.word_scales[part]], [weights.words[part]])


def _layer(layer: Layer) -> bytes:
    products = [layer.inputs, layer.attention, layer.up, layer.down]
    numbers = list(chain.from_iterable((each.scales, each.biases) for each in products))
    for norm in (layer.attention_norm, layer.norm):
        numbers += [norm.weights, norm.biases]
    return _packed(numbers, [each.values for each in products])


def _packed(numbers: list[NDArray[np.float32]], steps: list[NDArray[np.int8]]) -> bytes:
    parts: list[NDArray[Any]] = [each.astype("<f4").reshape(-1) for each in numbers]
    return b"".join(each.tobytes() for each in [*parts, *steps])
