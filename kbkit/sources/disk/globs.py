"""Globs of files on disk. No symbolic link leads a walk to another place."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

_MAGIC = re.compile(r"[*?\[]")
_TOOLS = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})


def parts_of(pattern: str) -> tuple[str, str]:
    """Split a glob in the folder it starts in and the rest, which begins with a wildcard."""
    segments = pattern.replace(os.sep, "/").split("/")
    for index, segment in enumerate(segments):
        if _MAGIC.search(segment):
            folder = "/".join(segments[:index])
            return folder or ("/" if index else ""), "/".join(segments[index:])
    return pattern, ""


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


def fits(path: str, pattern: str) -> bool:
    """Whether a path inside a folder fits a glob.

    ``*`` and ``?`` stay inside a name, ``**`` goes through folders.
    """
    return _compiled(pattern).fullmatch(path) is not None


def excluded(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a path is left out: a glob without a slash means names, in any folder."""
    for pattern in patterns:
        plain = pattern.removeprefix("./")
        if plain.endswith("/"):
            plain += "**"
        if fits(path, plain) or ("/" not in plain and fits(path.rpartition("/")[2], plain)):
            return True
    return False


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    out = []
    index = 0
    while index < len(pattern):
        if pattern.startswith("**/", index):
            out.append("(?:[^/]+/)*")
            index += 3
        elif pattern.startswith("**", index):
            out.append(".*")
            index += 2
        elif pattern[index] == "*":
            out.append("[^/]*")
            index += 1
        elif pattern[index] == "?":
            out.append("[^/]")
            index += 1
        elif pattern[index] == "[" and (end := pattern.find("]", index + 2)) > 0:
            inner = pattern[index + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            inner = "^/" + inner[1:] if inner.startswith("!") else inner.replace("^", "\\^", 1)
            out.append(f"(?!/)[{inner}]")
            index = end + 1
        else:
            out.append(re.escape(pattern[index]))
            index += 1
    try:
        return re.compile("".join(out), re.DOTALL)
    except re.error:
        return re.compile(re.escape(pattern))
