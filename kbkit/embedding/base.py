"""The embedder interface: texts in, unit vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""Shape ``(dimensions,)``; a unit vector, or zeros for text without known tokens."""

Matrix = NDArray[np.float32]
"""Shape ``(n, dimensions)``; each row a `Vector`."""


_BATCH = 1_000


class Embedder(Protocol):
    """Turns text into vectors whose dot product is the cosine similarity.

    An optional attribute ``batch_size`` is the number of texts after which vectors are stored.
    """

    @property
    def fingerprint(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def embed_passages(self, texts: Sequence[str]) -> Matrix: ...

    def embed_query(self, text: str) -> Vector: ...


def batch_size(embedder: Embedder) -> int:
    return int(getattr(embedder, "batch_size", _BATCH))
