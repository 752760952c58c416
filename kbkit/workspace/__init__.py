"""A workspace: a folder or a server with knowledge bases, files, entries and a graph.

::

    workspace  the workspace itself
    searches   searches across its knowledge bases
    doctor     finds damage, repairs it, and empties the trash
    processes  searches for a server, and embedding, in separate processes
"""

from kbkit.workspace.workspace import Workspace, settings_of, stores_of

__all__ = ["Workspace", "settings_of", "stores_of"]
