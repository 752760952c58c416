"""Facts that an export needs besides documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RelatedPassage:
    """A passage of another document that is near in meaning.

    Attributes:
        anchor: Anchor on its page, or ``""``.
        heading: Headings above it on one line, the document's title left out.
        passage: Its first and last words, by which its page marks it.
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
        fidelity: Kept and total items by kind, on measured pages.
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
    """A document that an entity leads to.

    Attributes:
        anchor: Anchor of the mention, or ``""``.
    """

    uri: str
    anchor: str = ""
    defines: bool = False


@dataclass(frozen=True, slots=True)
class GraphNode:
    """Entity of a graph, in its picture or shown only with its neighbourhood. Texts are plain.

    Attributes:
        x: Horizontal offset from the centre.
        properties: Further properties: labels and values.
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
    """A relation between two nodes, by their numbers from 0.

    Attributes:
        drawn: Whether the picture shows it.
    """

    source: int
    target: int
    name: str
    weight: float
    drawn: bool = True


@dataclass(frozen=True, slots=True)
class GraphGap:
    """A gap of the documentation.

    Attributes:
        name: Name of an entity, or title of a document.
        kind: Kind of gap; one of `kbkit.models.GapKind`.
    """

    name: str
    kind: str
    reason: str
    places: Sequence[GraphPlace] = ()


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """The graph of a knowledge base, as far as its site shows it.

    Attributes:
        gaps: Gaps, the most important first, each kind in turn.
        further: Relations outside the picture, the strongest first; numbers of `undrawn` follow
            those of `nodes`.
        state: Fingerprint of the graph's state.
        pages: Files already made of that state, by path; all else is empty then.
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
    """Files of a document that a reader can have, in one archive.

    Attributes:
        read: Returns the archive when it is written.
    """

    path: str
    files: Sequence[tuple[str, int]]
    read: Callable[[], bytes]
    about: str = "ZIP"


@dataclass(frozen=True, slots=True)
class SiteSection:
    """Another export in the same site: the files of a workspace, or its entries.

    Attributes:
        path: Path of its home page, relative to the linking pages.
    """

    title: str
    path: str
    about: str


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts; unknown ones are empty.

    Attributes:
        related: Passages near to each document, by its id, the nearest first.
        ratings: Average rating and number of raters of each document, by id.
        scores: Number of ratings by score from 1 to 5.
        questions: Example questions with their answers.
        subjects: Main subjects of each document, by id: names of entities.
        graph: The graph; ``None`` if unknown or hidden.
        best: URIs of the best rated documents, if they are to be listed.
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
