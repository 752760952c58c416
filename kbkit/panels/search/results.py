"""The results of the search panel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kbkit.errors import KbkitError, NotFoundError
from kbkit.knowledge_base import handle_of
from kbkit.models import ChunkSummary, Hit, Hits, Rating
from kbkit.models.plain import pluralize
from kbkit.models.scores import fold_query
from kbkit.panels import render
from kbkit.panels.panel import Panel
from kbkit.panels.search.cards import GRADES, NO_SUMMARY, CardsView, ContextWindow, card, card_id
from kbkit.panels.search.highlighting import Highlighter
from kbkit.panels.search.rating_summary import RatingSummary, summarize
from kbkit.panels.view import Handler
from kbkit.text import analyzer

if TYPE_CHECKING:
    from kbkit.knowledge_base import KnowledgeBase


@dataclass(frozen=True, slots=True)
class Breadcrumb:
    """Link back from "more like this"."""

    label: str
    back: str


@dataclass(frozen=True, slots=True)
class ResultSet:
    """Results as they stand in the panel.

    Attributes:
        query: Query for ratings and highlighting; ``""`` without a query.
        breadcrumb: The passage that they are similar to, if they answer no query.
    """

    hits: Hits = Hits("", ())  # noqa: RUF009 - frozen
    query: str = ""
    several: bool = False
    breadcrumb: Breadcrumb | None = None


class Results:
    """The cards of a search panel."""

    def __init__(
        self,
        panel: Panel,
        find: Callable[[str], KnowledgeBase],
        rater: str,
        *,
        on_selection: Callable[[Hits], None],
        on_open: Callable[[Hit], None] | None,
        handlers: Mapping[str, Handler],
    ) -> None:
        self._panel = panel
        self._find = find
        self._rater = rater
        self._on_selection = on_selection
        self._on_open = on_open
        self._contexts: dict[str, ContextWindow] = {}
        self._given: dict[tuple[str, str], list[Rating]] = {}
        self._selected: dict[str, tuple[Hit, str]] = {}
        self._serial = 0
        self._depth = 0
        self._status = ""
        self._notice: tuple[str, str] | None = None
        self.shown = ResultSet()
        own: dict[str, Handler] = {
            "rate": self._rate,
            "undo": self._undo,
            "context": self._change_context,
            "select": self._select,
            "clear": self._clear_selection,
            "document": self._open_document,
        }
        self.view = CardsView(
            {name: self._guarded(act) for name, act in {**own, **handlers}.items()}
        )

    @property
    def selection(self) -> Hits:
        """Hits that the reader selected, in that order."""
        queries = {query for _, query in self._selected.values()}
        query = queries.pop() if len(queries) == 1 else ""
        return Hits(query, tuple(hit for hit, _ in self._selected.values()))

    def hit(self, wanted: object) -> Hit:
        for hit in self.shown.hits:
            if card_id(hit) == wanted:
                return hit
        raise NotFoundError("this result is no longer shown; search again")

    def show(
        self,
        results: ResultSet,
        status: str,
        notice: tuple[str, str] | None = None,
        *,
        fresh: bool = True,
        depth: int = 0,
    ) -> None:
        there = {card_id(hit) for hit in results.hits}
        self._contexts = {} if fresh else {k: v for k, v in self._contexts.items() if k in there}
        self.shown, self._notice, self._depth = results, notice, depth
        self._serial += fresh
        if fresh or not self._panel.keeps_outcome:
            self._say(status)
        self.redraw()

    def _say(self, status: str, *, is_outcome: bool = False) -> None:
        self._status = status
        self._panel.error = None
        self._panel.is_outcome = is_outcome

    def redraw(self) -> None:
        """Show the same results with current ratings."""
        shown, error = self.shown, self._panel.error
        ratings, summaries = self._rating_summaries(), self._chunk_summaries()
        highlighters = self._highlighters()
        now = datetime.now(UTC)
        cards = []
        for rank, hit in enumerate(shown.hits, 1):
            name = card_id(hit)
            cards.append(
                card(
                    hit,
                    rank,
                    highlighters[hit.kb],
                    now,
                    kb=shown.several,
                    ratings=ratings.get(name, RatingSummary()),
                    summary=summaries.get(name, NO_SUMMARY),
                    undo=bool(self._given.get((name, fold_query(shown.query)))),
                    selected=name in self._selected,
                    context=self._contexts.get(name),
                )
            )
        title, text = self._notice or ("", "")
        crumb = shown.breadcrumb
        self.view.state = {
            "serial": self._serial,
            "status": render.plain(self._status, 480),
            "problem": "" if error is None else render.problem_line(error),
            "breadcrumb": crumb and {"label": crumb.label, "back": crumb.back},
            "depth": self._depth,
            "notice": self._notice
            and {"title": render.plain(title, 200), "text": render.plain(text, 300)},
            "cards": cards,
            "opens": self._on_open is not None,
            "selected": len(self._selected),
        }

    def show_error(self, error: Exception) -> None:
        self.view.state = {**self.view.state, "problem": render.problem_line(error)}

    def _guarded(self, act: Handler) -> Handler:
        def guarded(content: Mapping[str, Any]) -> None:
            with self._panel.shown_errors():
                act(content)

        return guarded

    # What the cards show

    def _highlighters(self) -> dict[str, Highlighter]:
        made = {}
        for name in {hit.kb for hit in self.shown.hits}:
            words = analyzer(self._find(name).spec.language)
            made[name] = Highlighter(frozenset(words.query_terms(self.shown.query)), words)
        return made

    def _rating_summaries(self) -> dict[str, RatingSummary]:
        found = {}
        for name, ids in self._chunk_ids().items():
            ratings = handle_of(self._find(name)).ratings_of(ids)
            for chunk_id, summary in summarize(ratings, self._rater, self.shown.query).items():
                found[f"{name}/{chunk_id}"] = summary
        return found

    def _chunk_summaries(self) -> dict[str, ChunkSummary]:
        return {
            f"{name}/{chunk_id}": summary
            for name, ids in self._chunk_ids().items()
            for chunk_id, summary in handle_of(self._find(name)).summaries_of(ids).items()
        }

    def _chunk_ids(self) -> dict[str, list[str]]:
        chunks: dict[str, list[str]] = {}
        for hit in self.shown.hits:
            chunks.setdefault(hit.kb, []).append(hit.chunk.id)
        return chunks

    # What a reader does

    def _rate(self, content: Mapping[str, Any]) -> None:
        hit, score = self.hit(content.get("card")), content["score"]
        if self._rating_summaries().get(card_id(hit), RatingSummary()).score == score:
            return
        kb = self._find(hit.kb)
        rating = kb.rate(hit.chunk.id, score, query=self.shown.query, rater=self._rater)
        self._given.setdefault((card_id(hit), fold_query(self.shown.query)), []).append(rating)
        stars = pluralize(rating.score, "star")
        self._show_rating(f"Stored: {stars}, {GRADES[rating.score - 1]}, for “{hit.title}”")

    def _undo(self, content: Mapping[str, Any]) -> None:
        hit = self.hit(content.get("card"))
        given = self._given.get((card_id(hit), fold_query(self.shown.query)))
        if not given:
            return
        try:
            self._find(hit.kb).ratings.delete(given.pop().id)
        except KbkitError:
            self.redraw()  # somebody else took it back: there is nothing left to undo
            raise
        self._show_rating(f"Taken back: the rating of “{hit.title}”")

    def _show_rating(self, status: str) -> None:
        self._say(status, is_outcome=True)
        self.redraw()
        self._panel.publish("ratings")

    def _change_context(self, content: Mapping[str, Any]) -> None:
        hit, radius = self.hit(content.get("card")), content.get("radius")
        if isinstance(radius, int) and radius > 0:
            self._contexts[card_id(hit)] = self._context(hit, min(radius, 50))
        else:
            self._contexts.pop(card_id(hit), None)
        self.redraw()

    def _context(self, hit: Hit, radius: int) -> ContextWindow:
        # one more on each side tells whether there is more
        found = self._find(hit.kb).context(hit.chunk.id, before=radius + 1, after=radius + 1)
        place = next(i for i, chunk in enumerate(found) if chunk.id == hit.chunk.id)
        chunks = tuple(found[max(0, place - radius) : place + radius + 1])
        return ContextWindow(radius, chunks, more=len(chunks) < len(found))

    def _select(self, content: Mapping[str, Any]) -> None:
        hit = self.hit(content.get("card"))
        if content.get("on"):
            self._selected[card_id(hit)] = (hit, self.shown.hits.query)
        else:
            self._selected.pop(card_id(hit), None)
        self._show_selection()

    def _open_document(self, content: Mapping[str, Any]) -> None:
        if self._on_open is not None:
            self._on_open(self.hit(content.get("card")))

    def _clear_selection(self, _content: Mapping[str, Any]) -> None:
        self._selected.clear()
        self._show_selection()

    def _show_selection(self) -> None:
        self.redraw()
        self._on_selection(self.selection)
