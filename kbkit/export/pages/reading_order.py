"""The order in which a site reads: that in which its contents pages name the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from urllib.parse import urljoin

from kbkit.export.pages.links import canonical
from kbkit.export.pages.paths import uri_parts
from kbkit.markdown.links import destinations

_NAMES = ("index", "readme", "contents", "toc", "summary")
_NEVER = 1_000_000


def contents_links(uri: str, text: str) -> tuple[str, ...]:
    """The addresses that a contents page links to, in its order; of other pages none.

    Args:
        uri: Of the document; that of ``index.html`` and the like, or that of a folder.
        text: Its Markdown.
    """
    if _rank(uri) is None:
        return ()
    links: dict[str, None] = {}
    for link in filter(None, destinations(text)):
        with suppress(ValueError):  # an address that is none
            links[_bare(urljoin(uri, link))] = None
    return tuple(links)


class ReadingOrder:
    """Sorts documents as the contents pages of their folder, or of one above it, name them."""

    def __init__(self, found: Mapping[str, Sequence[str]]) -> None:
        """Read contents pages.

        Args:
            found: The addresses that each links to, by its URI.
        """
        self._places: dict[tuple[str, ...], dict[str, int]] = {}
        for uri in sorted(found, key=lambda uri: (_rank(uri) or 0, uri)):
            places = self._places.setdefault(uri_parts(uri)[0], {})
            for link in (_bare(uri), *found[uri]):  # a contents page comes before what it names
                places.setdefault(link, len(places))

    def place(self, folders: tuple[str, ...], uri: str) -> tuple[int, int]:
        """A key to sort the documents of a folder by; what no page names comes last."""
        address = _bare(uri)
        for up in range(len(folders) + 1):
            place = self._places.get(folders[: len(folders) - up], {}).get(address)
            if place is not None:
                return up, place
        return _NEVER, 0


def _rank(uri: str) -> int | None:
    """How early a contents page of this name is read, if it is one."""
    name = uri_parts(uri)[1].casefold()
    return _NAMES.index(name) if name in _NAMES else None


def _bare(uri: str) -> str:
    """What ``/guide``, ``/guide/`` and ``/guide/index.html`` share."""
    return canonical(uri).removesuffix("index.html").rstrip("/")
