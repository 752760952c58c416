"""The tree of sections: how thousands of documents are divided so that a reader finds a way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kbkit.export.pages.paths import uri_parts
from kbkit.export.pages.reading_order import ReadingOrder

MIN_DOCUMENTS = 3
"""Smaller folders are no sections of their own: their documents stand with their parent's."""
MAX_DEPTH = 4
"""Deeper folders are not divided any further."""


@dataclass(slots=True)
class Section:
    """A folder of documents.

    Attributes:
        folders: Where it lies; the names of the folders above it and its own.
        label: Its name to a reader.
        documents: URIs that lie in it and not in one of its sections.
        sections: What it is divided into.
    """

    folders: tuple[str, ...]
    label: str = ""
    documents: list[str] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Documents in it and in all of its sections."""
        return len(self.documents) + sum(section.size for section in self.sections)

    def walk(self) -> Iterator[tuple[tuple[Section, ...], Section]]:
        """Every section below this one, with the sections above it, outermost first."""
        for section in self.sections:
            yield (self,), section
            for above, inner in section.walk():
                yield (self, *above), inner


def section_tree(
    uris: Iterable[str], contents: Mapping[str, Sequence[str]] | None = None
) -> Section:
    """Divide documents by the folders of their URIs.

    Folders that hold nothing but one folder are skipped, so that a site under
    ``https://host/en/latest/`` begins with what lies below it. Documents and sections stand in the
    order in which contents pages name them, and then by their names.

    Args:
        uris: The documents.
        contents: The addresses that each contents page links to, by its URI.

    Returns:
        The root; it stands for all documents.
    """
    by_folder: dict[tuple[str, ...], list[str]] = {}
    # of names that differ in case only, the order must not be that of a set
    for uri in sorted(set(uris), key=lambda uri: (natural_key(uri), uri)):
        by_folder.setdefault(uri_parts(uri)[0], []).append(uri)
    root = _grow((), by_folder)
    while len(root.sections) == 1 and not root.documents:
        root = root.sections[0]
    root.label = ""
    _prune(root, 1)
    _sort(root, ReadingOrder(contents or {}))
    return root


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Sorts ``chapter 9`` before ``chapter 10``, whatever the case."""
    return tuple(
        (0, int(part), "") if part.isdecimal() and len(part) < 20 else (1, 0, part)
        for part in re.split(r"(\d+)", text.casefold())
        if part
    )


def _grow(folder: tuple[str, ...], by_folder: dict[tuple[str, ...], list[str]]) -> Section:
    """Build the whole tree, one section a folder."""
    root = Section(folder)
    known = {folder: root}
    for folders in sorted(by_folder):
        for depth in range(1, len(folders) + 1):
            if folders[:depth] not in known:
                section = Section(folders[:depth], folders[depth - 1])
                known[folders[:depth]] = section
                known[folders[: depth - 1]].sections.append(section)
        known[folders].documents = by_folder[folders]
    return root


def _prune(section: Section, depth: int) -> None:
    """Fold what is too small or too deep, and join folders that only lead to one other."""
    kept: list[Section] = []
    for inner in section.sections:
        child = inner
        while len(child.sections) == 1 and not child.documents:
            only = child.sections[0]
            only.label = f"{child.label} / {only.label}"
            child = only
        if child.size < MIN_DOCUMENTS or depth > MAX_DEPTH:
            section.documents += _all_documents(child)
        else:
            _prune(child, depth + 1)
            kept.append(child)
    section.sections = kept


def _sort(section: Section, order: ReadingOrder) -> None:
    def place(uri: str) -> tuple[int, int]:
        return order.place(section.folders, uri)

    def first(inner: Section) -> tuple[int, int]:
        return min(map(place, _all_documents(inner)))

    section.documents.sort(key=lambda uri: (place(uri), natural_key(uri)))
    section.sections.sort(key=lambda inner: (first(inner), natural_key(inner.label)))
    for inner in section.sections:
        _sort(inner, order)


def _all_documents(section: Section) -> list[str]:
    return section.documents + [uri for inner in section.sections for uri in _all_documents(inner)]
