"""Pictures of a knowledge base, for where people look rather than read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kbkit.errors import ConfigError
from kbkit.frames import map_frame
from kbkit.knowledge_base.judged import Judged
from kbkit.stores.catalog import knowledge_bases
from kbkit.stores.catalog.sampling import sample

if TYPE_CHECKING:
    import pandas as pd

    from kbkit.plots import Plot

_MOST_POINTS = 5000


class Plotted(Judged):
    """A knowledge base to look at. Plots follow the light or dark theme of where they are shown."""

    def embedding_map(self, *, limit: int = 2000, seed: int = 0) -> pd.DataFrame:
        """Where chunks lie on the plane that shows most of what their vectors differ in.

        Args:
            limit: Most chunks, 1 to 5,000; of more, so many are drawn at random.
            seed: Another one draws others.

        Returns:
            One row a chunk, indexed by id: ``x``, ``y``, ``title``, ``section``, ``snippet``,
            ``document_type``, ``folder``, ``uri``. ``attrs`` has the share of ``variance`` that
            each axis shows, and ``chunks``, the number of those it was drawn from.

        Raises:
            ConfigError: The limit is out of range.
        """
        if not 1 <= limit <= _MOST_POINTS:
            raise ConfigError(f"limit={limit}: give 1 to {_MOST_POINTS:,} chunks")
        with self._stores.database.read() as connection:
            row = knowledge_bases.get_by_id(connection, self.id)
            found, vectors = sample(connection, self.id, row.dimensions, limit, seed)
            chunks = knowledge_bases.describe(connection, row).chunks
        frame = map_frame(found, vectors)
        frame.attrs["chunks"] = chunks
        return frame

    def plot_documents(self) -> Plot:
        """How many documents of each type there are, and how long ago each was fetched."""
        from kbkit.plots import documents_by_type

        return documents_by_type(self.documents())

    def plot_chunks(self) -> Plot:
        """How long the chunks are."""
        from kbkit.plots import chunk_lengths

        return chunk_lengths(self.chunks())

    def plot_ratings(self) -> Plot:
        """How often each score was given; of each rater and target the last rating counts."""
        from kbkit.plots import rating_histogram

        return rating_histogram(self.ratings())

    def plot_map(
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
        from kbkit.plots import embedding_map

        if colour not in ("document_type", "folder"):
            raise ConfigError(f"colour={colour!r}: give 'document_type' or 'folder'")
        return embedding_map(self.embedding_map(limit=limit, seed=seed), colour)
