"""The documents panel: a tree, and the open document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ipywidgets as widgets
import traitlets
from traitlets import Bunch

from kbkit.config import Settings
from kbkit.knowledge_base import handle_of
from kbkit.markdown.opening_words import passage_ends
from kbkit.models import Document, Hit
from kbkit.models.plain import pluralize
from kbkit.panels.controls import button, control, row
from kbkit.panels.documents.editor import DocumentEditor
from kbkit.panels.documents.rendering import DocumentRenderer
from kbkit.panels.documents.tree import MAX_FOUND, DocumentTree
from kbkit.panels.events import Topic
from kbkit.panels.homes import AnyTarget
from kbkit.panels.panel import Panel
from kbkit.panels.selector import KnowledgeBaseSelector
from kbkit.panels.view import View


class TreeView(View, module="tree_view.js"):
    """The tree; the lines of a folder are sent as a message when it is opened."""


class DocumentsPanel(Panel):
    """Shows the documents of a knowledge base by path, and opens, labels, rates and deletes them.

    ::

        panel = DocumentsPanel(workspace)   # or one knowledge base
        panel                               # at the end of a cell: shows it
        panel.document                      # in a later cell: the document that is open

    A type and tags that are given here hold, whatever the document's source says later. Errors
    appear in the status line. ``document`` can be observed like every trait of a widget.

    Attributes:
        document: The open document, or ``None``.
        error: The last error, or ``None``.
        rater: The name that stars are stored under.
        kb_box: Choice of the knowledge base; ``None`` if there is only one.
        filter_box: Words that a title or URI must have.
        back_button: Opens the document that was open before.
        editor: Controls of the document that is open; see `DocumentEditor`.
    """

    document = traitlets.Any(None, help="The document that is open.")

    def __init__(self, target: AnyTarget, *, rater: str = "") -> None:
        self._selector = KnowledgeBaseSelector(target, on_change=self._on_choice)
        self.kb_box = self._selector.box
        self.rater = rater or Settings.load().rater
        self._tree = DocumentTree(())
        self._renderer = DocumentRenderer(())
        self._revision: object = None
        self._version = 0
        self._reveals = 0
        self._history: list[str] = []
        hint = "Words of titles or addresses"
        self.filter_box = control(widgets.Text, "Filter", placeholder=hint)
        self.filter_box.add_class("kbkit-query").observe(self._on_filter, "value")
        self.back_button = button("Back", "The document before", self.back)
        self._view = TreeView(
            {"children": self._send_rows, "select": self._select, "look": self._look}
        )
        super().__init__(self._selector.home, "documents")
        self.editor = DocumentEditor(
            self,
            self._selector.find,
            self.rater,
            self.back_button,
            on_change=self._on_change,
            on_link=lambda link: self.show(link.document, link.anchor),
        ).add_class("kbkit-documents-right")
        left = widgets.VBox([self._view]).add_class("kbkit-documents-left")
        both = widgets.HBox([left, self.editor]).add_class("kbkit-documents-both")
        self.fill([row(self.kb_box, self.filter_box), self.status_line, both])
        self.refresh()

    def show(self, document: str | Hit, anchor: str = "") -> None:
        """Open a document.

        Args:
            document: Id or URI, or a hit, whose passage is marked.
            anchor: The place to begin at.
        """
        with self.shown_errors():
            passage = ""
            if isinstance(document, Hit):
                if self.kb_box is not None:
                    self._selector.offer()
                    self.kb_box.value = self._selector.find(document.kb).name
                anchor, passage = document.chunk.anchor, passage_ends(document.chunk.text)
                document = document.chunk.document_id
            found = self._selector.find().documents[document]
            if self.document is not None and self.document.id != found.id:
                self._history.append(self.document.id)
            self._show_document(found, anchor, passage)

    def back(self) -> None:
        """Open the document that was open before."""
        with self.shown_errors():
            while self._history:
                before = self._history.pop()
                if before in self._tree.documents:
                    self._show_document(self._selector.find().documents[before])
                    break

    def refresh(self) -> None:
        """Show changes of the workspace."""
        with self.shown_errors():
            if self._selector.offer():
                self._history.clear()
            self._list()
            if not self.keeps_outcome:
                self.error = None
            self._show_document(self._reread())

    # What the controls, the tree and the document do

    def _on_choice(self) -> None:
        with self.shown_errors():
            self._list()
            self._history.clear()
            self._show_document(None)

    def _on_filter(self, _change: Bunch) -> None:
        with self.shown_errors():
            self._show_tree()

    def _on_change(self, topic: Topic) -> None:
        """The document that is open was changed here: bring all else level with that."""
        if topic == "documents":
            self._list()
            self.document = self.editor.document
            self._show_tree()
        self.publish(topic)

    def _send_rows(self, content: Mapping[str, Any]) -> None:
        folder = str(content.get("folder"))
        self._view.send({"folder": folder, "rows": self._tree.rows(folder)})

    def _select(self, content: Mapping[str, Any]) -> None:
        self.show(str(content.get("document")))

    def _look(self, _content: Mapping[str, Any]) -> None:
        """The reader comes back to the tree: perhaps another process changed something."""
        with self.shown_errors(), self.unasked():
            if self._selector.name and self._revision != self._current_revision():
                self.refresh()

    def _update(self, topic: Topic) -> None:
        if topic == "ratings":
            self.editor.redraw()
        elif topic != "graph":
            self.refresh()

    # What is shown

    def _list(self) -> None:
        name = self._selector.name
        documents: list[Document] = []
        self._revision = None
        if name:
            self._revision = self._current_revision()
            documents = self._selector.find().documents.list()
        self._tree = DocumentTree(documents)
        self._renderer = DocumentRenderer(documents)
        self._version += 1

    def _current_revision(self) -> object:
        return handle_of(self._selector.find()).revision()

    def _show_document(
        self, document: Document | None, anchor: str = "", passage: str = ""
    ) -> None:
        other = document is not None and (self.document is None or self.document.id != document.id)
        self.document = document
        self.back_button.disabled = not self._history
        self._reveals += other
        self._show_tree()  # first: who sees the document may press the keys of the tree
        self.editor.show(document, self._renderer, anchor, passage)

    def _reread(self) -> Document | None:
        if self.document is None or self.document.id not in self._tree.documents:
            return None
        return self._selector.find().documents[self.document.id]

    def _show_tree(self) -> None:
        text = self.filter_box.value.strip()
        found, count = self._tree.search(text) if text else (None, 0)
        name = self._selector.name
        if text:
            more = f", the first {MAX_FOUND} are shown" if count > MAX_FOUND else ""
            self.say(f"{count:,} of {len(self._tree):,} documents{more}")
        else:
            self.say(f"{name}: {pluralize(len(self._tree))}" if name else "No knowledge base yet")
        document = self.document
        self._view.state = {
            "label": f"Documents of {name}",
            "kb": name,
            "version": self._version,
            "rows": self._tree.roots(),
            "found": found,
            "empty": "Nothing matches." if text else "No documents yet.",
            "selected": "" if document is None else document.id,
            "ancestors": [] if document is None else self._tree.ancestors(document.id),
            "reveals": self._reveals,
        }
