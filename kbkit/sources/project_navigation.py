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
from kbkit.sources.parts import title_from_name
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


CATEGORIES = ("_category_.json", "_category_.yml", "_category_.yaml")  # describe folders
_SUFFIXES = frozenset({".md", ".mdx"})
_HEAD = 8_000  # bytes of a page that are searched for front matter
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)\n---", re.DOTALL)
_POSITION = re.compile(r"^sidebar_position:[ \t]*(-?\d{1,9}(?:\.\d{1,9})?)[ \t]*\r?$", re.MULTILINE)
_NUMBER = re.compile(r"(\d{1,9})\s*[-_.]+\s*(?=[^\d\s])")
_LAST = float("inf")


def position_entries(folder: Path, pages: Sequence[Path]) -> dict[Path, NavEntry]:
    """Order pages as Docusaurus does: by position, then by name."""
    pages = [path for path in pages if path.suffix.lower() in _SUFFIXES and folder in path.parents]
    depth = len(folder.parents)
    around = {path: [*path.parents][::-1][depth + 1 :][:DEEPEST] for path in pages}
    stated = {path: _sidebar_position(path) for path in pages}
    places = {place for inside in around.values() for place in inside}
    categories = {place: _category(place) for place in places}
    if set(stated.values()) <= {None} and not any(known for *_, known in categories.values()):
        return {}
    positions = {place: position for place, (_, position, _) in categories.items()}
    indexes: dict[Path, Path] = {}
    for path, position in stated.items():
        positions[path] = _numbered(path.stem) if position is None else position
        if path.stem.lower() in ("index", "readme", path.parent.name.lower()):
            place = (around[path] or [folder])[-1]
            indexes.setdefault(place, path)
            positions[place] = min(positions.get(place, _LAST), positions[path])

    first = frozenset(indexes.values())

    def rank(path: Path) -> list[tuple[float, str]]:
        own = (-_LAST, "") if path in first else (positions[path], path.name)
        return [*((positions[place], place.name) for place in around[path]), own]

    return in_order(
        (path, NavEntry("", tuple((categories[at][0], indexes.get(at)) for at in around[path])))
        for path in sorted(pages, key=rank)
    )


def _category(place: Path) -> tuple[str, float, bool]:
    """Return a folder's label and position, and whether a file states them."""
    label = title_from_name(_NUMBER.sub("", place.name, count=1))
    position = _numbered(place.name)
    for name in CATEGORIES:
        try:
            values: Any = load_values(bytes_of(place / name, _HEAD).decode(errors="replace"))
        except (OSError, ValueError):
            continue
        if isinstance(values, dict):
            own, at = values.get("label"), values.get("position")
            label = own if isinstance(own, str) and own.strip() else label
            if isinstance(at, int | float) and not isinstance(at, bool):
                position = float(at)
            return label, position, True
    return label, position, False


def _sidebar_position(path: Path) -> float | None:
    try:
        head = bytes_of(path, _HEAD).decode("utf-8", "replace")
    except OSError:
        return None
    front = _FRONT.match(head)
    match = _POSITION.search(front[1] + "\n") if front else None
    return float(match[1]) if match else None


def _numbered(name: str) -> float:
    match = _NUMBER.match(name)
    return float(match[1]) if match else _LAST


_CONFIGS = ("mkdocs.yml", "mkdocs.yaml", "zensical.yml")
_PAGE_SUFFIXES = frozenset({".rst", ".md", ".mdx"})
_MAX_CONFIGURATION = 500_000  # bytes of a configuration
_INDEX = ("index", "readme")


def nav_entries(folder: Path, files: Sequence[Path]) -> dict[Path, NavEntry]:
    """Return navigation entries by file: from MkDocs' ``nav``, Sphinx's toctrees or Docusaurus."""
    if entries := _mkdocs_entries(folder):
        return entries
    pages = [path.resolve() for path in files if path.suffix.lower() in _PAGE_SUFFIXES]
    return toctree_entries(pages) or position_entries(folder, pages)


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
