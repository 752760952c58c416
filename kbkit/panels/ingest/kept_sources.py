"""The stored sources of a knowledge base, with actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import ipywidgets as widgets

from kbkit.models import SourceInfo
from kbkit.models.plain import pluralize
from kbkit.panels import render
from kbkit.panels.controls import button, buttons, control, row, show
from kbkit.panels.ingest.source_form import source_label
from kbkit.panels.panel import Panel

if TYPE_CHECKING:
    from kbkit.knowledge_base import KnowledgeBase


class KeptSources(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Choice of a knowledge base's sources; hidden if there are none.

    Attributes:
        switch_button: Has refreshes leave it out, or read it again.
    """

    def __init__(self, panel: Panel, find: Callable[[], KnowledgeBase | None]) -> None:
        self._panel = panel
        self._find = find
        self._known: dict[str, SourceInfo] = {}
        self.choice = control(widgets.Dropdown, "Sources")
        self.choice.observe(lambda _change: self._show_chosen(), "value")
        self.switch_button = button("Disable", "Have no refresh read it", self.switch)
        self.remove_button = button("Remove", "Forget this source", self.remove)
        self.keep_box = control(widgets.Checkbox, "Keep its documents", value=True, indent=False)
        actions = buttons(self.switch_button, self.remove_button, self.keep_box)
        super().__init__([row(self.choice), actions])
        self.refresh()

    def refresh(self) -> None:
        kb = self._find()
        self._known = {} if kb is None else {source.id: source for source in kb.sources}
        before = self.choice.value
        self.choice.options = [(_label(source), known) for known, source in self._known.items()]
        # ipywidgets chooses none of the options that it is given later
        self.choice.value = before if before in self._known else next(iter(self._known), None)
        show(self, bool(self._known))
        self._show_chosen()

    def switch(self) -> None:
        """Disable the source for refreshes, or enable it."""
        source, kb = self._known.get(self.choice.value), self._find()
        if source is None or kb is None:
            return
        with self._panel.shown_errors():
            changed = (kb.sources.disable if source.enabled else kb.sources.enable)(source.id)
            self.refresh()
            read = "read again" if changed.enabled else "not read any more"
            self._panel.announce(f"{render.plain(source.location, 80)} is {read}")

    def remove(self) -> None:
        """Forget the source, with its documents unless they are to stay."""
        source, kb = self._known.get(self.choice.value), self._find()
        if source is None or kb is None:
            return
        with self._panel.shown_errors():
            keep = bool(self.keep_box.value)
            kb.sources.remove(source.id, keep_documents=keep)
            self.refresh()
            self._panel.publish("documents")
            done = "stay" if keep else "are in the trash"
            self._panel.announce(
                f"Removed {render.plain(source.location, 80)}; "
                f"its {pluralize(source.documents)} {done}"
            )

    def enable(self, enabled: bool) -> None:
        for each in (self.choice, self.switch_button, self.remove_button, self.keep_box):
            each.disabled = not enabled

    def _show_chosen(self) -> None:
        source = self._known.get(self.choice.value)
        if source is not None:
            self.switch_button.description = "Disable" if source.enabled else "Enable"


def _label(source: SourceInfo) -> str:
    state = "" if source.enabled else ", disabled"
    place = render.plain(source.location, render.TITLE_LENGTH)
    return f"{source_label(source.type)}: {place} ({pluralize(source.documents)}{state})"
