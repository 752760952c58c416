"""Tools for agents over the Model Context Protocol (MCP).

A tool translates arguments, calls a workspace, and passes the result to a function that makes a
reply within a budget of tokens (`kbkit.mcp.replies`).

A set of tools is a module of the set's name in `SETS`, with a function ``add(tools)``. It
declares each tool as a function with `Tools.read` or `Tools.write`::

    def add(tools: Tools) -> None:
        @tools.read(listed("knowledge_bases", KnowledgeBaseValues))
        def list_knowledge_bases(*, budget: Budget) -> Reply:
            # the docstring goes here: "The knowledge bases that can be searched, ..."
            return _knowledge_bases(tools.list(), budget=budget)

Parameters with their types and notes become the schema of the arguments (``budget`` those of a
page, ``max_tokens`` and ``cursor``), the ``TypedDict`` that of the values, and the docstring the
description: one sentence, since each session pays for each word.
Errors of `kbkit.errors` become error results. After a change, run ``python site/_generate.py``.
"""

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
            f"tools: {unknown[0][:80]!r} is not a set; there are {', '.join(SET_NAMES)} and all"
        )
    if not names:
        raise ConfigError(f"tools: name a set: {', '.join(SET_NAMES)} or all")
    return tuple(name for name in SET_NAMES if name in names or "all" in names)
