"""What an embedder is: text in, unit vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""Shape ``(dimensions,)``; of length 1, or all zero for text without any known token."""

Matrix = NDArray[np.float32]
"""Shape ``(n, dimensions)``; each row a `Vector`."""


_BATCH = 1_000


class Embedder(Protocol):
    """Turns text into vectors whose dot product is the cosine similarity.

    One that is slow, or asks somebody else, may have an attribute ``batch_size``: the number of
    texts after which what was embedded is kept, should it fail later.
    """

    @property
    def fingerprint(self) -> str:
        """Names the model, its weights and its options: equal fingerprints, equal vectors."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Embed texts that are to be found.

        Returns:
            One row a text, in order; unit length, or zero for empty text.

        Raises:
            EmbedderError: The model failed.
            EmbedderUnreachableError: It could not be reached.
        """
        ...

    def embed_query(self, text: str) -> Vector:
        """Embed a question.

        Raises:
            EmbedderError: The model failed.
            EmbedderUnreachableError: It could not be reached.
        """
        ...


def batch_size(embedder: Embedder) -> int:
    """Number of texts that an embedder is given at once."""
    return int(getattr(embedder, "batch_size", _BATCH))
