"""What the legs read of the catalog, where there is no snapshot of its version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding.base import Matrix, Vector
from kbkit.retrieval.candidates.base import Mask, Postings, Rows, Scores, cosines, top_indices
from kbkit.stores.catalog import corpus
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.snapshots.chunk_table import ChunkTable
from kbkit.stores.vector_index import VectorIndex
from kbkit.text import analyzer


@dataclass(slots=True)
class CatalogCorpus:
    """The catalog as one query reads it: a `Corpus`.

    Attributes:
        transaction: One that reads.
        chunks: What it sees.
        row: The knowledge base.
        index: Its collection is among these.
        vector: Of the query; ``None`` where there is none, so that no chunk is near it.
        language: Of the analyzer.
        scans_long: See `Corpus`.
    """

    transaction: Transaction
    chunks: ChunkTable
    row: KnowledgeBaseRow
    index: VectorIndex
    vector: Vector | None
    language: str
    scans_long: ClassVar[bool] = False

    def postings(self, terms: Sequence[str]) -> dict[str, Postings]:
        """The chunks that hold each term, by row, and how often."""
        found = self.transaction.lexical.postings(self.row.id, terms)
        return {term: (self._rows(seqs), counts) for term, (seqs, counts) in found.items()}

    def nearest(self, size: int, most: int, mask: Mask | None) -> Rows:
        """The nearest chunks, best first: what Chroma names, or what a scan finds."""
        if self.vector is None:
            return np.zeros(0, np.int64)
        if mask is not None:
            rows = np.flatnonzero(mask)
            return rows[top_indices(self.cosines(rows), most)]
        found = self.index.nearest(self.transaction, self.row, self.vector, size)
        if most > size:  # apart, so that those before stay the same
            found += self.index.nearest(self.transaction, self.row, self.vector, most)
        return self._rows(np.array(found, np.int64))

    def _rows(self, seqs: NDArray[np.int64]) -> Rows:
        return np.asarray(np.searchsorted(self.chunks.seqs, seqs), np.int64)

    def cosines(self, rows: Rows) -> NDArray[np.float32]:
        """Cosines of the query and some chunks."""
        if self.vector is None:
            return np.zeros(len(rows), np.float32)
        return cosines(self.vectors(rows), self.vector)

    def vectors(self, rows: Rows) -> Matrix:
        """The vectors of some chunks."""
        seqs = self.chunks.seqs[rows].tolist()
        return corpus.vectors_of(self.transaction, self.row.dimensions, seqs)

    def coverage(self, rows: Rows, terms: Sequence[str]) -> tuple[Scores, Scores]:
        """Share of some terms that the title and the headings of some chunks have."""
        seqs = self.chunks.seqs[rows].tolist()
        named = corpus.headings_of(self.transaction, seqs)
        wanted, of = frozenset(terms), analyzer(self.language).terms

        def share(texts: Sequence[str]) -> Scores:
            return np.array([len(wanted.intersection(of(t))) for t in texts]) / max(1, len(wanted))

        return share([title for title, _ in named]), share([heading for _, heading in named])
