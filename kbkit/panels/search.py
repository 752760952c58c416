"""A panel that searches knowledge bases and rates what is found."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import ipywidgets as widgets
from traitlets import Any, Bunch, Unicode

from kbkit.config import Settings
from kbkit.errors import KbkitError
from kbkit.models import Hit, Hits, Mode, Rating
from kbkit.panels import render
from kbkit.panels.cards import MEANINGS, ResultCard
from kbkit.panels.debounce import Debouncer
from kbkit.panels.own import OwnRating, own_ratings
from kbkit.text import Analyzer, analyzer

if TYPE_CHECKING:
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.workspace import Workspace

_log = logging.getLogger(__name__)

_MODES = (
    ("Meaning and words", Mode.HYBRID.value),
    ("Meaning", Mode.DENSE.value),
    ("Words", Mode.LEXICAL.value),
)
_ALL = ("All", "")  # not None, which would say that nothing is selected
_LONGEST_QUERY = 1000


class SearchPanel(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Searches as you type, shows what is found as cards, and stores the stars you give.

    ::

        panel = SearchPanel(workspace)   # or one knowledge base
        panel                            # at the end of a cell: shows it
        panel.hits.to_frame()            # in the next cell: what it found

    Typing searches after a short pause, Enter at once. Errors appear in the status line.
    ``query`` and ``hits`` can be observed like every trait of a widget.

    Attributes:
        query: The query that `hits` answers; setting it searches at once.
        hits: The results of the last search.
        error: What went wrong last, or ``None``.
        rater: The name that stars are stored under.
        query_box: Where to type.
        kb_box: Which knowledge base to search; ``None`` when the panel has but one.
        mode_box: How to search.
        cards: The result cards, best first; those that show nothing have no ``hit``.
    """

    query = Unicode(help="The query that hits answers; setting it searches at once.")
    hits = Any(Hits("", ()), help="The results of the last search.")

    def __init__(
        self,
        target: Workspace | KnowledgeBase,
        *,
        limit: int = 10,
        debounce: float = 0.2,
        rater: str = "",
    ) -> None:
        """Make a panel.

        Args:
            target: What to search: a knowledge base, or a workspace with all of its own.
            limit: Most results to show.
            debounce: Seconds of quiet after a keystroke before a search runs.
            rater: Who rates; by default ``KBKIT_RATER`` or the login name.
        """
        from kbkit.workspace import Workspace

        self._debouncer = Debouncer(debounce, self._search)
        self._workspace = target if isinstance(target, Workspace) else None
        self._kb = None if isinstance(target, Workspace) else target
        self._limit = limit
        self.rater = rater or Settings.from_environment().rater
        self._asked: tuple[str, str, str] | None = None
        self._quiet = False
        self.error: Exception | None = None

        self.query_box = widgets.Text(
            description="Search", placeholder="Ask in your own words, or type a name"
        ).add_class("kbkit-query")
        self.query_box.observe(self._typed, "value")
        self.query_box.on_msg(self._submitted)
        self.mode_box = widgets.Dropdown(description="Search by", options=_MODES)
        self.mode_box.observe(self._chosen, "value")
        self.kb_box: widgets.Dropdown | None = None
        if self._workspace is not None:
            self.kb_box = widgets.Dropdown(description="Knowledge base", options=[_ALL])
            self.kb_box.observe(self._chosen, "value")
        controls = [box for box in (self.query_box, self.kb_box, self.mode_box) if box is not None]
        for box in controls:
            box.layout = widgets.Layout(width="auto")
        self._status = widgets.HTML()
        self._notice = widgets.HTML()
        self.cards = tuple(ResultCard(self._rate, self._take_back) for _ in range(limit))
        self._results = widgets.VBox([self._notice, *self.cards]).add_class("kbkit-results")
        super().__init__(
            [
                widgets.HTML(render.stylesheet(), layout=widgets.Layout(display="none")),
                widgets.HBox(controls).add_class("kbkit-controls"),
                self._status,
                self._results,
            ]
        )
        self.add_class("kbkit-panel")
        self.observe(self._set_from_python, "query")
        self.refresh()

    @property
    def mode(self) -> Mode:
        """How the panel searches."""
        return Mode(self.mode_box.value)

    def search(self, query: str) -> Hits:
        """Search at once, as if the query had been typed and Enter been pressed.

        Args:
            query: What to search for; empty clears the panel.

        Returns:
            What the panel shows now: what was found, or after an error, which the panel shows
            too, what was found before.
        """
        with self._silence():
            self.query_box.value = query
        self._asked = None
        self._debouncer.now()
        hits: Hits = self.hits
        return hits

    def refresh(self) -> None:
        """Search again: show what changed in the knowledge bases since."""
        self._asked = None
        self._debouncer.now()

    def close(self) -> None:
        """Take the panel off the page; what is due no longer runs."""
        self._debouncer.cancel()
        super().close()

    # What the controls do

    def _typed(self, _change: Bunch) -> None:
        if not self._quiet:
            self._debouncer.later()

    def _chosen(self, _change: Bunch) -> None:
        if not self._quiet:
            self._debouncer.now()

    def _submitted(self, _box: object, content: dict[str, object], _buffers: object) -> None:
        if content.get("event") == "submit":
            self._debouncer.now()

    def _set_from_python(self, change: Bunch) -> None:
        if not self._quiet:
            self.search(change["new"])

    @contextmanager
    def _silence(self) -> Iterator[None]:
        """Change controls and traits without searching because of it."""
        quiet, self._quiet = self._quiet, True
        try:
            yield
        finally:
            self._quiet = quiet

    def _offer_knowledge_bases(self) -> None:
        """Keep the selector in step with the workspace, which others may change."""
        if self._workspace is None or self.kb_box is None:
            return
        names = list(self._workspace)
        options = [_ALL, *((name, name) for name in names)]
        if list(self.kb_box.options) != options:
            chosen = self.kb_box.value if self.kb_box.value in names else ""
            with self._silence():
                self.kb_box.options = options
                self.kb_box.value = chosen

    # Searching

    def _search(self) -> None:
        """Search for what the controls say and show the result. Never raises."""
        query = " ".join(self.query_box.value[:_LONGEST_QUERY].split())
        try:
            self._offer_knowledge_bases()
            kb = self.kb_box.value if self.kb_box is not None else ""
            asked = (query, kb, self.mode_box.value)
            if asked == self._asked:
                return
            self._show(self._find(query, kb) if query else Hits("", ()))
            self._asked = asked
        except Exception as error:  # a panel has nobody to raise to: it shows what is wrong
            self._fail(error)

    def _find(self, query: str, kb: str) -> Hits:
        if self._kb is not None:
            return self._kb.search(query, limit=self._limit, mode=self.mode)
        assert self._workspace is not None
        kbs = [kb] if kb else None
        return self._workspace.search(query, kbs=kbs, limit=self._limit, mode=self.mode)

    def _show(self, hits: Hits) -> None:
        own = self._own_ratings(hits)
        words = {name: self._analyzer(name) for name in {hit.kb for hit in hits}}
        several = self.kb_box is not None and not self.kb_box.value
        for rank, (card, hit) in enumerate(zip(self.cards, hits, strict=False), 1):
            mine = own.get((hit.kb, hit.chunk.id), OwnRating())
            html = render.card(hit, rank, hits.query, words[hit.kb], kb=several, mine=mine)
            card.show(hit, html, mine.here)
        for card in self.cards[len(hits) :]:
            card.hide()
        self._tell(hits)
        self.error = None
        self._scroll_to_top()
        with self._silence():
            self.query = hits.query
            self.hits = hits

    def _tell(self, hits: Hits) -> None:
        """Say how many hits there are, and what to do where there are none."""
        asked = f"for “{render.plain(hits.query, 80)}” in {hits.seconds * 1000:.0f} ms"
        asked = ". ".join([asked, *hits.notes])
        if hits:
            found = "1 hit" if len(hits) == 1 else f"{len(hits)} hits"
            self._status.value = render.status(f"{found} {asked}")
            self._notice.value = ""
        elif hits.query:
            self._status.value = render.status(f"No hits {asked}")
            self._notice.value = render.notice(
                f"Nothing found for “{hits.query}”",
                "Try other words, or search by meaning and words in all knowledge bases.",
            )
        else:
            self._status.value = render.status(self._contents())
            self._notice.value = render.notice(
                "What would you like to know?",
                "Results appear as you type. Stars say how well one answers, and are kept.",
            )

    def _contents(self) -> str:
        """What there is to search, in a sentence."""
        if self._kb is not None:
            infos = [self._kb.describe()]
        else:
            assert self._workspace is not None
            chosen = "" if self.kb_box is None else self.kb_box.value
            infos = [info for info in self._workspace.list() if chosen in ("", info.name)]
        if not infos:
            return "This workspace has no knowledge base yet: make one with kbkit.build()."
        documents = sum(info.documents for info in infos)
        chunks = sum(info.chunks for info in infos)
        name = infos[0].name if len(infos) == 1 else f"{len(infos)} knowledge bases"
        return f"{name}: {documents:,} documents in {chunks:,} passages"

    def _fail(self, error: Exception) -> None:
        """Show an error in the status line; what was found before stays."""
        self.error = error
        self._asked = None
        if not isinstance(error, KbkitError):
            _log.debug("unexpected error in a search panel", exc_info=error)
        self._status.value = render.problem(error)

    def _scroll_to_top(self) -> None:
        # Each of the two classes starts an animation of the stylesheet that scrolls the results
        # to their start; changing the class starts it anew.
        fresh, old = ("kbkit-fresh-a", "kbkit-fresh-b")
        if fresh in self._results._dom_classes:
            fresh, old = old, fresh
        self._results.remove_class(old)
        self._results.add_class(fresh)

    def _analyzer(self, name: str) -> Analyzer:
        return analyzer(self._knowledge_base(name).config().language)

    # Rating

    def _own_ratings(self, hits: Hits) -> dict[tuple[str, str], OwnRating]:
        """What the reader said about the hits before, by knowledge base and chunk."""
        chunks: dict[str, list[str]] = {}
        for hit in hits:
            chunks.setdefault(hit.kb, []).append(hit.chunk.id)
        found = {}
        for name, targets in chunks.items():
            ratings = self._knowledge_base(name).iter_ratings(targets)
            for target, own in own_ratings(ratings, self.rater, hits.query).items():
                found[name, target] = own
        return found

    def _knowledge_base(self, name: str) -> KnowledgeBase:
        if self._kb is not None:
            return self._kb
        assert self._workspace is not None
        return self._workspace[name]

    def _rate(self, hit: Hit, score: int) -> Rating | None:
        try:
            kb = self._knowledge_base(hit.kb)
            rating = kb.rate(hit.chunk.id, score, query=self.hits.query, rater=self.rater)
        except Exception as error:  # as in `_search`
            self._fail(error)
            return None
        stars = "1 star" if score == 1 else f"{score} stars"
        self._status.value = render.status(
            f"Stored: {stars}, {MEANINGS[score - 1]}, for “{hit.title}”"
        )
        return rating

    def _take_back(self, hit: Hit, rating: Rating) -> bool:
        try:
            self._knowledge_base(hit.kb).unrate(rating.id)
        except Exception as error:  # as in `_search`
            self._fail(error)
            return False
        self._status.value = render.status(f"Taken back: the rating of “{hit.title}”")
        return True
