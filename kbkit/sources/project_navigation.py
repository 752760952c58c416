"""Order and titles of pages in the navigation of a documentation project."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import chain, islice, pairwise
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any

from kbkit.paths import bytes_of
from kbkit.sources.untrusted import load_values

DEEPEST = 20  # levels of sections
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


def in_order(listed: Iterable[tuple[Path, NavEntry]]) -> dict[Path, NavEntry]:
    """Link entries to their successors; the first entry of a page counts."""
    entries: dict[Path, NavEntry] = {}
    for path, entry in islice(listed, _MAX):
        entries.setdefault(path, entry)
    following = dict(pairwise(entries))
    return {path: replace(entry, next=following.get(path)) for path, entry in entries.items()}


_ROOTS = ("index", "contents")
_LARGEST = 1_000_000  # bytes of a page
_REST = re.compile(
    r"^(?P<indent>[ \t]*)\.\.[ \t]+toctree::[^\n]*\n"
    r"(?P<body>(?:(?P=indent)[ \t]+[^\n]*\n|[ \t]*\n)*)",
    re.MULTILINE,
)
_MYST = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{toctree\}[^\n]*\n(?P<body>(?:(?!(?P=fence))[^\n]*\n)*)", re.MULTILINE
)
_OPTION = re.compile(r":?([\w-]+):[ \t]*(.*)")
_TITLED = re.compile(r"(.+?)[ \t]*<([^<>]+)>")


def toctree_entries(pages: Sequence[Path]) -> dict[Path, NavEntry]:
    roots = [path for path in pages if path.stem.lower() in _ROOTS]
    for root in sorted(roots, key=lambda path: (len(path.parts), path.stem != "index", path)):
        if _tables(root):
            top = root.parent
            inside = [path for path in pages if path.is_relative_to(top)]
            named = {path.relative_to(top).with_suffix("").as_posix(): path for path in inside}
            below = _below(named, root.stem, (), {root.stem})
            return in_order(chain([(root, NavEntry(""))], below))
    return {}


def _below(
    pages: Mapping[str, Path], name: str, above: Above, seen: set[str]
) -> Iterator[tuple[Path, NavEntry]]:
    if len(above) >= DEEPEST:
        return
    for caption, listed in _tables(pages[name]):
        section = (*above, (caption, None)) if caption else above
        for title, target in listed:
            for found in _resolve(pages, target, name):
                if found not in seen:
                    seen.add(found)
                    page = pages[found]
                    yield page, NavEntry(title, section)
                    yield from _below(pages, found, (*section, (title or page.stem, page)), seen)


def _resolve(pages: Mapping[str, Path], target: str, name: str) -> list[str]:
    path = normpath(target.lstrip("/") if target.startswith("/") else join(dirname(name), target))
    if any(mark in path for mark in "*?["):
        return sorted(one for one in pages if fnmatchcase(one, path) and one != name)
    stem = path.removesuffix(".rst").removesuffix(".md")
    return [stem] if stem in pages else []


def _tables(page: Path) -> list[tuple[str, list[tuple[str, str]]]]:
    try:
        data = bytes_of(page, _LARGEST + 1)
    except OSError:
        return []
    if len(data) > _LARGEST:
        return []
    text = data.decode(errors="replace").replace("\r\n", "\n") + "\n"
    tables = []
    for table in (_REST if page.suffix.lower() == ".rst" else _MYST).finditer(text):
        caption = ""
        listed: list[tuple[str, str]] = []
        for line in map(str.strip, table["body"].split("\n")):
            option = _OPTION.fullmatch(line)
            if option and not listed and "<" not in line:
                caption = option[2].strip("\"' ") if option[1] == "caption" else caption
            elif line and not line.startswith("---"):
                titled = _TITLED.fullmatch(line)
                listed.append((titled[1], titled[2]) if titled else ("", line))
        tables.append((caption, listed))
    return tables


_CONFIGS = ("mkdocs.yml", "mkdocs.yaml", "zensical.yml")
_PAGE_SUFFIXES = frozenset({".rst", ".md"})
_MAX_CONFIGURATION = 500_000  # bytes of a configuration
_INDEX = ("index", "readme")


def nav_entries(folder: Path, files: Sequence[Path]) -> dict[Path, NavEntry]:
    """Return navigation entries by file: from MkDocs' ``nav`` or Sphinx's toctrees."""
    if entries := _mkdocs_entries(folder):
        return entries
    pages = [path.resolve() for path in files if path.suffix.lower() in _PAGE_SUFFIXES]
    return toctree_entries(pages)


def _mkdocs_entries(folder: Path) -> dict[Path, NavEntry]:
    for place in (folder, folder.parent):
        for name in _CONFIGS:
            try:
                data = bytes_of(place / name, _MAX_CONFIGURATION + 1)
                loaded = load_values(data.decode()) if len(data) <= _MAX_CONFIGURATION else None
            except (OSError, ValueError):
                continue
            if isinstance(loaded, dict):
                docs = place / str(loaded.get("docs_dir") or "docs")
                return in_order(_nav_entries(loaded.get("nav"), docs, (), 0))
    return {}


def _nav_entries(nav: Any, docs: Path, above: Above, depth: int) -> Iterator[tuple[Path, NavEntry]]:
    for item in nav if isinstance(nav, list) and depth < DEEPEST else ():
        named = item.items() if isinstance(item, dict) else [("", item)]
        for title, inside in named:
            if isinstance(inside, str) and "://" not in inside:
                yield (docs / inside).resolve(), NavEntry(str(title), above)
            elif isinstance(inside, list):
                inner = (*above, (str(title), _index(inside, docs)))
                yield from _nav_entries(inside, docs, inner, depth + 1)


def _index(nav: list[Any], docs: Path) -> Path | None:
    """Return the page that introduces a section: an index in first place."""
    first = nav[0] if nav else None
    if isinstance(first, dict):
        first = next(iter(first.values()), None)
    if isinstance(first, str) and Path(first).stem.casefold() in _INDEX:
        return (docs / first).resolve()
    return None
