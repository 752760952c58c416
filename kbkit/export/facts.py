"""What an export is told besides the documents: figures that only the catalog can give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Related:
    """A passage of another document that is near in meaning.

    Attributes:
        uri: Of the document it is part of.
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
    """Where documents come from.

    Attributes:
        type: Type of the source, as recipes call it.
        place: Address, path or name of a package.
        day: Day of the last complete run (ISO), or ``""``.
        fidelity: Kept and wanted things by kind, of the pages that were measured.
    """

    type: str
    place: str
    day: str = ""
    fidelity: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExampleQuestion:
    """A question that the home page shows.

    Attributes:
        question: What is asked.
        uris: The documents that answer it, the best first.
    """

    question: str
    uris: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """All of it; what is not known is left empty.

    Attributes:
        related: Passages near to each document, by its id, the nearest first.
        ratings: Average of the ratings of each document, and how many people gave them, by id.
        scores: How often each score from 1 to 5 was given.
        lengths: Length of each chunk in characters.
        sources: Where the documents come from.
        questions: Examples of what can be asked, with what answers them.
        subjects: What each document is mainly about, by its id: names of entities.
    """

    related: Mapping[str, Sequence[Related]] = field(default_factory=dict)
    ratings: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    scores: Mapping[int, int] = field(default_factory=dict)
    lengths: Sequence[int] = ()
    sources: Sequence[SourceFacts] = ()
    questions: Sequence[ExampleQuestion] = ()
    subjects: Mapping[str, Sequence[str]] = field(default_factory=dict)
