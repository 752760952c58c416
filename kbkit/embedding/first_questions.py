"""MiniLM in numpy for a process's first queries; most processes need no more."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from itertools import count

import numpy as np

from kbkit.embedding.base import Matrix, Vector
from kbkit.embedding.files import file_version
from kbkit.embedding.minilm import DIMENSIONS, minilm_files, minilm_weights, token_vectors
from kbkit.embedding.onnx import MAX_LENGTH, OnnxEmbedder, encoded, minilm_fingerprint, tokenizer_of
from kbkit.recipes import OnnxEmbedding

_FIRST = 4
"""Queries for numpy: opening a session costs as much as a dozen."""


class MiniLmEmbedder:
    """MiniLM as it is used by default. Thread-safe.

    Passages, and questions after the first few, are embedded by onnxruntime, which opens the model
    then. Vectors of both are the same to three digits.
    """

    def __init__(self, spec: OnnxEmbedding) -> None:
        self._spec = spec
        self._fingerprint = minilm_fingerprint()
        path = minilm_files()[1]
        self._tokenizer = tokenizer_of(path, file_version(path), MAX_LENGTH)
        self._asked = count()
        if find_spec("onnxruntime") is None:
            _ = self._model  # says so

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    @property
    def dimensions(self) -> int:
        return DIMENSIONS

    @property
    def batch_size(self) -> int:
        """Batch size after which vectors are stored: some seconds of work."""
        return self._model.batch_size

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Embed texts; see `Embedder.embed_passages`."""
        return self._model.embed_passages(texts)

    def embed_query(self, text: str) -> Vector:
        if not text or text.isspace() or "_model" in vars(self) or next(self._asked) >= _FIRST:
            return self._model.embed_query(text)
        (tokens,) = encoded(self._tokenizer, [text])
        vector: Vector = token_vectors(minilm_weights(), tokens.ids).mean(axis=0)
        vector /= np.linalg.norm(vector)
        return vector

    @cached_property
    def _model(self) -> OnnxEmbedder:
        return OnnxEmbedder(self._spec)
