"""Order and titles of pages in the navigation of a documentation project."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import islice, pairwise
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any

from kbkit.regular_files import bytes_of
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
            return in_order(_Project(root, pages).entries())
    return {}


class _Project:
    """Pages of a project, by the names that toctrees use."""

    def __init__(self, root: Path, pages: Sequence[Path]) -> None:
        self._root = root
        top = root.parent
        inside = [path for path in pages if path.is_relative_to(top)]
        self._pages: Mapping[str, Path] = {
            path.relative_to(top).with_suffix("").as_posix(): path for path in inside
        }

    def entries(self) -> Iterator[tuple[Path, NavEntry]]:
        seen = {self._root.stem}
        yield self._root, NavEntry("")
        yield from self._below(self._root.stem, (), seen)

    def _below(self, name: str, above: Above, seen: set[str]) -> Iterator[tuple[Path, NavEntry]]:
        if len(above) >= DEEPEST:
            return
        for caption, listed in _tables(self._pages[name]):
            section = (*above, (caption, None)) if caption else above
            for title, target in listed:
                for page_path in self._resolve(target, name):
                    if page_path in seen:
                        continue
                    seen.add(page_path)
                    page = self._pages[page_path]
                    yield page, NavEntry(title, section)
                    label = title or page.stem
                    yield from self._below(page_path, (*section, (label, page)), seen)

    def _resolve(self, target: str, name: str) -> list[str]:
        path = target.lstrip("/") if target.startswith("/") else join(dirname(name), target)
        path = normpath(path)
        if any(mark in path for mark in "*?["):
            return sorted(one for one in self._pages if fnmatchcase(one, path) and one != name)
        stem = path.removesuffix(".rst").removesuffix(".md")
        return [stem] if stem in self._pages else []


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


@dataclass(slots=True)
class _Folder:
    label: str
    position: float = _LAST
    index: Path | None = None
    pages: list[tuple[float, Path]] = field(default_factory=list)
    folders: dict[str, _Folder] = field(default_factory=dict)


def position_entries(folder: Path, pages: Sequence[Path]) -> dict[Path, NavEntry]:
    top, ordered = _Folder(""), False
    for path in pages:
        if path.suffix.lower() not in _SUFFIXES or not path.is_relative_to(folder):
            continue  # not a page of Docusaurus
        inner, place = top, folder
        for name in path.relative_to(folder).parts[:-1][:DEEPEST]:
            place /= name
            if name not in inner.folders:
                inner.folders[name], has_category = _category(place)
                ordered = ordered or has_category
            inner = inner.folders[name]
        position = _sidebar_position(path)
        ordered = ordered or position is not None
        position = _numbered(path.stem) if position is None else position
        if path.stem.lower() in ("index", "readme", path.parent.name.lower()):
            inner.index = inner.index or path
            inner.position = min(inner.position, position)
        inner.pages.append((position, path))
    return in_order(_entries(top, ())) if ordered else {}


def _entries(folder: _Folder, above: Above) -> Iterator[tuple[Path, NavEntry]]:
    if folder.index is not None:
        yield folder.index, NavEntry("", above)
    items: list[tuple[float, str, Path | _Folder]] = [
        *((position, path.name, path) for position, path in folder.pages if path != folder.index),
        *((inner.position, name, inner) for name, inner in folder.folders.items()),
    ]
    for _, _, item in sorted(items, key=lambda one: one[:2]):
        if isinstance(item, _Folder):
            yield from _entries(item, (*above, (item.label, item.index)))
        else:
            yield item, NavEntry("", above)


def _category(place: Path) -> tuple[_Folder, bool]:
    folder = _Folder(title_from_name(_NUMBER.sub("", place.name, count=1)))
    folder.position = _numbered(place.name)
    for name in CATEGORIES:
        try:
            values: Any = load_values(bytes_of(place / name, _HEAD).decode(errors="replace"))
        except (OSError, ValueError):
            continue
        if isinstance(values, dict):
            if isinstance(label := values.get("label"), str) and label.strip():
                folder.label = label
            position = values.get("position")
            if isinstance(position, int | float) and not isinstance(position, bool):
                folder.position = float(position)
            return folder, True
    return folder, False


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
