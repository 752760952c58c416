"""Figures and reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from kbkit.models.problems import Problem
from kbkit.models.values import Target, TargetKind, Value, pluralize


@dataclass(frozen=True, slots=True)
class Improvement(Value):
    """Work left for embedding models; static vectors serve searches until then.

    Attributes:
        summaries: Documents whose summary its model has not embedded.
        chunks: Chunks that the model which the recipe names has not embedded.
        annotations: Chunks that have not been annotated.
        seconds: Estimated time from a few texts; 0 if none were embedded.
        megabytes: Size of the vectors in memory; 0 if not estimated.
        running: Whether a process works on it.
    """

    summaries: int = 0
    chunks: int = 0
    seconds: float = 0.0
    megabytes: float = 0.0
    running: bool = False
    annotations: int = 0

    def __bool__(self) -> bool:
        return bool(self.summaries or self.chunks or self.annotations)

    def __str__(self) -> str:
        counts = ((self.summaries, "summary"), (self.chunks, "chunk"))
        named = [pluralize(number, noun) for number, noun in counts if number]
        if self.annotations:
            named.append(f"annotations of {pluralize(self.annotations, 'chunk')}")
        parts = [" and ".join(named) or "nothing"]
        if self.seconds:
            minutes = self.seconds / 60
            parts.append(
                f"about {minutes:.0f} minutes"
                if minutes >= 2
                else f"about {max(1, round(self.seconds))} s"
            )
        if self.megabytes:
            parts.append(f"{self.megabytes:,.0f} MB")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Expansion(Value):
    """Documents described by a language model, and those left.

    Attributes:
        model: Which one.
        documents: Documents left; one request each.
        characters: Characters to send, instructions included.
        input_tokens: The same in tokens, about: a fourth of the characters, as in English.
        output_tokens: Maximum number of output tokens, estimated.
        written: Documents that it wrote of now.
        failed: Documents that it failed at now, with the reason; their summaries are as before.
    """

    model: str
    documents: int = 0
    characters: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    written: int = 0
    failed: tuple[Problem, ...] = ()

    def price(self, input_price: float, output_price: float) -> float:
        """Estimate the cost of what is left, by prices of a million tokens."""
        return (self.input_tokens * input_price + self.output_tokens * output_price) / 1e6

    def __str__(self) -> str:
        if not self.documents:
            return f"nothing is left for {self.model}"
        return (
            f"{pluralize(self.documents)} for {self.model}: "
            f"{self.characters:,} characters, about {self.input_tokens:,} tokens in and at most "
            f"{self.output_tokens:,} out"
        )


@dataclass(frozen=True, slots=True)
class AnnotationReport(Value):
    """Chunks annotated now, and those left for a language model.

    All but the first two are of a language model, and 0 where rules annotate.

    Attributes:
        annotated: Chunks that were annotated now.
        model: Name of the model.
        chunks: Chunks left for the model.
        characters: Characters to send, instructions included.
        input_tokens: The same in tokens, about: a fourth of the characters, as in English.
        output_tokens: Estimated output tokens.
        requests: Requests in this run.
        used_input_tokens: Tokens sent in this run, as the model reports or estimated.
        used_output_tokens: Tokens received in this run, likewise.
        failed: Chunks that failed in this run, with reasons; without annotations.
    """

    annotated: int
    model: str
    chunks: int = 0
    characters: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    used_input_tokens: int = 0
    used_output_tokens: int = 0
    failed: tuple[Problem, ...] = ()

    def price(self, input_price: float, output_price: float) -> float:
        """Estimate the cost of what is left, by prices of a million tokens."""
        return (self.input_tokens * input_price + self.output_tokens * output_price) / 1e6

    def __str__(self) -> str:
        if not self.chunks:
            return f"nothing is left for {self.model}"
        return (
            f"{pluralize(self.chunks, 'chunk')} for {self.model}: "
            f"{self.characters:,} characters, about {self.input_tokens:,} tokens in and "
            f"{self.output_tokens:,} out"
        )


@dataclass(frozen=True, slots=True)
class KnowledgeBaseInfo(Value):
    """Figures of a knowledge base.

    Attributes:
        source_types: Types of its sources, sorted.
        documents: Number of documents that are searched (not gone).
        chunks: Number of chunks.
        embedder: Fingerprint of the embedder its vectors come from.
        states: Number of documents in each state.
        document_types: Number of searched documents of each type.
        pending: Chunks that Chroma does not have yet (still searchable).
        summary_embedder: Fingerprint of the embedder of document summaries, or ``""``.
        summaries_waiting: Documents whose summary its model has not embedded yet.
        chunks_waiting: Chunks that the model which the recipe names has not embedded yet, while
            static vectors serve all.
        annotations_waiting: Chunks that have not been annotated, though its recipe wants it.
        version: Changes with its name, description, settings and content; for ``if_match``.
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
        """Return labels and values for a person.

        Args:
            verbose: Whether to add fingerprints and the vector store's collection.
        """

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
    kind, _, rest = fingerprint.partition(":")
    return rest.partition(":")[0] if kind in ("onnx", "llama-index") and rest else kind


