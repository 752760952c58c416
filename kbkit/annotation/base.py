"""The seam of annotators: passages and known names in, annotations out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from kbkit.models import Annotation, Chunk, Document


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk with the document it is of, whose content may be left out.

    Attributes:
        chunk: The chunk.
        document: Its document: title, type, tags, metadata.
    """

    chunk: Chunk
    document: Document


class Mention(NamedTuple):
    """A known name that stands in a text.

    Attributes:
        start: Where it begins, in characters.
        end: Where it ends.
        name: As those who define it write it.
    """

    start: int
    end: int
    name: str


class Gazetteer(Protocol):
    """The names that are known in a knowledge base."""

    def find(self, text: str) -> Sequence[Mention]:
        """The names in a text, the longest where several begin alike; none overlap another."""

    def __contains__(self, name: object) -> bool:
        """Whether a name is known, written like this or by another normal form."""

    def __iter__(self) -> Iterator[str]:
        """The names, as those who define them write them."""


class Annotator(Protocol):
    """Says what passages say."""

    @property
    def fingerprint(self) -> str:
        """Names it and its version: where that changes, chunks are annotated again."""

    def annotate(
        self, passages: Sequence[Passage], gazetteer: Gazetteer
    ) -> Sequence[Sequence[Annotation]]:
        """Annotate passages.

        Args:
            passages: Chunks with their documents.
            gazetteer: The names that are known.

        Returns:
            One or more annotations for each, in that order.
        """
