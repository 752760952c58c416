"""What is to be stored of documents: where they come from, where they go, and their chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kbkit.embedding.base import Embedder
from kbkit.engine import Engine, LocalEngine
from kbkit.ingest.embedding import Vectors
from kbkit.models import Document, Labels
from kbkit.recipes import KnowledgeBaseSpec
from kbkit.sources.base import SourceEvent
from kbkit.stores.catalog.database import Database
from kbkit.stores.catalog.writing import NewDocument, StoredVersion
from kbkit.stores.images import ImageStore


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a document comes from; empty for one that was added by hand.

    Attributes:
        labels: What a person says of it now; ``None`` leaves what was said before.
        undeleted: It comes out of the trash.
        stored: The document as the catalog had it, where nobody looked at its source: its state
            and the time when it was fetched stay, and nothing is done if it changed meanwhile.
        expected: Content hash that the document must have now, or nothing is done; ``None`` for
            any.
    """

    source_id: str | None = None
    run_id: int | None = None
    event: SourceEvent | None = None
    labels: Labels | None = None
    stored: Document | None = None
    undeleted: bool = False
    expected: str | None = None


@dataclass(frozen=True, slots=True)
class Destination:
    """The knowledge base that documents go to, and how it works.

    Attributes:
        embedder: The one whose vectors its chunks have.
        reopen: Gives that again when another process has changed it.
        images: Where pictures go, if they are kept.
        engine: Where documents are cut.
    """

    database: Database
    kb_id: str
    spec: KnowledgeBaseSpec
    embedder: Embedder
    reopen: Callable[[], Embedder] | None = None
    images: ImageStore | None = None
    engine: Engine = field(default_factory=LocalEngine)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Documents that are cut and embedded, and not stored yet.

    Attributes:
        same: Those that are as they were.
        new: Those that are new or changed.
        before: What was known of them, by id, which must still hold when they are stored.
        cut: The new ones with their chunks.
        texts: What is embedded of those, by hash.
        vectors: Of these.
    """

    same: list[tuple[Document, Origin]]
    new: list[tuple[Document, Origin]]
    before: Mapping[str, StoredVersion]
    cut: list[NewDocument]
    texts: Mapping[str, str]
    vectors: Vectors
