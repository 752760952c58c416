"""What a search panel found: the cards, and what a reader does with them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit.errors import KbkitError, NotFoundError
from kbkit.feedback.query_ids import fold_query
from kbkit.knowledge_base import handle_of
from kbkit.models import Hit, Hits, Rating
from kbkit.panels import render
from kbkit.panels.events import tell
from kbkit.panels.search.cards import MEANINGS, Cards, Context, Marking, card, identity
from kbkit.panels.search.earlier_ratings import OwnRating, own_ratings
from kbkit.panels.view import Handler
from kbkit.text import analyzer

if TYPE_CHECKING:
    from kbkit.knowledge_base import KnowledgeBase

_log = logging.getLogger(__name__)

_NOTHING = Hits("", ())


@dataclass(frozen=True, slots=True)
class Origin:
    """The passage that results are like, and what a step back leads to."""

    like: str
    back: str


@dataclass(frozen=True, slots=True)
class Shown:
    """Results as they stand in the panel.

    Attributes:
        hits: The results.
        query: What ratings are stored for; ``""`` where no query was asked.
        marked: The query whose words are marked.
        several: Whether they come from several knowledge bases.
        origin: What they are like, where they answer no query.
    """

    hits: Hits = _NOTHING
    query: str = ""
    marked: str = ""
    several: bool = False
    origin: Origin | None = None


class Results:
    """The cards of a search panel. What goes wrong is shown in it, never raised.

    Attributes:
        view: What is shown.
        shown: The results in it.
        selection: What the reader selected, over all searches, in that order.
        error: What went wrong last, or ``None``.
    """

    def __init__(
        self,
        find: Callable[[str], KnowledgeBase],
        rater: str,
        *,
        owner: object,
        on_selection: Callable[[Hits], None],
        handlers: Mapping[str, Handler],
    ) -> None:
        """Make cards without results.

        Args:
            find: Gives a knowledge base by name.
            rater: The name that stars are stored under.
            owner: The panel, which is not told what it did itself.
            on_selection: Called when the selection has changed.
            handlers: What to do for the events ``more`` (with the hit's id as ``card``),
                ``back`` and ``look``.
        """
        self._find = find
        self._rater = rater
        self._owner = owner
        self._on_selection = on_selection
        self._contexts: dict[str, Context] = {}
        self._given: dict[tuple[str, str], list[Rating]] = {}
        self._selected: dict[str, tuple[Hit, str]] = {}
        self._serial = 0
        self._depth = 0
        self._status = ""
        self._notice: tuple[str, str] | None = None
        self.error: Exception | None = None
        self.shown = Shown()
        own: dict[str, Handler] = {
            "rate": self._rate,
            "undo": self._undo,
            "context": self._around,
            "select": self._select,
            "clear": self._clear,
        }
        self.view = Cards(
            {name: partial(self.guard, act) for name, act in {**own, **handlers}.items()}
        )

    @property
    def selection(self) -> Hits:
        """What the reader has selected, in that order."""
        queries = {query for _, query in self._selected.values()}
        query = queries.pop() if len(queries) == 1 else ""
        return Hits(query, tuple(hit for hit, _ in self._selected.values()))

    def hit(self, card_id: object) -> Hit:
        """The result that a card shows.

        Raises:
            NotFoundError: It is no longer shown.
        """
        for hit in self.shown.hits:
            if identity(hit) == card_id:
                return hit
        raise NotFoundError("this result is no longer shown; search again")

    def show(
        self,
        shown: Shown,
        status: str,
        notice: tuple[str, str] | None = None,
        *,
        fresh: bool = True,
        depth: int = 0,
    ) -> None:
        """Show results.

        Args:
            shown: The results.
            status: The line above them.
            notice: Title and text that stand in their place.
            fresh: Begin with the first one; else the reader's place is kept.
            depth: How many steps lead back.
        """
        there = {identity(hit) for hit in shown.hits}
        self._contexts = {} if fresh else {k: v for k, v in self._contexts.items() if k in there}
        self.shown, self._status, self._notice, self._depth = shown, status, notice, depth
        self._serial += fresh
        self.error = None
        self.redraw()

    def redraw(self) -> None:
        """Show the same results with what readers said about them by now."""
        shown = self.shown
        own = self._own_ratings()
        markings = self._markings()
        now = datetime.now(UTC)
        cards = []
        for rank, hit in enumerate(shown.hits, 1):
            known = identity(hit)
            cards.append(
                card(
                    hit,
                    rank,
                    markings[hit.kb],
                    now,
                    kb=shown.several,
                    own=own.get(known, OwnRating()),
                    undo=bool(self._given.get((known, fold_query(shown.query)))),
                    selected=known in self._selected,
                    context=self._contexts.get(known),
                )
            )
        title, text = self._notice or ("", "")
        self.view.state = {
            "serial": self._serial,
            "status": render.plain(self._status, 480),
            "problem": "" if self.error is None else render.problem_line(self.error),
            "origin": shown.origin and {"like": shown.origin.like, "back": shown.origin.back},
            "depth": self._depth,
            "notice": self._notice
            and {"title": render.plain(title, 200), "text": render.plain(text, 300)},
            "cards": cards,
            "selected": len(self._selected),
        }

    def say(self, status: str) -> None:
        """Change the line above the results."""
        self._status = status
        self.error = None

    def fail(self, error: Exception) -> None:
        """Show an error above the results, which stay."""
        self.error = error
        if not isinstance(error, KbkitError):
            _log.debug("unexpected error in a search panel", exc_info=error)
        self.view.state = {**self.view.state, "problem": render.problem_line(error)}

    def guard(self, act: Callable[..., None], *arguments: object) -> None:
        """Do something, and show what goes wrong: a panel has nobody to raise to."""
        try:
            act(*arguments)
        except Exception as error:
            self.fail(error)

    # What the cards show

    def _markings(self) -> dict[str, Marking]:
        marked = self.shown.marked
        found = {}
        for name in {hit.kb for hit in self.shown.hits}:
            words = analyzer(self._find(name).spec.language)
            found[name] = Marking(frozenset(words.query_terms(marked)), words)
        return found

    def _own_ratings(self) -> dict[str, OwnRating]:
        """What was said about the hits, by the ids of their cards."""
        chunks: dict[str, list[str]] = {}
        for hit in self.shown.hits:
            chunks.setdefault(hit.kb, []).append(hit.chunk.id)
        return {
            f"{name}/{target}": own
            for name, targets in chunks.items()
            for target, own in self._said(name, targets).items()
        }

    def _said(self, name: str, targets: Sequence[str]) -> dict[str, OwnRating]:
        ratings: Iterable[Rating] = handle_of(self._find(name)).ratings_of(targets)
        return own_ratings(ratings, self._rater, self.shown.query)

    # What a reader does

    def _rate(self, content: Mapping[str, Any]) -> None:
        hit, score = self.hit(content.get("card")), content["score"]
        if self._own_ratings().get(identity(hit), OwnRating()).here == score:
            return
        kb = self._find(hit.kb)
        rating = kb.rate(hit.chunk.id, score, query=self.shown.query, rater=self._rater)
        self._given.setdefault((identity(hit), fold_query(self.shown.query)), []).append(rating)
        stars = "1 star" if rating.score == 1 else f"{rating.score} stars"
        self.say(f"Stored: {stars}, {MEANINGS[rating.score - 1]}, for “{hit.title}”")
        self._rated(kb.path)

    def _undo(self, content: Mapping[str, Any]) -> None:
        hit = self.hit(content.get("card"))
        given = self._given.get((identity(hit), fold_query(self.shown.query)))
        if not given:
            return
        kb = self._find(hit.kb)
        try:
            kb.ratings.delete(given.pop().id)
        except KbkitError:
            self.redraw()  # somebody else took it back: there is nothing left to undo
            raise
        self.say(f"Taken back: the rating of “{hit.title}”")
        self._rated(kb.path)

    def _rated(self, place: Path) -> None:
        self.redraw()
        tell(place, "ratings", but=self._owner)

    def _around(self, content: Mapping[str, Any]) -> None:
        hit, reach = self.hit(content.get("card")), content.get("reach")
        known = identity(hit)
        if isinstance(reach, int) and reach > 0:
            self._contexts[known] = self._context(hit, min(reach, 50))
        else:
            self._contexts.pop(known, None)
        self.redraw()

    def _context(self, hit: Hit, reach: int) -> Context:
        # one more on each side tells whether there is more
        found = self._find(hit.kb).context(hit.chunk.id, before=reach + 1, after=reach + 1)
        place = next(i for i, chunk in enumerate(found) if chunk.id == hit.chunk.id)
        first = max(0, place - reach)
        chunks = tuple(found[first : place + reach + 1])
        return Context(reach, chunks, more=len(chunks) < len(found))

    def _select(self, content: Mapping[str, Any]) -> None:
        hit = self.hit(content.get("card"))
        if content.get("on"):
            self._selected[identity(hit)] = (hit, self.shown.hits.query)
        else:
            self._selected.pop(identity(hit), None)
        self._changed_selection()

    def _clear(self, _content: Mapping[str, Any]) -> None:
        self._selected.clear()
        self._changed_selection()

    def _changed_selection(self) -> None:
        self.redraw()
        self._on_selection(self.selection)
