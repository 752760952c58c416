"""Inputs of an export, in addition to documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RelatedPassage:
    """A passage of another document with a similar meaning.

    Attributes:
        heading: Headings above it on one line, without the document's title.
        passage: Its first and last words, for highlighting.
    """

    uri: str
    anchor: str = ""
    heading: str = ""
    passage: str = ""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Origin of documents.

    Attributes:
        day: Day of the last complete run (ISO), or ``""``.
        fidelity: Retained and total items by kind, on measured pages.
    """

    type: str
    place: str
    day: str = ""
    fidelity: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExampleQuestion:
    """A question that the home page shows."""

    question: str
    uris: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GraphPlace:
    """A document that defines or mentions an entity."""

    uri: str
    anchor: str = ""
    defines: bool = False


@dataclass(frozen=True, slots=True)
class GraphNode:
    """Entity of a graph, in its picture or only in lists of neighbours. Texts are plain.

    Attributes:
        x: Horizontal offset from the centre.
        properties: Labels and values.
        places: Defining documents, then those with most mentions.
    """

    name: str
    type: str
    x: float = 0
    y: float = 0
    radius: float = 0
    description: str = ""
    aliases: Sequence[str] = ()
    properties: Sequence[tuple[str, str]] = ()
    chunks: int = 0
    documents: int = 0
    places: Sequence[GraphPlace] = ()


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """A relation between two nodes, by their numbers from 0, in the picture if `drawn`."""

    source: int
    target: int
    name: str
    weight: float
    drawn: bool = True


@dataclass(frozen=True, slots=True)
class GraphGap:
    """A gap in the documentation of an entity or document; `kind` is a `kbkit.models.GapKind`."""

    name: str
    kind: str
    reason: str
    places: Sequence[GraphPlace] = ()


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """The published part of a knowledge base's graph.

    Attributes:
        gaps: Gaps, the most important first, each kind in turn.
        further: Relations outside the picture, the strongest first; numbers of `undrawn` follow
            those of `nodes`.
        state: Fingerprint of the graph's state.
        pages: Existing files of that state, by path; all else is then empty.
    """

    nodes: Sequence[GraphNode] = ()
    edges: Sequence[GraphEdge] = ()
    gaps: Sequence[GraphGap] = ()
    total: int = 0
    undrawn: Sequence[GraphNode] = ()
    further: Sequence[GraphEdge] = ()
    state: str = ""
    pages: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Download:
    """Files of a document in one archive; `read` returns its bytes."""

    path: str
    files: Sequence[tuple[str, int]]
    read: Callable[[], bytes]
    about: str = "ZIP"


@dataclass(frozen=True, slots=True)
class SiteSection:
    """Another export in the same site; `path` is relative to the linking pages."""

    title: str
    path: str
    about: str


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts; unknown ones are empty.

    Attributes:
        related: Related passages, the nearest first, by document id.
        ratings: Average rating and number of raters, by document id.
        scores: Number of ratings by score from 1 to 5.
        subjects: Names of the main subjects, by document id.
        best: URIs of the best rated documents, if the site lists them.
    """

    related: Mapping[str, Sequence[RelatedPassage]] = field(default_factory=dict)
    ratings: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    scores: Mapping[int, int] = field(default_factory=dict)
    lengths: Sequence[int] = ()
    sources: Sequence[SourceFacts] = ()
    questions: Sequence[ExampleQuestion] = ()
    subjects: Mapping[str, Sequence[str]] = field(default_factory=dict)
    graph: GraphFacts | None = None
    sections: Sequence[SiteSection] = ()
    downloads: Mapping[str, Download] = field(default_factory=dict)
    best: Sequence[str] = ()
