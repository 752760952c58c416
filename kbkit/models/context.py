"""Context: what an agent is given to answer a question with, and where each part of it is from."""

from __future__ import annotations

import html
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kbkit.models.documents import DocumentState
from kbkit.models.values import Value


@dataclass(frozen=True, slots=True)
class Citation(Value):
    """Where a text is from, and how fresh that is.

    Attributes:
        title: Of the document.
        heading_path: Headings above the text, outermost first.
        url: Address of the place, with its anchor or page.
        uri: Of the document.
        kb: Name of the knowledge base.
        document_id: Of the document.
        chunk_ids: Of the chunks that the text is made of, in their order.
        page: Page of the source (PDF).
        fetched_at: When the document was read.
        age_days: Whole days since then.
        state: How the document relates to its source: current, stale or gone.
        version: Of what the document documents, or ``""``.
    """

    title: str
    heading_path: tuple[str, ...]
    url: str
    uri: str
    kb: str
    document_id: str
    chunk_ids: tuple[str, ...]
    page: int | None
    fetched_at: datetime
    age_days: int
    state: DocumentState
    version: str = ""


@dataclass(frozen=True, slots=True)
class ContextPiece(Value):
    """A part of a context, which may be cited by its number.

    Attributes:
        number: From 1.
        kind: ``passage``; ``entity``: what the graph knows of one that the question names;
            ``entry``: a solution that worked; ``folders``: those at the root of the files.
        text: What is quoted, as the context has it.
        citation: Where it is from; of an entity, where it is told of, if anywhere.
        name: Of the entity; slug of the entry.
        score: Of the search, of a passage's best chunk.
        cut: Whether it ends early, since the budget did.
    """

    number: int
    kind: str
    text: str
    citation: Citation | None
    name: str = ""
    score: float = 0.0
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Context(Value):
    """What an agent is given to answer a question with.

    Attributes:
        query: What was asked.
        text: All of it as a block for a language model: pieces with their numbers and sources,
            between marks that no document can have foreseen.
        pieces: Its parts: passages, best first, then entities, entries and folders.
        tokens: What the text takes.
        max_tokens: What it might have taken.
        seconds: Time it took.
        notes: What the reader should know of how it came about; mostly empty.
    """

    query: str
    text: str
    pieces: tuple[ContextPiece, ...]
    tokens: int
    max_tokens: int
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.text)

    def _repr_html_(self) -> str:
        style = "white-space:pre-wrap;max-width:60em"
        return (
            f"<p><b>{len(self.pieces)}</b> pieces for <q>{html.escape(self.query)}</q>, "
            f"{self.tokens:,} of {self.max_tokens:,} tokens</p>"
            f"<div style='{style}'>{html.escape(self.text)}</div>"
        )
