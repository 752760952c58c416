"""A source's own table of contents."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from urllib.parse import urljoin

from kbkit.export.pages.paths import canonical, uri_parts
from kbkit.models.values import plain
from kbkit.text.markdown.structure import DESTINATION, inline_text, split_anchor

_FRONT = ("index", "readme")
_NAMES = (*_FRONT, "_sidebar", "summary", "contents", "toc", "docs", "documentation", "sitemap")
_NO_SECTIONS = ("sitemap",)  # lists everything under meaningless headings
_LINE = re.compile(
    r"^(?:[ ]{0,3}(?P<hashes>\#{1,6})[ \t]+(?P<heading>[^\n]*)"
    r"|(?P<indent>[ ]*(?:[-*+][ \t]+)*)(?:[-*+]|\d{1,9}[.)])[ \t]+(?P<item>[^\n]*)"
    r"|[ ]{0,3}(?P<fence>`{3,}|~{3,})[^\n]*"
    r"|(?P<text>[^\n]*\]\([^\n]*))$",
    re.MULTILINE,
)
_LINK = re.compile(r"^[*_]{0,3}\[((?:\\.|[^\[\]\\])+)(?=\]\()")
_ARROW = re.compile(r"^[\s\u25b2-\u25c5\u2b9c-\u2b9f\u203a\u00bb+]+|[\s\u25b2-\u25c5]+$")
_MAX_NAME = 120  # characters of a heading or item above documents
_UNLISTED = 1_000_000
# from these numbers of listed pages and headings, a heading above this share of pages is dropped
_MIN_LISTED, _MIN_HEADINGS, _SHARED = 8, 3, 0.9

Parents = tuple[tuple[str, str], ...]
"""Headings and items above a document, outermost first, with addresses."""


@dataclass(frozen=True, slots=True)
class ContentsLink:
    """A link of a contents page.

    Attributes:
        address: Normalized target address.
        parents: Headings and list items above it; empty for links in running text.
    """

    address: str
    parents: Parents = ()


def introduces(uri: str) -> bool:
    return (rank(uri) or 0) < len(_FRONT) and rank(uri) is not None


def rank(uri: str) -> int | None:
    if uri.startswith("python:"):  # pandas.Index is a class
        return None
    name = uri_parts(uri)[1].casefold()
    return _NAMES.index(name) if name in _NAMES else None


def bare(uri: str) -> str:
    return canonical(uri).removesuffix("index.html").rstrip("/")


def contents_links(uri: str, text: str) -> tuple[ContentsLink, ...]:
    """Return the links of a contents page in order; none for other pages."""
    if rank(uri) is None:
        return ()
    links: dict[str, ContentsLink] = {}
    joined = cache(lambda target: bare(urljoin(uri, target)))
    sections = uri_parts(uri)[1].casefold() not in _NO_SECTIONS
    for target, parents in _iter_entries(text):
        with suppress(ValueError):  # an invalid address
            address = joined(target)
            above = tuple((name, joined(to) if to else "") for name, to in parents if sections)
            previous = links.get(address)
            if previous is None or (above and not previous.parents):
                # keeps the position of the first link, with the first parents
                links[address] = ContentsLink(address, above)
    return tuple(_drop_shared_heading(list(links.values()), joined("."), text))


def _drop_shared_heading(links: list[ContentsLink], folder: str, text: str) -> list[ContentsLink]:
    """Drop a heading above nearly all pages: Sphinx lists a manual below a page's last heading."""
    inside = [link.parents[0] for link in links if link.parents and link.address.startswith(folder)]
    headings = sum(bool(line["hashes"]) for line in _LINE.finditer(text))
    if len(inside) < _MIN_LISTED or headings < _MIN_HEADINGS:
        return links
    (shared, count), *_ = Counter(inside).most_common(1)
    if shared[1] or count < _SHARED * len(inside):
        return links
    return [
        replace(link, parents=link.parents[1:]) if link.parents[:1] == (shared,) else link
        for link in links
    ]


