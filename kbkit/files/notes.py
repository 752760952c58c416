"""A file -> documents: what it says, its tags, and what it links to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kbkit.errors import SourceError
from kbkit.files.links import links_of, names_of, prose, tags_of
from kbkit.models import SourceDocument
from kbkit.sources.disk.files import read_file
from kbkit.sources.formats import UnreadableError, format_of
from kbkit.sources.formats.file_parser import FileParser
from kbkit.stores.catalog.files import Link

_LINKING = frozenset({"markdown", "text"})
"""Formats whose files may link to others, and have tags in their text."""


@dataclass(frozen=True, slots=True)
class Note:
    """What a file is to search.

    Attributes:
        documents: What is searched; none where nothing can be.
        names: What links may call it, in a normal form.
        links: What it links to.
        reason: Why there is no document.
    """

    documents: Sequence[SourceDocument]
    names: frozenset[str]
    links: Sequence[Link] = ()
    reason: str = ""


def read_note(path: str, data: bytes, reader: FileParser) -> Note:
    """Read a file; whatever it holds, this does not fail.

    Args:
        path: Its path, which is the URI of its document.
        data: All of it.
        reader: What reads formats that need a process of their own.
    """
    try:
        documents = read_file(path, data, reader=reader)
    except SourceError as error:
        reason = str(error).removeprefix(f"{path}: ")
        return Note((), frozenset(names_of(path)), reason=reason)
    first = documents[0]
    names = frozenset(names_of(path, first.title, first.metadata.get("aliases")))
    if not _links(path):
        return Note(documents, names)
    text = prose(first.content)
    tags = tuple(dict.fromkeys((*map(_tag, first.tags), *tags_of(text))))
    return Note([replace(first, tags=tags)], names, links_of(text, path))


def _links(path: str) -> bool:
    try:
        return format_of(path) in _LINKING
    except UnreadableError:
        return False


def _tag(tag: str) -> str:
    """A tag of the front matter, where some write it with its mark."""
    return tag.removeprefix("#")
