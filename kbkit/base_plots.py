"""Plots of a local or served knowledge base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from kbkit.errors import ConfigError
from kbkit.runtime.validation import explain_calls

if TYPE_CHECKING:
    from kbkit.plots import Plot

Colour = Literal["document_type", "folder"]
"""Property that colours show."""


class _Collections:
    def __init__(self, documents: Any, chunks: Any, ratings: Any) -> None:
        self._documents = documents
        self._chunks = chunks
        self._ratings = ratings


@explain_calls
class Plots(_Collections):
    """Plots of a knowledge base; they follow the light or dark theme around them."""

    def documents(self) -> Plot:
        """Plot the number of documents by type and age."""
        from kbkit.plots import documents_by_type

        return documents_by_type(self._documents.to_frame())

    def chunks(self) -> Plot:
        """Plot the lengths of chunks."""
        from kbkit.plots import chunk_lengths

        return chunk_lengths(self._chunks.to_frame())

    def ratings(self) -> Plot:
        """Plot ratings by score; only the last rating of a target by a rater counts."""
        from kbkit.plots import rating_histogram

        return rating_histogram(self._ratings.to_frame())

    def map(self, *, limit: int = 2000, colour: Colour = "document_type", seed: int = 0) -> Plot:
        """Plot chunks on a plane by meaning; point at one to read it.

        Args:
            limit: Maximum number of chunks, 1 to 5,000; larger collections are sampled at random.
            colour: Property shown by colour.
            seed: Seed of the sample.

        Raises:
            ConfigError: The limit is out of range, or the colour is unknown.
        """
        _check_colour(colour)
        from kbkit.plots import embedding_map

        return embedding_map(self._chunks.embedding_map(limit=limit, seed=seed), colour)


@explain_calls
class AsyncPlots(_Collections):
    """Plots of a knowledge base, awaited; see `Plots`."""

    async def documents(self) -> Plot:
        from kbkit.plots import documents_by_type

        return documents_by_type(await self._documents.to_frame())

    async def chunks(self) -> Plot:
        from kbkit.plots import chunk_lengths

        return chunk_lengths(await self._chunks.to_frame())

    async def ratings(self) -> Plot:
        from kbkit.plots import rating_histogram

        return rating_histogram(await self._ratings.to_frame())

    async def map(
        self, *, limit: int = 2000, colour: Colour = "document_type", seed: int = 0
    ) -> Plot:
        _check_colour(colour)
        from kbkit.plots import embedding_map

        return embedding_map(await self._chunks.embedding_map(limit=limit, seed=seed), colour)


def _check_colour(colour: str) -> None:
    if colour not in get_args(Colour):
        raise ConfigError(f"colour={colour!r}: give 'document_type' or 'folder'")
