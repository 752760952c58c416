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
of ``static`` draws, ``render`` for what is shown of documents, ``events``, by which panels hear of
each other, and the ``watch`` for what other processes change.
"""

from kbkit.extras import extra
from kbkit.lazy import lazy_names

_NAMES = {
    "dashboard": "Dashboard",
    "documents.panel": "DocumentsPanel",
    "entries": "EntriesPanel",
    "evaluation": "EvalPanel",
    "files": "FilesPanel",
    "graph": "GraphPanel",
    "ingest.panel": "IngestPanel",
    "judging": "JudgePanel",
    "search.panel": "SearchPanel",
}

__getattr__, __dir__, __all__ = lazy_names(
    __name__, _NAMES, lambda name: extra("panels", "anywidget", name)
)
