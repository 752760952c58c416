"""Read documents: list, look up, excerpt."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Any

from kbkit.errors import NotFoundError
from kbkit.frames import documents_frame
from kbkit.knowledge_base.handle import Items
from kbkit.models import DeletedDocument, Document, DocumentPart, Filters
from kbkit.models.values import plain
from kbkit.retrieval.searching import check_version
from kbkit.runtime.validation import check_integer, check_limit, check_text, explain_calls
from kbkit.stores.catalog import reading, writing
from kbkit.text.markdown.structure import Heading, outline

if TYPE_CHECKING:
    import pandas as pd


_MAX_LISTED_SECTIONS = 10


def section_span(document: Document, section: str) -> tuple[int, int]:
    """Return the span of a section in characters; the whole document without a section."""
    name = check_text("section", section).strip().lstrip("#").strip().casefold()
    if not name:
        return 0, len(document.content)
    headings = outline(document.content).headings
    for i, heading in enumerate(headings):
        if name in _names(document.title, heading):
            return _span(document, headings[i:])
    raise NotFoundError(_no_section(document.uri, section, headings))


def anchor_span(document: Document, anchor: str) -> tuple[int, int]:
    """Return the span of an anchor, a section or a PDF page; the whole document if unknown."""
    content = document.content
    structure = outline(content)
    for i, (_, begin, number) in enumerate(structure.pages):
        if anchor == f"page={number}":
            return begin, next((start for start, _, _ in structure.pages[i + 1 :]), len(content))
    places = {name: start for start, name in structure.anchors}
    places |= {heading.anchor: heading.start for heading in reversed(structure.headings)}
    if not anchor or anchor not in places:
        return 0, len(content)
    above = [i for i, heading in enumerate(structure.headings) if heading.start <= places[anchor]]
    return _span(document, structure.headings[above[-1] :]) if above else (0, len(content))


def _span(document: Document, headings: Sequence[Heading]) -> tuple[int, int]:
    first, *following = headings
    ends = (heading.start for heading in following if heading.level <= first.level)
    return first.start, next(ends, len(document.content))


def _names(title: str, heading: Heading) -> set[str]:
    path = heading.path if heading.path[0] == title else (title, *heading.path)
    names = {" > ".join(path[at:]) for at in range(len(path))}
    return {name.casefold() for name in names | {heading.anchor}}


def _no_section(uri: str, section: str, headings: Sequence[Heading]) -> str:
    names = [plain(heading.path[-1])[:80] for heading in headings]
    similar = get_close_matches(section, names, 5, 0.4) or names[:_MAX_LISTED_SECTIONS]
    hint = ", ".join(repr(name) for name in similar)
    return f"{uri[:200]}: has no section {section[:80]!r}" + (f"; it has {hint}" if similar else "")


@explain_calls
class DocumentCollection(Items):
    """The documents of a knowledge base in order of URI."""

    _noun = "documents"
    _kind = Document

    def __iter__(self) -> Iterator[Document]:
        with self._database.read() as transaction:
            yield from reading.iter_documents(transaction, self._handle.id)

    def __len__(self) -> int:
        return sum(self._handle.info().states.values())

    def __getitem__(self, document: str) -> Document:
        return self._handle.document(document)

    def __contains__(self, document: object) -> bool:
        if not isinstance(document, str):
            return False
        return self._database.look_up(self._handle.find, document) is not None

    def list(
        self,
        *,
        filters: Filters | Mapping[str, Any] | None = None,
        after: str = "",
        limit: int | None = None,
        content: bool = False,
    ) -> list[Document]:
        """List documents in order of URI, without their text unless asked for.

        Args:
            filters: Conditions on documents: ``document_type``, ``tags``, ``source``, ``path``,
                ``version``, ``after``, ``before`` and ``state``.
            after: Only documents after this URI.
            limit: Maximum number of documents; by default all.
            content: Whether to include their text.

        Raises:
            ConfigError: A filter is wrong or for chunks only, or the limit is wrong.
            NotFoundError: No document has that version; the message lists those that exist.
        """
        conditions = Filters.of(filters)
        conditions.check_of_documents()
        check_limit(limit)
        after = check_text("after", after)
        with self._database.read() as transaction:
            if not conditions and not after and not content and limit is None:
                return reading.list_documents(transaction, self._handle.id)
            matching = None
            if conditions:
                if conditions.version:
                    versions = reading.versions(transaction, self._handle.id)
                    check_version(conditions.version, versions)
                matching = reading.matching_documents(transaction, self._handle.id, conditions)
            documents = reading.iter_documents(
                transaction, self._handle.id, after=after, among=matching, content=content
            )
            return list(islice(documents, limit))

    def part(
        self, document: str, *, section: str = "", start: int = 0, end: int | None = None
    ) -> DocumentPart:
        """Return a document, or a part of its text.

        Args:
            document: Its id or URI.
            section: Only the section with this heading, by text or anchor.
            start: Number of characters to skip, from the beginning of the text or the section.
            end: Position after the last character, counted as ``start``; by default the end.

        Raises:
            ConfigError: A number is wrong.
            NotFoundError: There is no such document or section; the message lists sections.
        """
        full_document = self[document]
        begin, section_end = section_span(full_document, section)
        part_start = min(section_end, begin + check_integer("start", start, 0))
        part_end = section_end if end is None else begin + check_integer("end", end, 0)
        part_end = max(part_start, min(section_end, part_end))
        return DocumentPart(
            kb=self._handle.name,
            document=replace(full_document, content=full_document.content[part_start:part_end]),
            section=section,
            start=part_start,
            end=part_end,
            length=len(full_document.content),
        )

    def trash(self) -> builtins.list[DeletedDocument]:
        """List documents that `undelete` can restore, the last deleted first."""
        return self._handle.look_up(writing.list_deleted)

    def tags(self) -> dict[str, int]:
        """Count documents by tag, the most frequent first."""
        return self._handle.look_up(reading.tag_counts)

    def folders(self, *, depth: int = 2) -> dict[str, int]:
        """Count documents by folder of their URI, sorted by folder.

        Args:
            depth: Levels of folders to count separately.
        """
        return self._handle.look_up(reading.folder_counts, depth)

    def to_frame(self) -> pd.DataFrame:
        """Return all documents as a DataFrame, indexed by id; ``content`` is Markdown."""
        return documents_frame(self)

    def _shown(self) -> builtins.list[Document]:
        return self.list()
