"""Hits and the parts of their scores."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast, get_args, get_type_hints
from urllib.parse import quote, unquote

from typing_extensions import TypedDict

from kbkit.extras import whole
from kbkit.models.documents import Chunk, DocumentState, DocumentType, disambiguate
from kbkit.models.values import Several, Value, adapter, plain, plain_lines, pluralize

if TYPE_CHECKING:
    import pandas as pd


TIME = "datetime64[us, UTC]"
"""Column type of UTC times."""


_TYPES = {str: "string", int: "Int64", float: "float64", bool: "bool", datetime: TIME}


def typed_frame(
    rows: Sequence[Mapping[str, Any]], kind: type, names: str, **others: str | list[str]
) -> pd.DataFrame:
    """Return rows as a DataFrame with some columns, whose types do not depend on the rows.

    Columns are fields of a dataclass, have one of the ``others`` types, or are texts.
    """
    with whole("A DataFrame"):
        import pandas as pd

    hints, columns = get_type_hints(kind), {}
    for name in names.split():
        dtype = others.get(name) or _type_of(hints.get(name, str))
        pandas_type = dtype if isinstance(dtype, str) else pd.CategoricalDtype(dtype)
        columns[name] = pd.Series([row[name] for row in rows], dtype=pandas_type)
    return pd.DataFrame(columns)


def _type_of(hint: Any) -> str | list[str]:
    types = {*get_args(hint)} - {NoneType} if isinstance(hint, UnionType) else {hint}
    (kind,) = types if len(types) == 1 else (object,)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return [each.value for each in kind]
    return _TYPES.get(kind, "object")


_PDF = re.compile(r"\.pdf(?:\?|$)", re.IGNORECASE)
_FRAGMENT = ":~:text="

# Markup of Markdown, anywhere in a line or at its start.
_MARKUP = re.compile(r"[\\`*_\[\]<>&~|$!#]|^[-+=]|^[0-9]{1,9}[.)]")


class Mode(StrEnum):
    """Retrievers that take part in a search."""

    HYBRID = "hybrid"
    DENSE = "dense"
    LEXICAL = "lexical"


@dataclass(frozen=True, slots=True)
class ScoreParts(Value):
    """Parts of a hit's score.

    Attributes:
        cosine: Cosine of query and chunk vectors, -1 to 1 (0 in lexical mode).
        bm25: BM25 score with the statistics of all knowledge bases searched, 0 or more.
        dense: Contribution of ``cosine``, normalised and weighted.
        lexical: Contribution of ``bm25``, normalised and weighted.
        document: Contribution of other passages of the document.
        title: Contribution of query words in the document's title.
        heading: Contribution of query words in the headings above the chunk.
        summary: Contribution of the document's summary.
        page: Contribution of query words anywhere in the document.
        graph: Contribution of relations from entities in the query, and from documents that answer
            it.
        learned: Contribution of similar questions for which people rated the chunk 4 or 5.
        rating: Contribution of ratings of the chunk and its document; negative for bad ones.
    """

    cosine: float
    bm25: float
    dense: float
    lexical: float
    document: float = 0.0
    title: float = 0.0
    heading: float = 0.0
    summary: float = 0.0
    page: float = 0.0
    graph: float = 0.0
    learned: float = 0.0
    rating: float = 0.0

    @property
    def total(self) -> float:
        """The score."""
        words_and_vectors = self.dense + self.lexical + self.document + self.title + self.heading
        return (
            words_and_vectors + self.summary + self.page + self.graph + self.learned + self.rating
        )


_PARTS = tuple(each.name for each in fields(ScoreParts))


class HitDict(TypedDict):
    """A hit as JSON values."""

    score: float
    kb: str
    document_id: str
    uri: str
    title: str
    description: str
    document_type: str
    tags: list[str]
    heading_path: list[str]
    anchor: str
    url: str
    chunk_id: str
    position: int
    text: str
    snippet: str
    start: int
    end: int
    page: int | None
    fetched_at: str
    state: str
    version: str
    parts: dict[str, float]
    probability: float | None


class HitsDict(TypedDict):
    """The results of a search as JSON values."""

    query: str
    seconds: float
    notes: list[str]
    hits: list[HitDict]


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result: a chunk with its document, score and parts of the score."""

    kb: str
    score: float
    parts: ScoreParts
    chunk: Chunk
    uri: str
    title: str
    document_type: DocumentType
    tags: tuple[str, ...]
    fetched_at: datetime
    cut: Callable[[], str] = field(repr=False, compare=False)
    """Makes the snippet, on demand: this takes longer than finding the hit."""
    state: DocumentState = DocumentState.CURRENT
    description: str = ""
    """Description of the document in one line."""
    version: str = ""
    """Version that the document is about, or ``""``."""
    probability: float | None = None
    """Estimated probability that the passage answers the query, 0 to 1; ``None`` if unknown (modes
    other than hybrid, small knowledge bases)."""
    opening: Callable[[], str] = field(default=str, repr=False, compare=False)
    """Returns the words for the text fragment: the chunk's first words or, if it has an anchor
    there, the words of a distant snippet; ``""`` if the anchor suffices."""

    @property
    def snippet(self) -> str:
        """The part of the chunk that matches the query, as plain text with its lines."""
        return self.cut()

    @property
    def url(self) -> str:
        """`anchor_url`, with a text fragment if the match is far below the anchor."""
        return self._address(self.opening)

    @property
    def anchor_url(self) -> str:
        """The document's URI with the chunk's anchor or PDF page, unless it has a fragment."""
        return self._address(str)

    def _address(self, opening: Callable[[], str]) -> str:
        if "#" in self.uri:
            return self.uri
        on_web = self.uri.startswith(("http://", "https://"))
        if on_web and self.chunk.page is not None and _PDF.search(self.uri):
            return f"{self.uri}#page={self.chunk.page}"
        words = opening() if on_web else ""
        place = self.chunk.anchor + text_fragment(words)
        return f"{self.uri}#{place}" if place else self.uri

    @property
    def headings(self) -> tuple[str, ...]:
        """Headings above the chunk, without the title of the document."""
        path = self.chunk.heading_path
        return path[1:] if path[:1] == (self.title,) else path

    def citation(self, snippet: str = "") -> str:
        """Return a Markdown quotation with title, headings, link and day of fetching.

        Text of the document is escaped; ``snippet`` replaces the hit's snippet.
        """
        name = _escape_markup(" › ".join([self.title or self.uri, *self.headings]))
        if self.uri.startswith(("http://", "https://")):
            address = "".join(_ENCODED.get(character, character) for character in self.url)
            name = f"[{name}](<{address}>)"
        page = "" if self.chunk.page is None else f", page {self.chunk.page}"
        source = f"{name}{page}, fetched {self.fetched_at:%Y-%m-%d}"
        return f"> {_escape_markup(snippet or self.snippet)}\n>\n> {source}\n"

    def to_dict(self) -> HitDict:
        """Return the hit as JSON values, the same in every interface."""
        return {
            "score": self.score,
            "kb": self.kb,
            "document_id": self.chunk.document_id,
            "uri": self.uri,
            "title": self.title,
            "description": self.description,
            "document_type": self.document_type.value,
            "tags": list(self.tags),
            "heading_path": list(self.chunk.heading_path),
            "anchor": self.chunk.anchor,
            "url": self.url,
            "chunk_id": self.chunk.id,
            "position": self.chunk.position,
            "text": self.chunk.text,
            "snippet": self.snippet,
            "start": self.chunk.start,
            "end": self.chunk.end,
            "page": self.chunk.page,
            "fetched_at": self.fetched_at.isoformat(),
            "state": self.state.value,
            "version": self.version,
            "parts": {name: getattr(self.parts, name) for name in _PARTS},
            "probability": self.probability,
        }

    @classmethod
    def from_dict(cls, values: HitDict) -> Self:
        """Parse the output of `to_dict`; see `kbkit.models.from_dict`."""
        snippet, words = values["snippet"], unquote(values["url"].partition(_FRAGMENT)[2])
        chunk = {**values, "id": values["chunk_id"]}
        data = {**values, "chunk": chunk, "cut": lambda: snippet, "opening": lambda: words}
        return adapter(cast("Any", cls)).validate_python(data)


