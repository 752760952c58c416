"""A knowledge base that is open: what it is and what it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit.config import Settings
from kbkit.embedding.base import Embedder
from kbkit.errors import ConfigError, EmbedderError
from kbkit.frames import chunks_frame, documents_frame
from kbkit.models import (
    Chunk,
    Document,
    KnowledgeBaseInfo,
)
from kbkit.recipes import (
    AnyEmbedding,
    KnowledgeBaseSpec,
)
from kbkit.stores.catalog import knowledge_bases, ratings, reading
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.listing import iter_listed
from kbkit.stores.stores import Stores

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Resources:
    """What the knowledge bases of one workspace share.

    Attributes:
        stores: What is kept.
        settings: Of the workspace.
        embedder: Opens an embedder, or hands out the one that is open.
    """

    stores: Stores
    settings: Settings
    embedder: Callable[[AnyEmbedding], Embedder]


class Opened:
    """One knowledge base of a workspace, to read."""

    def __init__(self, resources: Resources, row: KnowledgeBaseRow) -> None:
        self._resources = resources
        self._stores = resources.stores
        self._row = row
        self._embedder: Embedder | None = None
        self._revision: tuple[int, tuple[int, int, int]] | None = None

    @property
    def id(self) -> str:
        """Identifies it for ever."""
        return self._row.id

    @property
    def name(self) -> str:
        """Its slug."""
        return self._row.name

    @property
    def folder(self) -> Path:
        """The folder of its workspace."""
        return self._stores.folder

    @property
    def spec(self) -> KnowledgeBaseSpec:
        """How it works: chunking, embedding, retrieval, storage, site."""
        return KnowledgeBaseSpec.model_validate(self._current().config)

    def info(self) -> KnowledgeBaseInfo:
        """Its figures: documents, chunks, types, states, embedder, times."""
        with self._stores.database.read() as connection:
            row = knowledge_bases.get_by_id(connection, self.id)
            return knowledge_bases.describe(connection, row)

    def document(self, document: str) -> Document:
        """One document, given by id or URI.

        Raises:
            NotFoundError: There is no such document.
        """
        with self._stores.database.read() as connection:
            return reading.get_document(connection, self.id, document)

    def iter_documents(self, *, gone: bool = True) -> Iterator[Document]:
        """All documents in order of URI, those that are gone from their source with ``gone``."""
        with self._stores.database.read() as connection:
            yield from reading.iter_documents(connection, self.id, gone=gone)

    def list_documents(self) -> list[Document]:
        """All documents in order of URI, quickly: the ``content`` of each is left empty."""
        with self._stores.database.read() as connection:
            return list(iter_listed(connection, self.id))

    def iter_chunks(self, document_id: str | None = None) -> Iterator[Chunk]:
        """All chunks, or those of one document, in document order."""
        with self._stores.database.read() as connection:
            yield from reading.iter_chunks(connection, self.id, document_id)

    def context(self, chunk_id: str, *, before: int = 1, after: int = 1) -> list[Chunk]:
        """A chunk with those before and after it in its document, in document order.

        Args:
            chunk_id: Of the chunk.
            before: Most chunks before it, 0 or more.
            after: Most chunks after it, 0 or more.

        Raises:
            ConfigError: A number is below 0.
            NotFoundError: There is no such chunk.
        """
        given: dict[str, Any] = {"before": before, "after": after}
        for name, number in given.items():
            if not isinstance(number, int) or number < 0:
                raise ConfigError(f"{name}={number!r}: give a whole number, 0 or more")
        with self._stores.database.read() as connection:
            return reading.neighbours(connection, self.id, chunk_id, before, after)

    def tags(self) -> dict[str, int]:
        """How many of its documents have each tag, the most used first."""
        with self._stores.database.read() as connection:
            return reading.tag_counts(connection, self.id)

    def folders(self, *, depth: int = 2) -> dict[str, int]:
        """How many of its documents lie in each folder of their URIs' paths, sorted by folder.

        Args:
            depth: Folders within folders that are counted apart.
        """
        with self._stores.database.read() as connection:
            return reading.folder_counts(connection, self.id, depth)

    def revision(self) -> tuple[int, int, int]:
        """Numbers that change when its documents or ratings change, whoever changes them."""
        changes = self._stores.database.changes()  # before looking, lest one be missed
        if self._revision is None or self._revision[0] != changes:
            with self._stores.database.read() as connection:
                version = knowledge_bases.get_by_id(connection, self.id).version
                found = (version, *ratings.extent(connection, self.id))
            self._revision = (changes, found)
        return self._revision[1]

    def documents(self) -> pd.DataFrame:
        """All documents as a DataFrame, indexed by id; ``content`` is the Markdown."""
        return documents_frame(self.iter_documents())

    def chunks(self) -> pd.DataFrame:
        """All chunks as a DataFrame, indexed by id."""
        return chunks_frame(self.iter_chunks())

    def _embedder_of(self, row: KnowledgeBaseRow) -> Embedder:
        """The embedder of a knowledge base that the catalog has like this.

        Raises:
            EmbedderError: It cannot be opened, or is not the one that made the vectors.
        """
        if self._embedder is None or self._embedder.fingerprint != row.embedder:
            spec = KnowledgeBaseSpec.model_validate(row.config).embedding
            found = self._resources.embedder(spec)
            if found.fingerprint != row.embedder:
                raise EmbedderError(
                    f"{self.name}: was embedded by {row.embedder}, but the embedder is now "
                    f"{found.fingerprint}; install the version it was made with, or change the "
                    "recipe's embedding so that it is embedded again"
                )
            self._embedder = found
        return self._embedder

    def _current(self) -> KnowledgeBaseRow:
        with self._stores.database.read() as connection:
            return knowledge_bases.get_by_id(connection, self.id)