def _iter_entries(text: str) -> Iterator[tuple[str, Parents]]:
    headings: list[tuple[int, str]] = []
    items: list[tuple[int, str, str]] = []
    fence = ""
    for line in _LINE.finditer(text):
        if mark := line["fence"]:
            fence = "" if fence and mark.startswith(fence) else fence or mark
        if fence or mark:
            continue
        if line["hashes"]:
            level = len(line["hashes"])
            headings = [heading for heading in headings if heading[0] < level]
            name = _name(line["heading"])
            if level > 1 and 0 < len(name) <= _MAX_NAME:
                headings.append((level, name))
            items = []
            yield from ((target, ()) for target in _targets(line["heading"]))
            continue
        if line["item"] is None:
            yield from ((target, ()) for target in _targets(line["text"]))
            continue
        indent, item = len(line["indent"]), line["item"]
        outer = indent - len(line["indent"].lstrip())  # of a list that starts within an item
        items = [above for above in items if above[0] < outer]
        parents = (*((name, "") for _, name in headings), *((name, to) for _, name, to in items))
        link = _LINK.match(item)
        first, *more_targets = [*_targets(item), ""] if link else ["", *_targets(item)]
        if first:
            yield first, parents
        yield from ((target, ()) for target in more_targets if target)
        items.append((indent, _name(link[1] if link else item)[:_MAX_NAME], first))


def _targets(text: str) -> Iterator[str]:
    for match in DESTINATION.finditer(text):
        if target := match[1] or match[2]:
            yield target


def _name(text: str) -> str:
    return plain(_ARROW.sub("", inline_text(split_anchor(text.replace("\0", ""))[0], tags=False)))


class ReadingOrder:
    """The reading order of a source: by links to next pages, else by contents pages."""

    def __init__(
        self, contents: Mapping[str, Sequence[ContentsLink]], following: Mapping[str, str]
    ) -> None:
        self._places: dict[tuple[str, ...], dict[str, int]] = {}
        for uri in sorted(contents, key=lambda uri: (rank(uri) or 0, uri)):
            places = self._places.setdefault(uri_parts(uri)[0], {})
            # a contents page precedes its links
            for address in (bare(uri), *(link.address for link in contents[uri])):
                places.setdefault(address, len(places))
        self._ranks = {uri: number for number, uri in enumerate(self._chain(following))}

    def place(self, folders: tuple[str, ...], uri: str) -> tuple[int, int, int]:
        """Return a sort key for a folder's documents; unlisted ones come last."""
        upwards = range(len(folders), -1, -1)
        return self._ranks.get(uri, _UNLISTED), *self._folder_position(folders, uri, upwards)

    def _folder_position(
        self, folders: tuple[str, ...], uri: str, depths: Iterable[int]
    ) -> tuple[int, int]:
        address = bare(uri)
        for steps, depth in enumerate(depths):
            place = self._places.get(folders[:depth], {}).get(address)
            if place is not None:
                return steps, place
        return _UNLISTED, 0

    def _from_top(self, uri: str) -> tuple[int, int]:
        folders = uri_parts(uri)[0]
        return self._folder_position(folders, uri, range(len(folders) + 1))

    def _chain(self, following: Mapping[str, str]) -> Iterable[str]:
        targets = set(following.values())
        heads = sorted(uri for uri in following if uri not in targets)
        seen: set[str] = set()
        chains: list[list[str]] = []
        # documents that no head leads to form cycles
        for head in (*heads, *sorted(following)):
            chain = []
            uri = head
            while uri and uri not in seen:
                seen.add(uri)
                chain.append(uri)
                uri = following.get(uri, "")
            if chain:
                chains.append(chain)
        # a chain may break at a missing page; its first listed document gives its position
        chains.sort(key=lambda chain: min(map(self._from_top, chain)))
        return [uri for chain in chains for uri in chain]
