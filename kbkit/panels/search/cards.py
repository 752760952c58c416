"""Cards of the search panel as JSON values for the view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kbkit.models import Chunk, ChunkSummary, DocumentState, DocumentType, Hit
from kbkit.models.plain import pluralize
from kbkit.panels import passages, render
from kbkit.panels.search.highlighting import Highlighter
from kbkit.panels.search.rating_summary import RatingSummary
from kbkit.panels.view import View

GRADES = ("not useful", "slightly useful", "useful", "very useful", "the answer")
"""Meanings of 1 to 5 stars."""

NO_SUMMARY = ChunkSummary(None, ())
"""Summary of a chunk without annotations."""

_SHARES = (
    ("dense", "from meaning (cosine {parts.cosine:.2f})"),
    ("lexical", "from words (BM25 {parts.bm25:.1f})"),
    ("document", "from other passages of the document"),
    ("title", "from words in its title"),
    ("heading", "from words in the headings above it"),
    ("card", "from what its document is about"),
    ("page", "from words all over its document"),
    ("graph", "from what the graph relates to this"),
    ("learned", "from questions like this one that people rated it for"),
    ("rating", "from ratings"),
)
_SPANS = (
    ("year", 365.25 * 86_400),
    ("month", 30.44 * 86_400),
    ("week", 7 * 86_400),
    ("day", 86_400),
    ("hour", 3_600),
    ("minute", 60),
)


class CardsView(View, module="cards.js"):
    """Search results with actions."""


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """A hit among the passages around it.

    Attributes:
        radius: Number of passages shown before and after it.
    """

    radius: int
    chunks: tuple[Chunk, ...]
    more: bool


def card(
    hit: Hit,
    rank: int,
    highlight: Highlighter,
    now: datetime,
    *,
    kb: bool = False,
    ratings: RatingSummary = RatingSummary(),  # noqa: B008 - frozen
    summary: ChunkSummary = NO_SUMMARY,
    undo: bool = False,
    selected: bool = False,
    context: ContextWindow | None = None,
) -> dict[str, Any]:
    snippet = hit.snippet  # cut once, which takes long
    heading = passages.heading(hit)
    return heading | {
        "id": card_id(hit),
        "rank": rank,
        "marked_title": highlight(heading["title"]),
        "about": _about(hit, snippet),
        "badges": _badges(hit, summary, kb=kb),
        "age": {
            "text": f"fetched {ago(hit.fetched_at, now)}",
            "exact": f"Fetched {hit.fetched_at:%Y-%m-%d %H:%M} UTC",
        },
        "score": score(hit),
        "snippet": highlight(render.lines(snippet, render.SNIPPET_LENGTH)),
        "stars": ratings.score or 0,
        "rated": _rated(ratings),
        "undo": undo,
        "selected": selected,
        "citation": hit.citation(snippet),
        "context": context and _context(hit, context, heading["title"]),
    }


def _about(hit: Hit, snippet: str) -> str:
    """Return the document's description, unless the snippet begins with it."""
    line = render.plain(hit.description, render.ABOUT_LENGTH)
    return "" if " ".join(snippet.split()).startswith(line[:60].rstrip("…")) else line


def card_id(hit: Hit) -> str:
    return f"{hit.kb}/{hit.chunk.id}"


def score(hit: Hit) -> dict[str, Any]:
    parts = hit.parts
    values = {name: getattr(parts, name) for name, _ in _SHARES}
    scale = 100 / max(1.0, sum(max(0.0, value) for value in values.values()))
    described = [
        f"{values[name]:.2f} {words.format(parts=parts)}"
        for name, words in _SHARES
        if values[name] or name in {"dense", "lexical"}
    ]
    return {
        "total": f"{hit.score:.2f}",
        "label": f"Score {hit.score:.2f}: {', '.join(described)}",
        "shares": [
            {"name": name, "percent": round(max(0.0, value) * scale, 1)}
            for name, value in values.items()
        ],
    }


def ago(then: datetime, now: datetime) -> str:
    seconds = (now - then).total_seconds()
    for name, length in _SPANS:
        number = int(seconds // length)
        if number > 0:
            return f"{pluralize(number, name)} ago"
    return "just now"


def _badges(hit: Hit, summary: ChunkSummary, *, kb: bool) -> Sequence[dict[str, str]]:
    badges = []
    if hit.document_type is not DocumentType.OTHER:
        badges.append(("type", hit.document_type.value.replace("_", " ")))
    if kb:
        badges.append(("kb", render.plain(hit.kb, 63)))
    if hit.state is not DocumentState.CURRENT:
        badges.append((hit.state.value, hit.state.value))
    if summary.frame is not None:
        badges.append(("frame", summary.frame.value))
    badges += [("entity", render.plain(name, 40)) for name in summary.entities]
    return [{"kind": kind, "text": text} for kind, text in badges]


def _rated(ratings: RatingSummary) -> str:
    parts = []
    if ratings.other_score is not None:
        other = render.plain(ratings.other_query, 80)
        parts.append(f"you: {ratings.other_score} of 5{other and f' for “{other}”'}")
    only_others = ratings.score is ratings.other_score is None
    if ratings.average is not None and (ratings.raters > 1 or only_others):
        people = "1 reader" if ratings.raters == 1 else f"{ratings.raters} readers"
        parts.append(f"average {ratings.average:.1f} of {people}")
    return " · ".join(parts)


def _context(hit: Hit, context: ContextWindow, title: str) -> dict[str, Any]:
    above = hit.chunk.heading_path
    shown = []
    for chunk in context.chunks:
        known = chunk.heading_path == above or chunk.text.lstrip().startswith("#")
        shown.append(
            {
                "html": passages.html(chunk),
                "hit": chunk.id == hit.chunk.id,
                "path": "" if known else passages.path(chunk, title),
            }
        )
        above = chunk.heading_path
    return {"radius": context.radius, "passages": shown, "more": context.more}
