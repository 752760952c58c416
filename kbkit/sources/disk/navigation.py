"""What the navigation of a MkDocs project calls its pages, and where it puts them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from kbkit.sources.json_yaml import load_values

_CONFIGS = ("mkdocs.yml", "mkdocs.yaml", "zensical.yml")
_LARGEST = 500_000  # bytes of a configuration
_MOST = 20_000  # pages
_DEEPEST = 20
_INDEX = ("index", "readme")


@dataclass(frozen=True, slots=True)
class NavEntry:
    """A page in the navigation.

    Attributes:
        title: What it is called there, or ``""``.
        above: Titles of the sections above it, outermost first, and the file of the page that
            introduces each.
        next: File of the page that follows.
    """

    title: str
    above: tuple[tuple[str, Path | None], ...] = ()
    next: Path | None = None


def nav_entries(folder: Path) -> dict[Path, NavEntry]:
    """The pages that a project's navigation names, by their files.

    Args:
        folder: The project's, or its folder of documents.
    """
    for place in (folder, folder.parent):
        for name in _CONFIGS:
            try:
                if (place / name).stat().st_size > _LARGEST:
                    continue
                loaded = load_values((place / name).read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            if isinstance(loaded, dict):
                docs = place / str(loaded.get("docs_dir") or "docs")
                return _in_order(islice(_entries(loaded.get("nav"), docs, (), 0), _MOST))
    return {}


def _in_order(found: Iterator[tuple[Path, NavEntry]]) -> dict[Path, NavEntry]:
    entries: dict[Path, NavEntry] = {}
    for path, entry in found:
        entries.setdefault(path, entry)
    following = dict(pairwise(entries))
    return {
        path: NavEntry(entry.title, entry.above, following.get(path))
        for path, entry in entries.items()
    }


def _entries(
    nav: Any, docs: Path, above: tuple[tuple[str, Path | None], ...], depth: int
) -> Iterator[tuple[Path, NavEntry]]:
    for item in nav if isinstance(nav, list) and depth < _DEEPEST else ():
        named = item.items() if isinstance(item, dict) else [("", item)]
        for title, inside in named:
            if isinstance(inside, str) and "://" not in inside:
                yield (docs / inside).resolve(), NavEntry(str(title), above)
            elif isinstance(inside, list):
                inner = (*above, (str(title), _index(inside, docs)))
                yield from _entries(inside, docs, inner, depth + 1)


def _index(nav: list[Any], docs: Path) -> Path | None:
    """The page that introduces a section: an index that stands first in it."""
    first = nav[0] if nav else None
    if isinstance(first, dict):
        first = next(iter(first.values()), None)
    if isinstance(first, str) and Path(first).stem.casefold() in _INDEX:
        return (docs / first).resolve()
    return None
