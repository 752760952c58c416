"""The tree of sections, by breadcrumbs and contents pages of a source, else by its folders."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from kbkit.export.pages.contents import ContentsLink, Parents, ReadingOrder, bare, introduces, rank
from kbkit.export.pages.paths import uri_parts
from kbkit.models.documents import Crumb, Navigation
from kbkit.models.values import shared_length

MIN_DOCUMENTS = 3
"""Minimum size of a section without an introduction."""
MAX_DEPTH = 6
"""Deeper sections are not divided."""

Key = tuple[str, ...]
"""Identity of a section: folders and headings."""
_NAME, _PAGE = "\0", "\1"  # markers in a key for names and documents that are not folders
_INDEXES = frozenset({"genindex", "py-modindex", "modindex", "search"})
_MAX_ANCESTORS = 12


@dataclass(slots=True)
class TreeSection:
    """A part of a source.

    Attributes:
        page: URI of the document that introduces it, or ``""``.
        items: URIs of documents, and subsections, in reading order.
    """

    key: Key
    label: str = ""
    page: str = ""
    items: list[str | TreeSection] = field(default_factory=list)

    @property
    def documents(self) -> list[str]:
        return [item for item in self.items if isinstance(item, str)]

    @property
    def sections(self) -> list[TreeSection]:
        return [item for item in self.items if isinstance(item, TreeSection)]

    @property
    def size(self) -> int:
        return sum(1 for _ in self.reading())

    def walk(self) -> Iterator[tuple[tuple[TreeSection, ...], TreeSection]]:
        """Yield every section below this one after its ancestors, outermost first."""
        for section in self.sections:
            yield (self,), section
            for above, inner in section.walk():
                yield (self, *above), inner

    def reading(self) -> Iterator[str]:
        if self.page:
            yield self.page
        for item in self.items:
            if isinstance(item, str):
                yield item
            else:
                yield from item.reading()


def section_tree(
    uris: Iterable[str],
    contents: Mapping[str, Sequence[ContentsLink]] | None = None,
    navigation: Mapping[str, Navigation] | None = None,
    labels: Mapping[str, str] | None = None,
) -> TreeSection:
    """Divide documents into sections, in reading order and then by name.

    Skips folders that contain only one folder: a site at ``https://host/en/latest/`` starts with
    the folders below.
    """
    ordered = sorted(set(uris), key=lambda uri: (natural_key(uri), uri))
    root = _Tree(ordered, contents or {}, navigation or {}, labels or {}).grow()
    while len(root.items) == 1 and isinstance(only := root.items[0], TreeSection):
        root = only
        if root.page:
            root.items.insert(0, root.page)
    root.label = root.page = ""
    _prune(root, 1)
    existing = set(ordered)
    by_address = {bare(uri): uri for uri in ordered}
    following = {
        uri: target
        for uri, place in (navigation or {}).items()
        if uri in existing and (target := by_address.get(bare(place.next)) if place.next else None)
    }
    _sort(root, ReadingOrder(contents or {}, following))
    # a source starts with its front page and ends with its indexes, whatever the lists say
    root.items.sort(
        key=lambda item: (
            not (isinstance(item, str) and introduces(item) and uri_parts(item)[0] == root.key)
        )
    )
    if any(uri_parts(uri)[1] == "genindex" for uri in ordered):
        root.items.sort(key=_is_index)
    return root


def _is_index(item: str | TreeSection) -> bool:
    """Whether an item is an index or search page of Sphinx, or a section of such pages."""
    if isinstance(item, str):
        return uri_parts(item)[1] in _INDEXES
    return not item.page and all(map(_is_index, item.items))


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key without case: ``chapter 9`` is before ``chapter 10``."""
    return tuple(
        (0, int(part), "") if part.isdecimal() and len(part) < 20 else (1, 0, part)
        for part in re.split(r"(\d+)", text.casefold())
        if part
    )


