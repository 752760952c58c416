"""The tree of the documents panel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kbkit.export.pages.paths import LinkMap, uri_parts
from kbkit.export.pages.sections import natural_key
from kbkit.models import Document, DocumentState
from kbkit.panels.render import ABOUT_LENGTH, TITLE_LENGTH, plain

MAX_FOUND = 300
_MAX_OPEN = 500
"""A folder with most documents starts open, unless it has more than these."""

Row = dict[str, Any]
"""``id`` and ``name``; of a folder also ``count``, and ``rows`` if open; of a document ``about``,
and ``state`` if not current."""


@dataclass(slots=True)
class _Branch:
    key: str
    name: str
    folders: dict[str, _Branch] = field(default_factory=dict)
    documents: list[Document] = field(default_factory=list)
    count: int = 0

    def collapse(self) -> _Branch:
        """Merge a chain of folders without documents into one."""
        folder, name = self, self.name
        while len(folder.folders) == 1 and not folder.documents:
            folder = next(iter(folder.folders.values()))
            name = f"{name}/{folder.name}"
        return _Branch(folder.key, name, folder.folders, folder.documents, folder.count)


class DocumentTree:
    """Folders and documents; rows are created on request."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.documents = {document.id: document for document in documents}
        self._folders = _folders_of(self.documents.values())

    def __len__(self) -> int:
        return len(self.documents)

    @cached_property
    def pages(self) -> LinkMap:
        """The ids of the documents by URI."""
        return LinkMap({document.uri: document.id for document in self.documents.values()})

    def roots(self) -> list[Row]:
        """List the outermost rows; a folder with most of the documents is open."""
        rows = children = self.rows("")
        while children:
            largest = max(children, key=lambda row: row.get("count", 0))
            if largest.get("count", 0) * 2 <= len(self):
                break
            if len(self._folders[largest["id"]].documents) > _MAX_OPEN:
                break
            children = largest["rows"] = self.rows(largest["id"])
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
            name = f"{document.title} {document.uri}".casefold()
            if all(word in name for word in words):
                hits.append(document)
        root = _folders_of(hits[:MAX_FOUND])[""]
        return list(_rows(root, expanded=True)), len(hits)


def _folders_of(documents: Iterable[Document]) -> dict[str, _Branch]:
    folders = {"": _Branch("", "")}
    for document in documents:
        folder = folders[""]
        folder.count += 1
        parts = uri_parts(document.uri)[0]
        for name, key in zip(parts, _ancestor_keys(parts), strict=True):
            if key not in folders:
                folders[key] = folder.folders[key] = _Branch(key, name)
            folder = folders[key]
            folder.count += 1
        folder.documents.append(document)
    return folders


def _ancestor_keys(parts: tuple[str, ...]) -> list[str]:
    return ["/".join(parts[: depth + 1]) + "/" for depth in range(len(parts))]


def _rows(folder: _Branch, *, expanded: bool = False) -> Iterator[Row]:
    for inner in sorted(folder.folders.values(), key=lambda each: natural_key(each.name)):
        chain = inner.collapse()
        row: Row = {"id": chain.key, "name": plain(chain.name, TITLE_LENGTH), "count": chain.count}
        yield row | ({"rows": list(_rows(chain, expanded=True))} if expanded else {})
    for document in sorted(folder.documents, key=lambda each: natural_key(each.uri)):
        name = plain(document.title, TITLE_LENGTH) or plain(document.uri, TITLE_LENGTH)
        description = plain(document.description, ABOUT_LENGTH)
        row = {"id": document.id, "name": name or "Untitled", "about": description}
        if document.state is not DocumentState.CURRENT:
            row["state"] = document.state.value
        yield row
