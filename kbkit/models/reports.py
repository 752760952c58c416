"""Figures and reports."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from kbkit.models.ingest_report import Improvement
from kbkit.models.values import Value


@dataclass(frozen=True, slots=True)
class KnowledgeBaseInfo(Value):
    """Figures of a knowledge base.

    Attributes:
        source_types: Sorted.
        documents: Number of searched documents (not gone).
        embedder: Fingerprint of the embedder of its vectors.
        states: Number of documents in each state.
        document_types: Number of searched documents of each type.
        pending: Chunks missing in Chroma; they are searchable anyway.
        summary_embedder: Fingerprint of the embedder of document summaries, or ``""``.
        summaries_waiting: Documents with a summary to embed.
        chunks_waiting: Chunks to embed with the model of the recipe, while static vectors serve
            all.
        annotations_waiting: Chunks to annotate, if the recipe annotates.
        version: Changes with name, description, settings and content; for ``if_match``.
    """

    id: str
    name: str
    description: str
    source_types: tuple[str, ...]
    documents: int
    chunks: int
    embedder: str
    dimensions: int
    collection: str
    created_at: datetime
    updated_at: datetime
    states: Mapping[str, int]
    document_types: Mapping[str, int]
    pending: int
    summaries_waiting: int = 0
    chunks_waiting: int = 0
    summary_embedder: str = ""
    annotations_waiting: int = 0
    version: str = ""

    @property
    def waiting(self) -> Improvement:
        """Work left for embedding models and annotation."""
        return Improvement(
            self.summaries_waiting, self.chunks_waiting, annotations=self.annotations_waiting
        )

    def lines(self, *, verbose: bool = False) -> list[tuple[str, str]]:
        """Return labels and values for a person; ``verbose`` adds fingerprints and collection."""

        def counts(values: Mapping[str, int]) -> str:
            return ", ".join(f"{count:,} {name}" for name, count in values.items() if count)

        pairs = [
            ("name", self.name),
            ("description", self.description),
            ("documents", f"{self.documents:,}"),
            ("chunks", f"{self.chunks:,}"),
            ("types", counts(self.document_types)),
            ("states", counts(self.states)),
            ("sources", ", ".join(self.source_types)),
            ("embedder", f"{model_name(self.embedder)} ({self.dimensions} dimensions)"),
            ("waiting", str(self.waiting) if self.waiting else ""),
            ("created", f"{self.created_at:%Y-%m-%d %H:%M} UTC"),
            ("updated", f"{self.updated_at:%Y-%m-%d %H:%M} UTC"),
        ]
        if verbose:
            pairs += [
                ("fingerprint", self.embedder),
                ("summaries", self.summary_embedder),
                ("collection", self.collection),
            ]
        return [(label, text) for label, text in pairs if text]


def model_name(fingerprint: str) -> str:
    kind, _, name = fingerprint.partition(":")
    return name.partition(":")[0] if kind in ("onnx", "llama-index") and name else kind


@dataclass(frozen=True, slots=True)
class SourceInfo(Value):
    """A source of a knowledge base.

    Attributes:
        type: Such as ``crawl`` or ``files``.
        location: Its address, path or name.
        base: Folder that a relative path starts from.
        name: Public name: its `location`, or for a local place the prefix of its URIs.
        enabled: Whether refreshes read it.
        documents: Number of its searched documents.
        from_recipe: Whether a recipe names it; removed when the recipe drops it.
        created_at: Time of the first read (UTC).
        options: All options, as in a recipe.
        version: Changes with options and state; for ``if_match``.
    """

    id: str
    type: str
    location: str
    base: str
    from_recipe: bool
    created_at: datetime
    options: Mapping[str, Any]
    name: str = ""
    enabled: bool = True
    documents: int = 0
    version: str = ""


@dataclass(frozen=True, slots=True)
class DeletedDocument(Value):
    """A document in the trash; ``deleted_at`` is in UTC."""

    id: str
    uri: str
    title: str
    document_type: str
    deleted_at: datetime


@dataclass(frozen=True, slots=True)
class DeletedKnowledgeBase(Value):
    """A knowledge base in the trash; ``id`` tells items of one name apart."""

    id: str
    name: str
    description: str
    documents: int
    deleted_at: datetime


@dataclass(frozen=True, slots=True)
class Compaction(Value):
    """Result of emptying the trash: numbers of deleted items.

    Attributes:
        images: Pictures that no document shows any more.
        bytes: Bytes saved.
        files: Files and folders of `Workspace.files`.
        entries: Entries, replaced ones included.
    """

    documents: int
    knowledge_bases: int
    images: int
    bytes: int
    files: int = 0
    entries: int = 0


@dataclass(frozen=True, slots=True)
class RestoredKnowledgeBase(Value):
    """Result of restoring a knowledge base from a bundle: numbers of new items.

    Attributes:
        new: Whether the workspace did not have it.
        documents: New documents; existing ones are unchanged.
    """

    name: str
    new: bool
    documents: int
    chunks: int
    ratings: int


@dataclass(frozen=True, slots=True)
class Restoration(Value):
    """Result of restoring a bundle.

    Attributes:
        bundle: Its file.
        files: Paths of new files and entries; existing ones are unchanged.
        kept: Paths of existing files with other content; they are unchanged.
        sources: Sources restored as disabled.
    """

    bundle: str
    knowledge_bases: tuple[RestoredKnowledgeBase, ...]
    files: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    sources: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class BundleInfo(Value):
    """A bundle that was written.

    Attributes:
        sha256: Digest of its manifest, which has digests of all members.
        skipped: Paths of files and pictures that could not be read, with the reason.
    """

    path: str
    knowledge_bases: tuple[str, ...]
    documents: int
    chunks: int
    bytes: int
    sha256: str
    signed: bool
    skipped: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class MigratedTable(Value):
    """A table of the catalog that was copied; both copies have these rows and this digest.

    Attributes:
        digest: BLAKE2 of all rows in order of their key (128 bits, hexadecimal).
    """

    name: str
    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class Migration(Value):
    """Result of moving a workspace.

    Attributes:
        source: Old place of the catalog, unchanged: a folder, or a database URL without password.
        destination: New place, in the same form.
        kept: Number of rows that an interrupted earlier migration had copied.
        folders: Folders copied with the catalog.
    """

    source: str
    destination: str
    tables: tuple[MigratedTable, ...]
    kept: int
    folders: tuple[str, ...]
    seconds: float

    @property
    def rows(self) -> int:
        """Number of rows of all tables."""
        return sum(table.rows for table in self.tables)


@dataclass(frozen=True, slots=True)
class ExportReport(Value):
    """Result of an export. Pages include documents, sections and the home page.

    Attributes:
        folder: Folder of the Markdown pages, or of the MkDocs project.
        site: Folder of the built site, or ``None``.
        documents: Documents that have a page.
        written: New and changed pages.
        unchanged: Pages that were up to date.
        removed: Pages of an earlier export.
        seconds: Seconds by stage: ``pages``, ``fit`` (of the query encoder, if due), ``index`` (of
            the search) and ``site`` (if built).
    """

    folder: Path
    site: Path | None = None
    documents: int = 0
    written: int = 0
    unchanged: int = 0
    removed: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SiteArchive(Value):
    """An export's archive (ZIP) on a server.

    Attributes:
        archive: Its id; empty if the server shows the site.
        size: Bytes.
        built: Whether there is a built site; in an archive it is the folder ``site``.
        seconds: See `ExportReport`.
    """

    archive: str
    size: int
    built: bool
    documents: int
    seconds: Mapping[str, float] = field(default_factory=dict)
