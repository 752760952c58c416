"""The document that is open in a panel: its labels, its text, stars, and its deletion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any, Protocol

import ipywidgets as widgets
import traitlets
from traitlets import Bunch

from kbkit.models import Document, DocumentState, DocumentType, Rating
from kbkit.panels import render
from kbkit.panels.documents.reader import LONGEST, Page, Reader, Target
from kbkit.panels.view import View

if TYPE_CHECKING:
    from kbkit.knowledge_base import KnowledgeBase

_NOTHING: dict[str, Any] = {
    "title": "", "link": "", "place": "", "badge": "", "facts": [], "stars": 0, "rated": "",
    "undo": False, "html": "", "inner": [], "anchor": "",
    "note": "Choose a document: its text appears here.",
}  # fmt: skip


class Host(Protocol):
    """The panel that a document is open in."""

    rater: str

    def knowledge_base(self) -> KnowledgeBase:
        """Where the document is."""

    def say(self, text: str) -> None:
        """Tell the reader what was done."""

    def fail(self, error: Exception) -> None:
        """Tell the reader what went wrong."""

    def follow(self, target: Target) -> None:
        """Open another document, since a link leads there."""

    def changed(self, what: str) -> None:
        """The document (``documents``) or a rating of it (``ratings``) was changed here."""


class ReaderView(View, module="reader.js"):
    """The text of a document and what is known of it.

    Attributes:
        style: Stylesheet of the text, which stands apart from the page.
    """

    style = traitlets.Unicode().tag(sync=True)


class OpenDocument(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """One document with controls to label, rate and delete it; empty where none is open.

    Attributes:
        document: What it shows, or ``None``.
        type_box: Its type.
        tags_box: Its tags, separated by commas.
        outline_box: Whether it is divided into the passages that search reads.
        delete_button: Asks whether to delete it; `sure_button` does so, `keep_button` does not.
    """

    def __init__(self, host: Host, before: widgets.Button) -> None:
        """Make it empty.

        Args:
            host: The panel that it is part of.
            before: A button to stand among the controls.
        """
        self._host = host
        self._reader = Reader(())
        self._page = Page("", {})
        self._given: list[Rating] = []
        self._serial = 0
        self._quiet = False
        self.document: Document | None = None
        auto = widgets.Layout(width="auto")
        types = [(str(each).replace("_", " "), str(each)) for each in DocumentType]
        self.type_box = widgets.Dropdown(description="Type", options=types, layout=auto)
        self.tags_box = widgets.Text(
            description="Tags",
            placeholder="separated by commas",
            continuous_update=False,
            layout=auto,
        )
        for box in (self.type_box, self.tags_box):
            box.observe(self._labelled, "value")
        self.outline_box = widgets.ToggleButton(
            description="Passages", tooltip="Show the passages that search reads", layout=auto
        ).add_class("kbkit-more")
        self.outline_box.observe(self._outlined, "value")
        self.delete_button = button("Delete…", "Delete this document", self._ask)
        self.sure_button = button("Delete it", "It cannot be undone", self.delete)
        self.keep_button = button("Keep it", "Delete nothing", self._ask_no_more)
        self._question = widgets.HTML()
        self._confirm = widgets.HBox(
            [self._question, self.sure_button, self.keep_button],
            layout=widgets.Layout(display="none"),
        ).add_class("kbkit-confirm")
        self._labels = widgets.HBox(
            [self.type_box, self.tags_box, self.outline_box, before, self.delete_button]
        ).add_class("kbkit-controls")
        self._view = ReaderView(
            {"follow": self._followed, "rate": self._rated, "undo": self._taken_back},
            style=_style(),
        )
        super().__init__([self._labels, self._confirm, self._view])
        self.show(None, self._reader)

    def show(self, document: Document | None, reader: Reader, anchor: str = "") -> None:
        """Show a document, or nothing.

        Args:
            document: With its text.
            reader: Makes pages of documents of its knowledge base.
            anchor: The place in it to begin at.
        """
        before = None if self.document is None else self.document.id
        self.document, self._reader = document, reader
        if document is None or document.id != before or anchor:
            self._serial += 1
        if document is None or document.id != before:
            self._given = []
            self._ask_no_more()
        self._labels.layout.visibility = "hidden" if document is None else "visible"
        self._page = Page("", {})
        if document is not None:
            self._fill(document)
            outlined = self.outline_box.value and document.state is not DocumentState.GONE
            chunks = list(self._host.knowledge_base().chunks.of(document.id))
            self._page = reader.page(document, chunks if outlined else None)
        self.draw(anchor)

    def draw(self, anchor: str = "") -> None:
        """Draw what is known of the document, its ratings among it, anew."""
        document = self.document
        if document is None:
            self._view.state = {**_NOTHING, "serial": self._serial}
            return
        current = document.state is DocumentState.CURRENT
        cut = f"{self._page.cut:,} characters at the end are left out: {LONGEST:,} are shown."
        self._view.state = {
            "title": render.plain(document.title, render.TITLE_LENGTH) or "Untitled",
            "link": render.web_address(document.uri),
            "place": render.plain(document.uri, render.PATH_LENGTH),
            "badge": "" if current else document.state.value,
            "facts": [f"fetched {document.fetched_at:%Y-%m-%d}"],
            **self._stars(document),
            "html": self._page.html,
            "inner": sorted(self._page.inner),
            "anchor": anchor,
            "serial": self._serial,
            "note": cut if self._page.cut else "",
        }

    def delete(self) -> None:
        """Delete the document with its passages; its ratings stay."""
        document = self.document
        if document is None:
            return
        with self._shown_errors():
            self._host.knowledge_base().documents.delete(document.id)
            self.show(None, self._reader)
            self._host.changed("documents")
            self._host.say(f"Deleted: “{render.plain(document.title, 80)}”")

    # Labels

    def _fill(self, document: Document) -> None:
        quiet, self._quiet = self._quiet, True
        try:
            self.type_box.value = document.document_type.value
            self.tags_box.value = ", ".join(document.tags)
        finally:
            self._quiet = quiet

    def _labelled(self, _change: Bunch) -> None:
        document = self.document
        if self._quiet or document is None:
            return
        tags = tuple(part for part in map(str.strip, self.tags_box.value.split(",")) if part)
        wanted = DocumentType(self.type_box.value)
        if (wanted, tags) == (document.document_type, document.tags):
            return
        self._host.say("Storing…")
        with self._shown_errors():
            try:
                self._host.knowledge_base().documents.update(
                    document.id,
                    document_type=None if wanted is document.document_type else wanted,
                    tags=None if tags == document.tags else tags,
                )
                stored = self._host.knowledge_base().documents[document.id]
            except Exception:
                self._fill(document)
                raise
            self.show(stored, self._reader)
            self._host.changed("documents")
            said = render.plain(", ".join(stored.tags), 80) or "no tags"
            self._host.say(f"Stored: {stored.document_type.value.replace('_', ' ')}; {said}")

    def _outlined(self, _change: Bunch) -> None:
        with self._shown_errors():
            self.show(self.document, self._reader)

    # Deletion

    def _ask(self) -> None:
        if self.document is not None:
            title = escape(render.plain(self.document.title, 80))
            self._question.value = (
                f"Delete <bdi>“{title}”</bdi>? A source that still has it may bring it back."
            )
            self._confirm.layout.display = None

    def _ask_no_more(self) -> None:
        self._confirm.layout.display = "none"

    # Stars and links

    def _stars(self, document: Document) -> dict[str, Any]:
        kb = self._host.knowledge_base()
        ratings = kb.ratings.of(document.id)
        mine = [rating.score for rating in ratings if rating.rater == self._host.rater]
        total = kb.ratings.total(document.id)
        others = total is not None and total.raters > bool(mine)
        return {
            "stars": mine[-1] if mine else 0,
            "rated": f"{total.average:.1f} of 5 by {total.raters}" if total and others else "",
            "undo": bool(self._given),
        }

    def _rated(self, content: Mapping[str, Any]) -> None:
        score = content.get("score")
        if self.document is None or not isinstance(score, int):
            return
        with self._shown_errors():
            kb = self._host.knowledge_base()
            self._given.append(kb.rate(self.document.id, score, rater=self._host.rater))
            self.draw()
            self._host.changed("ratings")
            self._host.say(f"Stored: {score} {'star' if score == 1 else 'stars'}")

    def _taken_back(self, _content: Mapping[str, Any]) -> None:
        if not self._given:
            return
        with self._shown_errors():
            self._host.knowledge_base().ratings.delete(self._given.pop().id)
            self.draw()
            self._host.changed("ratings")
            self._host.say("Taken back: the rating")

    def _followed(self, content: Mapping[str, Any]) -> None:
        target = self._page.inner.get(str(content.get("href")))
        if target is not None:
            self._host.follow(target)

    @contextmanager
    def _shown_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # a panel has nobody to raise to: it shows what is wrong
            self._host.fail(error)


def button(label: str, tooltip: str, action: Callable[[], None]) -> widgets.Button:
    """A button of a panel."""
    made = widgets.Button(
        description=label, tooltip=tooltip, layout=widgets.Layout(width="auto")
    ).add_class("kbkit-button")
    made.on_click(lambda _button: action())
    return made


@cache
def _style() -> str:
    return resources.files("kbkit.panels").joinpath("static", "reader.css").read_text("utf-8")
