"""Queries as the cards of documents are embedded, beside what is read of the chunks meanwhile."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
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

    def encode(self, row: KnowledgeBaseRow, chunks: ChunkTable, text: str) -> Future[QueryVector]:
        """The vector of a query, as soon as it is there; none, and why, where it cannot be had.

        Args:
            row: The knowledge base.
            chunks: Of it, whose cards are asked.
            text: The query.
        """
        if not chunks.card_embedder:
            return _known(QueryVector())
        key = (chunks.card_embedder, text)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return _known(QueryVector(self._kept[key]))
        # as these chunks show it, in case others are searched by now
        shown = replace(row, card_embedder=chunks.card_embedder)
        return _threads().submit(self._embed, shown, text)

    def _embed(self, row: KnowledgeBaseRow, text: str) -> QueryVector:
        try:
            embedder = self.embedder(row)
            if embedder.fingerprint != row.card_embedder:
                return QueryVector(
                    note=f"{row.name}: its cards were embedded by {row.card_embedder}, which "
                    f"is not here; `kbkit refresh {row.name}` embeds them again"
                )
            vector = embedder.embed_query(text)
        except (ConfigError, EmbedderError) as error:
            return QueryVector(note=f"{row.name}: cards were not searched, since {error}")
        with self._lock:
            self._kept[row.card_embedder, text] = vector
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return QueryVector(vector)


def _known(vector: QueryVector) -> Future[QueryVector]:
    found: Future[QueryVector] = Future()
    found.set_result(vector)
    return found


@cache
def _threads() -> ThreadPoolExecutor:
    """Those in which queries are embedded: onnxruntime leaves Python to others while it works."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="kbkit-cards")
