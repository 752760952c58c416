"""Panels: pieces of user interface for notebooks, made of ipywidgets.

The names are loaded when they are used, so that importing this package does not import
ipywidgets.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbkit.panels.dashboard import Dashboard
    from kbkit.panels.documents.panel import DocumentsPanel
    from kbkit.panels.evaluation.panel import EvalPanel
    from kbkit.panels.ingest.panel import IngestPanel
    from kbkit.panels.judging.panel import JudgePanel
    from kbkit.panels.search.panel import SearchPanel

__all__ = ["Dashboard", "DocumentsPanel", "EvalPanel", "IngestPanel", "JudgePanel", "SearchPanel"]

_MODULES = {
    "Dashboard": "dashboard",
    "DocumentsPanel": "documents.panel",
    "EvalPanel": "evaluation.panel",
    "IngestPanel": "ingest.panel",
    "JudgePanel": "judging.panel",
    "SearchPanel": "search.panel",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"kbkit.panels.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
