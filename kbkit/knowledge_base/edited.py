"""Single documents, added and changed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kbkit.errors import ConfigError, ConflictError
from kbkit.ingest.document_writer import Origin
from kbkit.knowledge_base.ingested import Ingested
from kbkit.models import Document, DocumentType, Labels, SourceDocument
from kbkit.stores.catalog import reading, writing

_TRIES = 5
"""How often a change is tried again while others store the same document."""


@dataclass(frozen=True, slots=True)
class Added:
    """What adding a document by hand gave.

    Attributes:
        document_id: Id of the document.
        chunks: Number of its chunks.
    """

    document_id: str
    chunks: int


class Edited(Ingested):
    """A knowledge base whose documents can be changed one by one."""

    def add(
        self,
        title: str,
        content: str,
        *,
        source: str = "",
        document_type: DocumentType | str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Added:
        """Add one document of Markdown text, or replace the one with the same source.

        It is searchable when the call returns.

        Args:
            title: Its title.
            content: Its text, Markdown.
            source: URI of where it comes from, which identifies it; by default ``text:`` and the
                title.
            document_type: Its type; by default what `update` said, else detected.
            tags: Free labels; by default what `update` said, else none.
            metadata: JSON values to keep with it.

        Raises:
            ConfigError: Title or content is empty, or the type is unknown.
            EmbedderError: The embedder failed.
        """
        document = SourceDocument(
            uri=source or f"text:{title.strip()}",
            title=title.strip(),
            content=content,
            document_type=_known_type(document_type),
            tags=tuple(tags or ()),
            metadata=metadata or {},
        )
        with self._stores.database.read() as connection:
            said = writing.labels(connection, self.id, document.uri)
        labels = Labels(
            said.document_type if document_type is None else None,
            said.tags if tags is None else None,
        )
        added = self._put(document, Origin(labels=labels))
        assert added is not None
        return added

    def update(
        self,
        document: str,
        *,
        title: str | None = None,
        content: str | None = None,
        document_type: DocumentType | str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Added:
        """Change a document, given by id or URI; what is not named stays.

        The change is searchable when the call returns. A type and tags that are given here hold
        whatever the document's source says later. Its title, content and metadata are what the
        source says again when that next changes them.

        Raises:
            ConfigError: Title or content is empty, or the type is unknown.
            NotFoundError: There is no such document.
            ConflictError: Others store it again and again meanwhile.
            EmbedderError: The embedder failed.
        """
        given = Labels(_known_type(document_type), None if tags is None else _known_tags(tags))
        only_labels = title is None and content is None and metadata is None
        for _ in range(_TRIES):
            old = self.document(document)
            wanted = SourceDocument(
                uri=old.uri,
                title=old.title if title is None else title.strip(),
                content=old.content if content is None else content,
                document_type=old.document_type,
                tags=old.tags,
                metadata=old.metadata if metadata is None else metadata,
            )
            # who changes title or text says that the document is like this now
            origin = self._origin(old, given, stored=old if only_labels else None)
            if added := self._put(wanted, origin):
                return added
        raise ConflictError(
            f"{document}: is being stored by others again and again; change it when they are done"
        )

    def _origin(self, old: Document, given: Labels, stored: Document | None) -> Origin:
        """Where a stored document comes from, and what is said of it now."""
        with self._stores.database.read() as connection:
            said = writing.labels(connection, self.id, old.uri)
            source_id, run_id = writing.origin(connection, old.id)
        labels = Labels(
            given.document_type or said.document_type,
            said.tags if given.tags is None else given.tags,
        )
        return Origin(source_id, run_id, labels=labels, stored=stored)

    def _put(self, document: SourceDocument, origin: Origin) -> Added | None:
        """Store a document; ``None`` where it changed meanwhile, so that nothing was done."""
        if not document.title or not document.content.strip():
            raise ConfigError("a document needs a title and content; give both")
        document_id, report = self._pipeline().store(document, origin)
        if not (report.new or report.changed or report.same):
            return None
        return Added(document_id, sum(1 for _ in self.iter_chunks(document_id)))

    def delete_document(self, document: str) -> None:
        """Delete a document, given by id or URI.

        Raises:
            NotFoundError: There is no such document.
        """
        with self._stores.database.write() as connection:
            found = reading.get_document(connection, self.id, document)
            writing.delete_document(connection, self.id, found.id)
        self._stores.vectors.apply(self.id)


def _known_tags(tags: Sequence[str]) -> tuple[str, ...]:
    if isinstance(tags, str):
        raise ConfigError(f"tags={tags!r}: give a list of labels")
    kept = dict.fromkeys(" ".join(str(tag).split()) for tag in tags)
    return tuple(tag for tag in kept if tag)


def _known_type(document_type: DocumentType | str | None) -> DocumentType | None:
    if document_type is None:
        return None
    try:
        return DocumentType(document_type)
    except ValueError:
        types = ", ".join(DocumentType)
        raise ConfigError(f"document_type={document_type!r}: choose one of {types}") from None
