"""The documents of a knowledge base: read, and change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kbkit.errors import ConfigError, ConflictError, ImpossibleError, NotFoundError
from kbkit.ingest.embedding import Origin, source_document
from kbkit.ingest.pipeline import Stop
from kbkit.ingest.summaries import Expander, remove_expansions
from kbkit.knowledge_base.document_collection import DocumentCollection
from kbkit.knowledge_base.handle import Handle
from kbkit.knowledge_base.ingestion import Ingestion
from kbkit.models import Document, DocumentInfo, DocumentType, Expansion, Labels, SourceDocument
from kbkit.models.values import check_match, did_you_mean, valid
from kbkit.recipes import ExpandSpec
from kbkit.runtime.language_models import open_llm
from kbkit.runtime.progress import OnProgress, progress_bar
from kbkit.runtime.validation import check_json, check_member, check_text, explain_calls
from kbkit.sources import public_uri
from kbkit.stores.catalog import reading, writing

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

_TRIES = 50
"""Attempts of a change while others store the same document."""


@explain_calls
class Documents(DocumentCollection):
    """Documents of a knowledge base by URI, including those that their source no longer has.

    Iterate over them, count them with ``len``, or look one up: ``kb.documents[id or URI]``.
    """

    def __init__(self, handle: Handle, ingestion: Ingestion) -> None:
        super().__init__(handle)
        self._ingestion = ingestion

    def add(
        self,
        title: str,
        content: str,
        *,
        source: str = "",
        document_type: DocumentType | str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> DocumentInfo:
        """Add one document of Markdown text, or replace the one with the same source.

        See `KnowledgeBase.add` for arguments and errors.
        """
        self._handle.check_own()
        title, source = check_text("title", title), check_text("source", source)
        previous = self._database.look_up(self._handle.find, source) if source else None
        document = SourceDocument(
            uri=previous.uri if previous else public_uri(source) or f"text:{title.strip()}",
            title=title.strip(),
            content=check_text("content", content),
            document_type=_check_type(document_type),
            tags=tuple(tags or ()),
            metadata=check_json("metadata", dict(metadata or {})),
        )
        stored_labels = self._handle.look_up(writing.labels, document.uri)
        kept_type = stored_labels.document_type if document_type is None else None
        labels = Labels(kept_type, stored_labels.tags if tags is None else None)
        info = self._put(document, Origin(labels=labels))
        assert info is not None
        return info

    def expand(
        self,
        llm: LLM | str | None = None,
        *,
        questions: int | None = None,
        estimate: bool = False,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> Expansion:
        """Write document summaries and questions with a language model, for search.

        Measure whether it improves search. The model gets title, headings and the first 6,000
        characters of each document. Only new, changed and failed documents are sent. An answer
        becomes the document's summary, and its description if it has none.

        Args:
            llm: A llama-index language model, or its name as in a recipe's ``expand``
                (``"openai:gpt-4o-mini"``); by default the recipe's.
            questions: Number of questions for a document, 0 to 10; by default the recipe's, else 5.
            estimate: Only estimate the requests.
            on_progress: Called after each document; by default notebooks show a bar.
            stop: Called before each document; true ends the work cleanly.

        Returns:
            Documents described, failed, and left.

        Raises:
            ConfigError: No model is named, or the number of questions is wrong.
            ConflictError: Another process does the same.
            LanguageModelError: The model cannot be opened, or failed repeatedly; results stay.
        """
        expander = self._expander(llm, questions)
        if estimate:
            return expander.estimate()
        lock, task = f"expand-{self._handle.id}", "having a model write of these documents"
        with (
            self._handle.stores.locks.hold(lock, wait=0, task=task),
            progress_bar(on_progress) as notify,
        ):
            try:
                return expander.expand(
                    lambda: self._handle.summaries.make(seconds=0), on_progress=notify, stop=stop
                )
            finally:
                self._settle()

    def unexpand(self) -> int:
        """Delete summaries and questions of language models; return the number of documents."""
        count = remove_expansions(self._database, self._handle.id)
        self._settle()
        return count

    def update(
        self,
        document: str,
        *,
        title: str | None = None,
        content: str | None = None,
        document_type: DocumentType | str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        if_match: str | None = None,
    ) -> DocumentInfo:
        """Change a document, given by id or URI; omitted values stay.

        The change is searchable when the call returns. Type and tags set here override the source.
        Title, content and metadata are replaced when they change in the source.

        Args:
            document: Its id or URI.
            title: Its title.
            content: Its text, Markdown.
            document_type: Its type.
            tags: Free labels.
            metadata: JSON values to store with it.
            if_match: Expected ``content_hash``; by default any.

        Raises:
            ConfigError: Title or content is empty, or the type is unknown.
            NotFoundError: There is no such document.
            VersionConflictError: Its version differs from ``if_match``.
            ConflictError: Other writers keep changing it.
            EmbedderError: The embedder failed.
        """
        new_labels = Labels(_check_type(document_type), None if tags is None else _check_tags(tags))
        new_metadata = None if metadata is None else check_json("metadata", dict(metadata))
        only_labels = title is None and content is None and metadata is None
        if not only_labels:
            self._handle.check_own()
        for _ in range(_TRIES):
            current = self[document]
            check_match(current.uri, if_match, current.content_hash)
            updated = replace(
                source_document(current),
                title=current.title if title is None else title.strip(),
                content=current.content if content is None else content,
                metadata=current.metadata if new_metadata is None else new_metadata,
            )
            # a changed title or text replaces that of the source
            origin = self._origin(current, new_labels, stored=current if only_labels else None)
            if info := self._put(updated, origin):
                return info
        raise ConflictError(
            f"{document}: is being stored by others again and again; change it when they are done"
        )

    def delete(self, document: str, *, if_match: str | None = None) -> None:
        """Move a document to the trash; `undelete` restores it.

        A refresh does not bring it back; `add` does, or another source that has it.

        Args:
            document: Its id or URI.
            if_match: Expected ``content_hash``; by default any.

        Raises:
            NotFoundError: There is no such document.
            VersionConflictError: Its version differs from ``if_match``.
        """
        self._handle.check_own()
        document_id = self[document].id
        with self._database.write() as transaction:
            current = reading.get_document(transaction, self._handle.id, document_id)
            check_match(current.uri, if_match, current.content_hash)
            writing.delete_document(transaction, self._handle.id, current.id)
        self._handle.stores.vectors.apply(self._handle.id)

    def undelete(self, document: str) -> DocumentInfo | None:
        """Restore a deleted document with its ratings and labels.

        Args:
            document: Its id or URI.

        Returns:
            The document; ``None`` if the trash was emptied. The next refresh then reads it again.

        Raises:
            NotFoundError: It is not in the trash; the message lists its content.
            EmbedderError: The embedder failed.
        """
        self._handle.check_own()
        kb_id = self._handle.id
        with self._database.read() as transaction:
            names = list(self._handle.names(transaction, document))
            deleted = writing.get_deleted(transaction, kb_id, names)
            if deleted is None:
                uris = [listing.uri for listing in writing.list_deleted(transaction, kb_id)]
                hint = did_you_mean(document, uris) if uris else "the trash is empty"
                raise NotFoundError(
                    f"{self._handle.name}: no deleted document is called {document!r}; {hint}"
                )
        if deleted.document.content:
            origin = Origin(deleted.source_id, labels=deleted.labels, undeleted=True)
            return self._put(deleted.document, origin)
        with self._database.write() as transaction:
            writing.forget_deleted(transaction, kb_id, [deleted.document.uri])
            writing.read_again(transaction, deleted.source_id, deleted.document.uri)
        return None

    def _origin(self, document: Document, new_labels: Labels, stored: Document | None) -> Origin:
        with self._database.read() as transaction:
            current = writing.labels(transaction, self._handle.id, document.uri)
            source_id, run_id = writing.origin(transaction, document.id)
        tags = current.tags if new_labels.tags is None else new_labels.tags
        labels = Labels(new_labels.document_type or current.document_type, tags)
        return Origin(
            source_id, run_id, labels=labels, stored=stored, expected=document.content_hash
        )

    def _put(self, document: SourceDocument, origin: Origin) -> DocumentInfo | None:
        """Store a document; return ``None`` if another change came first."""
        if not document.title or not document.content.strip():
            raise ConfigError("a document needs a title and content; give both")
        report = self._ingestion.pipeline().store(document, origin)
        self._ingestion.improving.after_few([document.uri])
        if not (report.new or report.changed or report.same):
            return None
        with self._database.read() as transaction:
            result = reading.get_document(transaction, self._handle.id, document.uri)
            chunks = sum(1 for _ in reading.iter_chunks(transaction, self._handle.id, result.id))
        return DocumentInfo.of(result, chunks)

    def _expander(self, llm: LLM | str | None, questions: int | None) -> Expander:
        chosen = self._handle.spec.expand
        if isinstance(llm, str) and (chosen is None or chosen.llm != llm):
            chosen = ExpandSpec(llm=llm)
        if questions is None:
            questions = 5 if chosen is None else chosen.questions
        if questions not in range(11):
            raise ConfigError(f"questions={questions!r}: give a whole number, 0 to 10")
        arguments: Mapping[str, Any] = {}
        if llm is None or isinstance(llm, str):
            if chosen is None:
                raise ImpossibleError(
                    f"{self._handle.name}: names no language model; give one (a llama-index LLM, "
                    "or its name such as 'openai:gpt-4o-mini'), or name it as `expand` in the "
                    "recipe"
                )
            llm, arguments = open_llm(chosen, key="expand"), chosen.arguments
        elif not hasattr(llm, "chat"):
            raise ConfigError(f"llm={llm!r}: give a llama-index LLM, or the name of one")
        return Expander(self._database, self._handle.id, llm, questions, arguments)

    def _settle(self) -> None:
        self._ingestion.improving.after_ingest()
        self._handle.stores.snapshots.save(self._handle.id, merging=True)


def delete_together(documents: Documents, names: Sequence[str]) -> int:
    """Move documents to the trash, all or none; return their number."""
    handle = documents._handle
    handle.check_own()
    ids = {documents[name].id for name in names}
    with documents._database.write() as transaction:
        for id_ in sorted(ids):
            writing.delete_document(transaction, handle.id, id_)
    handle.stores.vectors.apply(handle.id)
    return len(ids)


def _check_type(document_type: DocumentType | str | None) -> DocumentType | None:
    if document_type is None:
        return None
    return check_member("document_type", document_type, DocumentType)


def _check_tags(tags: Sequence[str]) -> tuple[str, ...]:
    if isinstance(tags, str):
        raise ConfigError(f"tags={tags!r}: give a list of labels")
    distinct = dict.fromkeys(" ".join(valid(str(tag)).split()) for tag in tags)
    return tuple(tag for tag in distinct if tag)
