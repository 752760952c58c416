"""Paths: globs for addresses, files and filters, walking, and opening regular files only.

Leading and trailing slashes of a path are ignored. In a pattern

- ``*`` matches any characters of one name, ``?`` one character,
- ``**`` as a whole name matches any number of names, including none,
- ``[a-z]`` matches one of these characters, ``[!a-z]`` one other character,
- ``{a,b}`` matches either; it may contain slashes and other braces.

A pattern without a slash matches the last name in any folder; a pattern with a trailing slash
matches everything below. Matching is case-sensitive, and names with a leading dot are not special.

Patterns and paths may be hostile: a match takes at most the product of their lengths. Regular
expressions for several ``**``, as in other libraries, take exponential time.
"""

import errno
import fnmatch
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate
from operator import or_
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from kbkit.errors import ConfigError, SourceError

_MAX_LENGTH = 1_000
_MAX = 64  # patterns after expansion of braces
_BRACES = re.compile(r"\{([^{},]*(?:,[^{},]*)+)\}")
_MAGIC = re.compile(r"[*?\[{]")
_TOOLS = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})

Names = tuple[re.Pattern[str] | None, ...]
"""Patterns for the names of a path; ``None`` is ``**``."""


def matches(path: str, patterns: Iterable[str]) -> bool:
    names = [name for name in path.split("/") if name]
    return any(_match(names, glob) for pattern in patterns for glob in compile_glob(pattern))


def admits(path: str, include: Iterable[str], exclude: Iterable[str]) -> bool:
    """Whether a path matches any of ``include`` (if given) and none of ``exclude``."""
    return not matches(path, exclude) and (not (globs := tuple(include)) or matches(path, globs))


def split_glob(pattern: str) -> tuple[str, str]:
    """Split a pattern into the folder before its first wildcard and the rest, ``""`` for none.

    The rest starts with a slash, so that it matches whole paths in that folder.
    """
    names = pattern.split("/")
    for index, name in enumerate(names):
        if _MAGIC.search(name):
            folder = "/".join(names[:index])
            return folder or ("/" if index else ""), "/" + "/".join(names[index:])
    return pattern, ""


def find_files(place: str, base: Path) -> tuple[Path, str, list[tuple[Path, str]]]:
    """Find the files of a glob, a folder or a path.

    Return a file or folder, the pattern below it or ``""``, and files with their relative paths,
    without hidden ones unless the pattern names these.
    """
    full = base / Path(place).expanduser()
    if full.is_file():
        return full, "", [(full, full.name)]
    is_folder = full.is_dir()
    start, pattern = ("", "") if is_folder else split_glob(place.replace(os.sep, "/"))
    root = full if is_folder else base / Path(start).expanduser()
    dotted = pattern.rpartition("/")[2].startswith(".")
    files = [
        (file, inside)
        for file, inside in walk(root)
        if (dotted or not file.name.startswith("."))
        and (not pattern or matches(inside, (pattern,)))
    ]
    if not files and not is_folder:
        raise SourceError(
            f"{place}: no such file or folder, and no file matches it as a glob "
            f"(relative paths start at {base.resolve()})"
        )
    return root, pattern, files


def walk(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield files below a folder by relative path; skip linked, hidden and tools' folders."""
    # an explicit stack, since folders may be nested deeper than Python's recursion limit
    stack = _entries(folder)
    while stack:
        entry = stack.pop()
        if not entry.is_dir(follow_symlinks=False):
            yield Path(entry.path), Path(entry.path).relative_to(folder).as_posix()
        elif not entry.name.startswith(".") and entry.name not in _TOOLS:
            stack += _entries(entry.path)


def _entries(folder: Path | str) -> list[os.DirEntry[str]]:
    try:
        return sorted(os.scandir(folder), key=lambda entry: entry.name, reverse=True)
    except OSError:
        return []


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Provide the path of a draft, which then replaces the file at once, or is deleted."""
    draft = path.with_suffix(f".{uuid4().hex}.part")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - keeps the names of links


def place_name(place: Path, base: Path) -> str:
    """Return the name of a place on disk in URIs, relative to the base folder if it lies there.

    Places elsewhere are named by their last part only, to keep user and machine private.
    """
    root, start = absolute(place), absolute(base)
    if root.is_relative_to(start) and start != Path(start.anchor):
        inside = root.relative_to(start).as_posix()
        return "" if inside == "." else inside
    return "" if root == absolute(Path.home()) else root.name


@lru_cache(maxsize=1024)
def compile_glob(pattern: str) -> tuple[Names, ...]:
    if len(pattern) > _MAX_LENGTH:
        raise ConfigError(f"{pattern[:40]}…: a glob of more than {_MAX_LENGTH:,} characters")
    pending: list[str] = [pattern]
    alternatives: list[str] = []
    while pending:
        text = pending.pop()
        if braces := _BRACES.search(text):
            head, tail = text[: braces.start()], text[braces.end() :]
            pending += [f"{head}{choice}{tail}" for choice in braces[1].split(",")]
        else:
            alternatives.append(text)
        if len(pending) + len(alternatives) > _MAX:
            raise ConfigError(f"{pattern}: the braces of this glob expand to more than {_MAX}")
    return tuple(_names(text) for text in dict.fromkeys(alternatives))


def _names(pattern: str) -> Names:
    pattern = pattern.removeprefix("./")
    names = [name for name in pattern.split("/") if name]
    if names and "/" not in pattern.rstrip("/"):
        names.insert(0, "**")
    if pattern.endswith("/"):
        names.append("**")
    return tuple(None if name == "**" else re.compile(fnmatch.translate(name)) for name in names)


def _match(names: list[str], pattern: Names) -> bool:
    # whether the first n names match the parts of the pattern so far, for each n
    fits = [True] + [False] * len(names)
    for part in pattern:
        if part is None:
            fits = list(accumulate(fits, or_))
        else:
            pairs = zip(fits, names, strict=False)
            fits = [False, *(fit and bool(part.match(name)) for fit, name in pairs)]
    return fits[-1]


_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def open_file(path: Path) -> BinaryIO:
    """Open a file to read its bytes; follows links."""
    file = open(path, "rb", opener=lambda place, _: os.open(place, _READ))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a file, but a pipe or a device", str(path))
    return file


def bytes_of(path: Path, limit: int = -1) -> bytes:
    """Read a file, up to a size; raises the errors of `open_file`."""
    with open_file(path) as file:
        return file.read(limit)
