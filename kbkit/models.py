"""Value objects that travel between the layers. Frozen, typed, free of third-party types."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    import pandas as pd

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class DocumentType(StrEnum):
    """What kind of text a document is."""

    MANUAL = "manual"
    TUTORIAL = "tutorial"
    API_SPEC = "api_spec"
    FAQ = "faq"
    POLICY = "policy"
    REFERENCE = "reference"
    OTHER = "other"


class DocumentState(StrEnum):
    """How a stored document relates to its source."""

    CURRENT = "current"
    """As it was when last looked at."""
    STALE = "stale"
    """The last look failed; this is the version before."""
    GONE = "gone"
    """No longer at its source, and no longer searched."""


class Mode(StrEnum):
    """Which legs of retrieval take part in a search."""

    HYBRID = "hybrid"
    DENSE = "dense"
    LEXICAL = "lexical"


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document as a source yields it, before it is stored.

    Attributes:
        uri: Where it comes from; identifies the document inside its knowledge base.
        title: One line of plain text.
        content: Markdown. A heading may carry its anchor as ``## Title {#anchor}``.
        document_type: ``None`` lets kbkit decide.
        tags: Free labels.
        metadata: JSON values to keep with the document.
        fidelity: How many code blocks, headings, table rows and so on of the page the content
            keeps, and how many there are, by kind; empty where it was not measured.
    """

    uri: str
    title: str
    content: str
    document_type: DocumentType | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    fidelity: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PageVisit:
    """What a visit of a page leaves for the next one.

    Attributes:
        url: Canonical address that was asked for.
        depth: Links away from the start.
        etag: Validator the server gave, or ``""``.
        last_modified: Validator the server gave, or ``""``.
        links: Addresses on the page that are in the source's scope.
        document_uri: URI of the document made from it, or ``""``.
    """

    url: str
    depth: int = 0
    etag: str = ""
    last_modified: str = ""
    links: tuple[str, ...] = ()
    document_uri: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A stored document.

    Attributes:
        id: Stable: derived from the knowledge base and the URI.
        fetched_at: When the source was last seen to say this (UTC).
        state: See `DocumentState`.
    """

    id: str
    uri: str
    title: str
    content: str
    document_type: DocumentType
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    state: DocumentState
    fetched_at: datetime
    content_hash: str

    def to_dict(self) -> dict[str, Any]:
        """The document as JSON values."""
        values = asdict(self)
        values["fetched_at"] = self.fetched_at.isoformat()
        values["tags"] = list(self.tags)
        return values


@dataclass(frozen=True, slots=True)
class ChunkSpan:
    """A span of a document's Markdown, as a chunker cuts it.

    Attributes:
        start: Offset of the first character in the document's content.
        end: Offset behind the last one: ``content[start:end]`` is the chunk.
        heading_path: Headings above the span, outermost first, without markup or anchors.
        anchor: Anchor of the nearest heading above, or ``""``.
        page: Page number in the source (PDF), counted from 1.
    """

    start: int
    end: int
    heading_path: tuple[str, ...] = ()
    anchor: str = ""
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """The unit of retrieval: a span of a document.

    ``document.content[chunk.start:chunk.end] == chunk.text`` always holds.

    Attributes:
        id: Stable: derived from document, heading path and text.
        position: Place among the chunks of its document, from 0.
    """

    id: str
    document_id: str
    position: int
    start: int
    end: int
    text: str
    heading_path: tuple[str, ...]
    anchor: str
    page: int | None


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """How the score of a hit came about.

    Attributes:
        cosine: Cosine of query and chunk vectors, -1 to 1 (0 in lexical mode).
        bm25: BM25 score with the knowledge base's statistics, 0 or more.
        dense: What ``cosine``, normalised and weighted, adds to the score.
        lexical: What ``bm25``, normalised and weighted, adds to the score.
        document: What other passages found in the same document add.
        title: What the query's words in the document's title add.
    """

    cosine: float
    bm25: float
    dense: float
    lexical: float
    document: float = 0.0
    title: float = 0.0

    @property
    def total(self) -> float:
        """The score."""
        return self.dense + self.lexical + self.document + self.title


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result: a chunk, the document it is part of, its score and the score's parts."""

    kb: str
    score: float
    parts: ScoreParts
    chunk: Chunk
    uri: str
    title: str
    document_type: DocumentType
    tags: tuple[str, ...]
    snippet: str
    fetched_at: datetime

    @property
    def url(self) -> str:
        """The document's URI with the chunk's anchor, unless the URI has a fragment already."""
        if not self.chunk.anchor or "#" in self.uri:
            return self.uri
        return f"{self.uri}#{self.chunk.anchor}"

    def to_dict(self) -> dict[str, Any]:
        """The hit as JSON values; the one shape that every interface gives."""
        return {
            "score": self.score,
            "kb": self.kb,
            "document_id": self.chunk.document_id,
            "uri": self.uri,
            "title": self.title,
            "document_type": self.document_type.value,
            "tags": list(self.tags),
            "heading_path": list(self.chunk.heading_path),
            "anchor": self.chunk.anchor,
            "url": self.url,
            "chunk_id": self.chunk.id,
            "text": self.chunk.text,
            "snippet": self.snippet,
            "start": self.chunk.start,
            "end": self.chunk.end,
            "page": self.chunk.page,
            "fetched_at": self.fetched_at.isoformat(),
            "parts": asdict(self.parts),
        }


