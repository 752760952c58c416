"""A panel that shows what a knowledge base holds: its documents by path, and each of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import traitlets
from traitlets import Bunch

from kbkit.config import Settings
from kbkit.errors import KbkitError, NotFoundError
from kbkit.knowledge_base import handle_of
from kbkit.models import Document
from kbkit.panels import events, render
from kbkit.panels.documents.open_document import OpenDocument, button
from kbkit.panels.documents.reader import Reader, Target
from kbkit.panels.documents.tree import MOST_FOUND, DocumentTree
from kbkit.panels.view import View

if TYPE_CHECKING:
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.workspace import Workspace

_log = logging.getLogger(__name__)


class TreeView(View, module="documents.js"):
    """The tree; the lines of a folder are sent as a message when it is opened."""


class DocumentsPanel(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Shows the documents of a knowledge base by path, and opens, labels, rates and deletes them.

    ::

        panel = DocumentsPanel(workspace)   # or one knowledge base
        panel                               # at the end of a cell: shows it
        panel.document                      # in a later cell: the document that is open

    A type and tags that are given here hold, whatever the document's source says later. Errors
    appear in the status line. ``document`` can be observed like every trait of a widget.

    Attributes:
        document: The document that is open, or ``None``.
        error: What went wrong last, or ``None``.
        rater: The name that stars are stored under.
        kb_box: Which knowledge base; ``None`` when the panel has but one.
        filter_box: Words that a title or URI must have.
        back_button: Opens the document that was open before.
        shown: Controls of the document that is open; see `OpenDocument`.
    """

    document = traitlets.Any(None, help="The document that is open.")

    def __init__(self, target: Workspace | KnowledgeBase, *, rater: str = "") -> None:
        """Make a panel.

        Args:
            target: What to show: a knowledge base, or a workspace whose knowledge bases can be
                chosen.
            rater: Who rates; by default ``KBKIT_RATER`` or the login name.
        """
        from kbkit.workspace import Workspace

        self._workspace = target if isinstance(target, Workspace) else None
        self._kb = None if isinstance(target, Workspace) else target
        self._place: Path = target.path
        self.rater = rater or Settings.from_environment().rater
        self.error: Exception | None = None
        self._quiet = False
        self._tree = DocumentTree(())
        self._reader = Reader(())
        self._revision: object = None
        self._version = 0
        self._seeks = 0
        self._trail: list[str] = []
        auto = widgets.Layout(width="auto")
        self.kb_box: widgets.Dropdown | None = None
        if self._workspace is not None:
            self.kb_box = widgets.Dropdown(description="Knowledge base", layout=auto)
            self.kb_box.observe(self._chosen, "value")
        self.filter_box = widgets.Text(
            description="Filter", placeholder="Words of titles or addresses", layout=auto
        ).add_class("kbkit-query")
        self.filter_box.observe(self._filtered, "value")
        self.back_button = button("Back", "The document before", self.back)
        self._view = TreeView(
            {"children": self._asked, "select": self._selected, "look": self._looked}
        )
        self.shown = OpenDocument(self, self.back_button)
        self._status = widgets.HTML()
        left = widgets.VBox([self._view]).add_class("kbkit-documents-left")
        self.shown.add_class("kbkit-documents-right")
        boxes = [box for box in (self.kb_box, self.filter_box) if box is not None]
        super().__init__(
            [
                widgets.HTML(render.stylesheet(), layout=widgets.Layout(display="none")),
                widgets.HBox(boxes).add_class("kbkit-controls"),
                self._status,
                widgets.HBox([left, self.shown]).add_class("kbkit-documents-both"),
            ]
        )
        self.add_class("kbkit-panel")
        self.add_class("kbkit-documents")
        events.listen(self._place, self._heard)
        self.refresh()

    def show(self, document: str, anchor: str = "") -> None:
        """Open a document of the knowledge base that is chosen.

        Args:
            document: Its id or URI.
            anchor: The place to begin at.
        """
        with self._shown_errors():
            found = self.knowledge_base().documents[document]
            if self.document is not None and self.document.id != found.id:
                self._trail.append(self.document.id)
            self._show_document(found, anchor)

    def back(self) -> None:
        """Open the document that was open before."""
        with self._shown_errors():
            while self._trail:
                before = self._trail.pop()
                if before in self._tree.documents:
                    self._show_document(self.knowledge_base().documents[before])
                    break

    def refresh(self) -> None:
        """Show what changed in the workspace since."""
        with self._shown_errors():
            self._offer_knowledge_bases()
            self._list()
            self._show_document(self._still_there())
            self.error = None

    # What the open document needs

    def knowledge_base(self) -> KnowledgeBase:
        """The one that is chosen.

        Raises:
            NotFoundError: There is none.
        """
        if self._kb is not None:
            return self._kb
        assert self._workspace is not None
        if not self._name():
            raise NotFoundError(f"{self._place}: has no knowledge base yet; make one first")
        return self._workspace[self._name()]

    def say(self, text: str) -> None:
        """Show a line of text."""
        self._status.value = render.status(text)

    def fail(self, error: Exception) -> None:
        """Show an error in the status line; what was shown before stays."""
        self.error = error
        if not isinstance(error, KbkitError):
            _log.debug("unexpected error in a documents panel", exc_info=error)
        self._status.value = render.problem(error)

    def follow(self, target: Target) -> None:
        """Open the document that a link leads to."""
        self.show(target.document, target.anchor)

    def changed(self, what: str) -> None:
        """The document that is open was changed here: bring all else level with that."""
        if what == "documents":
            self._list()
            self.document = self.shown.document
            self._show_tree()
        events.tell(self._place, what, but=self)

    # What the controls and the tree do

    def _chosen(self, _change: Bunch) -> None:
        if not self._quiet:
            with self._shown_errors():
                self._list()
                self._trail.clear()
                self._show_document(None)

    def _filtered(self, _change: Bunch) -> None:
        with self._shown_errors():
            self._show_tree()

    def _asked(self, content: Mapping[str, Any]) -> None:
        """The lines of a folder that is opened."""
        folder = str(content.get("folder"))
        self._view.send({"folder": folder, "rows": self._tree.rows(folder)})

    def _selected(self, content: Mapping[str, Any]) -> None:
        self.show(str(content.get("document")))

    def _looked(self, _content: Mapping[str, Any]) -> None:
        """The reader comes back to the tree: perhaps another process changed something."""
        with self._shown_errors():
            if self._name() and self._revision != handle_of(self.knowledge_base()).revision():
                self.refresh()

    def _heard(self, what: str) -> None:
        """Another panel of the workspace changed something."""
        if what == "ratings":
            with self._shown_errors():
                self.shown.draw()
        else:
            self.refresh()

    # What is shown

    def _list(self) -> None:
        """Read the documents anew."""
        documents: list[Document] = []
        self._revision = None
        if self._name():
            self._revision = handle_of(self.knowledge_base()).revision()
            documents = self.knowledge_base().documents.list()
        self._tree = DocumentTree(documents)
        self._reader = Reader(documents)
        self._version += 1
        count = f"{len(documents):,} {'document' if len(documents) == 1 else 'documents'}"
        self.say(f"{self._name()}: {count}" if self._name() else "No knowledge base yet")

    def _show_document(self, document: Document | None, anchor: str = "") -> None:
        other = document is not None and (self.document is None or self.document.id != document.id)
        self.shown.show(document, self._reader, anchor)
        self.document = document
        self.back_button.disabled = not self._trail
        self._seeks += other
        self._show_tree()

    def _still_there(self) -> Document | None:
        """The document that is open as it is now."""
        if self.document is None or self.document.id not in self._tree.documents:
            return None
        return self.knowledge_base().documents[self.document.id]

    def _show_tree(self) -> None:
        text = self.filter_box.value.strip()
        found, many = self._tree.found(text) if text else (None, 0)
        if text:
            more = f", the first {MOST_FOUND} are shown" if many > MOST_FOUND else ""
            self.say(f"{many:,} of {len(self._tree):,} documents{more}")
        document = self.document
        self._view.state = {
            "label": f"Documents of {self._name()}",
            "kb": self._name(),
            "version": self._version,
            "rows": self._tree.top(),
            "found": found,
            "empty": "Nothing matches." if text else "No documents yet.",
            "selected": "" if document is None else document.id,
            "way": [] if document is None else self._tree.way(document.id),
            "shown": self._seeks,
        }

    @contextmanager
    def _shown_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # a panel has nobody to raise to: it shows what is wrong
            self.fail(error)

    def _name(self) -> str:
        if self._kb is not None:
            return self._kb.name
        assert self.kb_box is not None
        return self.kb_box.value or ""

    def _offer_knowledge_bases(self) -> None:
        """Keep the selector in step with the workspace, which others may change."""
        if self._workspace is None or self.kb_box is None:
            return
        names = list(self._workspace)
        if list(self.kb_box.options) != names:
            chosen = self.kb_box.value
            self._quiet = True
            try:
                self.kb_box.options = names
                self.kb_box.value = chosen if chosen in names else next(iter(names), None)
            finally:
                self._quiet = False
            if chosen not in names:
                self._trail.clear()
