"""The documents panel: a tree, and the open document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import ipywidgets as widgets
import traitlets
from traitlets import Bunch

from kbkit.export.pages.paths import uri_parts
from kbkit.export.pages.sections import natural_key
from kbkit.knowledge_base import handle_of
from kbkit.models import Document, DocumentState, Hit
from kbkit.models.values import pluralize
from kbkit.panels.controls import AnyTarget, KnowledgeBaseSelector, Topic, button, control, row
from kbkit.panels.document_editor import DocumentEditor
from kbkit.panels.panel import Panel, View
from kbkit.panels.render import ABOUT_LENGTH, TITLE_LENGTH, plain
from kbkit.panels.text_rendering import DocumentRenderer
from kbkit.runtime.config import Settings
from kbkit.text.markdown.structure import passage_ends

MAX_FOUND = 300
_MAX_OPEN = 500
"""A folder with most documents starts open, unless it has more than these."""

Row = dict[str, Any]
"""``id`` and ``name``; of a folder also ``count``, and ``rows`` if open; of a document ``about``,
and ``state`` if not current."""


@dataclass(slots=True)
class _Folder:
    key: str
    name: str
    folders: dict[str, _Folder] = field(default_factory=dict)
    documents: list[Document] = field(default_factory=list)
    count: int = 0

    def collapsed(self) -> _Folder:
        """Merge a chain of folders without documents into one."""
        folder, name = self, self.name
        while len(folder.folders) == 1 and not folder.documents:
            folder = next(iter(folder.folders.values()))
            name = f"{name}/{folder.name}"
        return _Folder(folder.key, name, folder.folders, folder.documents, folder.count)


class DocumentTree:
    """Folders and documents; rows are created on request."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.documents = {document.id: document for document in documents}
        self._root = _Folder("", "")
        self._folders = {"": self._root}
        _insert(self._folders, self.documents.values())

    def __len__(self) -> int:
        return len(self.documents)

    def roots(self) -> list[Row]:
        """List the outermost rows; a folder with most of the documents is open."""
        rows = inner = self.rows("")
        while inner:
            largest = max(inner, key=lambda row: row.get("count", 0))
            if largest.get("count", 0) * 2 <= len(self):
                break
            if len(self._folders[largest["id"]].documents) > _MAX_OPEN:
                break
            inner = largest["rows"] = self.rows(largest["id"])
        return rows

    def rows(self, key: str) -> list[Row]:
        """List the rows of a folder, folders first; none if it does not exist."""
        folder = self._folders.get(key)
        return [] if folder is None else list(_rows(folder))

    def ancestors(self, document_id: str) -> list[str]:
        document = self.documents.get(document_id)
        return [] if document is None else _ancestor_keys(uri_parts(document.uri)[0])

    def search(self, text: str) -> tuple[list[Row], int]:
        words = text.casefold().split()
        hits = []
        for document in self.documents.values():
            named = f"{document.title} {document.uri}".casefold()
            if all(word in named for word in words):
                hits.append(document)
        root = _Folder("", "")
        _insert({"": root}, hits[:MAX_FOUND])
        return list(_rows(root, expanded=True)), len(hits)


def _insert(folders: dict[str, _Folder], documents: Iterable[Document]) -> None:
    for document in documents:
        folder = folders[""]
        folder.count += 1
        parts = uri_parts(document.uri)[0]
        for name, key in zip(parts, _ancestor_keys(parts), strict=True):
            if key not in folders:
                folders[key] = folder.folders[key] = _Folder(key, name)
            folder = folders[key]
            folder.count += 1
        folder.documents.append(document)


def _ancestor_keys(parts: tuple[str, ...]) -> list[str]:
    return ["/".join(parts[: depth + 1]) + "/" for depth in range(len(parts))]


