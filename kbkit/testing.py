"""Fakes for tests, without models or network.

`HashEmbedder` gives similar vectors to texts that share words, `DocumentsReader` is a source, and
`serve_folder` is a real web server on loopback.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kbkit.models import SourceDocument
from kbkit.runtime.web_server import serve_folder
from kbkit.sources import Outcome, SourceContext, SourceEvent

if TYPE_CHECKING:
    from kbkit.embedding import Matrix, Vector

__all__ = ["DocumentsReader", "HashEmbedder", "serve_folder"]
_WORD = re.compile(r"\w+")


class HashEmbedder:
    """A deterministic embedder: each word has a random vector, a text the sum of its words'.

    Args:
        dimensions: Length of a vector.
        salt: Changes the fingerprint and every vector, as another model would.
    """

    def __init__(self, dimensions: int = 64, salt: str = "") -> None:
        self.dimensions = dimensions
        """Length of a vector."""
        self.fingerprint = f"hash:{dimensions}:{salt}"
        """Identifies dimensions and salt."""
        self._salt = salt
        self.embedded: list[str] = []
        """Embedded passages in order."""

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Embed texts; one without words gets a zero vector."""
        import numpy as np

        self.embedded.extend(texts)
        vectors = [self._vector(text) for text in texts]
        return np.array(vectors, np.float32).reshape(len(vectors), self.dimensions)

    def embed_query(self, text: str) -> Vector:
        """Embed a question as a passage."""
        return self._vector(text)

    def _vector(self, text: str) -> Vector:
        import numpy as np

        vector = np.zeros(self.dimensions, np.float32)
        for word in _WORD.findall(text.lower()):
            digest = hashlib.sha256(f"{self._salt}\n{word}".encode()).digest()
            generator = np.random.default_rng(int.from_bytes(digest[:8], "big"))
            vector += generator.standard_normal(self.dimensions, np.float32)
        length = float(np.linalg.norm(vector))
        return vector / np.float32(length) if length else vector


class DocumentsReader:
    """A source of documents in memory.

    Args:
        documents: Documents to yield; change `documents` between reads to simulate a change.
        exhaustive: Whether documents that are no longer yielded are gone.
    """

    def __init__(self, documents: Iterable[SourceDocument], *, exhaustive: bool = True) -> None:
        self.documents = list(documents)
        self.exhaustive = exhaustive

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        """Yield one event per document, until the context stops."""
        for document in self.documents:
            if context.stop():
                return
            yield SourceEvent(document.uri, Outcome.FETCHED, document)
