"""The knowledge bases that go with every workspace: what they hold is changed elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

FILES = "files"
"""Name and id of the one whose documents are the files, and the folder that these lie in."""
ENTRIES = "entries"
"""Name and id of the one whose documents are the entries, and the folder that these lie in."""


class BuiltIn(NamedTuple):
    """A knowledge base that is built in.

    Attributes:
        description: What it is about.
        holds: What its documents are.
    """

    description: str
    holds: str


BUILT_IN: Mapping[str, BuiltIn] = {
    FILES: BuiltIn("Files that agents and people wrote", "files"),
    ENTRIES: BuiltIn("Solutions that worked, of agents and people", "entries"),
}
"""All of them, by name, which is also their id and that of their namespace of a workspace."""
