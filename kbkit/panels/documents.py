"""The documents panel: a tree, and the open document with its labels and stars."""

from functools import partial

import ipywidgets as widgets
import traitlets
from traitlets import Bunch

from kbkit.knowledge_base import handle_of
from kbkit.models import Document, DocumentState, DocumentType, Hit
from kbkit.models.values import pluralize
from kbkit.panels import controls, render
from kbkit.panels.controls import AnyTarget, KnowledgeBaseSelector, MutedUpdates, Topic
from kbkit.panels.document_tree import MAX_FOUND, DocumentTree
from kbkit.panels.panel import Message, ReadingPanel, View
from kbkit.panels.text_rendering import MAX_LENGTH, render_document
from kbkit.runtime.config import Settings
from kbkit.text.markdown.structure import passage_ends

_CHOOSE = "Select a document to read it here."


class TreeView(View, module="tree_view.js"):
    """The tree; a message sends the rows of an opened folder."""


class DocumentView(View, module="document.js"):
    """Text and facts of a document."""


class DocumentsPanel(ReadingPanel):
    """Shows the documents of a knowledge base by path, and opens, labels, rates and deletes them.

    ::

        panel = DocumentsPanel(workspace)   # or one knowledge base
        panel                               # at the end of a cell: shows it
        panel.document                      # in a later cell: the open document

    Type and tags set here stay when the source changes. `undo` reverts ratings and deletions made
    here. Errors appear in the status line. ``document`` can be observed like a trait of a widget.

    Attributes:
        document: The open document, or ``None``.
        error: The last error, or ``None``.
        rater: Name that stars are stored under.
        kb_box: Choice of the knowledge base; ``None`` if there is only one.
        filter_box: Words that a title or URI must contain.
        back_button: Opens the previous document.
        undo_button: Reverts the last rating or deletion.
        type_box: Type of the open document; ``tags_box`` has its tags.
        delete_button: Moves the open document to the trash.
    """

    document = traitlets.Any(None, help="The document that is open.")

    def __init__(self, target: AnyTarget, *, rater: str = "") -> None:
        self._selector = KnowledgeBaseSelector(target, on_change=self._on_choice)
        self.kb_box = self._selector.box
        self.rater = rater or Settings.load().rater
        self._tree = DocumentTree(())
        self._muted = MutedUpdates()
        super().__init__(self._selector.home, "documents")
        hint = "Words in titles or addresses"
        self.filter_box = controls.make(widgets.Text, "Filter", placeholder=hint)
        self.filter_box.add_class("kbkit-query").observe(self._on_filter, "value")
        self.undo_button = controls.button("Undo", "Undo the last rating or deletion", self.undo)
        types = [(str(each).replace("_", " "), str(each)) for each in DocumentType]
        self.type_box = controls.make(widgets.Dropdown, "Type", options=types)
        self.tags_box = controls.make(
            widgets.Text, "Tags", placeholder="separated by commas", continuous_update=False
        )
        for box in (self.type_box, self.tags_box):
            box.observe(self._on_labels, "value")
        self.back_button = controls.button("Back", "Go to the previous document", self.back)
        self.delete_button = controls.button(
            "Delete", "Move this document to the trash", self.delete
        )
        self._labels = controls.row(
            self.type_box, self.tags_box, self.back_button, self.delete_button
        )
        self._view = TreeView(self)
        self._text = DocumentView(self)
        left = widgets.VBox([self._view]).add_class("kbkit-documents-left")
        right = widgets.VBox([self._labels, self._text]).add_class("kbkit-documents-right")
        columns = widgets.HBox([left, right]).add_class("kbkit-documents-both")
        top = controls.row(self.kb_box, self.filter_box, self.undo_button)
        self.fill([top, self.status_line, columns])
        self.refresh()

    def show(self, document: str | Hit, anchor: str = "") -> None:
        """Open a document by id or URI at an anchor, or a hit with its passage marked."""
        with self.acting():
            passage = ""
            if isinstance(document, Hit):
                if self.kb_box is not None:
                    self._selector.offer()
                    self.kb_box.value = self._selector.find(document.kb).name
                anchor, passage = document.chunk.anchor, passage_ends(document.chunk.text)
                document = document.chunk.document_id
            opened = self._selector.find().documents[document]
            if self.document is not None and self.document.id != opened.id:
                self._history.append(self.document.id)
            self._show_document(opened, anchor, passage)

    def refresh(self) -> None:
        """Show changes of the workspace."""
        with self.acting():
            self._reread()

    def delete(self) -> None:
        """Move the open document to the trash; `undo` restores it."""
        document = self.document
        if document is None:
            return
        with self.acting():
            documents = self._selector.find().documents
            title = f"“{render.plain(document.title, 80)}”"
            documents.delete(document.id)

            def restore() -> str:
                restored = documents.undelete(document.id)
                return f"Restored: {title}" if restored else f"The next refresh reads {title}"

            self._undo.append((f"deleting {title}", restore, ""))
            self._after_change(f"Deleted: {title}")

    # Controls, tree and document

    def _on_choice(self) -> None:
        with self.acting():
            self._list()
            self._history.clear()
            self._show_document(None)

    def _on_filter(self, _change: Bunch) -> None:
        with self.acting():
            self._show_tree()

    def _on_labels(self, _change: Bunch) -> None:
        document = self.document
        if self._muted or document is None:
            return
        tags = tuple(part for part in map(str.strip, self.tags_box.value.split(",")) if part)
        kind = DocumentType(self.type_box.value)
        if (kind, tags) == (document.document_type, document.tags):
            return
        with self.acting():
            try:
                updated = self._selector.find().documents.update(
                    document.id,
                    document_type=None if kind is document.document_type else kind,
                    tags=None if tags == document.tags else tags,
                )
            except Exception:
                self._show_labels(document)
                raise
            labels = render.plain(", ".join(updated.tags), 80) or "no tags"
            kind_name = updated.document_type.value.replace("_", " ")
            self._after_change(f"Saved: {kind_name}; {labels}")

    def _do_children(self, content: Message) -> None:
        folder = str(content.get("folder"))
        self._view.send({"folder": folder, "rows": self._tree.rows(folder)})

    def _do_select(self, content: Message) -> None:
        self.show(str(content.get("document")))

    def _do_rate(self, content: Message) -> None:
        score = content.get("score")
        if self.document is None or not isinstance(score, int):
            return
        kb = self._selector.find()
        rating = kb.rate(self.document.id, score, rater=self.rater)
        self._undo.append(("rating", partial(kb.ratings.delete, rating.id), "Undone: the rating"))
        self._after_change(f"Saved: {pluralize(score, 'star')}", topic="ratings")

    # Changes elsewhere

    def _update(self, topic: Topic) -> None:
        if topic == "ratings":
            self._show_text()
        elif topic != "graph":
            self._reread()

    def _revision(self) -> object:
        return handle_of(self._selector.find()).revision() if self._selector.name else None

    def _reread(self, opened: str = "", *, reveal: str = "") -> None:
        if self._selector.offer():
            self._history.clear()
        self._list()
        if not self.keeps_outcome:
            self.error = None
        document = None
        if self.document is not None and self.document.id in self._tree.documents:
            document = self._selector.find().documents[self.document.id]
        self._show_document(document)

    # Display

    def _list(self) -> None:
        documents: list[Document] = []
        self._seen = self._revision()
        if self._selector.name:
            documents = self._selector.find().documents.list()
        self._tree = DocumentTree(documents)
        self._version += 1

    def _show_document(
        self, document: Document | None, anchor: str = "", passage: str = ""
    ) -> None:
        other = document is not None and (self.document is None or self.document.id != document.id)
        self.document = document
        self.back_button.disabled = not self._history
        self.undo_button.disabled = not self._undo
        self._reveals += other
        self._serial += bool(other or document is None or anchor or passage)
        self._show_tree()  # first: tree keys must fit the shown document
        self._show_text(anchor, passage)

    def _show_again(self, document_id: str) -> None:
        self._show_document(self._selector.find().documents[document_id])

    def _show_tree(self) -> None:
        text = self.filter_box.value.strip()
        rows, count = self._tree.search(text) if text else (None, 0)
        name = self._selector.name
        if text:
            note = f", the first {MAX_FOUND} are shown" if count > MAX_FOUND else ""
            self.say(f"{count:,} of {len(self._tree):,} documents{note}")
        else:
            self.say(f"{name}: {pluralize(len(self._tree))}" if name else "No knowledge base yet")
        document = self.document
        self._view.state = {
            "label": f"Documents of {name}",
            "kb": name,
            "version": self._version,
            "rows": self._tree.roots(),
            "found": rows,
            "empty": "No matches." if text else "No documents yet.",
            "selected": "" if document is None else document.id,
            "ancestors": [] if document is None else self._tree.ancestors(document.id),
            "reveals": self._reveals,
        }

    def _show_text(self, anchor: str = "", passage: str = "") -> None:
        document = self.document
        self._labels.layout.visibility = "hidden" if document is None else "visible"
        self._links = {}
        if document is None:
            self._text.state = {"title": "", "serial": self._serial, "note": _CHOOSE}
            return
        self._show_labels(document)
        kb, is_current = self._selector.find(), document.state is DocumentState.CURRENT
        rendered = render_document(document, self._tree.pages)
        self._links = rendered.links
        cut = f"{rendered.cut:,} characters at the end are left out: {MAX_LENGTH:,} are shown."
        scores = [each.score for each in kb.ratings.of(document.id) if each.rater == self.rater]
        total = kb.ratings.total(document.id)
        has_others = total is not None and total.raters > bool(scores)
        self._text.state = {
            "title": render.plain(document.title, render.TITLE_LENGTH) or "Untitled",
            "about": render.plain(document.description, render.ABOUT_LENGTH),
            "link": render.web_address(document.uri),
            "place": render.plain(document.uri, render.PATH_LENGTH),
            "badge": "" if is_current else document.state.value,
            "facts": [f"fetched {document.fetched_at:%Y-%m-%d}"],
            "stars": scores[-1] if scores else 0,
            "rated": f"{total.average:.1f} of 5 by {total.raters}" if total and has_others else "",
            "html": rendered.html,
            "links": sorted(rendered.links),
            "anchor": anchor,
            "passage": passage,
            "serial": self._serial,
            "note": cut if rendered.cut else "",
        }

    def _show_labels(self, document: Document) -> None:
        with self._muted:
            self.type_box.value = document.document_type.value
            self.tags_box.value = ", ".join(document.tags)
