"""Tables of contents of a Sphinx project: ``toctree`` directives in reST and MyST.

Source: Sphinx, "Table of contents" (the directive's documentation); MyST-Parser, "Organising
content".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from posixpath import dirname, join, normpath

from kbkit.regular_files import bytes_of
from kbkit.sources.disk.nav_entry import DEEPEST, NavEntry, in_order

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

Above = tuple[tuple[str, Path | None], ...]


def toctree_entries(pages: Sequence[Path]) -> dict[Path, NavEntry]:
    roots = [path for path in pages if path.stem.lower() in _ROOTS]
    for root in sorted(roots, key=lambda path: (len(path.parts), path.stem != "index", path)):
        if _tables(root):
            return in_order(_Project(root, pages).entries())
    return {}


class _Project:
    """The pages of a project, by their names in tables of contents."""

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
            over = (*above, (caption, None)) if caption else above
            for title, target in listed:
                for found in self._found(target, name):
                    if found in seen:
                        continue
                    seen.add(found)
                    page = self._pages[found]
                    yield page, NavEntry(title, over)
                    label = title or page.stem
                    yield from self._below(found, (*over, (label, page)), seen)

    def _found(self, target: str, name: str) -> list[str]:
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
    for found in (_REST if page.suffix.lower() == ".rst" else _MYST).finditer(text):
        caption = ""
        listed: list[tuple[str, str]] = []
        for line in map(str.strip, found["body"].split("\n")):
            option = _OPTION.fullmatch(line)
            if option and not listed and "<" not in line:
                caption = option[2].strip("\"' ") if option[1] == "caption" else caption
            elif line and not line.startswith("---"):
                titled = _TITLED.fullmatch(line)
                listed.append((titled[1], titled[2]) if titled else ("", line))
        tables.append((caption, listed))
    return tables
