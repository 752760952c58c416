"""The search panel: search and rate."""

from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as widgets
import traitlets
from traitlets import Bunch, Unicode

from kbkit.knowledge_base import handle_of
from kbkit.models import Filters, Hit, Hits, Mode
from kbkit.models.values import pluralize
from kbkit.panels import controls, render
from kbkit.panels.controls import AnyTarget, Debouncer, KnowledgeBaseSelector, MutedUpdates, Topic
from kbkit.panels.panel import Message
from kbkit.panels.search_filters import FilterBox
from kbkit.panels.search_results import ResultSet, ResultsPanel, card_id
from kbkit.runtime.config import Settings

_Request = tuple[str, str, str, Filters]
_MAX_QUERY_LENGTH = 1000
_AT_ONCE = 0.08
"""Seconds of a search up to which every keystroke searches."""
_MAX_WAIT = 0.4


class SearchPanel(ResultsPanel):
    """Searches as you type, shows hits as cards, and stores ratings.

    ::

        panel = SearchPanel(workspace)   # or one knowledge base
        panel                            # at the end of a cell: shows it
        panel.hits.to_frame()            # in the next cell: what it found
        panel.selection.to_frame()       # and what you selected

    Typing searches at once, or after a pause if searches are slow. Errors appear in the status
    line. ``query``, ``hits`` and ``selection`` can be observed like every trait of a widget.

    Attributes:
        query: The last query; setting it searches at once.
        hits: Shown hits: of the query, or similar to one.
        selection: Selected hits of all searches, in order of selection.
        rater: The name that stars are stored under.
        query_box: Query field.
        kb_box: Choice of knowledge bases; ``None`` if there is only one.
        filter_box: Filters on documents.
        error: The last error, or ``None``.
    """

    query = Unicode(help="The last query; setting it searches at once.")
    hits = traitlets.Any(Hits("", ()), help="The results that are shown.")

    def __init__(
        self,
        target: AnyTarget,
        *,
        limit: int = 10,
        debounce: float | None = None,
        rater: str = "",
        on_open: Callable[[Hit], None] | None = None,
    ) -> None:
        self._limit = limit
        self._debouncer = Debouncer(debounce or 0.0, self._search)
        self._adapts = debounce is None
        self._answered: _Request | None = None  # the shown request, unless outdated
        self._last: _Request | None = None
        self._revisions: tuple[object, object] = ((), ())
        self._muted = MutedUpdates()
        selector = KnowledgeBaseSelector(target, on_change=self._debouncer.now, offer_all=True)
        self.kb_box = selector.box
        self.query_box = controls.make(
            widgets.Text, "Search", placeholder="Ask in your own words, or type a name"
        ).add_class("kbkit-query")
        self.query_box.observe(self._on_typing, "value")
        self.query_box.on_msg(self._on_submit)
        self.mode_box = controls.mode_box()
        self.filter_box = FilterBox(selector.selected)
        for box in (self.mode_box, self.filter_box):
            box.observe(lambda _change: self._debouncer.now(), "value")
        super().__init__(selector, rater or Settings.load().rater, on_open)
        top = controls.row(self.query_box, self.kb_box, self.mode_box, self.filter_box.toggle)
        self.fill([top, self.filter_box, self.cards])
        self.observe(self._on_query, "query")
        self.refresh()

    @property
    def mode(self) -> Mode:
        """The search mode of the panel."""
        return Mode(self.mode_box.value)

    @property
    def filters(self) -> Filters:
        """Filters of the panel; may be set to `Filters` or a mapping of conditions.

        Raises:
            ConfigError: A condition is unknown, or its value cannot be one.
        """
        return self.filter_box.value

    @filters.setter
    def filters(self, conditions: Filters | Mapping[str, Any] | None) -> None:
        self.filter_box.value = Filters.of(conditions)

    def search(self, query: str) -> Hits:
        """Search at once; an empty query clears the panel.

        Returns:
            The shown hits; after an error, which the panel shows, the earlier ones.
        """
        with self._muted:
            self.query_box.value = query
        self.refresh()
        return self.hits

    def refresh(self) -> None:
        """Search again, to show changes."""
        self._answered = None
        self._debouncer.now()

    def close(self) -> None:
        """Close the panel; pending searches are dropped."""
        self._debouncer.cancel()
        super().close()

    # Controls

    def _on_typing(self, _change: Bunch) -> None:
        if not self._muted:
            self._debouncer.later()

    def _on_submit(self, _box: object, content: dict[str, object], _buffers: object) -> None:
        if content.get("event") == "submit":
            self._debouncer.now()

    def _on_query(self, change: Bunch) -> None:
        if not self._muted:
            self.search(change["new"])

    # Searching

    def _search(self) -> None:
        """Search with the current controls, and show the result. Never raises."""
        query = " ".join(self.query_box.value[:_MAX_QUERY_LENGTH].split())
        with self.acting():
            self._selector.offer()
            request = (query, self._selector.name, self.mode_box.value, self.filters)
            if request == self._answered:
                return
            self._answered = None
            hits = self._find(query) if query else Hits("", ())
            if self._adapts and hits.seconds:
                slow = min(hits.seconds, self._debouncer.delay or hits.seconds) > _AT_ONCE
                self._debouncer.delay = min(hits.seconds, _MAX_WAIT) if slow else 0.0
            self._before = []
            several = self._selector.name == ""
            self._show(ResultSet(hits, query, several), fresh=request != self._last)
            self._last = request
            with self._muted:
                self.query = query
            self._revisions = self._current_revisions()
            self.filter_box.offer()
            self._answered = request

    def _find(self, query: str) -> Hits:
        workspace, name = self._selector.workspace, self._selector.name
        asked = self._selector.find() if workspace is None or name else workspace
        return asked.search(query, limit=self._limit, mode=self.mode, filters=self.filters)

    def _show(self, results: ResultSet, *, fresh: bool = True) -> None:
        shown = {card_id(hit) for hit in results.hits}
        self._contexts = {} if fresh else {k: v for k, v in self._contexts.items() if k in shown}
        self._shown = results
        status, self._notice = self._summary(results)
        self._serial += fresh
        if fresh or not self.keeps_outcome:
            self._set_status(status)
        self._redraw()
        with self._muted:
            self.hits = results.hits

    def _summary(self, results: ResultSet) -> tuple[str, dict[str, str] | None]:
        hits = results.hits
        if not hits.query:
            return self._contents(), {
                "title": "What would you like to know?",
                "text": "Results appear as you type. Rate them with stars to improve search.",
            }
        preposition = "like" if results.breadcrumb else "for"
        count = sum(bool(getattr(self.filters, name)) for name in Filters.__slots__)
        filtered = f" with {pluralize(count, 'filter')}" if count else ""
        milliseconds = f"{hits.seconds * 1000:.0f} ms"
        request = f"{preposition} “{render.plain(hits.query, 80)}”{filtered} in {milliseconds}"
        request = ". ".join([request, *hits.notes])
        if hits:
            return f"{pluralize(len(hits), 'hit')} {request}", None
        advice = "Try other words, or search by meaning and words in all knowledge bases."
        if count:
            advice = "Try other words, or remove a filter."
        title = render.plain(f"Nothing found {preposition} “{hits.query}”", 200)
        return f"No hits {request}", {"title": title, "text": advice}

    def _contents(self) -> str:
        infos = [kb.info() for kb in self._selector.selected()]
        if not infos:
            return "This workspace has no knowledge base yet: create one with kbkit.build()."
        documents = sum(info.documents for info in infos)
        chunks = sum(info.chunks for info in infos)
        name = infos[0].name if len(infos) == 1 else f"{len(infos)} knowledge bases"
        return f"{name}: {pluralize(documents)} in {pluralize(chunks, 'passage')}"

    # Similar passages

    def _do_more(self, content: Message) -> None:
        hit = self._hit(content)
        kb = self._selector.find(hit.kb)
        hits = kb.similar(hit.chunk.id, limit=self._limit, filters=self.filters)
        results = self._shown
        back = "Back" if results.breadcrumb else f"Back to “{render.plain(results.query, 60)}”"
        self._before.append(results)
        label = f"Passages like “{render.plain(hits.query, 160)}”"
        self._show(ResultSet(hits, breadcrumb={"label": label, "back": back}))

    def _do_back(self, _content: Message) -> None:
        if self._before:
            self._show(self._before.pop())

    # Changes by other panels and processes

    def _current_revisions(self) -> tuple[object, object]:
        revisions = {kb.id: handle_of(kb).revision() for kb in self._selector.selected()}
        documents = {kb: numbers[0] for kb, numbers in revisions.items()}
        return documents, {kb: numbers[1:] for kb, numbers in revisions.items()}

    def _do_look(self, _content: Message) -> None:
        with self.update_quietly():
            revisions = self._current_revisions()
            changed = [now != then for now, then in zip(revisions, self._revisions, strict=True)]
            self._revisions = revisions
            if changed[0] and not self._before:
                self.refresh()
            elif any(changed):
                self._redraw()

    def _update(self, topic: Topic) -> None:
        if topic == "ratings":
            self._redraw()
        elif topic != "graph" and not self._before:
            self.refresh()
