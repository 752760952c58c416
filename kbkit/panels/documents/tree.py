"""The tree of documents, by the paths of their URIs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kbkit.export.pages.paths import uri_parts
from kbkit.export.pages.sections import natural_key
from kbkit.models import Document, DocumentState
from kbkit.panels.render import ABOUT_LENGTH, TITLE_LENGTH, plain

MAX_FOUND = 300
"""Documents that a filter shows."""
_OPEN = 500
"""A folder that most documents lie in is shown open, unless it has more lines than this."""

Row = dict[str, Any]
"""A row of the tree: ``id`` and ``name``; of a folder also ``count``, and ``rows`` if open; of a
document ``about``, and ``state`` if not current."""


@dataclass(slots=True)
class _Folder:
    """A folder; chains of folders with nothing else are shown as one."""

    key: str
    name: str
    folders: dict[str, _Folder] = field(default_factory=dict)
    documents: list[Document] = field(default_factory=list)
    count: int = 0

    def collapsed(self) -> _Folder:
        """The folder itself, or the one that it only leads to."""
        folder, name = self, self.name
        while len(folder.folders) == 1 and not folder.documents:
            folder = next(iter(folder.folders.values()))
            name = f"{name}/{folder.name}"
        return _Folder(folder.key, name, folder.folders, folder.documents, folder.count)


class DocumentTree:
    """Folders and documents, whose lines are made when they are asked for."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.documents = {document.id: document for document in documents}
        self._root = _Folder("", "")
        self._folders = {"": self._root}
        _insert(self._folders, self.documents.values())
        self._words: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self.documents)

    def roots(self) -> list[Row]:
        """The outermost lines; a folder that most documents lie in is open."""
        rows = inner = self.rows("")
        while inner:
            largest = max(inner, key=lambda row: row.get("count", 0))
            if largest.get("count", 0) * 2 <= len(self):
                break
            if len(self._folders[largest["id"]].documents) > _OPEN:
                break
            inner = largest["rows"] = self.rows(largest["id"])
        return rows

    def rows(self, key: str) -> list[Row]:
        """List the rows directly in a folder, folders first; none if it does not exist."""
        folder = self._folders.get(key)
        return [] if folder is None else list(_rows(folder))

    def ancestors(self, document_id: str) -> list[str]:
        """The folders that a document lies in, outermost first."""
        document = self.documents.get(document_id)
        return [] if document is None else _ancestor_keys(uri_parts(document.uri)[0])

    def search(self, text: str) -> tuple[list[Row], int]:
        if not self._words:
            self._words = {
                document_id: f"{document.title} {document.uri}".casefold()
                for document_id, document in self.documents.items()
            }
        words = text.casefold().split()
        hits = [
            document_id
            for document_id, known in self._words.items()
            if all(word in known for word in words)
        ]
        root = _Folder("", "")
        _insert({"": root}, [self.documents[document_id] for document_id in hits[:MAX_FOUND]])
        return _expanded(root), len(hits)


def _insert(folders: dict[str, _Folder], documents: Iterable[Document]) -> None:
    """Sort documents into folders, created as needed; `""` is the root."""
    chains: dict[str, list[_Folder]] = {}
    for document in documents:
        # taking a URI apart costs more than all else, and most have company in their folder
        beside = document.uri.rpartition("/")[0]
        if "?" in document.uri or "#" in document.uri or beside.count("/") < 2:
            beside = document.uri
        chain = chains.get(beside)
        if chain is None:
            chain = chains[beside] = _make_folders(folders, uri_parts(document.uri)[0])
        for folder in chain:
            folder.count += 1
        chain[-1].documents.append(document)


def _make_folders(folders: dict[str, _Folder], parts: tuple[str, ...]) -> list[_Folder]:
    chain = [folders[""]]
    for name, key in zip(parts, _ancestor_keys(parts), strict=True):
        if key not in folders:
            folders[key] = chain[-1].folders[key] = _Folder(key, name)
        chain.append(folders[key])
    return chain


def _ancestor_keys(parts: tuple[str, ...]) -> list[str]:
    """Return stable keys of the folders in a path."""
    return ["/".join(parts[: depth + 1]) + "/" for depth in range(len(parts))]


def _rows(folder: _Folder) -> Iterator[Row]:
    for inner in sorted(folder.folders.values(), key=lambda each: natural_key(each.name)):
        shown = inner.collapsed()
        yield {"id": shown.key, "name": plain(shown.name, TITLE_LENGTH), "count": shown.count}
    for document in sorted(folder.documents, key=lambda each: natural_key(each.uri)):
        name = plain(document.title, TITLE_LENGTH) or plain(document.uri, TITLE_LENGTH)
        about = plain(document.description, ABOUT_LENGTH)
        row = {"id": document.id, "name": name or "Untitled", "about": about}
        if document.state is not DocumentState.CURRENT:
            row["state"] = document.state.value
        yield row


def _expanded(folder: _Folder) -> list[Row]:
    rows = list(_rows(folder))
    shown = {found.key: found for found in (each.collapsed() for each in folder.folders.values())}
    for row in rows:
        if "count" in row:
            row["rows"] = _expanded(shown[row["id"]])
    return rows
