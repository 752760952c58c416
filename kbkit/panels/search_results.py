"""The results of the search panel."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

import traitlets

from kbkit.errors import KbkitError, NotFoundError
from kbkit.knowledge_base import handle_of
from kbkit.models import Chunk, ChunkSummary, DocumentState, DocumentType, Hit, Hits, Rating
from kbkit.models.documents import disambiguate
from kbkit.models.ratings import fold_query
from kbkit.models.values import pluralize
from kbkit.panels import render
from kbkit.panels.controls import KnowledgeBaseSelector
from kbkit.panels.panel import Message, Panel, View
from kbkit.text.analysis import Analyzer, analyzer


@dataclass(frozen=True, slots=True)
class RatingSummary:
    """Ratings of a chunk: the reader's and the average."""

    score: int | None = None
    """The reader's score of 1 to 5 for the current query."""
    average: float | None = None
    """Mean of all readers' last ratings."""
    raters: int = 0


def summarize(ratings: Iterable[Rating], rater: str, query: str) -> dict[str, RatingSummary]:
    latest: dict[str, dict[str, int]] = {}
    mine: dict[str, int] = {}
    key = fold_query(query)
    for rating in ratings:
        latest.setdefault(rating.target.id, {})[rating.rater] = rating.score
        if rating.rater == rater and fold_query(rating.query) == key:
            mine[rating.target.id] = rating.score
    return {
        target: RatingSummary(mine.get(target), sum(scores.values()) / len(scores), len(scores))
        for target, scores in latest.items()
    }


# a word of the analyzer, and the marks between its parts
_WORD = re.compile(r"((?<![\w-])--?[A-Za-z][\w-]*|\w(?:\+\+|#)(?!\w)|\w+(?:(?:[.\-'’]|::)\w+)*)")
_JOINT = re.compile(r"([._\-'’:]+)")

Segment = tuple[str, bool]
"""A piece of text, and whether it is marked."""


@dataclass(frozen=True, slots=True)
class Highlighter:
    """Marks words by the analyzer's terms: stems, and parts of identifiers."""

    terms: AbstractSet[str]
    analyzer: Analyzer

    def __call__(self, text: str) -> list[Segment]:
        segments: list[Segment] = []
        for i, piece in enumerate(_WORD.split(text)):  # every second one is a word
            segments += self._word(piece) if i % 2 else [(piece, False)]
        return [
            ("".join(piece for piece, _ in group), marked)
            for marked, group in groupby(filter(itemgetter(0), segments), itemgetter(1))
        ]

    def _word(self, word: str) -> list[Segment]:
        terms = _terms_of(word, self.analyzer)
        if self.terms.isdisjoint(terms):
            return [(word, False)]
        parts = _JOINT.split(word)
        marks = [not self.terms.isdisjoint(_terms_of(part, self.analyzer)) for part in parts]
        if terms[0] in self.terms or not any(marks):
            return [(word, True)]
        return list(zip(parts, marks, strict=True))


@lru_cache(maxsize=20_000)
def _terms_of(word: str, analyzer: Analyzer) -> tuple[str, ...]:
    return tuple(analyzer.terms(word))


GRADES = ("not useful", "slightly useful", "useful", "very useful", "the answer")
"""Meanings of 1 to 5 stars."""

NO_SUMMARY = ChunkSummary(None, ())

