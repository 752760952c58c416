"""Options of a server, without heavy imports."""

from __future__ import annotations

from collections.abc import Sequence

from kbkit.errors import ConfigError

SETS = {
    "core": "search, read and rate knowledge bases",
    "collections": "knowledge bases that agents make",
    "files": "the knowledge filesystem, and the memory tool",
    "entries": "solutions that worked",
    "graph": "entities and their relations",
}
"""Tool sets and their purposes."""
SET_NAMES = tuple(SETS)
USUAL_TOKENS = 2500
"""Default maximum tokens of an answer."""
MIN_TOKENS = 400
"""Smallest budget of a reply that holds a passage with its source."""


def check_sets(names: Sequence[str]) -> tuple[str, ...]:
    """Check names of tool sets; return them in order."""
    if unknown := [name for name in names if name not in (*SET_NAMES, "all")]:
        raise ConfigError(
            f"tools: {unknown[0][:80]!r} is no set; there are {', '.join(SET_NAMES)} and all"
        )
    if not names:
        raise ConfigError(f"tools: name a set: {', '.join(SET_NAMES)} or all")
    return tuple(name for name in SET_NAMES if name in names or "all" in names)
