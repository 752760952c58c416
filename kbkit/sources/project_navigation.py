"""Order and titles of pages in the navigation of MkDocs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, pairwise, product
from pathlib import Path
from typing import Any

from kbkit.paths import bytes_of
from kbkit.sources.untrusted import load_values

_DEEPEST = 20  # levels of sections
_MAX = 20_000  # pages

Above = tuple[tuple[str, Path | None], ...]


@dataclass(frozen=True, slots=True)
class NavEntry:
    """A page in the navigation.

    Attributes:
        title: Title in the navigation, or ``""``.
        above: Titles of the sections around it, outermost first, each with the file of its
            introductory page.
    """

    title: str
    above: Above = ()
    next: Path | None = None


_CONFIGS = ("mkdocs.yml", "mkdocs.yaml", "zensical.yml")
_MAX_CONFIGURATION = 500_000  # bytes of a configuration
_INDEX = ("index", "readme")


def nav_entries(folder: Path) -> dict[Path, NavEntry]:
    """Return the entries of MkDocs' ``nav`` by file; the first entry of a page counts."""
    entries: dict[Path, NavEntry] = {}
    with suppress(ValueError):  # a null character in a name
        for path, entry in islice(_configured(folder), _MAX):
            entries.setdefault(path, entry)
    following = dict(pairwise(entries))
    return {path: replace(entry, next=following.get(path)) for path, entry in entries.items()}


def _configured(folder: Path) -> Iterator[tuple[Path, NavEntry]]:
    for place, name in product((folder, folder.parent), _CONFIGS):
        try:
            data = bytes_of(place / name, _MAX_CONFIGURATION + 1)
            loaded = load_values(data.decode()) if len(data) <= _MAX_CONFIGURATION else None
        except (OSError, ValueError):
            continue
        if isinstance(loaded, dict):
            docs = place / str(loaded.get("docs_dir") or "docs")
            return _nav_entries(loaded.get("nav"), docs, (), 0)
    return iter(())


def _nav_entries(nav: Any, docs: Path, above: Above, depth: int) -> Iterator[tuple[Path, NavEntry]]:
    for item in nav if isinstance(nav, list) and depth < _DEEPEST else ():
        named = item.items() if isinstance(item, dict) else [("", item)]
        for title, inside in named:
            if isinstance(inside, str) and "://" not in inside:
                yield real_path(docs / inside), NavEntry(str(title), above)
            elif isinstance(inside, list):
                inner = (*above, (str(title), _index(inside, docs)))
                yield from _nav_entries(inside, docs, inner, depth + 1)


def _index(nav: list[Any], docs: Path) -> Path | None:
    """Return the page that introduces a section: an index in first place."""
    first = nav[0] if nav else None
    if isinstance(first, dict):
        first = next(iter(first.values()), None)
    if isinstance(first, str) and Path(first).stem.casefold() in _INDEX:
        return real_path(docs / first)
    return None


def real_path(path: Path) -> Path:
    """Follow links; links in a circle stay (`Path.resolve` raises `RuntimeError`)."""
    return Path(os.path.realpath(path))
