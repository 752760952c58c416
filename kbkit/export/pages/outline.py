"""The structure of an export: documents, pages and their places."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from kbkit.export.facts import Facts, Manifest
from kbkit.export.pages.contents import ContentsLink, contents_links
from kbkit.export.pages.paths import assign_paths, digest, natural_path
from kbkit.export.pages.sections import MIN_DOCUMENTS, Key, TreeSection, section_tree
from kbkit.models import Document, DocumentState, License
from kbkit.models.documents import Navigation, disambiguate
from kbkit.models.values import plain

Change = Literal["first", "new", "changed"]
"""``first``: existed at the first export."""
_CHANGES: dict[str, Change] = {"first": "first", "new": "new", "changed": "changed"}


@dataclass(frozen=True, slots=True)
class TextRevision:
    """Revision of a document's text; `day` is the first known fetch of this text (ISO)."""

    day: str
    change: Change
    digest: str

    @classmethod
    def of(cls, document: Document, before: str | None, *, first: bool) -> TextRevision:
        """Return a document's revision, given the encoded one of the previous export."""
        text = f"{document.title}\0{document.content}".encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(text, digest_size=8).hexdigest()
        if before is None:
            change: Change = "first" if first else "new"
        else:
            day, change_before, digest_before = (*before.split(), "", "", "")[:3]
            if digest_before == digest and day and change_before in _CHANGES:
                return cls(day, _CHANGES[change_before], digest)
            change = "changed"
        return cls(document.fetched_at.date().isoformat(), change, digest)

    def encode(self) -> str:
        return f"{self.day} {self.change} {self.digest}"


HOME = "index.md"
BROWSE = "browse.md"
FIGURES = "figures.md"
ABOUT = "about.md"
GRAPH = "graph.md"
GRAPH_DATA = "graph.json"
TAG_PAGES = 200
"""Maximum number of tags with a page."""


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A document without its text.

    Attributes:
        label: Title in lists; equal titles also have a part of their path.
        description: One line of plain text.
        contents: Links of a contents page.
    """

    id: str
    uri: str
    title: str
    description: str
    document_type: str
    tags: tuple[str, ...]
    stale: bool
    day: str
    size: int
    revision: TextRevision
    license: License
    contents: tuple[ContentsLink, ...]
    navigation: Navigation
    images: tuple[str, ...]
    label: str = ""


@dataclass(frozen=True, slots=True)
class SiteOutline:
    """Structure of an export's pages.

    Attributes:
        entries: The documents with a page, by URI, in order of URI.
        section_paths: Path of the first list page of each section, by key.
        ancestors: Sections above each document's page, outermost first, by URI.
        neighbours: The documents before and after each in reading order, by URI.
        type_paths: Path of the first page of each type.
        tag_paths: Path of the first page of each tag with a page.
    """

    title: str
    entries: Mapping[str, OutlineEntry]
    paths: Mapping[str, str]
    root: TreeSection
    section_paths: Mapping[Key, str]
    ancestors: Mapping[str, tuple[TreeSection, ...]]
    neighbours: Mapping[str, tuple[str | None, str | None]]
    type_paths: Mapping[str, str]
    tag_paths: Mapping[str, str]
    facts: Facts

    def page_of(self, section: TreeSection) -> str:
        return self.paths[section.page] if section.page else self.section_paths[section.key]


def read_entries(documents: Iterable[Document], before: Manifest) -> Iterator[OutlineEntry]:
    """Yield the outline entries of documents that still exist."""
    first = not before.history  # also after a killed first export
    for document in documents:
        if document.state is not DocumentState.GONE:
            yield OutlineEntry(
                id=document.id,
                uri=document.uri,
                title=plain(document.title) or plain(document.uri),
                description=plain(document.description),
                document_type=document.document_type.value,
                tags=tuple(dict.fromkeys(tag for tag in map(plain, document.tags) if tag)),
                stale=document.state is not DocumentState.CURRENT,
                day=document.fetched_at.date().isoformat(),
                size=len(document.content),
                revision=TextRevision.of(document, before.history.get(document.uri), first=first),
                license=License.of(document.metadata),
                contents=contents_links(document.uri, document.content),
                navigation=Navigation.of(document.metadata),
                images=tuple(sorted(set(document.images.values()))),
            )


def make_outline(
    title: str, listed: Iterable[OutlineEntry], facts: Facts, before: Manifest, directory: Path
) -> SiteOutline:
    entries = {entry.uri: entry for entry in listed}
    labels = disambiguate({uri: entry.title for uri, entry in entries.items()})
    entries = {uri: replace(entry, label=labels[uri]) for uri, entry in entries.items()}
    root = section_tree(
        entries,
        {uri: entry.contents for uri, entry in entries.items() if entry.contents},
        {uri: entry.navigation for uri, entry in entries.items() if entry.navigation},
        labels,
    )
    written = {path.relative_to(directory).as_posix() for path in directory.glob("pages/**/*.md")}
    foreign = written.difference(before.files)
    paths = assign_paths(entries, "pages", previous=before.documents, used=foreign)
    section_paths = {root.key: "sections/all.md"}
    ancestors: dict[str, tuple[TreeSection, ...]] = dict.fromkeys(root.documents, (root,))
    for above, section in root.walk():
        if not section.page or len(section.items) >= MIN_DOCUMENTS:
            # the digest distinguishes names that differ only in case or special characters
            name = natural_path((), " ".join(section.key[len(root.key) :]))
            section_paths[section.key] = f"sections/{name}-{digest('/'.join(section.key))}.md"
        if section.page:
            ancestors[section.page] = above
        ancestors.update(dict.fromkeys(section.documents, (*above, section)))
    order = list(root.reading())
    return SiteOutline(
        title=plain(title),
        entries=entries,
        paths=paths,
        root=root,
        section_paths=section_paths,
        ancestors=ancestors,
        neighbours={
            uri: (before, after)
            for before, uri, after in zip([None, *order], order, [*order[1:], None], strict=False)
        },
        type_paths={
            kind: f"types/{kind}.md" for kind in sorted({e.document_type for e in entries.values()})
        },
        tag_paths=_tag_paths(entries.values()),
        facts=facts,
    )


def _tag_paths(entries: Iterable[OutlineEntry]) -> dict[str, str]:
    counts = Counter(tag for entry in entries for tag in entry.tags)
    ranked = sorted(counts, key=lambda tag: (-counts[tag], tag))[:TAG_PAGES]
    return {tag: f"tags/{natural_path((), tag)}-{digest(tag)}.md" for tag in sorted(ranked)}
