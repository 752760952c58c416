"""Panels for notebooks, built with ipywidgets.

Each panel is a room of its own, which knows nothing of the others:

- ``search``: searches as you type, shows cards, and stores stars;
- ``documents``: the documents of a knowledge base as a tree, and each of them;
- ``files``: the files of a workspace as a tree, and each of them, to read and to write;
- ``entries``: the entries of a workspace, to find, read, rate and write;
- ``graph``: the knowledge graph, its gaps, and changes by hand;
- ``judging``: one passage at a time, judged blind, by the keyboard;
- ``evaluation``: two ways to search, side by side;
- ``ingest``: reads sources and uploads, with live counts.

``dashboard`` shows them all in tabs. What they share lies beside it: `Panel` and `JobPanel`
(``panel``), ``controls`` and the ``selector`` of a knowledge base, the ``view`` that an ES module
of ``static`` draws and the ``questions`` that it asks, ``passages`` and ``render`` for what is
shown of documents, ``events``, by which panels hear of each other, and the ``watch`` for what
other processes change.

The names are loaded when they are used, so that importing this package does not import
ipywidgets.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from kbkit.extras import extra

if TYPE_CHECKING:
    from kbkit.panels.dashboard import Dashboard
    from kbkit.panels.documents.panel import DocumentsPanel
    from kbkit.panels.entries import EntriesPanel
    from kbkit.panels.evaluation import EvalPanel
    from kbkit.panels.files import FilesPanel
    from kbkit.panels.graph import GraphPanel
    from kbkit.panels.ingest.panel import IngestPanel
    from kbkit.panels.judging import JudgePanel
    from kbkit.panels.search.panel import SearchPanel

__all__ = [
    "Dashboard",
    "DocumentsPanel",
    "EntriesPanel",
    "EvalPanel",
    "FilesPanel",
    "GraphPanel",
    "IngestPanel",
    "JudgePanel",
    "SearchPanel",
]

_MODULES = {
    "Dashboard": "dashboard",
    "DocumentsPanel": "documents.panel",
    "EntriesPanel": "entries",
    "EvalPanel": "evaluation",
    "FilesPanel": "files",
    "GraphPanel": "graph",
    "IngestPanel": "ingest.panel",
    "JudgePanel": "judging",
    "SearchPanel": "search.panel",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with extra("panels", "anywidget", name):
        return getattr(import_module(f"kbkit.panels.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
