"""Entries in the navigation of a documentation project."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path

DEEPEST = 20
"""Maximum nesting of sections."""
_MAX = 20_000  # pages


@dataclass(frozen=True, slots=True)
class NavEntry:
    """A page in the navigation.

    Attributes:
        title: Title there, or ``""``.
        above: Titles of the sections above it, outermost first, and the file of the page that
            introduces each.
    """

    title: str
    above: tuple[tuple[str, Path | None], ...] = ()
    next: Path | None = None


def in_order(found: Iterable[tuple[Path, NavEntry]]) -> dict[Path, NavEntry]:
    """Link entries to their successors; the first place of a page counts."""
    entries: dict[Path, NavEntry] = {}
    for path, entry in islice(found, _MAX):
        entries.setdefault(path, entry)
    following = dict(pairwise(entries))
    return {path: replace(entry, next=following.get(path)) for path, entry in entries.items()}
