"""Globs, the same for addresses, files and filters.

A path is a row of names parted by slashes; a slash at its begin or end changes nothing. In a
pattern

- ``*`` stands for any characters of one name, ``?`` for one of them,
- ``**`` as a whole name for any number of names, none too,
- ``[a-z]`` for one of these characters, ``[!a-z]`` for one that is none of them,
- ``{a,b}`` for either; it may hold slashes and other braces.

A pattern without a slash is about the last name only, in whatever folder it is, and one that ends
in a slash means all that is below. Case counts, and names that begin with a dot are like others.

Patterns and paths may both be hostile: a match takes at most the product of their lengths. The
regular expressions that other libraries make of several ``**`` take its power.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from functools import lru_cache

from kbkit.errors import ConfigError

_MAX_LENGTH = 1_000
_MAX = 64  # patterns that braces may stand for
_BRACES = re.compile(r"\{([^{},]*(?:,[^{},]*)+)\}")
_MAGIC = re.compile(r"[*?\[{]")
_NONE = re.compile(r"(?!)")  # fits nothing

Names = tuple[re.Pattern[str] | None, ...]
"""Patterns for the names of a path; ``None`` stands for ``**``."""


def matches(path: str, patterns: Iterable[str]) -> bool:
    names = [name for name in path.split("/") if name]
    return any(_fits(names, row) for pattern in patterns for row in compile_glob(pattern))


def admits(path: str, include: Iterable[str], exclude: Iterable[str]) -> bool:
    """Whether globs admit a path: any of ``include`` (if given), and none of ``exclude``."""
    return not matches(path, exclude) and (not (wanted := tuple(include)) or matches(path, wanted))


def split_glob(pattern: str) -> tuple[str, str]:
    """Split a pattern into the folder before its first wildcard and the rest, ``""`` for none.

    The rest begins with a slash, and so is about whole paths in that folder.
    """
    names = pattern.split("/")
    for index, name in enumerate(names):
        if _MAGIC.search(name):
            folder = "/".join(names[:index])
            return folder or ("/" if index else ""), "/" + "/".join(names[index:])
    return pattern, ""


@lru_cache(maxsize=1024)
def compile_glob(pattern: str) -> tuple[Names, ...]:
    if len(pattern) > _MAX_LENGTH:
        raise ConfigError(f"{pattern[:40]}…: a glob of more than {_MAX_LENGTH:,} characters")
    waiting: list[str] = [pattern]
    alternatives: list[str] = []
    while waiting:
        text = waiting.pop()
        if braces := _BRACES.search(text):
            head, tail = text[: braces.start()], text[braces.end() :]
            waiting += [f"{head}{choice}{tail}" for choice in braces[1].split(",")]
        else:
            alternatives.append(text)
        if len(waiting) + len(alternatives) > _MAX:
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


def _fits(names: list[str], row: Names) -> bool:
    """Match by going back to the last ``**`` only, which any earlier one could not mend."""
    place = index = again = 0
    last = -1  # where the last ** stands
    while place < len(names):
        part = row[index] if index < len(row) else _NONE
        if part is None:
            last, again = index, place
            index += 1
        elif part.match(names[place]):
            place, index = place + 1, index + 1
        elif last >= 0:
            again += 1
            place, index = again, last + 1
        else:
            return False
    return all(part is None for part in row[index:])
