"""Files below a folder. No symbolic link leads a walk to another place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_TOOLS = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})


def walk(folder: Path) -> Iterator[tuple[Path, str]]:
    """Files below a folder with their paths inside it, in the order of those.

    Folders that are links, hidden, or hold tools' own files are passed over.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    yield from _entries(entries, "")


def _entries(entries: list[os.DirEntry[str]], inside: str) -> Iterator[tuple[Path, str]]:
    # a stack of its own, since folders may be nested deeper than Python's
    stack: list[tuple[Iterator[os.DirEntry[str]], str]] = [(iter(entries), inside)]
    while stack:
        iterator, place = stack[-1]
        entry = next(iterator, None)
        if entry is None:
            stack.pop()
            continue
        path = place + entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(".") and entry.name not in _TOOLS:
                    below = sorted(os.scandir(entry.path), key=lambda found: found.name)
                    stack.append((iter(below), path + "/"))
            else:
                yield Path(entry.path), path
        except OSError:
            continue
