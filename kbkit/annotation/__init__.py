"""Annotations of chunks: names, statement types, problems and resolutions.

A new document may define a name that old ones use, so chunks that contain an added or removed name
are annotated again. The result equals that of annotating all chunks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

from kbkit.annotation.gazetteer import NameGazetteer
from kbkit.annotation.names import REVISION, names_of
from kbkit.models import Annotation, Chunk, Document, Progress
from kbkit.recipes import AnyAnnotation, LlmAnnotation, NameSpec, NoAnnotation, PluginAnnotation
from kbkit.runtime.plugins import ANNOTATORS, make
from kbkit.runtime.progress import OnProgress
from kbkit.stores.catalog import chunk_annotations, knowledge_bases, reading, subjects
from kbkit.stores.catalog.database import Database, Transaction, batches


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk with its document, whose content may be empty."""

    chunk: Chunk
    document: Document


class Annotator(Protocol):
    """Annotates passages."""

    @property
    def fingerprint(self) -> str:
        """Name and version; chunks are annotated again when it changes."""

    def annotate(
        self, passages: Sequence[Passage], gazetteer: NameGazetteer
    ) -> Sequence[Sequence[Annotation]]:
        """Annotate passages."""


CHUNKS = 500
"""Chunks of a batch, with a fast annotator."""

_WRITTEN = 100  # chunks of a transaction; more would block other writers
_DOCUMENTS = 64


@dataclass(frozen=True, slots=True)
class AnnotationMaker:
    """Makes the annotations of one knowledge base."""

    database: Database
    kb_id: str
    annotator: Annotator
    curated: Sequence[NameSpec] = ()
    at_once: int = CHUNKS

    def count_left(self) -> int:
        return self.database.look_up(
            chunk_annotations.count_lacking, self.kb_id, self.annotator.fingerprint
        )

    def passages(self) -> list[Passage]:
        with self.database.read() as transaction:
            fingerprint = self.annotator.fingerprint
            lacking = chunk_annotations.lacking(transaction, self.kb_id, fingerprint)
            chunks = reading.get_chunks(transaction, lacking)
        return [Passage(chunk, document) for chunk, document in chunks.values()]

    def make(
        self, *, on_progress: OnProgress | None = None, stop: Callable[[], bool] = lambda: False
    ) -> int:
        if not self._read_names(stop):
            return 0
        fingerprint = self.annotator.fingerprint
        with self.database.read() as transaction:
            names = subjects.given_names(transaction, self.kb_id)
            old_surfaces = subjects.annotated_with(transaction, self.kb_id)
            gazetteer = NameGazetteer(names, {spec.name: spec.aliases for spec in self.curated})
            changed = gazetteer.changes_since(old_surfaces)
            texts = chunk_annotations.iter_texts(transaction, self.kb_id, fingerprint)
            stale = [seq for seq, text in texts if changed(text)] if changed else []
        lacking = batches(
            self.database,
            lambda tx: chunk_annotations.lacking(tx, self.kb_id, fingerprint, self.at_once),
        )
        done, total = 0, len(stale) + self.count_left()
        starts = range(0, len(stale), self.at_once)
        for seqs in chain((stale[start : start + self.at_once] for start in starts), lacking):
            if stop():
                return done
            done += self._annotate(seqs, gazetteer)
            if on_progress is not None:
                on_progress(Progress("annotations", min(done, total), total, "chunks"))
        if gazetteer.surfaces != old_surfaces:
            packed = subjects.pack_surfaces(gazetteer.surfaces)
            with self.database.write() as transaction:
                knowledge_bases.get_by_id(transaction, self.kb_id)
                subjects.note_annotated(transaction, self.kb_id, packed)
            unused = self.database.look_up(subjects.unused_ids)
            knowledge_bases.write_in_batches(self.database, self.kb_id, unused, subjects.sweep)
        return done

    def _read_names(self, stop: Callable[[], bool]) -> bool:
        def unread(transaction: Transaction) -> list[Document]:
            return subjects.unread(transaction, self.kb_id, REVISION, _DOCUMENTS)

        for documents in batches(self.database, unread):
            if stop():
                return False
            names = [(document, names_of(document)) for document in documents]
            with self.database.write() as transaction:
                knowledge_bases.get_by_id(transaction, self.kb_id)
                subjects.put_names(transaction, self.kb_id, REVISION, names)
        return True

    def _annotate(self, seqs: Sequence[int], gazetteer: NameGazetteer) -> int:
        chunks = self.database.look_up(reading.get_chunks, seqs)
        passages = [Passage(chunk, document) for chunk, document in chunks.values()]
        annotator = self.annotator.fingerprint
        nothing = Annotation("", "")  # marks a chunk as done
        answers = self.annotator.annotate(passages, gazetteer)
        annotations = {
            seq: [replace(annotation, annotator=annotator) for annotation in answer or (nothing,)]
            for seq, answer in zip(chunks, answers, strict=True)
        }
        stored_count, seqs = 0, list(annotations)
        for start in range(0, len(seqs), _WRITTEN):
            batch = {seq: annotations[seq] for seq in seqs[start : start + _WRITTEN]}
            with self.database.write() as transaction:
                knowledge_bases.get_by_id(transaction, self.kb_id)
                stored_count += chunk_annotations.put(transaction, self.kb_id, batch)
        return stored_count


def annotator_of(spec: AnyAnnotation, database: Database, kb_id: str) -> Annotator | None:
    if isinstance(spec, NoAnnotation):
        return None
    if isinstance(spec, PluginAnnotation):
        return make(ANNOTATORS, spec.name, spec.options, ("fingerprint", "annotate"))
    if isinstance(spec, LlmAnnotation):
        from kbkit.annotation.language_model import LlmAnnotator
        from kbkit.runtime.language_models import open_llm

        return LlmAnnotator(open_llm(spec, key="annotation"), spec, database, kb_id)
    from kbkit.annotation.problems import RulesAnnotator

    return RulesAnnotator()
