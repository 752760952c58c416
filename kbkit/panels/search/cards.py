"""What the cards of a search panel show, as plain JSON values for the view that draws them."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kbkit.models import Chunk, DocumentState, Hit
from kbkit.panels import render
from kbkit.panels.search.earlier_ratings import OwnRating
from kbkit.panels.view import View
from kbkit.text import Analyzer

MEANINGS = ("not useful", "slightly useful", "useful", "very useful", "the answer")
"""What 1 to 5 stars say."""

_PASSAGE_LENGTH = 10_000
"""Most characters of a passage that are shown in context."""

_SHARES = (
    ("dense", "from meaning (cosine {parts.cosine:.2f})"),
    ("lexical", "from words (BM25 {parts.bm25:.1f})"),
    ("document", "from other passages of the document"),
    ("title", "from words in its title"),
    ("heading", "from words in the headings above it"),
    ("rating", "from ratings"),
)


class Cards(View, module="cards.js"):
    """The results of a search, with what a reader can do about them."""


@dataclass(frozen=True, slots=True)
class Context:
    """A hit among the passages around it.

    Attributes:
        reach: How many passages are shown before and after it.
        chunks: They and the hit's own, in document order.
        more: Whether the document has more on either side.
    """

    reach: int
    chunks: tuple[Chunk, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class Marking:
    """What is marked in a text: the words that share a term with the query."""

    terms: AbstractSet[str]
    analyzer: Analyzer

    def __call__(self, text: str) -> list[tuple[str, bool]]:
        """The text in pieces, each with whether it is marked."""
        return render.segments(text, self.terms, self.analyzer)


def card(
    hit: Hit,
    rank: int,
    marking: Marking,
    now: datetime,
    *,
    kb: bool = False,
    own: OwnRating = OwnRating(),  # noqa: B008 - frozen
    undo: bool = False,
    selected: bool = False,
    context: Context | None = None,
) -> dict[str, Any]:
    """What one card shows.

    Args:
        hit: The result.
        rank: Its place, from 1.
        marking: What is marked in it.
        now: The time that its age is counted from.
        kb: Say which knowledge base it comes from.
        own: What readers said about it.
        undo: Whether the reader can take back a rating.
        selected: Whether the reader has selected it.
        context: What stands around it, where the reader asked for that.
    """
    snippet = hit.snippet  # cut once, which takes long
    name = render.plain(hit.title, render.TITLE_LENGTH) or render.place(hit.uri) or "Untitled"
    return {
        "id": identity(hit),
        "rank": rank,
        "name": name,
        "title": marking(name),
        "link": render.web_address(hit.url),
        "badges": _badges(hit, kb=kb),
        "path": _path(hit.chunk, name),
        "place": render.place(hit.uri),
        "fresh": {
            "text": f"fetched {render.ago(hit.fetched_at, now)}",
            "exact": f"Fetched {hit.fetched_at:%Y-%m-%d %H:%M} UTC",
        },
        "score": score(hit),
        "snippet": marking(render.plain(snippet, render.SNIPPET_LENGTH)),
        "stars": own.here or 0,
        "rated": _rated(own),
        "undo": undo,
        "selected": selected,
        "citation": hit.citation(snippet),
        "context": context and _context(hit, context, name),
    }


def identity(hit: Hit) -> str:
    """What names a hit among those of several knowledge bases."""
    return f"{hit.kb}/{hit.chunk.id}"


def score(hit: Hit) -> dict[str, Any]:
    """The score of a hit as a number, the shares of its parts, and the same said in words."""
    parts = hit.parts
    values = {name: getattr(parts, name) for name, _ in _SHARES}
    scale = 100 / max(1.0, sum(max(0.0, value) for value in values.values()))
    said = [
        f"{values[name]:.2f} {words.format(parts=parts)}"
        for name, words in _SHARES
        if values[name] or name in {"dense", "lexical"}
    ]
    return {
        "total": f"{hit.score:.2f}",
        "said": f"Score {hit.score:.2f}: {', '.join(said)}",
        "shares": [
            {"name": name, "percent": round(max(0.0, value) * scale, 1)}
            for name, value in values.items()
        ],
    }


def _badges(hit: Hit, *, kb: bool) -> Sequence[dict[str, str]]:
    found = [("type", hit.document_type.value.replace("_", " "))]
    if kb:
        found.append(("kb", render.plain(hit.kb, 63)))
    if hit.state is not DocumentState.CURRENT:
        found.append((hit.state.value, hit.state.value))
    return [{"kind": kind, "text": text} for kind, text in found]


def _path(chunk: Chunk, title: str) -> str:
    headings = [render.plain(heading, render.PATH_LENGTH) for heading in chunk.heading_path]
    if headings and headings[0] == title:
        del headings[0]  # a page's first heading is its title, which the card begins with
    return render.plain(" › ".join(headings), render.PATH_LENGTH)


def _rated(own: OwnRating) -> str:
    said = []
    if own.other_score is not None:
        other = render.plain(own.other_query, 80)
        said.append(f"you: {own.other_score} of 5{other and f' for “{other}”'}")
    if own.average is not None and (own.raters > 1 or own.here is own.other_score is None):
        people = "1 reader" if own.raters == 1 else f"{own.raters} readers"
        said.append(f"average {own.average:.1f} of {people}")
    return " · ".join(said)


def _context(hit: Hit, context: Context, title: str) -> dict[str, Any]:
    from kbkit.markdown.rendering import render as rendered  # not before somebody asks

    above = hit.chunk.heading_path
    passages = []
    for chunk in context.chunks:
        text = render.lines(chunk.text, _PASSAGE_LENGTH)
        told = chunk.heading_path == above or text.lstrip().startswith("#")
        passages.append(
            {
                "html": rendered(text, lambda _link: None).plain,
                "own": chunk.id == hit.chunk.id,
                "path": "" if told else _path(chunk, title),
            }
        )
        above = chunk.heading_path
    return {"reach": context.reach, "passages": passages, "more": context.more}
