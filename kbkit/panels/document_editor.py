"""The document editor: labels, text, stars, deletion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
from traitlets import Bunch

from kbkit.models import Document, DocumentState, DocumentType, Rating
from kbkit.models.values import pluralize
from kbkit.panels import render
from kbkit.panels.controls import MutedUpdates, Topic, button, control, row, show, toggle
from kbkit.panels.panel import Panel, View
from kbkit.panels.text_rendering import MAX_LENGTH, DocumentRenderer, LinkTarget, PanelText

if TYPE_CHECKING:
    from kbkit.knowledge_base import KnowledgeBase

_CHOOSE = "Select a document to read it here."


class DocumentView(View, module="document.js"):
    """Text and facts of a document."""


class DocumentEditor(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """A document with controls to label, rate and delete it.

    Attributes:
        document: The open document, or ``None``.
        outline_box: Whether to show the passages that search reads.
        delete_button: Moves the document to the trash; `undelete_button` restores it.
    """

    def __init__(
        self,
        panel: Panel,
        find: Callable[[], KnowledgeBase],
        rater: str,
        back_button: widgets.Button,
        *,
        on_change: Callable[[Topic], None],
        on_link: Callable[[LinkTarget], None],
    ) -> None:
        self._panel = panel
        self._find = find
        self._rater = rater
        self._on_change = on_change
        self._on_link = on_link
        self._renderer = DocumentRenderer(())
        self._rendered = PanelText("", {})
        self._own_ratings: list[Rating] = []
        self._serial = 0
        self._muted = MutedUpdates()
        self.document: Document | None = None
        types = [(str(each).replace("_", " "), str(each)) for each in DocumentType]
        self.type_box = control(widgets.Dropdown, "Type", options=types)
        hint = "separated by commas"
        self.tags_box = control(widgets.Text, "Tags", placeholder=hint, continuous_update=False)
        for box in (self.type_box, self.tags_box):
            box.observe(self._on_labels, "value")
        self.outline_box = toggle("Passages", tooltip="Show the passages that search reads")
        self.outline_box.observe(self._on_outline, "value")
        self.delete_button = button("Delete", "Move this document to the trash", self.delete)
        self.undelete_button = button("Undo", "Restore it, with its ratings", self.undelete)
        self._deleted: list[tuple[KnowledgeBase, Document]] = []
        self._messages = widgets.HTML()
        self._undo = widgets.HBox([self._messages, self.undelete_button])
        self._undo.add_class("kbkit-undo")
        self._labels = row(
            self.type_box, self.tags_box, self.outline_box, back_button, self.delete_button
        )
        self._view = DocumentView(
            panel, {"follow": self._follow, "rate": self._rate, "undo": self._undo_rating}
        )
        super().__init__([self._labels, self._undo, self._view])
        self._show_deleted()
        self.show(None, self._renderer)

    def show(
        self,
        document: Document | None,
        renderer: DocumentRenderer,
        anchor: str = "",
        passage: str = "",
    ) -> None:
        before = None if self.document is None else self.document.id
        self.document, self._renderer = document, renderer
        if document is None or document.id != before or anchor or passage:
            self._serial += 1
        if document is None or document.id != before:
            self._own_ratings = []
        self._labels.layout.visibility = "hidden" if document is None else "visible"
        self._rendered = PanelText("", {})
        if document is not None:
            self._show_labels(document)
            outlined = self.outline_box.value and document.state is not DocumentState.GONE
            chunks = list(self._find().chunks.of(document.id)) if outlined else None
            self._rendered = renderer.render(document, chunks)
        self.redraw(anchor, passage)

    def redraw(self, anchor: str = "", passage: str = "") -> None:
        document, rendered = self.document, self._rendered
        if document is None:
            self._view.state = {"title": "", "serial": self._serial, "note": _CHOOSE}
            return
        current = document.state is DocumentState.CURRENT
        cut = f"{rendered.cut:,} characters at the end are left out: {MAX_LENGTH:,} are shown."
        self._view.state = {
            "title": render.plain(document.title, render.TITLE_LENGTH) or "Untitled",
            "about": render.plain(document.description, render.ABOUT_LENGTH),
            "link": render.web_address(document.uri),
            "place": render.plain(document.uri, render.PATH_LENGTH),
            "badge": "" if current else document.state.value,
            "facts": [f"fetched {document.fetched_at:%Y-%m-%d}"],
            **self._stars(document),
            "html": rendered.html,
            "links": sorted(rendered.links),
            "anchor": anchor,
            "passage": passage,
            "serial": self._serial,
            "note": cut if rendered.cut else "",
        }

    def delete(self) -> None:
        """Move the document to the trash; `undelete` restores it."""
        document = self.document
        if document is None:
            return
        with self._panel.shown_errors():
            kb = self._find()
            kb.documents.delete(document.id)
            self._deleted.append((kb, document))
            self._show_deleted()
            self.show(None, self._renderer)
            self._on_change("documents")
            self._panel.announce(f"Deleted: “{render.plain(document.title, 80)}”")

    def undelete(self) -> None:
        """Restore the document that was last deleted, and show it."""
        if not self._deleted:
            return
        with self._panel.shown_errors():
            kb, document = self._deleted.pop()
            self._show_deleted()
            kb.documents.undelete(document.id)
            if kb.id == self._find().id:
                self.show(kb.documents[document.id], self._renderer)
            self._on_change("documents")
            self._panel.announce(f"Restored: “{render.plain(document.title, 80)}”")

    def _show_deleted(self) -> None:
        show(self._undo, visible=bool(self._deleted))
        if self._deleted:
            title = escape(render.plain(self._deleted[-1][1].title, 80))
            self._messages.value = f"Deleted <bdi>“{title}”</bdi>."

    # Labels

    def _show_labels(self, document: Document) -> None:
        with self._muted:
            self.type_box.value = document.document_type.value
            self.tags_box.value = ", ".join(document.tags)

    def _on_labels(self, _change: Bunch) -> None:
        document = self.document
        if self._muted or document is None:
            return
        tags = tuple(part for part in map(str.strip, self.tags_box.value.split(",")) if part)
        kind = DocumentType(self.type_box.value)
        if (kind, tags) == (document.document_type, document.tags):
            return
        self._panel.say("Saving…")
        with self._panel.shown_errors():
            try:
                self._find().documents.update(
                    document.id,
                    document_type=None if kind is document.document_type else kind,
                    tags=None if tags == document.tags else tags,
                )
                stored = self._find().documents[document.id]
            except Exception:
                self._show_labels(document)
                raise
            self.show(stored, self._renderer)
            self._on_change("documents")
            labels = render.plain(", ".join(stored.tags), 80) or "no tags"
            kind_name = stored.document_type.value.replace("_", " ")
            self._panel.announce(f"Saved: {kind_name}; {labels}")

    def _on_outline(self, _change: Bunch) -> None:
        with self._panel.shown_errors():
            self.show(self.document, self._renderer)

    # Stars and links

    def _stars(self, document: Document) -> dict[str, Any]:
        kb = self._find()
        ratings = kb.ratings.of(document.id)
        own = [rating.score for rating in ratings if rating.rater == self._rater]
        total = kb.ratings.total(document.id)
        others = total is not None and total.raters > bool(own)
        return {
            "stars": own[-1] if own else 0,
            "rated": f"{total.average:.1f} of 5 by {total.raters}" if total and others else "",
            "undo": bool(self._own_ratings),
        }

    def _rate(self, content: Mapping[str, Any]) -> None:
        score = content.get("score")
        if self.document is None or not isinstance(score, int):
            return
        self._own_ratings.append(self._find().rate(self.document.id, score, rater=self._rater))
        self._show_rating(f"Saved: {pluralize(score, 'star')}")

    def _undo_rating(self, _content: Mapping[str, Any]) -> None:
        if not self._own_ratings:
            return
        self._find().ratings.delete(self._own_ratings.pop().id)
        self._show_rating("Undone: the rating")

    def _show_rating(self, status: str) -> None:
        self.redraw()
        self._on_change("ratings")
        self._panel.announce(status)

    def _follow(self, content: Mapping[str, Any]) -> None:
        link = self._rendered.links.get(str(content.get("href")))
        if link is not None:
            self._on_link(link)
