"""Filters of a search, answers of a language model with citations, and contexts."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Self

from typing_extensions import TypedDict

from kbkit.errors import ConfigError
from kbkit.models.annotations import StatementType
from kbkit.models.documents import DocumentState, DocumentType
from kbkit.models.hits import Hit, HitDict, Hits, linked
from kbkit.models.values import Value, brief, fault_reason, plain, plain_lines
from kbkit.paths import compile_glob

if TYPE_CHECKING:
    from pydantic import TypeAdapter

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
        numbers = {
            int(number) for group in _NUMBERS.findall(self.text) for number in group.split(",")
        }
        return tuple(sorted(number for number in numbers if 1 <= number <= len(self.hits)))

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
        sources = Hits(values["query"], hits, notes=tuple(values["notes"]))
        return cls(values["query"], values["text"], sources, values["model"])

    def __str__(self) -> str:
        lines = [self.text or _no_answer(self.hits), ""]
        for number, hit in enumerate(self.hits, 1):
            name = plain(" › ".join([hit.title or hit.uri, *hit.headings]))
            lines.append(f"[{number}] {name} <{plain(hit.url)}>")
            if not self.text:
                lines += [f"    {line}" for line in plain_lines(hit.snippet)]
        return "\n".join(lines).rstrip()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        if not self.text:
            return f"<p>{html.escape(_no_answer(self.hits))}</p>{self.hits._repr_html_()}"
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


def _no_answer(hits: Hits) -> str:
    if not hits:
        return "Nothing was found; ask in other words."
    return (
        "No language model is set (llama_index.core.Settings.llm), so these are the passages that "
        "answer best."
    )


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


OF_DOCUMENTS = ("document_type", "tags", "source", "path", "version", "after", "before", "state")
"""Conditions that also apply to lists of documents."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on a chunk and its document. All must hold.

    Attributes:
        document_type: One of these types; empty for any.
        tags: All of these tags.
        source: Prefix of its URI.
        path: Glob (`kbkit.paths`) that the path of its URI matches (``library/**``, ``*.pdf``).
        after: Fetched at this time or later. A time without a zone is UTC.
        before: Fetched before this time.
        min_rating: Minimum average rating, 1 to 5, of the chunk or, if it has none, of its
            document.
        min_probability: Minimum `Hit.probability`, 0 to 1; ignored, with a note, where unknown.
        state: One of these states; empty for any.
        version: Version that the document is about (``3.12``), by its source or address. For an
            unknown version, the error lists the known ones.
        heading: Text in a heading above the chunk, ignoring case; the document's title does not
            count.
        page: One of these pages (of a PDF, say), from 1; empty for any.
        frame: Has a statement of one of these types; empty for any.
        subject: Mentions all of these subjects, by any of their names.
        entity: Names all of these entities, by any of their names.
    """

    document_type: tuple[DocumentType, ...] = ()
    tags: tuple[str, ...] = ()
    source: str = ""
    path: str = ""
    after: datetime | None = None
    before: datetime | None = None
    min_rating: float | None = None
    min_probability: float | None = None
    state: tuple[DocumentState, ...] = ()
    version: str = ""
    heading: str = ""
    page: tuple[int, ...] = ()
    frame: tuple[StatementType, ...] = ()
    subject: tuple[str, ...] = ()
    entity: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self != Filters()

    def check_of_documents(self) -> None:
        """Raise `ConfigError` if a condition is on chunks or ratings, not on documents."""
        unsupported = [
            f.name for f in fields(self) if f.name not in OF_DOCUMENTS and getattr(self, f.name)
        ]
        if unsupported:
            raise ConfigError(
                f"filters: {', '.join(unsupported)} can filter a search, whose hits are passages; "
                f"documents are listed by {', '.join(OF_DOCUMENTS)}"
            )

    @classmethod
    def of(cls, conditions: Filters | Mapping[str, Any] | None) -> Self:
        """Parse conditions: single values for lists, strings for times.

        Args:
            conditions: Conditions such as ``{"document_type": "manual", "after": "2026-01-31"}``.

        Raises:
            ConfigError: A condition is unknown, or its value is invalid.
        """
        if conditions is None:
            return cls()
        if isinstance(conditions, Filters):
            conditions = {
                field.name: value
                for field in fields(cls)
                if (value := getattr(conditions, field.name)) != field.default
            }
        if not isinstance(conditions, Mapping):
            raise ConfigError(f"filters: {brief(conditions)} is not a mapping of conditions")
        names = [field.name for field in fields(cls)]
        unknown = [str(name) for name in conditions if name not in names]
        if unknown:
            raise ConfigError(
                f"filters: {', '.join(unknown)} not known; filter by {', '.join(names)}"
            )
        values = {name: value for name, value in conditions.items() if value is not None}
        return cls(**{name: _read(name, value) for name, value in values.items()})


@cache
def condition_types() -> dict[str, TypeAdapter[Any]]:
    """Return the types of conditions, by name."""
    from pydantic import AfterValidator, BeforeValidator, Field, Strict, TypeAdapter

    text: Any = Annotated[str, Strict(), AfterValidator(_unicode)]
    one_or_several = BeforeValidator(_several)
    texts = Annotated[tuple[text, ...], one_or_several]
    at = Annotated[datetime, BeforeValidator(_no_number), AfterValidator(_utc)]
    page: Any = Annotated[int, Strict(), Field(ge=1, lt=2**63), BeforeValidator(whole)]
    kinds: dict[str, Any] = {
        "document_type": Annotated[tuple[DocumentType, ...], one_or_several],
        "tags": texts,
        "source": text,
        "path": Annotated[text, AfterValidator(_glob)],
        "after": at,
        "before": at,
        "min_rating": Annotated[float, Strict(), Field(ge=1, le=5)],
        "min_probability": Annotated[float, Strict(), Field(ge=0, le=1)],
        "state": Annotated[tuple[DocumentState, ...], one_or_several],
        "version": text,
        "heading": text,
        "page": Annotated[tuple[page, ...], one_or_several],
        "frame": Annotated[tuple[StatementType, ...], one_or_several],
        "subject": texts,
        "entity": texts,
    }
    return {name: TypeAdapter(kind) for name, kind in kinds.items()}


def _read(name: str, value: Any) -> Any:
    from pydantic import ValidationError

    try:
        return condition_types()[name].validate_python(value)
    except ValidationError as error:
        fault = error.errors()[0]
        is_date = fault["type"].startswith("date")
        reason = "give a date such as 2026-01-31" if is_date else fault_reason(fault)
        raise ConfigError(f"filters: {name}={brief(value)}: {reason}") from None


def whole(value: Any) -> Any:
    """Return an integer for a number such as 5.0, which is one in JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _several(value: Any) -> Any:
    if isinstance(value, str | int | float):
        return (value,)
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, Mapping) else value


def _unicode(text: str) -> str:
    text.encode()  # raises for lone surrogates
    return text


def _glob(pattern: str) -> str:
    compile_glob(pattern)
    return pattern


def _no_number(value: Any) -> Any:
    """Refuse numbers, which pydantic reads as seconds since 1970."""
    from pydantic_core import PydanticCustomError

    try:
        float(value)
    except OverflowError:
        pass
    except (TypeError, ValueError):
        return value
    raise PydanticCustomError("date_number", "a number is no date")


def _utc(time: datetime) -> datetime:
    try:
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError("out of range") from None