_SHARES = (
    ("dense", "from meaning (cosine {parts.cosine:.2f})"),
    ("lexical", "from words (BM25 {parts.bm25:.1f})"),
    ("document", "from other passages of the document"),
    ("title", "from words in its title"),
    ("heading", "from words in the headings above it"),
    ("summary", "from what its document is about"),
    ("page", "from words throughout its document"),
    ("graph", "from related entities in the graph"),
    ("learned", "from similar questions that people rated it for"),
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


def card(
    hit: Hit,
    rank: int,
    highlight: Highlighter,
    now: datetime,
    *,
    label: str = "",
    kb: bool = False,
    ratings: RatingSummary = RatingSummary(),
    summary: ChunkSummary = NO_SUMMARY,
) -> dict[str, Any]:
    snippet = hit.snippet  # a slow property
    heading = render.heading(hit)
    return heading | {
        "id": card_id(hit),
        "rank": rank,
        "marked_title": highlight(render.plain(label, render.TITLE_LENGTH) or heading["title"]),
        "about": _about(hit, snippet),
        "badges": _badges(hit, summary, kb=kb),
        "age": {
            "text": f"fetched {ago(hit.fetched_at, now)}",
            "exact": f"Fetched {hit.fetched_at:%Y-%m-%d %H:%M} UTC",
        },
        "score": score(hit),
        "snippet": highlight(render.lines(snippet, render.SNIPPET_LENGTH)),
        "stars": ratings.score or 0,
        "rated": _rating_text(ratings),
        "citation": hit.citation(snippet),
    }


def _about(hit: Hit, snippet: str) -> str:
    """Return the document's description, unless the snippet begins with it."""
    line = render.plain(hit.description, render.ABOUT_LENGTH)
    return "" if " ".join(snippet.split()).startswith(line[:60].rstrip("…")) else line


def _by_document(hits: Sequence[Hit]) -> list[tuple[int, Hit]]:
    """Return hits with their ranks, grouped by document at its best rank."""
    best: dict[str, int] = {}
    for rank, hit in enumerate(hits):
        best.setdefault(hit.chunk.document_id, rank)
    return sorted(enumerate(hits, 1), key=lambda each: best[each[1].chunk.document_id])


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


def _rating_text(ratings: RatingSummary) -> str:
    if ratings.average is None or (ratings.raters == 1 and ratings.score is not None):
        return ""
    return f"average {ratings.average:.1f} from {pluralize(ratings.raters, 'reader')}"


def context(hit: Hit, neighbors: Sequence[Chunk], radius: int) -> dict[str, Any]:
    """Show a hit among its neighbours; neighbours beyond the radius set ``more``."""
    place = next(i for i, chunk in enumerate(neighbors) if chunk.id == hit.chunk.id)
    chunks = neighbors[max(0, place - radius) : place + radius + 1]
    title, headings = render.heading(hit)["title"], hit.chunk.heading_path
    passages = []
    for chunk in chunks:
        is_repeated = chunk.heading_path == headings or chunk.text.lstrip().startswith("#")
        passages.append(
            {
                "html": render.html(chunk),
                "hit": chunk.id == hit.chunk.id,
                "path": "" if is_repeated else render.path(chunk, title),
            }
        )
        headings = chunk.heading_path
    return {"radius": radius, "passages": passages, "more": len(chunks) < len(neighbors)}


@dataclass(frozen=True, slots=True)
class ResultSet:
    """Results that the panel shows."""

    hits: Hits = Hits("", ())  # noqa: RUF009 - frozen
    query: str = ""
    """Query for ratings and highlighting."""
    several: bool = False
    breadcrumb: Mapping[str, str] | None = None
    """Texts of the link back from similar passages: ``label`` and ``back``."""


class ResultsPanel(Panel):
    """The cards of a search panel."""

    selection = traitlets.Any(Hits("", ()), help="The hits that the reader selected.")

    def __init__(
        self, selector: KnowledgeBaseSelector, rater: str, on_open: Callable[[Hit], None] | None
    ) -> None:
        self._selector = selector
        self.rater = rater
        self._on_open = on_open
        self._contexts: dict[str, dict[str, Any]] = {}
        self._own_ratings: dict[tuple[str, str], list[Rating]] = {}
        self._selected: dict[str, tuple[Hit, str]] = {}
        self._before: list[ResultSet] = []
        self._serial = 0
        self._status = ""
        self._notice: dict[str, str] | None = None
        self._shown = ResultSet()
        super().__init__(selector.home, "search")
        self.cards = CardsView(self)

    def _hit(self, content: Message) -> Hit:
        for hit in self._shown.hits:
            if card_id(hit) == content.get("card"):
                return hit
        raise NotFoundError("this result is no longer shown; search again")

    def _set_status(self, status: str, *, is_outcome: bool = False) -> None:
        self._status = status
        self.error = None
        self.is_outcome = is_outcome

    def _redraw(self) -> None:
        """Show the same results with current ratings."""
        shown, error, now = self._shown, self.error, datetime.now(UTC)
        details = self._details()
        labels = disambiguate({hit.uri: hit.title for hit in shown.hits})
        cards = []
        last_id = ""
        for rank, hit in _by_document(shown.hits):
            name = card_id(hit)
            highlight, ratings, summary = details[name]
            flags = {
                "follows": hit.chunk.document_id == last_id,
                "undo": bool(self._own_ratings.get((name, fold_query(shown.query)))),
                "selected": name in self._selected,
                "context": self._contexts.get(name),
            }
            last_id = hit.chunk.document_id
            kb, label = shown.several, labels[hit.uri]
            shown_card = card(
                hit, rank, highlight, now, label=label, kb=kb, ratings=ratings, summary=summary
            )
            cards.append(shown_card | flags)
        self.cards.state = {
            "serial": self._serial,
            "status": render.plain(self._status, 480),
            "problem": "" if error is None else render.problem_line(error),
            "breadcrumb": shown.breadcrumb,
            "depth": len(self._before),
            "notice": self._notice,
            "cards": cards,
            "opens": self._on_open is not None,
            "selected": len(self._selected),
        }

    def _show_error(self, error: Exception) -> None:
        self.cards.state = {**self.cards.state, "problem": render.problem_line(error)}

    def _details(self) -> dict[str, tuple[Highlighter, RatingSummary, ChunkSummary]]:
        """Return the highlighter, ratings and summary of each card."""
        details = {}
        for name in {hit.kb for hit in self._shown.hits}:
            kb = self._selector.find(name)
            words = analyzer(kb.spec.language)
            highlight = Highlighter(frozenset(words.query_terms(self._shown.query)), words)
            ids = [hit.chunk.id for hit in self._shown.hits if hit.kb == name]
            ratings = summarize(handle_of(kb).ratings_of(ids), self.rater, self._shown.query)
            summaries = handle_of(kb).summaries_of(ids)
            for id_ in ids:
                rated = ratings.get(id_, RatingSummary())
                details[f"{name}/{id_}"] = highlight, rated, summaries.get(id_, NO_SUMMARY)
        return details

    # Actions of the reader

    def _do_rate(self, content: Message) -> None:
        hit, score = self._hit(content), content["score"]
        if self._details()[card_id(hit)][1].score == score:
            return
        kb = self._selector.find(hit.kb)
        rating = kb.rate(hit.chunk.id, score, query=self._shown.query, rater=self.rater)
        self._own_ratings.setdefault((card_id(hit), fold_query(self._shown.query)), []).append(
            rating
        )
        stars = pluralize(rating.score, "star")
        self._show_rating(f"Saved: {stars}, {GRADES[rating.score - 1]}, for “{hit.title}”")

    def _do_undo(self, content: Message) -> None:
        hit = self._hit(content)
        my_ratings = self._own_ratings.get((card_id(hit), fold_query(self._shown.query)))
        if not my_ratings:
            return
        try:
            self._selector.find(hit.kb).ratings.delete(my_ratings.pop().id)
        except KbkitError:
            self._redraw()  # deleted elsewhere: nothing left to undo
            raise
        self._show_rating(f"Undone: the rating of “{hit.title}”")

    def _show_rating(self, status: str) -> None:
        self._set_status(status, is_outcome=True)
        self._redraw()
        self.publish("ratings")

    def _do_context(self, content: Message) -> None:
        hit, radius = self._hit(content), content.get("radius")
        if isinstance(radius, int) and radius > 0:
            radius = min(radius, 50)
            kb, wider = self._selector.find(hit.kb), radius + 1  # one more, to set `more`
            chunks = kb.context(hit.chunk.id, before=wider, after=wider)
            self._contexts[card_id(hit)] = context(hit, chunks, radius)
        else:
            self._contexts.pop(card_id(hit), None)
        self._redraw()

    def _do_select(self, content: Message) -> None:
        hit = self._hit(content)
        if content.get("on"):
            self._selected[card_id(hit)] = (hit, self._shown.hits.query)
        else:
            self._selected.pop(card_id(hit), None)
        self._show_selection()

    def _do_document(self, content: Message) -> None:
        if self._on_open is not None:
            self._on_open(self._hit(content))

    def _do_clear(self, _content: Message) -> None:
        self._selected.clear()
        self._show_selection()

    def _show_selection(self) -> None:
        self._redraw()
        queries = {query for _, query in self._selected.values()}
        query = queries.pop() if len(queries) == 1 else ""
        self.selection = Hits(query, tuple(hit for hit, _ in self._selected.values()))
