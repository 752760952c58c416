"""Queries as the cards of documents are embedded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock

from kbkit.embedding.base import Embedder, Vector
from kbkit.errors import ConfigError, EmbedderError
from kbkit.retrieval.query_vectors import QueryVector
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.snapshots.chunk_table import ChunkTable

_KEPT = 256
"""Queries whose vectors are kept: people ask again, and pages of hits ask the same."""


@dataclass(slots=True)
class CardQueryEncoder:
    """Embeds the queries of one knowledge base for its cards.

    Attributes:
        embedder: Gives what embeds the cards of a knowledge base that the catalog has like this.
    """

    embedder: Callable[[KnowledgeBaseRow], Embedder]
    _kept: OrderedDict[tuple[str, str], Vector] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def encode(self, row: KnowledgeBaseRow, chunks: ChunkTable, text: str) -> QueryVector:
        """The vector of a query; none, and why, where it cannot be had.

        Args:
            row: The knowledge base.
            chunks: Of it, whose cards are asked.
            text: The query.
        """
        if not chunks.card_embedder:
            return QueryVector()
        key = (chunks.card_embedder, text)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return QueryVector(self._kept[key])
        try:
            # as these chunks show it, in case others are searched by now
            embedder = self.embedder(replace(row, card_embedder=chunks.card_embedder))
            if embedder.fingerprint != chunks.card_embedder:
                return QueryVector(
                    note=f"{row.name}: its cards were embedded by {chunks.card_embedder}, which "
                    f"is not here; `kbkit refresh {row.name}` embeds them again"
                )
            vector = embedder.embed_query(text)
        except (ConfigError, EmbedderError) as error:
            return QueryVector(note=f"{row.name}: cards were not searched, since {error}")
        with self._lock:
            self._kept[key] = vector
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return QueryVector(vector)