def _rows(folder: _Folder, *, expanded: bool = False) -> Iterator[Row]:
    for inner in sorted(folder.folders.values(), key=lambda each: natural_key(each.name)):
        shown = inner.collapsed()
        row: Row = {"id": shown.key, "name": plain(shown.name, TITLE_LENGTH), "count": shown.count}
        yield row | ({"rows": list(_rows(shown, expanded=True))} if expanded else {})
    for document in sorted(folder.documents, key=lambda each: natural_key(each.uri)):
        name = plain(document.title, TITLE_LENGTH) or plain(document.uri, TITLE_LENGTH)
        about = plain(document.description, ABOUT_LENGTH)
        row = {"id": document.id, "name": name or "Untitled", "about": about}
        if document.state is not DocumentState.CURRENT:
            row["state"] = document.state.value
        yield row


class TreeView(View, module="tree_view.js"):
    """The tree; a message sends the rows of an opened folder."""


class DocumentsPanel(Panel):
    """Shows the documents of a knowledge base by path, and opens, labels, rates and deletes them.

    ::

        panel = DocumentsPanel(workspace)   # or one knowledge base
        panel                               # at the end of a cell: shows it
        panel.document                      # in a later cell: the open document

    Type and tags set here stay when the source changes. Errors appear in the status line.
    ``document`` can be observed like a trait of a widget.

    Attributes:
        document: The open document, or ``None``.
        error: The last error, or ``None``.
        rater: Name that stars are stored under.
        kb_box: Choice of the knowledge base; ``None`` if there is only one.
        filter_box: Words that a title or URI must contain.
        back_button: Opens the previous document.
        editor: Controls of the open document; see `DocumentEditor`.
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
        hint = "Words in titles or addresses"
        self.filter_box = control(widgets.Text, "Filter", placeholder=hint)
        self.filter_box.add_class("kbkit-query").observe(self._on_filter, "value")
        self.back_button = button("Back", "Go to the previous document", self.back)
        self._view = TreeView(
            self, {"children": self._send_rows, "select": self._select, "look": self._look}
        )
        super().__init__(self._selector.home, "documents")
        self.editor = DocumentEditor(
            self,
            self._selector.find,
            self.rater,
            self.back_button,
            on_change=self._on_change,
            on_link=lambda link: self.show(link.name, link.anchor),
        ).add_class("kbkit-documents-right")
        left = widgets.VBox([self._view]).add_class("kbkit-documents-left")
        both = widgets.HBox([left, self.editor]).add_class("kbkit-documents-both")
        self.fill([row(self.kb_box, self.filter_box), self.status_line, both])
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

    def back(self) -> None:
        """Open the document that was open before."""
        with self.acting():
            while self._history:
                before = self._history.pop()
                if before in self._tree.documents:
                    self._show_document(self._selector.find().documents[before])
                    break

    def refresh(self) -> None:
        """Show changes of the workspace."""
        with self.acting():
            if self._selector.offer():
                self._history.clear()
            self._list()
            if not self.keeps_outcome:
                self.error = None
            self._show_document(self._reread())

    # Controls, tree and document

    def _on_choice(self) -> None:
        with self.acting():
            self._list()
            self._history.clear()
            self._show_document(None)

    def _on_filter(self, _change: Bunch) -> None:
        with self.acting():
            self._show_tree()

    def _on_change(self, topic: Topic) -> None:
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
        with self.unasked():
            if self._selector.name and self._revision != self._current_revision():
                self.refresh()

    def _update(self, topic: Topic) -> None:
        if topic == "ratings":
            self.editor.redraw()
        elif topic != "graph":
            self.refresh()

    # Display

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
        self._show_tree()  # first: tree keys must fit the shown document
        self.editor.show(document, self._renderer, anchor, passage)

    def _reread(self) -> Document | None:
        if self.document is None or self.document.id not in self._tree.documents:
            return None
        return self._selector.find().documents[self.document.id]

    def _show_tree(self) -> None:
        text = self.filter_box.value.strip()
        rows, count = self._tree.search(text) if text else (None, 0)
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
            "found": rows,
            "empty": "No matches." if text else "No documents yet.",
            "selected": "" if document is None else document.id,
            "ancestors": [] if document is None else self._tree.ancestors(document.id),
            "reveals": self._reveals,
        }
