"""Pictures of a knowledge base, for where people look rather than read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kbkit.arguments import explained
from kbkit.errors import ConfigError
from kbkit.knowledge_base.chunks import Chunks
from kbkit.knowledge_base.documents import Documents
from kbkit.knowledge_base.ratings import Ratings

if TYPE_CHECKING:
    from kbkit.plots import Plot


@explained
class Plots:
    """Pictures of a knowledge base; they follow the light or dark theme of where they are shown."""

    def __init__(self, documents: Documents, chunks: Chunks, ratings: Ratings) -> None:
        self._documents = documents
        self._chunks = chunks
        self._ratings = ratings

    def documents(self) -> Plot:
        """How many documents of each type there are, and how long ago each was fetched."""
        from kbkit.plots import documents_by_type

        return documents_by_type(self._documents.to_frame())

    def chunks(self) -> Plot:
        """How long the chunks are."""
        from kbkit.plots import chunk_lengths

        return chunk_lengths(self._chunks.to_frame())

    def ratings(self) -> Plot:
        """How often each score was given; of each rater and target the last rating counts."""
        from kbkit.plots import rating_histogram

        return rating_histogram(self._ratings.to_frame())

    def map(
        self,
        *,
        limit: int = 2000,
        colour: Literal["document_type", "folder"] = "document_type",
        seed: int = 0,
    ) -> Plot:
        """The chunks on a plane, where neighbours mean much the same; point at one to read it.

        Args:
            limit: Most chunks, 1 to 5,000; of more, so many are drawn at random, and the subtitle
                says so.
            colour: What colours tell apart.
            seed: Another one draws others.

        Raises:
            ConfigError: The limit is out of range, or the colour is none of these.
        """
        if colour not in ("document_type", "folder"):
            raise ConfigError(f"colour={colour!r}: give 'document_type' or 'folder'")
        from kbkit.plots import embedding_map

        return embedding_map(self._chunks.embedding_map(limit=limit, seed=seed), colour)