@dataclass(frozen=True, slots=True)
class Hits(Sequence[Hit]):
    """The results of one search, best first.

    Attributes:
        query: What was asked.
        hits: The results.
        seconds: Time the search took.
    """

    query: str
    hits: tuple[Hit, ...]
    seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> Hits: ...
    def __getitem__(self, index: int | slice) -> Hit | Hits:
        if isinstance(index, slice):
            return Hits(self.query, self.hits[index], self.seconds)
        return self.hits[index]

    def to_dicts(self) -> list[dict[str, Any]]:
        """The hits as a list of JSON objects."""
        return [hit.to_dict() for hit in self.hits]

    def to_frame(self) -> pd.DataFrame:
        """The hits as a DataFrame, one row a hit, indexed by rank from 1.

        The score's parts are columns of their own: ``cosine``, ``bm25``, ``dense``, ``lexical``,
        ``document``, ``title_match``.
        """
        import pandas as pd

        rows = []
        for values in self.to_dicts():
            parts = values.pop("parts")
            parts["title_match"] = parts.pop("title")  # "title" is the document's
            rows.append({**values, **parts})
        columns = [
            "score", "kb", "title", "heading_path", "snippet", "url", "document_type", "tags",
            "cosine", "bm25", "dense", "lexical", "document", "title_match", "uri", "anchor",
            "document_id", "chunk_id", "start", "end", "page", "fetched_at", "text",
        ]  # fmt: skip
        frame = pd.DataFrame(rows, columns=columns)
        frame.index = pd.RangeIndex(1, len(frame) + 1, name="rank")
        frame["fetched_at"] = pd.to_datetime(frame["fetched_at"], utc=True)
        frame["page"] = frame["page"].astype("Int64")
        return frame

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>"
            f"<td style='text-align:right'>{rank}</td>"
            f"<td style='text-align:right'>{hit.score:.3f}</td>"
            f"<td style='text-align:left'>{_link(hit)}<br>"
            f"<small>{html.escape(' › '.join(hit.chunk.heading_path))}</small></td>"
            f"<td style='text-align:left'>{html.escape(hit.snippet)}</td>"
            "</tr>"
            for rank, hit in enumerate(self.hits, 1)
        )
        found = f"{len(self)} hits" if len(self) != 1 else "1 hit"
        return (
            f"<p><b>{found}</b> for <q>{html.escape(self.query)}</q> "
            f"in {self.seconds * 1000:.0f} ms</p>"
            "<table><thead><tr><th>#</th><th>score</th><th>document</th><th>passage</th></tr>"
            f"</thead><tbody>{rows}</tbody></table>"
        )


def _link(hit: Hit) -> str:
    """A link to the hit's place, or its plain title where the URI is not a web address."""
    title = html.escape(hit.title or hit.uri)
    if hit.uri.startswith(("http://", "https://")):
        return f"<a href='{html.escape(hit.url)}' rel='noopener nofollow'>{title}</a>"
    return title


@dataclass(frozen=True, slots=True)
class KnowledgeBaseInfo:
    """What the registry knows of a knowledge base.

    Attributes:
        source_types: Types of its sources, sorted.
        documents: Number of documents that are searched (not gone).
        chunks: Number of chunks.
        embedder: Fingerprint of the embedder its vectors come from.
        states: Number of documents in each state.
        document_types: Number of searched documents of each type.
        pending: Chunks that Chroma has not been given yet (searched all the same).
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

    def to_dict(self) -> dict[str, Any]:
        """The information as JSON values."""
        values = asdict(self)
        values["created_at"] = self.created_at.isoformat()
        values["updated_at"] = self.updated_at.isoformat()
        values["source_types"] = list(self.source_types)
        return values


@dataclass(frozen=True, slots=True)
class Rating:
    """A score of 1 to 5 that a person gave a chunk or a document, for a query or without one."""

    id: int
    kb: str
    target: str
    target_type: str
    score: int
    query: str
    rater: str
    note: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that was skipped or failed, and why."""

    uri: str
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far long work has come; handed to ``on_progress`` callbacks.

    Attributes:
        stage: ``crawl``, ``store``, ``index``, ``evaluate``, ``export`` or ``site``.
        done: Units done.
        total: Units in all as far as known, or ``None``.
        message: What is being worked on.
        so_far: What an ingest has done until now, where one is under way.
    """

    stage: str
    done: int
    total: int | None = None
    message: str = ""
    so_far: IngestReport | None = None


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What an ingest or a refresh did. Counts are documents unless said otherwise.

    Attributes:
        fetched: Pages or files whose content was read (an HTTP 304 is not counted).
        seconds: Time by stage.
        interrupted: The work was stopped before its end; the next run goes on from here.
        fidelity: What the Markdown of the measured pages keeps of them: kept and wanted things
            by kind (``pages`` counts the pages that were measured). The first pages of a site
            are measured, and every eighth of the others.
        poorly_read: Measured pages that lost more than a tenth, with what they lost.
    """

    new: int = 0
    changed: int = 0
    same: int = 0
    gone: int = 0
    fetched: int = 0
    failed: tuple[Problem, ...] = ()
    skipped: tuple[Problem, ...] = ()
    chunks_embedded: int = 0
    chunks_added: int = 0
    chunks_removed: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    interrupted: bool = False
    fidelity: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    poorly_read: tuple[Problem, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        values = asdict(self)
        values["poorly_read"] = [asdict(problem) for problem in self.poorly_read]
        values["failed"] = [asdict(problem) for problem in self.failed]
        values["skipped"] = [asdict(problem) for problem in self.skipped]
        return values
