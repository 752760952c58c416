"""Panels for notebooks, built with ipywidgets.

Panels do not import each other:

- ``search``: searches as you type, shows cards, and stores stars;
- ``documents``: the documents of a knowledge base as a tree, and each of them;
- ``files``: the files of a workspace as a tree, to read and write;
- ``entries``: the entries of a workspace, to find, read, rate and write;
- ``graph``: the knowledge graph, its gaps, and changes by hand;
- ``judging``: one passage at a time, judged blind, by keyboard;
- ``evaluation``: two configurations of search, side by side;
- ``ingest``: reads sources and uploads, with live counts.

``dashboard`` shows them in tabs. Shared are `Panel`, `JobPanel` and `View` (``panel``),
``controls``, ``render`` and ``text_rendering`` for documents, and ``updates`` for changes by other
panels and processes. ``static`` has the ES modules that draw views.
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
