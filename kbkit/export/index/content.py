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
        anchor: Where on the page it begins, or ``""``.
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
        rating: Average of its ratings, 0 where there are none.
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
        vectors: A unit vector each, zeros for a document that has none; in their order.
    """

    vectors: NDArray[np.float32]
    embedder: str
    encoder: FittedEncoder


@dataclass(frozen=True, slots=True, eq=False)
class IndexedSubject:
    """A subject by one of its names.

    Attributes:
        kind: What the subject is to those that speak of it.
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
        frames: What each chunk says as a whole, if that can be told.
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
        prior: What ratings say of each, from -1 to 1; see `kbkit.retrieval.fusion.rating_prior`.
        encoder: The query encoder; without it only words are searched.
        cards: What the documents are; ``None`` where there is nothing to search them with.
        model: Fingerprint of the model that browsers can run, ``""`` if they are to have none;
            vectors of this embedder can be asked with its vectors of queries.
        annotations: What is said of the chunks; ``None`` where nothing is.
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
