"""The navigation of a documentation project: order and titles of its pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kbkit.regular_files import bytes_of
from kbkit.sources.disk.nav_entry import DEEPEST, NavEntry, in_order
from kbkit.sources.disk.positions import position_entries
from kbkit.sources.disk.toctrees import toctree_entries
from kbkit.sources.json_yaml import load_values

_CONFIGS = ("mkdocs.yml", "mkdocs.yaml", "zensical.yml")
_SUFFIXES = frozenset({".rst", ".md", ".mdx"})
_LARGEST = 500_000  # bytes of a configuration
_INDEX = ("index", "readme")


def nav_entries(folder: Path, files: Sequence[Path]) -> dict[Path, NavEntry]:
    """The pages that a project's navigation names, by their files.

    Of MkDocs the ``nav``, of Sphinx the tables of contents, of Docusaurus positions and categories.
    """
    if entries := _mkdocs_entries(folder):
        return entries
    pages = [path.resolve() for path in files if path.suffix.lower() in _SUFFIXES]
    return toctree_entries(pages) or position_entries(folder, pages)


def _mkdocs_entries(folder: Path) -> dict[Path, NavEntry]:
    for place in (folder, folder.parent):
        for name in _CONFIGS:
            try:
                data = bytes_of(place / name, _LARGEST + 1)
                loaded = load_values(data.decode()) if len(data) <= _LARGEST else None
            except (OSError, ValueError):
                continue
            if isinstance(loaded, dict):
                docs = place / str(loaded.get("docs_dir") or "docs")
                return in_order(_entries(loaded.get("nav"), docs, (), 0))
    return {}


def _entries(
    nav: Any, docs: Path, above: tuple[tuple[str, Path | None], ...], depth: int
) -> Iterator[tuple[Path, NavEntry]]:
    for item in nav if isinstance(nav, list) and depth < DEEPEST else ():
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
