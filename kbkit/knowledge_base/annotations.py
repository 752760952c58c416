"""The annotations of a knowledge base."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING

from kbkit import models
from kbkit.annotation import CHUNKS, AnnotationMaker, annotator_of
from kbkit.annotation.language_model import LlmAnnotator
from kbkit.errors import ConfigError, NotFoundError
from kbkit.frames import annotations_frame
from kbkit.knowledge_base.handle import Handle, Items
from kbkit.recipes import LlmAnnotation
from kbkit.runtime.progress import OnProgress, progress_bar
from kbkit.runtime.validation import check_limit, check_member, check_text, explain_calls
from kbkit.stores.catalog import chunk_annotations, corpus, reading, subjects
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.subjects import SubjectName
from kbkit.stores.stores import Stores
from kbkit.text import subject_key

if TYPE_CHECKING:
    import pandas as pd

    from kbkit.ingest.pipeline import Stop


_MAX_SUGGESTIONS = 5
_MAX_WEIGHTED_CHUNKS = 2_000


def list_subjects(
    stores: Stores,
    handles: Sequence[Handle],
    *,
    kind: str | models.SubjectKind | None,
    like: str,
    limit: int | None,
) -> list[models.Subject]:
    check_limit(limit)
    kinds = [] if kind is None else [check_member("kind", kind, models.SubjectKind)]
    kb_ids, like = [handle.id for handle in handles], check_text("like", like)
    return stores.database.look_up(
        subjects.list_subjects, kinds=kinds, like=like, kb_ids=kb_ids, limit=limit
    )


def about(stores: Stores, handles: Sequence[Handle], query: str, *, limit: int) -> models.About:
    check_limit(limit)
    text = " ".join(check_text("query", query).split())
    if not text:
        raise ConfigError("the query is empty: give some words")
    kb_ids = [handle.id for handle in handles]
    with stores.database.read() as transaction:
        keys = {kind: subject_key(kind, text) for kind in models.SubjectKind}
        names = [SubjectName(kind, key, text) for kind, key in keys.items() if key]
        subject_ids = subjects.ids_of(transaction, [name.id for name in names])
        matches = subjects.list_subjects(transaction, ids=subject_ids, kb_ids=kb_ids)
        if not matches:
            raise _no_subject(transaction, text, kb_ids)
        ids = subjects.ids_of(transaction, [subject.id for subject in matches])
        words = {name.casefold() for item in matches for name in (item.name, *item.aliases)}
        chunks: list[models.SpeakingChunk] = []
        documents: list[models.SpeakingDocument] = []
        seqs: set[int] = set()
        for handle in handles:
            kb_seqs = subjects.chunk_seqs(transaction, ids, kb_id=handle.id)[:_MAX_WEIGHTED_CHUNKS]
            kb_chunks = reading.get_chunks(transaction, kb_seqs)
            annotations = chunk_annotations.annotations_of(transaction, kb_seqs)
            chunks += [
                _speaking_chunk(handle.name, *kb_chunks[seq], annotations[seq], words)
                for seq in kb_seqs
                if seq in kb_chunks and seq in annotations
            ]
            documents += _documents(transaction, handle, kb_chunks, words)
            seqs.update(kb_seqs)
        related_ids = subjects.beside(transaction, seqs, without=ids, limit=limit)
        related = {item.id: item for item in subjects.list_subjects(transaction, ids=related_ids)}
    chunks.sort(key=lambda item: -item.weight)
    documents.sort(key=lambda item: (not item.defines, -item.chunks))
    entities = tuple(related[subject_id] for subject_id in related_ids if subject_id in related)
    return models.About(
        text, tuple(matches), tuple(chunks[:limit]), tuple(documents[:limit]), entities
    )


def _no_subject(transaction: Transaction, query: str, kb_ids: Collection[str]) -> NotFoundError:
    word = max(query.split(), key=len)
    similar = [
        subject.name
        for subject in subjects.list_subjects(
            transaction, like=word, kb_ids=kb_ids, limit=_MAX_SUGGESTIONS
        )
    ]
    if not similar:
        frequent = subjects.list_subjects(transaction, kb_ids=kb_ids, limit=1_000)
        similar = get_close_matches(query, [subject.name for subject in frequent], _MAX_SUGGESTIONS)
    hint = f"; similar ones are {', '.join(map(repr, similar))}" if similar else ""
    return NotFoundError(
        f"there is no subject {query!r}{hint}; list the subjects to see all (only annotated "
        "documents have subjects)"
    )


def _speaking_chunk(
    kb: str,
    chunk: models.Chunk,
    document: models.Document,
    annotations: Sequence[models.Annotation],
    words: Collection[str],
) -> models.SpeakingChunk:
    """Return a chunk about a subject, weighted by its other subjects."""
    other_names = {name for annotation in annotations for name in annotation.entities}
    in_heading = any(word in heading.casefold() for heading in chunk.heading_path for word in words)
    best = max(annotations, key=lambda annotation: annotation.confidence)
    return models.SpeakingChunk(
        kb=kb,
        chunk_id=chunk.id,
        title=document.title,
        section=reading.heading_text(document.title, chunk.heading_path),
        uri=document.uri,
        anchor=chunk.anchor,
        statement=best.normalized_text,
        frame=best.frame,
        weight=1.0 if in_heading else round(1 / (1 + len(other_names)) ** 0.5, 3),
    )


def _documents(
    transaction: Transaction,
    handle: Handle,
    chunks: Mapping[int, tuple[models.Chunk, models.Document]],
    words: Collection[str],
) -> list[models.SpeakingDocument]:
    counts = Counter(document.id for _, document in chunks.values())
    by_id = {document.id: document for _, document in chunks.values()}
    defining = subjects.defining(transaction, handle.id, words)
    return [
        models.SpeakingDocument(
            handle.name, id_, each.title, each.uri, each.description, counts[id_], id_ in defining
        )
        for id_, each in by_id.items()
    ]


@explain_calls
class Annotations(Items):
    """The annotations of chunks, ordered by document URI; made after an ingest, as set in a recipe.

    Iterate over them, or count them with ``len``.
    """

    _noun = "annotations"
    _kind = models.Annotation

    def __iter__(self) -> Iterator[models.Annotation]:
        with self._database.read() as transaction:
            for chunk in chunk_annotations.iter_all(transaction, self._handle.id):
                yield from chunk.annotations

    def __len__(self) -> int:
        return self._handle.look_up(chunk_annotations.count)

    def chunks(
        self, *, after: tuple[str, int] = ("", -1), limit: int | None = None
    ) -> list[models.AnnotatedChunk]:
        """Return annotated chunks.

        Args:
            after: URI of a document and a position in it; only later chunks.
            limit: Maximum number of chunks; by default all.

        Raises:
            ConfigError: The limit is wrong.
        """
        check_limit(limit)
        with self._database.read() as transaction:
            annotated = chunk_annotations.iter_all(transaction, self._handle.id, after=after)
            return list(islice(annotated, limit))

    def of(self, target: str) -> list[models.Annotation]:
        """List the annotations of a chunk, or of all chunks of a document.

        Args:
            target: Id of a chunk, or id or URI of a document.

        Raises:
            NotFoundError: The target does not exist.
        """
        resolved = self._handle.target(target)
        with self._database.read() as transaction:
            ids = [resolved.id]
            if resolved.kind is models.TargetKind.DOCUMENT:
                chunks = reading.iter_chunks(transaction, self._handle.id, resolved.id)
                ids = [chunk.id for chunk in chunks]
            seqs = corpus.seqs_by_id(transaction, ids)
            by_seq = chunk_annotations.annotations_of(transaction, list(seqs.values()))
        return [item for id_ in ids if id_ in seqs for item in by_seq.get(seqs[id_], ())]

    @property
    def statement_types(self) -> Mapping[models.StatementType, int]:
        """Annotations by statement type, the most frequent first."""
        return self._handle.look_up(chunk_annotations.statement_type_counts)

    def subjects(
        self,
        *,
        kind: str | models.SubjectKind | None = None,
        like: str = "",
        limit: int | None = None,
    ) -> list[models.Subject]:
        """List subjects by number of mentions; see `Workspace.subjects`."""
        return list_subjects(self._handle.stores, [self._handle], kind=kind, like=like, limit=limit)

    def make(
        self,
        *,
        estimate: bool = False,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> models.AnnotationReport:
        """Annotate the remaining chunks; `KnowledgeBase.improve` does this too.

        Ignores the recipe's limit on chunks for a language model. Answers are stored, so each chunk
        is paid for once.

        Args:
            estimate: Only estimate the requests to a language model.
            on_progress: Called during the work; by default notebooks show a bar.
            stop: Called often; true ends the work cleanly. Finished annotations stay.

        Returns:
            Number of annotated chunks, and a model's cost so far and to come.

        Raises:
            ConfigError: The recipe names a plugin that is missing or is not an annotator.
            LanguageModelError: The recipe's language model is unavailable, or failed.
            NotFoundError: The knowledge base was deleted.
        """
        maker = maker_of(self._handle)
        if maker is None:
            return models.AnnotationReport(0, "none")
        annotated, annotator = 0, maker.annotator
        if not estimate:
            with progress_bar(on_progress) as notify:
                annotated = maker.make(on_progress=notify, stop=stop)
        if isinstance(annotator, LlmAnnotator):
            return annotator.report(maker.passages(), annotated)
        return models.AnnotationReport(annotated, annotator.fingerprint)

    def to_frame(self) -> pd.DataFrame:
        """Return all annotations as a DataFrame, one row each, with their chunks."""
        with self._database.read() as transaction:
            return annotations_frame(chunk_annotations.iter_all(transaction, self._handle.id))


def maker_of(handle: Handle) -> AnnotationMaker | None:
    """Return the annotator of a knowledge base; ``None`` if its recipe wants no annotations."""
    spec, database = handle.spec.annotation, handle.stores.database
    annotator = annotator_of(spec, database, handle.id)
    if annotator is None:
        return None
    at_once = spec.batch_size if isinstance(spec, LlmAnnotation) else CHUNKS
    return AnnotationMaker(database, handle.id, annotator, spec.names, at_once)
