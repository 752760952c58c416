"""A workspace: a folder or a server with knowledge bases, files, entries and a graph.

::

    workspace         the workspace itself
    searches          searches across its knowledge bases
    doctor            finds damage, and repairs it
    search_processes  searches in separate processes, for a server
    improver          the background process for embedding models
"""

from kbkit.workspace.workspace import Workspace, rater_of, settings_of, stores_of

__all__ = ["Workspace", "rater_of", "settings_of", "stores_of"]
