"""Input of the search index of a published knowledge base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding.fitted import FittedEncoder
from kbkit.export.index.packing import Integers
from kbkit.models import Frame, SubjectKind
from kbkit.recipes import RetrievalSpec
from kbkit.stores.snapshots.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """A chunk as search results show it.

    Attributes:
        heading: Heading path on one line, the document's title left out.
        anchor: Anchor on its page, or ``""``.
    """

    text: str
    heading: str
    anchor: str


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document whose chunks stand next to each other in the index.

    Attributes:
        path: Its page in the export, ``.md`` and all.
        day: Days from 1970-01-01 to when it was fetched.
        rating: Average rating, 0 without ratings.
    """

    path: str
    title: str
    document_type: str
    tags: Sequence[str]
    day: int
    stale: bool
    rating: float
    chunks: int
    is_index: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class IndexedCards:
    """The cards of the documents.

    Attributes:
        vectors: Unit vectors in document order; zeros for documents without one.
    """

    vectors: NDArray[np.float32]
    embedder: str
    encoder: FittedEncoder


@dataclass(frozen=True, slots=True, eq=False)
class IndexedSubject:
    """A subject by one of its names.

    Attributes:
        kind: Role of the subject.
        rows: Numbers of the chunks that speak of it by any of its names, ascending.
    """

    key: str
    kind: SubjectKind
    name: str
    rows: Integers


@dataclass(frozen=True, slots=True, eq=False)
class IndexedAnnotations:
    """Annotations of the chunks.

    Attributes:
        masks: The frames of each chunk's statements, a bit each in the order of `Frame`.
        frames: Main statement type of each chunk, if known.
    """

    masks: Integers
    frames: Sequence[Frame | None]
    entities: Sequence[Sequence[str]]
    subjects: Sequence[IndexedSubject]


@dataclass(frozen=True, slots=True)
class IndexContent:
    """Input of an index.

    Attributes:
        rows: The snapshot's row of each chunk of the index, documents' chunks together.
        prior: Prior of ratings, from -1 to 1; see `kbkit.retrieval.fusion.rating_prior`.
        encoder: The query encoder; without it only words are searched.
        cards: Document summaries; ``None`` if they cannot be searched.
        model: Fingerprint of the browsers' model, ``""`` without; its query vectors fit vectors of
            this embedder.
        annotations: Annotations of the chunks; ``None`` without.
    """

    name: str
    title: str
    language: str
    snapshot: Snapshot
    rows: Integers
    prior: NDArray[np.float64]
    documents: Sequence[IndexedDocument]
    chunks: Sequence[IndexedChunk]
    encoder: FittedEncoder | None
    cards: IndexedCards | None
    stop_words: Sequence[str]
    retrieval: RetrievalSpec
    model: str = ""
    annotations: IndexedAnnotations | None = None
