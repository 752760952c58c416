"""Facts that an export needs besides documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Related:
    """A passage of another document that is near in meaning.

    Attributes:
        anchor: Where on its page it begins, or ``""``.
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
        fidelity: Kept and wanted things by kind, of the pages that were measured.
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
        anchor: Where on its page it speaks of the entity, or ``""``.
    """

    uri: str
    anchor: str = ""
    defines: bool = False


@dataclass(frozen=True, slots=True)
class GraphNode:
    """Entity in the picture of a graph. Texts are plain.

    Attributes:
        x: How far right of the middle of the picture it stands.
        properties: What else is known of it: labels and values.
        places: Documents that define it, then those that name it most.
    """

    name: str
    type: str
    x: float
    y: float
    radius: float
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
        drawn: Whether it is in the picture, where all of them would be a tangle.
    """

    source: int
    target: int
    name: str
    weight: float
    drawn: bool = True


@dataclass(frozen=True, slots=True)
class UndrawnNode:
    """Entity shown only with its neighbourhood. Texts are plain.

    Attributes:
        places: Documents that define it, then those that name it most.
    """

    name: str
    type: str
    chunks: int = 0
    documents: int = 0
    places: Sequence[GraphPlace] = ()


@dataclass(frozen=True, slots=True)
class GraphGap:
    """A gap of the documentation.

    Attributes:
        name: Of an entity, or the title of a document.
        kind: What is missing; one of `kbkit.models.GapKind`.
    """

    name: str
    kind: str
    reason: str
    places: Sequence[GraphPlace] = ()


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """The graph of a knowledge base, as far as its site shows it.

    Attributes:
        gaps: What matters most first, of each kind in turn.
        further: Relations of what is not drawn, the strongest first; the numbers of `undrawn`
            follow on those of `nodes`.
        state: Stands for all of it, so that what was made of it can be told from what was not.
        pages: What was made of that state before, by path; nothing else is told then.
    """

    nodes: Sequence[GraphNode] = ()
    edges: Sequence[GraphEdge] = ()
    gaps: Sequence[GraphGap] = ()
    total: int = 0
    undrawn: Sequence[UndrawnNode] = ()
    further: Sequence[GraphEdge] = ()
    state: str = ""
    pages: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Download:
    """Files of a document that a reader can have, in one archive.

    Attributes:
        read: Gives the archive; asked for when it is written.
    """

    path: str
    files: Sequence[tuple[str, int]]
    read: Callable[[], bytes]
    about: str = "ZIP"


@dataclass(frozen=True, slots=True)
class SiteSection:
    """Another export in the same site: the files of a workspace, or its entries.

    Attributes:
        path: Of its home page, from the folder of the pages that lead there.
    """

    title: str
    path: str
    about: str


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts; unknown ones are empty.

    Attributes:
        related: Passages near to each document, by its id, the nearest first.
        ratings: Average of the ratings of each document, and how many people gave them, by id.
        scores: How often each score from 1 to 5 was given.
        questions: Examples of what can be asked, with what answers them.
        subjects: What each document is mainly about, by its id: names of entities.
        graph: How the entities hang together; ``None`` where nothing is known of that, or it is
            not to be shown.
        best: URIs of documents, the best rated first, where that is how they are to be listed.
    """

    related: Mapping[str, Sequence[Related]] = field(default_factory=dict)
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