class _Tree:
    """Documents and their sections."""

    def __init__(
        self,
        uris: Sequence[str],
        contents: Mapping[str, Sequence[ContentsLink]],
        navigation: Mapping[str, Navigation],
        labels: Mapping[str, str],
    ) -> None:
        self._navigation = navigation
        self._labels = labels
        places = {uri: uri_parts(uri) for uri in uris}
        self._top = _common([folders for folders, _ in places.values()])
        self._by_address: dict[str, str] = {}
        for uri in uris:
            self._by_address.setdefault(bare(uri), uri)
        self._pages: dict[Key, str] = {}  # documents that introduce sections
        self._keys: dict[str, Key] = {}
        folders_used = {
            folders[:depth] for folders, _ in places.values() for depth in range(len(folders) + 1)
        }
        for uri in sorted(uris, key=lambda uri: 99 if (place := rank(uri)) is None else place):
            folders, name = places[uri]
            section = folders if introduces(uri) else (*folders, name)
            if section == self._top or section not in folders_used or section in self._pages:
                section = (*folders, _PAGE, name, uri)
            self._pages[section] = uri
            self._keys[uri] = section
        self._folders = {uri: self._folder(folders) for uri, (folders, _) in places.items()}
        # breadcrumbs start at the root of each source
        by_source: dict[Key, list[Key]] = defaultdict(list)
        for folders, _ in places.values():
            by_source[folders[:1]].append(folders)
        self._starts = {first: self._folder(_common(group)) for first, group in by_source.items()}
        self._front = min(
            (uri for uri in uris if self._folders[uri] == self._top and introduces(uri)),
            key=lambda uri: (rank(uri) or 0, uri),
            default="",
        )
        self._families = {uri: self._keys[page] for uri, page in _families(places).items()}
        self._contents_places: dict[str, tuple[Key, Parents]] = {}
        order = sorted(contents, key=lambda uri: (-len(places[uri][0]), rank(uri) or 0, uri))
        for page in order:
            for link in contents[page]:
                target = self._by_address.get(link.address)
                if link.parents and target is not None and target != page:
                    self._contents_places.setdefault(target, (self._folders[page], link.parents))

    def grow(self) -> TreeSection:
        parents: dict[Key, Key] = {}
        for start in self._keys.values():
            key = start
            while key != self._top and key not in parents:
                parents[key] = self._over(key)
                key = parents[key]
        children: dict[Key, list[Key]] = defaultdict(list)
        for key in parents:
            children[parents[key] if self._is_reached(key, parents) else self._top].append(key)
        return self._section(self._top, children)

    def _is_reached(self, key: Key, parents: Mapping[Key, Key]) -> bool:
        for _ in range(_MAX_ANCESTORS):
            key = parents[key]
            if key == self._top:
                return True
        return False

    def _section(self, key: Key, children: Mapping[Key, Sequence[Key]]) -> TreeSection:
        page = self._pages.get(key, "")
        items = [
            self._section(child, children) if child in children else self._pages[child]
            for child in children.get(key, ())
        ]
        return TreeSection(key, self._labels.get(page) or (key[-1] if key else ""), page, items)

    def _folder(self, folders: Key) -> Key:
        inside = folders[: len(self._top) + _MAX_ANCESTORS - 1]
        return inside if len(inside) > len(self._top) else self._top

    def _over(self, key: Key) -> Key:
        uri = self._pages.get(key)
        if uri is None:
            return key[:-2] if key[-2:-1] == (_NAME,) else self._folder(key[:-1])
        navigation = self._navigation.get(uri)
        start = self._starts[self._folders[uri][:1]] if self._folders[uri] else self._top
        if navigation is not None and navigation.breadcrumbs is not None and key != start:
            if not navigation.breadcrumbs:
                return start
            return self._by_contents(uri, self._by_breadcrumbs(uri, navigation.breadcrumbs, start))
        folder = self._folders[uri]
        index = self._by_contents(uri, self._folder(key[:-1]) if key == folder else folder)
        return self._families.get(uri, index) if index == folder else index

    def _by_breadcrumbs(self, uri: str, breadcrumbs: Sequence[Crumb], start: Key) -> Key:
        key = start
        for crumb in breadcrumbs:
            page = self._by_address.get(bare(crumb.uri)) if crumb.uri else None
            if page in (self._front, uri):
                continue
            if page is not None:
                key = self._keys[page]
            elif not crumb.uri or uri_parts(crumb.uri)[0][: len(start)] == start:
                key = (*key, _NAME, crumb.title)  # crumbs outside the source are skipped
        return key

    def _by_contents(self, uri: str, key: Key) -> Key:
        """Return a document's place on the contents page of its folder or of one above."""
        holder, parents = self._contents_places.get(uri, (key, ()))
        above = key
        while above != holder:
            if above == self._top or above in self._pages or above[-2:-1] == (_NAME,):
                return key
            above = self._folder(above[:-1])
        for title, address in parents:
            page = self._by_address.get(address) if address else None
            if page == uri:
                break
            if page != self._front:
                holder = self._keys[page] if page is not None else (*holder, _NAME, title)
        return holder


def _families(places: Mapping[str, tuple[Key, str]]) -> dict[str, str]:
    pages = {place: uri for uri, place in places.items()}
    heads: dict[str, list[str]] = {}
    for uri, (folders, name) in places.items():
        if not uri.startswith(("http://", "https://")):
            continue  # names of functions share stems without being related
        stems = (name[: mark.start()] for mark in re.finditer(r"(?<=\w)[_-](?=\w)", name))
        heads[uri] = [pages[folders, stem] for stem in stems if (folders, stem) in pages]
    size = Counter(page for above in heads.values() for page in above)
    large = {uri: [p for p in above if size[p] >= MIN_DOCUMENTS] for uri, above in heads.items()}
    return {uri: above[-1] for uri, above in large.items() if above}


def _common(folders: Sequence[Key]) -> Key:
    return min(folders, default=())[: shared_length(folders)]


def _prune(section: TreeSection, depth: int) -> None:
    items: list[str | TreeSection] = []
    for item in section.items:
        if isinstance(item, str):
            items.append(item)
            continue
        child = item
        while not child.page and len(child.items) == 1 and isinstance(child.items[0], TreeSection):
            only = child.items[0]
            if not only.page:
                only.label = f"{child.label} / {only.label}"
            child = only
        if depth > MAX_DEPTH or (not child.page and child.size < MIN_DOCUMENTS):
            items += child.reading()
        else:
            _prune(child, depth + 1)
            items.append(child)
    section.items = items


def _sort(section: TreeSection, order: ReadingOrder) -> None:
    folders = tuple(takewhile(lambda part: part not in (_NAME, _PAGE), section.key))

    def place(item: str | TreeSection) -> tuple[Any, ...]:
        if isinstance(item, str):
            uris = [item]
        else:
            uris = [item.page] if item.page else list(item.reading())
        return min(order.place(folders, uri) for uri in uris), natural_key(uris[0])

    section.items.sort(key=place)
    for inner in section.sections:
        _sort(inner, order)
