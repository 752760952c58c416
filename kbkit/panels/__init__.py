"""Panels: pieces of user interface for notebooks, made of ipywidgets.

The names are loaded when they are used, so that importing this package does not import
ipywidgets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbkit.panels.ingest import IngestPanel
    from kbkit.panels.search import SearchPanel

__all__ = ["IngestPanel", "SearchPanel"]


def __getattr__(name: str) -> object:
    if name == "SearchPanel":
        from kbkit.panels.search import SearchPanel

        return SearchPanel
    if name == "IngestPanel":
        from kbkit.panels.ingest import IngestPanel

        return IngestPanel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
