"""A llama-index embedding of the tests' own, importable by name in this process and in children."""

import time
from typing import ClassVar

from llama_index.core.base.embeddings.base import BaseEmbedding

from kbkit.testing import HashEmbedder


class WordyEmbedding(BaseEmbedding):
    """`HashEmbedder` as a llama-index embedding, which may be slow or break."""

    dimensions: int = 16
    pause: float = 0.0
    batches: ClassVar[list[list[str]]] = []
    """Every batch that was asked for."""
    breaks_at: ClassVar[int] = 0
    """Number of the batch that fails, counted from 1."""

    def _get_text_embeddings(self, texts):
        self.batches.append(list(texts))
        if len(self.batches) == type(self).breaks_at:
            raise RuntimeError("out of credit")
        time.sleep(self.pause)
        return HashEmbedder(self.dimensions).embed_passages(texts).tolist()

    def _get_text_embedding(self, text):
        return HashEmbedder(self.dimensions).embed_query(text).tolist()

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)
