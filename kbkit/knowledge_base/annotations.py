"""The annotations of a knowledge base: what its chunks say, and what they speak of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from kbkit.annotation.language_model import LlmAnnotator
from kbkit.annotation.maker import CHUNKS, AnnotationMaker
from kbkit.annotation.opening import annotator_of
from kbkit.arguments import explained
from kbkit.frames import annotations_frame, collection_html
from kbkit.knowledge_base.handle import Handle
from kbkit.knowledge_base.subjects import list_subjects
from kbkit.models import (
    AnnotatedChunk,
    Annotation,
    AnnotationReport,
    Frame,
    Subject,
    SubjectKind,
    TargetKind,
)
from kbkit.progress import OnProgress, progress_bar
from kbkit.recipes import LlmAnnotation
from kbkit.stores.catalog import chunk_annotations, corpus, reading
from kbkit.validation import check_integer

if TYPE_CHECKING:
    import pandas as pd

    from kbkit.ingest.pipeline import Stop


@explained
class Annotations:
    """The annotations of a knowledge base's chunks, in order of their documents' URIs.

    Iterating gives them, ``len`` counts them. They are made behind an ingest, as its recipe says.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._database = handle.stores.database

    def __iter__(self) -> Iterator[Annotation]:
        with self._database.read() as transaction:
            for chunk in chunk_annotations.iter_all(transaction, self._handle.id):
                yield from chunk.annotations

    def __len__(self) -> int:
        with self._database.read() as transaction:
            return chunk_annotations.count(transaction, self._handle.id)

    def chunks(
        self, *, after: tuple[str, int] = ("", -1), limit: int | None = None
    ) -> list[AnnotatedChunk]:
        """Chunks that were annotated, each with what it says.

        Args:
            after: URI of a document and a place in it that they come after.
            limit: Most chunks; by default all.

        Raises:
            ConfigError: The limit is wrong.
        """
        if limit is not None:
            check_integer("limit", limit, 1)
        with self._database.read() as transaction:
            found = chunk_annotations.iter_all(transaction, self._handle.id, after=after)
            return list(islice(found, limit))

    def of(self, target: str) -> list[Annotation]:
        """The annotations of a chunk, or of all chunks of a document, in its order.

        Args:
            target: Id of a chunk, or id or URI of a document.

        Raises:
            NotFoundError: There is none.
        """
        found = self._handle.target(target)
        with self._database.read() as transaction:
            ids = [found.id]
            if found.kind is TargetKind.DOCUMENT:
                chunks = reading.iter_chunks(transaction, self._handle.id, found.id)
                ids = [chunk.id for chunk in chunks]
            seqs = corpus.seqs_by_id(transaction, ids)
            made = chunk_annotations.of(transaction, list(seqs.values()))
        return [each for known in ids if known in seqs for each in made.get(seqs[known], ())]

    @property
    def frames(self) -> Mapping[Frame, int]:
        """How many annotations of each frame there are, the most frequent first."""
        with self._database.read() as transaction:
            return chunk_annotations.frame_counts(transaction, self._handle.id)

    def subjects(
        self, *, kind: str | SubjectKind | None = None, like: str = "", limit: int | None = None
    ) -> list[Subject]:
        """Subjects that its chunks speak of, those that most speak of first.

        Takes what `Workspace.subjects` takes, and raises what that raises.
        """
        return list_subjects(self._handle.stores, [self._handle], kind=kind, like=like, limit=limit)

    @property
    def waiting(self) -> int:
        """How many chunks have not been annotated yet as the recipe says."""
        maker = self._maker()
        return 0 if maker is None else maker.left()

    def make(
        self,
        *,
        estimate: bool = False,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> AnnotationReport:
        """Annotate what has not been, here and now; `KnowledgeBase.improve` does it too.

        A language model is asked about all of it, however much its recipe lets an ingest send. What
        it answers is kept: each chunk is paid for once.

        Args:
            estimate: Do nothing but say what a language model would be sent.
            on_progress: Called as the work goes on; by default notebooks show a bar.
            stop: Asked often; true ends the work cleanly. What was annotated is kept.

        Returns:
            How many chunks were annotated, and what a model was paid for and has still to be sent.

        Raises:
            ConfigError: The recipe names a plugin that is missing or is no annotator.
            LanguageModelError: The recipe names a language model that cannot be had, or failed.
            NotFoundError: The knowledge base was deleted.
        """
        maker = self._maker()
        if maker is None:
            return AnnotationReport(0, "none")
        made, annotator = 0, maker.annotator
        if not estimate:
            with progress_bar(on_progress) as tell:
                made = maker.make(on_progress=tell, stop=stop)
        if isinstance(annotator, LlmAnnotator):
            return annotator.report(maker.passages(), made)
        return AnnotationReport(made, annotator.fingerprint)

    def _maker(self) -> AnnotationMaker | None:
        return maker_of(self._handle)

    def to_frame(self) -> pd.DataFrame:
        """All annotations as a DataFrame, a row each, with the chunk that they are of."""
        with self._database.read() as transaction:
            return annotations_frame(chunk_annotations.iter_all(transaction, self._handle.id))

    def __repr__(self) -> str:
        return f"<{len(self):,} annotations of {self._handle.name!r}>"

    def _repr_html_(self) -> str:
        return collection_html(repr(self)[1:-1], Annotation, self)


def maker_of(handle: Handle) -> AnnotationMaker | None:
    """What annotates a knowledge base; ``None`` where its recipe wants no annotations.

    Raises:
        ConfigError: A plugin is missing, or is no annotator.
        LanguageModelError: The language model cannot be had.
    """
    spec, database = handle.spec.annotation, handle.stores.database
    annotator = annotator_of(spec, database, handle.id)
    if annotator is None:
        return None
    at_once = spec.batch_size if isinstance(spec, LlmAnnotation) else CHUNKS
    return AnnotationMaker(database, handle.id, annotator, spec.names, at_once)