@dataclass(frozen=True, slots=True)
class SourceInfo(Value):
    """A source of a knowledge base.

    Attributes:
        id: Identifies it in its knowledge base.
        type: Type such as ``crawl`` or ``files``.
        location: The address, path or name that it reads.
        base: The folder that a relative path starts from.
        name: Name for others: its `location`, or for a local place the prefix of its URIs.
        enabled: Whether refreshes read it.
        documents: Number of its documents that are searched.
        from_recipe: Whether a recipe named it; it goes when the recipe drops it.
        created_at: When it was first read (UTC).
        options: All options as in a recipe.
        version: Changes with the source's options and state; for ``if_match``.
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
    """A document in the trash, with when it was deleted (UTC)."""

    id: str
    uri: str
    title: str
    document_type: str
    deleted_at: datetime


@dataclass(frozen=True, slots=True)
class DeletedKnowledgeBase(Value):
    """A knowledge base in the trash.

    Attributes:
        id: Distinguishes items of one name.
        name: Former name.
        documents: Number of its documents.
        deleted_at: When it was deleted (UTC).
    """

    id: str
    name: str
    description: str
    documents: int
    deleted_at: datetime


@dataclass(frozen=True, slots=True)
class Compaction(Value):
    """Result of emptying the trash.

    Attributes:
        documents: Number of deleted documents.
        knowledge_bases: Number of deleted knowledge bases.
        images: Number of pictures that no document shows any more.
        bytes: Number of bytes saved.
        files: Number of deleted files and folders of `Workspace.files`.
        entries: Number of deleted entries, and of replaced ones.
    """

    documents: int
    knowledge_bases: int
    images: int
    bytes: int
    files: int = 0
    entries: int = 0


@dataclass(frozen=True, slots=True)
class RestoredKnowledgeBase(Value):
    """Result of restoring a knowledge base from a bundle.

    Attributes:
        name: What it is called.
        new: Whether it is new here.
        documents: Number of new documents; existing ones stayed.
        chunks: Number of their chunks.
        ratings: Number of new ratings.
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
        bundle: Its file; ``""`` for one that was sent to a server.
        knowledge_bases: Result for each.
        files: Paths of new files and entries; existing ones stayed.
        kept: Paths of files that exist with other content, and stayed.
        sources: Sources restored as disabled.
        seconds: Duration.
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
        path: Its file.
        knowledge_bases: Names of knowledge bases in it.
        documents: Number of documents, of all of them.
        chunks: Number of chunks.
        bytes: Size of the file.
        sha256: Digest of its manifest, which has digests of all members.
        signed: Whether it is signed.
        skipped: Paths of files and pictures that could not be read, and why.
        seconds: Duration.
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
class BundleArchive(Value):
    """A bundle to download from a server.

    Attributes:
        archive: Identifies it.
        knowledge_bases: Names of knowledge bases in it.
        documents: Number of documents, of all of them.
        chunks: Number of chunks.
        bytes: Size in bytes.
        sha256: Digest of its manifest, which has digests of all members.
        skipped: Paths of files that could not be read, and why.
        seconds: Duration.
    """

    archive: str
    knowledge_bases: tuple[str, ...]
    documents: int
    chunks: int
    bytes: int
    sha256: str
    skipped: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class MigratedTable(Value):
    """A table of the catalog that was copied and compared.

    Attributes:
        name: What it is called.
        rows: Number of its rows, there as here.
        digest: BLAKE2 of all of them in order of their key (128 bits, hexadecimal), there as here.
    """

    name: str
    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class Migration(Value):
    """Result of moving a workspace.

    Attributes:
        source: Old place of the catalog, unchanged: a folder, or a database URL without password.
        destination: New place, likewise.
        tables: Tables that were copied and compared.
        kept: Number of rows that an earlier migration, which was cut off, had left there.
        folders: Folders copied beside the catalog.
        seconds: Duration.
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
class RatingTotal(Value):
    """Summary of the ratings of a chunk or a document.

    Attributes:
        raters: Number of raters.
        average: Mean of the last rating of each, 1 to 5.
    """

    raters: int
    average: float


@dataclass(frozen=True, slots=True)
class Rating(Value):
    """A score of 1 to 5 for a chunk or a document, with or without a query."""

    id: int
    kb: str
    target: Target
    score: int
    query: str
    rater: str
    note: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ExportReport(Value):
    """Result of an export. Pages include documents, sections and the home page.

    Attributes:
        folder: Folder of the Markdown pages, or of the MkDocs project.
        site: Folder of the built site, or ``None``.
        documents: Documents that have a page.
        written: New and changed pages.
        unchanged: Pages that were already as they should be and were left alone.
        removed: Removed pages of an earlier export.
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
        size: Size of the archive in bytes.
        built: Whether there is a built site; in an archive it is the folder ``site``.
        documents: Documents that have a page.
        seconds: Time by stage; see `ExportReport`.
    """

    archive: str
    size: int
    built: bool
    documents: int
    seconds: Mapping[str, float] = field(default_factory=dict)


MAX_QUERY_LENGTH = 10_000
"""Maximum characters of a query; the rest is ignored."""
Scores = dict[str, dict[str, dict[str, int]]]
"""Last score of each rater, 1 to 5, by query, chunk id and rater."""


def fold_query(query: str) -> str:
    return " ".join(query.casefold().split())


class ChunkScore(NamedTuple):
    """A rating of a chunk, reduced to what search needs."""

    query: str
    chunk_id: str
    rater: str
    score: int


def latest_scores(ratings: Iterable[Rating]) -> Scores:
    """The ratings of chunks that name a query.

    The last rating that somebody gave a chunk for a query counts. Queries that differ only in case
    or white space are one, worded as it was first asked, white space folded.
    """
    return latest_of(
        ChunkScore(rating.query, rating.target.id, rating.rater, rating.score)
        for rating in ratings
        if rating.target.kind is TargetKind.CHUNK
    )


def latest_of(given: Iterable[ChunkScore]) -> Scores:
    wordings: dict[str, str] = {}
    scores: Scores = {}
    for each in given:
        key = fold_query(each.query)
        if not key:
            continue
        query = wordings.setdefault(key, " ".join(each.query.split()))
        chunks = scores.setdefault(query, {})
        chunks.setdefault(each.chunk_id, {})[each.rater] = each.score
    return scores


def latest_scores_of(ratings: Iterable[Rating], query: str) -> dict[str, dict[str, int]]:
    """Return the last score of each rater for one query, by chunk."""
    key = fold_query(query)
    scores = latest_scores(rating for rating in ratings if fold_query(rating.query) == key)
    return next(iter(scores.values()), {})
