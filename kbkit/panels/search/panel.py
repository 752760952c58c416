"""A panel that searches knowledge bases and rates what is found."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import traitlets
from traitlets import Bunch, Unicode

from kbkit.config import Settings
from kbkit.knowledge_base import handle_of
from kbkit.models import Filters, Hits, Mode
from kbkit.panels import render
from kbkit.panels.debounce import Debouncer
from kbkit.panels.events import listen
from kbkit.panels.search.filters import FilterBox
from kbkit.panels.search.results import Origin, Results, Shown

if TYPE_CHECKING:
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.workspace import Workspace

_MODES = (
    ("Meaning and words", Mode.HYBRID.value),
    ("Meaning", Mode.DENSE.value),
    ("Words", Mode.LEXICAL.value),
)
_Asked = tuple[str, str, str, Filters]
_ALL = ("All", "")  # not None, which would say that nothing is selected
_LONGEST_QUERY = 1000
_AT_ONCE = 0.08
"""Seconds that a search may take to be done for every keystroke, without waiting for a pause."""
_LONGEST_WAIT = 0.4


class SearchPanel(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Searches as you type, shows what is found as cards, and stores the stars you give.

    ::

        panel = SearchPanel(workspace)   # or one knowledge base
        panel                            # at the end of a cell: shows it
        panel.hits.to_frame()            # in the next cell: what it found
        panel.selection.to_frame()       # and what you selected

    Typing searches at once; where searches take long, after a pause. Errors appear in the status
    line. ``query``, ``hits`` and ``selection`` can be observed like every trait of a widget.

    Attributes:
        query: The query that was asked last; setting it searches at once.
        hits: The results that are shown: of that query, or what is like one of them.
        selection: The hits that the reader selected, over all searches, in that order.
        rater: The name that stars are stored under.
        query_box: Where to type.
        kb_box: Which knowledge base to search; ``None`` when the panel has but one.
        mode_box: How to search.
        filter_box: Which documents to find.
        cards: The view of the results.
    """

    query = Unicode(help="The query that was asked last; setting it searches at once.")
    hits = traitlets.Any(Hits("", ()), help="The results that are shown.")
    selection = traitlets.Any(Hits("", ()), help="The hits that the reader selected.")

    def __init__(
        self,
        target: Workspace | KnowledgeBase,
        *,
        limit: int = 10,
        debounce: float | None = None,
        rater: str = "",
    ) -> None:
        """Make a panel.

        Args:
            target: What to search: a knowledge base, or a workspace with all of its own.
            limit: Most results to show.
            debounce: Seconds of quiet after a keystroke before a search runs; by default none
                where searches are quick, else as long as one takes.
            rater: Who rates; by default ``KBKIT_RATER`` or the login name.
        """
        from kbkit.workspace import Workspace

        self._workspace = target if isinstance(target, Workspace) else None
        self._kb = None if isinstance(target, Workspace) else target
        self._limit = limit
        self._debouncer = Debouncer(debounce or 0.0, self._search)
        self._adapts = debounce is None
        self.rater = rater or Settings.from_environment().rater
        self._asked: _Asked | None = None
        self._last: _Asked | None = None
        self._before: list[Shown] = []
        self._known: tuple[object, object] = ((), ())
        self._quiet = False
        self._loop = _running_loop()

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
        boxes = [box for box in (self.query_box, self.kb_box, self.mode_box) if box is not None]
        for box in boxes:
            box.layout = widgets.Layout(width="auto")
        self.filter_box = FilterBox(self._bases)
        self.filter_box.observe(self._chosen, "value")
        self._results = Results(
            self._knowledge_base,
            self.rater,
            owner=self,
            on_selection=self._selected,
            handlers={"more": self._more_like, "back": self._back, "look": self._look},
        )
        self.cards = self._results.view
        controls = widgets.HBox([*boxes, self.filter_box.toggle]).add_class("kbkit-controls")
        style = widgets.HTML(render.stylesheet(), layout=widgets.Layout(display="none"))
        super().__init__([style, controls, self.filter_box, self.cards])
        self.add_class("kbkit-panel").add_class("kbkit-search")
        self.observe(self._set_from_python, "query")
        listen(target.path, self._heard)
        self.refresh()

    @property
    def mode(self) -> Mode:
        """How the panel searches."""
        return Mode(self.mode_box.value)

    @property
    def filters(self) -> Filters:
        """Which documents the panel finds; may be set to `Filters` or a mapping of conditions.

        Raises:
            ConfigError: A condition is unknown, or its value cannot be one.
        """
        chosen: Filters = self.filter_box.value
        return chosen

    @filters.setter
    def filters(self, conditions: Filters | Mapping[str, Any] | None) -> None:
        self.filter_box.value = Filters.of(conditions)

    @property
    def error(self) -> Exception | None:
        """What went wrong last, or ``None``."""
        return self._results.error

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

    def _selected(self, selection: Hits) -> None:
        self.selection = selection

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
            asked = (query, kb, self.mode_box.value, self.filters)
            if asked == self._asked:
                return
            hits = self._find(query, kb) if query else Hits("", ())
            self._adapt(hits.seconds)
            self._before = []
            several = self.kb_box is not None and not kb
            self._show(Shown(hits, query, query, several), fresh=asked != self._last)
            self._last = asked
            with self._silence():
                self.query = query
            self._asked = asked
            self._known = self._state()
            self.filter_box.offer()
        except Exception as error:  # a panel has nobody to raise to: it shows what is wrong
            self._asked = None
            self._results.fail(error)

    def _find(self, query: str, kb: str) -> Hits:
        if self._kb is not None:
            return self._kb.search(query, limit=self._limit, mode=self.mode, filters=self.filters)
        assert self._workspace is not None
        names = [kb] if kb else None
        return self._workspace.search(
            query, kbs=names, limit=self._limit, mode=self.mode, filters=self.filters
        )

    def _adapt(self, seconds: float) -> None:
        """Wait for a pause in the typing where searches take long: a model far away, say."""
        if self._adapts and seconds:
            slow = min(seconds, self._debouncer.delay or seconds) > _AT_ONCE
            self._debouncer.delay = min(seconds, _LONGEST_WAIT) if slow else 0.0

    def _show(self, shown: Shown, *, fresh: bool = True) -> None:
        status, notice = self._said_of(shown)
        self._results.show(shown, status, notice, fresh=fresh, depth=len(self._before))
        with self._silence():
            self.hits = shown.hits

    def _said_of(self, shown: Shown) -> tuple[str, tuple[str, str] | None]:
        """How many hits there are, and what to do where there are none."""
        hits = shown.hits
        if not hits.query:
            return self._contents(), (
                "What would you like to know?",
                "Results appear as you type. Stars say how well one answers, and are kept.",
            )
        word = "like" if shown.origin else "for"
        count = sum(bool(getattr(self.filters, name)) for name in Filters.__slots__)
        filtered = f" with {count} filter{'s' if count > 1 else ''}" if count else ""
        milliseconds = f"{hits.seconds * 1000:.0f} ms"
        asked = f"{word} “{render.plain(hits.query, 80)}”{filtered} in {milliseconds}"
        asked = ". ".join([asked, *hits.notes])
        if hits:
            return f"{'1 hit' if len(hits) == 1 else f'{len(hits)} hits'} {asked}", None
        advice = "Try other words, or search by meaning and words in all knowledge bases."
        if count:
            advice = "Try other words, or remove a filter."
        return f"No hits {asked}", (f"Nothing found {word} “{hits.query}”", advice)

    def _contents(self) -> str:
        """What there is to search, in a sentence."""
        infos = [kb.info() for kb in self._bases()]
        if not infos:
            return "This workspace has no knowledge base yet: make one with kbkit.build()."
        documents = sum(info.documents for info in infos)
        chunks = sum(info.chunks for info in infos)
        name = infos[0].name if len(infos) == 1 else f"{len(infos)} knowledge bases"
        return f"{name}: {documents:,} documents in {chunks:,} passages"

    # Similar passages, and back

    def _more_like(self, content: Mapping[str, Any]) -> None:
        hit = self._results.hit(content.get("card"))
        kb = self._knowledge_base(hit.kb)
        hits = kb.similar(hit.chunk.id, limit=self._limit, filters=self.filters)
        before = self._results.shown
        back = "Back" if before.origin else f"Back to “{render.plain(before.query, 60)}”"
        self._before.append(before)
        like = f"Passages like “{render.plain(hits.query, 160)}”"
        self._show(Shown(hits, origin=Origin(like, back)))

    def _back(self, _content: Mapping[str, Any]) -> None:
        if self._before:
            self._show(self._before.pop())

    # In step with other panels and processes

    def _bases(self) -> list[KnowledgeBase]:
        """The knowledge bases that are searched."""
        if self._kb is not None:
            return [self._kb]
        assert self._workspace is not None
        chosen = "" if self.kb_box is None else self.kb_box.value
        return [self._workspace[name] for name in self._workspace if chosen in ("", name)]

    def _state(self) -> tuple[object, object]:
        """What tells whether documents, and whether ratings, have changed."""
        revisions = {kb.id: handle_of(kb).revision() for kb in self._bases()}
        documents = {known: numbers[0] for known, numbers in revisions.items()}
        return documents, {known: numbers[1:] for known, numbers in revisions.items()}

    def _look(self, _content: Mapping[str, Any]) -> None:
        """Show what another process has changed since."""
        state = self._state()
        changed = [now != then for now, then in zip(state, self._known, strict=True)]
        self._known = state
        if changed[0] and not self._before:
            self.refresh()
        elif any(changed):
            self._results.redraw()

    def _heard(self, what: str) -> None:
        """Another panel of this process changed something, maybe in a thread of its own."""
        if self._loop is not None and self._loop is not _running_loop():
            self._loop.call_soon_threadsafe(self._heard, what)
        elif what == "ratings":
            self._results.guard(self._results.redraw)
        elif not self._before:
            self.refresh()

    def _knowledge_base(self, name: str) -> KnowledgeBase:
        if self._kb is not None:
            return self._kb
        assert self._workspace is not None
        return self._workspace[name]


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