@dataclass(frozen=True, slots=True)
class Hits(Several[Hit]):
    """The results of one search, best first.

    Attributes:
        notes: Notes for the reader, such as an unreachable embedder; usually empty.
    """

    _items: ClassVar = "hits"
    query: str
    hits: tuple[Hit, ...]
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    def to_dict(self) -> HitsDict:
        """Return the search and its hits as JSON values."""
        return {
            "query": self.query,
            "seconds": self.seconds,
            "notes": list(self.notes),
            "hits": [hit.to_dict() for hit in self.hits],
        }

    @classmethod
    def from_dict(cls, values: HitsDict) -> Self:
        """Parse the output of `to_dict`; see `kbkit.models.from_dict`."""
        hits = tuple(map(Hit.from_dict, values["hits"]))
        return cls(values["query"], hits, values["seconds"], tuple(values["notes"]))

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the hits as JSON objects, each with the notes if there are any."""
        notes = {"notes": list(self.notes)} if self.notes else {}
        return [{**hit.to_dict(), **notes} for hit in self.hits]

    def to_frame(self) -> pd.DataFrame:
        """Return the hits as a DataFrame, one row per hit, indexed by rank from 1.

        Each part of the score has a column: ``cosine``, ``bm25``, ``dense``, ``lexical``,
        ``document``, ``title_match``, ``heading_match``, ``summary_match``, ``page_match``,
        ``graph_match``, ``learned``, ``rating``.
        """
        with whole("A DataFrame"):
            from pandas import RangeIndex

        # distinct from the document's "title"
        matches = ("title", "heading", "summary", "page", "graph")
        names = {name: f"{name}_match" if name in matches else name for name in _PARTS}
        rows = [
            {
                **values,
                **{names[name]: part for name, part in values["parts"].items()},
                "fetched_at": hit.fetched_at,
            }
            for hit, values in zip(self.hits, self.to_dicts(), strict=True)
        ]
        frame = typed_frame(
            rows,
            Hit,
            "score kb title description heading_path snippet url document_type tags cosine bm25 "
            "dense lexical document title_match heading_match summary_match page_match graph_match "
            "learned rating probability uri anchor document_id chunk_id start end page fetched_at "
            "state version text",
            kb="category",
            heading_path="object",
            **dict.fromkeys(names.values(), "float64"),
            **dict.fromkeys(("start", "end", "page"), "Int64"),
        )
        frame.index = RangeIndex(1, len(frame) + 1, name="rank")
        return frame

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        lines = [f"{pluralize(len(self), 'hit')} for {self.query!r}", *self.notes]
        for rank, hit in enumerate(self.hits, 1):
            names = plain(" › ".join([hit.title or hit.uri, *hit.headings]))
            lines += [f"{rank:3}  {hit.score:.3f}  {names}", f"     {plain(hit.url)}"]
            lines += [f"     {line}" for line in plain_lines(hit.snippet)]
        printer.text("\n".join(lines))

    def _repr_html_(self) -> str:
        labels = disambiguate({hit.uri: hit.title for hit in self.hits})
        rows = "".join(
            "<tr>"
            f"<td style='text-align:right'>{rank}</td>"
            f"<td style='text-align:right'>{hit.score:.3f}</td>"
            f"<td style='text-align:left'>{linked(hit, labels[hit.uri])}<br>"
            f"<small>{html.escape(' › '.join(hit.headings))}</small>{_snippet_html(hit)}</td>"
            f"<td style='text-align:left;white-space:pre-wrap'>{html.escape(hit.snippet)}</td>"
            "</tr>"
            for rank, hit in enumerate(self.hits, 1)
        )
        count = pluralize(len(self), "hit")
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return (
            f"<p><b>{count}</b> for <q>{html.escape(self.query)}</q> "
            f"in {self.seconds * 1000:.0f} ms</p>{notes}"
            "<table><thead><tr><th>#</th><th>score</th><th>document</th><th>passage</th></tr>"
            f"</thead><tbody>{rows}</tbody></table>"
        )


# Characters that would end a link's address or change its meaning.
_ENCODED = {
    character: f"%{ord(character):02X}" for character in (*map(chr, range(33)), "<", ">", "\\")
} | {"&": "&amp;"}


def text_fragment(words: str) -> str:
    """Return the text fragment that scrolls a browser to some words; ``""`` for none.

    Source: WICG, "Text Fragments" (draft community group report), where a dash is a delimiter.
    """
    quoted = quote(words, safe="", errors="replace").replace("-", "%2D")
    return f"{_FRAGMENT}{quoted}" if quoted else ""


def _escape_markup(text: str) -> str:
    line = " ".join(text.split())
    return _MARKUP.sub(lambda match: f"{match[0][:-1]}\\{match[0][-1]}", line)


def _snippet_html(hit: Hit) -> str:
    style = "max-width:30em;overflow:hidden;text-overflow:ellipsis;white-space:nowrap;opacity:.75"
    line = html.escape(plain(hit.description))
    return f"<div style='{style}' title='{line}'><small>{line}</small></div>" if line else ""


def linked(hit: Hit, label: str = "") -> str:
    title = html.escape(label or hit.title or hit.uri)
    if hit.uri.startswith(("http://", "https://")):
        return f"<a href='{html.escape(hit.url)}' rel='noopener nofollow'>{title}</a>"
    return title
