"""Answers of a language model with citations, and contexts."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from typing_extensions import TypedDict

from kbkit.models.documents import DocumentState
from kbkit.models.hits import Hit, HitDict, Hits, linked
from kbkit.models.values import Value, plain, plain_lines

_NUMBERS = re.compile(r"\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]")


class AnswerDict(TypedDict):
    """An answer as JSON values."""

    query: str
    text: str
    model: str
    cited: list[int]
    hits: list[HitDict]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its sources.

    Attributes:
        text: Answer of the model; empty without a model.
        hits: Passages given to it; its text cites them by position, from 1.
        model: Name of the model, or ``""``.
    """

    query: str
    text: str
    hits: Hits
    model: str = ""

    @property
    def cited(self) -> tuple[int, ...]:
        """Numbers of the cited passages, ascending, without invented ones."""
        named = {
            int(number) for group in _NUMBERS.findall(self.text) for number in group.split(",")
        }
        return tuple(sorted(number for number in named if 1 <= number <= len(self.hits)))

    def to_dict(self) -> AnswerDict:
        """Return the answer as JSON values, with its sources and citations."""
        return {
            "query": self.query,
            "text": self.text,
            "model": self.model,
            "cited": list(self.cited),
            "hits": [hit.to_dict() for hit in self.hits],
            "notes": list(self.hits.notes),
        }

    @classmethod
    def from_dict(cls, values: AnswerDict) -> Self:
        """Parse the output of `to_dict`; see `kbkit.models.from_dict`."""
        hits = tuple(map(Hit.from_dict, values["hits"]))
        read_hits = Hits(values["query"], hits, notes=tuple(values["notes"]))
        return cls(values["query"], values["text"], read_hits, values["model"])

    def __str__(self) -> str:
        lines = [self.text or _unanswered(self.hits), ""]
        for number, hit in enumerate(self.hits, 1):
            lines.append(f"[{number}] {_name(hit)} <{plain(hit.url)}>")
            if not self.text:
                lines += [f"    {line}" for line in plain_lines(hit.snippet)]
        return "\n".join(lines).rstrip()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        if not self.text:
            return f"<p>{html.escape(_unanswered(self.hits))}</p>{self.hits._repr_html_()}"
        text = html.escape(self.text)
        cited = self.cited
        sources = "".join(
            f"<tr><td>[{number}]</td><td style='text-align:left'>"
            f"{'<b>' if number in cited else ''}{linked(hit)}{'</b>' if number in cited else ''}"
            f"<br><small>{html.escape(' › '.join(hit.headings))}</small></td>"
            f"<td style='text-align:left'>{html.escape(hit.snippet)}</td></tr>"
            for number, hit in enumerate(self.hits, 1)
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.hits.notes)
        return (
            f"<p style='white-space:pre-wrap;max-width:50em'>{text}</p>{notes}"
            f"<table><thead><tr><th></th><th>source</th><th>passage</th></tr></thead>"
            f"<tbody>{sources}</tbody></table>"
            f"<p><small>answered by {html.escape(self.model)}; it can be wrong, so read its "
            "sources</small></p>"
        )


def _unanswered(hits: Hits) -> str:
    if not hits:
        return "Nothing was found; ask in other words."
    return (
        "No language model is set (llama_index.core.Settings.llm), so these are the passages that "
        "answer best."
    )


def _name(hit: Hit) -> str:
    return plain(" › ".join([hit.title or hit.uri, *hit.headings]))


@dataclass(frozen=True, slots=True)
class Citation(Value):
    """Source and age of a text.

    Attributes:
        heading_path: Headings above the text, outermost first.
        url: Address with anchor or page.
        page: Page of the source (PDF).
        age_days: Whole days since ``fetched_at``.
        version: Version that the document is about, or ``""``.
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
    """A numbered part of a context.

    Attributes:
        number: From 1.
        kind: ``passage``; ``entity``: facts about a name in the question; ``entry``: a solution
            that worked; ``folders``: the root folders of files.
        citation: Source; of an entity, the source of its mention, if any.
        name: Name of the entity; slug of the entry.
        score: Score of the passage's best chunk.
        cut: Whether it was shortened for the budget.
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
    """Text for an agent to answer a question with.

    Attributes:
        text: The pieces with numbers and sources, as one block for a language model, between marks
            that no document can predict.
        pieces: Passages, best first, then entities, entries and folders.
        notes: Notes for the reader; usually empty.
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
