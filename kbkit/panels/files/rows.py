"""Rows of the file tree, and of searches in it."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Any

from kbkit.models import Document, FileInfo, Hit
from kbkit.panels.render import ABOUT_LENGTH, TITLE_LENGTH, plain
from kbkit.sources.formats import FORMATS, MULTIPLE

MAX_FOUND = 200
"""Files that a search shows."""

Row = dict[str, Any]
"""A row: ``id``, ``name``, ``about``; of a folder also ``count``, unset."""


def rows(infos: Sequence[FileInfo]) -> list[Row]:
    return [_row(info) for info in infos]


def ancestors(path: str) -> list[str]:
    """The folders that a path lies in, outermost first."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[: depth + 1]) for depth in range(len(parts))]


def found_rows(text: str, documents: Sequence[Document], hits: Sequence[Hit]) -> list[Row]:
    words = text.casefold().split()
    found: dict[str, str] = {}
    for document in documents:
        name = f"{document.uri} {document.title}".casefold()
        if all(word in name for word in words):
            found.setdefault(_path_of(document.uri), document.description)
    named = sorted(found)
    for hit in hits:
        path = _path_of(hit.uri)
        if path not in found:
            named.append(path)
        found[path] = hit.snippet
    return [
        {
            "id": path,
            "name": plain(path.rpartition("/")[2], TITLE_LENGTH),
            "about": plain(f"{path.rpartition('/')[0]} · {found[path]}".strip(" ·"), ABOUT_LENGTH),
        }
        for path in named[:MAX_FOUND]
    ]


def _row(info: FileInfo) -> Row:
    row: Row = {"id": info.path, "name": plain(info.name, TITLE_LENGTH)}
    if info.is_folder:
        row["count"] = None
    else:
        row["about"] = f"{info.changed_at.astimezone():%Y-%m-%d %H:%M}"
    if info.read_only and "/" not in info.path:
        row["state"] = "read only"
    return row


def _path_of(uri: str) -> str:
    """The file of a document; of books and workbooks, URIs of parts go on behind its path."""
    parts = uri.split("/")
    for depth, name in enumerate(parts[:-1], 1):
        suffix = posixpath.splitext(name.removesuffix("#"))[1].lower()
        if FORMATS.get(suffix) in MULTIPLE:
            return "/".join(parts[:depth]).removesuffix("#")
    return uri
