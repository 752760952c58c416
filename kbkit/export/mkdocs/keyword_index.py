"""The search index of the theme (``search/search_index.json``), which finds words only."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_MIXED = re.compile(r"\b(?=\w*[a-z0-9][A-Z]|\w*[A-Z]{2}[a-z])[A-Za-z0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def add_name_parts(path: Path) -> None:
    """Let the search find the parts of names such as ``appendEvent``.

    The search's own means, a separator before capitals, would lose the whole: nobody would find
    ``DataFrame`` by "dataframe". So the parts go to a field of their own.

    Args:
        path: The index; nothing is done where there is none.
    """
    if not path.exists():
        return
    index = json.loads(path.read_text(encoding="utf-8"))
    index["config"]["fields"]["names"] = {"boost": 10.0}
    for entry in index["docs"]:
        if parts := name_parts(f"{entry['title']} {entry['text']}"):
            entry["names"] = parts
    path.write_text(json.dumps(index, separators=(",", ":")), encoding="utf-8")


def name_parts(text: str) -> str:
    """The parts of the names in a text that are written with capitals inside, each once."""
    parts = {part for name in _MIXED.findall(text) for part in _HUMP.split(name)}
    return " ".join(sorted(part for part in parts if len(part) > 1))


def take_entries(path: Path) -> list[dict[str, Any]]:
    """Take all sections out of the index, which every page fetches.

    Args:
        path: The index.

    Returns:
        The sections; none where there is no index.
    """
    if not path.exists():
        return []
    index = json.loads(path.read_text(encoding="utf-8"))
    entries: list[dict[str, Any]] = index.pop("docs")
    text = json.dumps({**index, "docs": []}, separators=(",", ":"))
    path.write_text(text, encoding="utf-8")
    path.with_suffix(".js").write_text(f"var __index = {text};", encoding="utf-8")
    return entries
