"""What a folder has beside, and no server tells of."""

from __future__ import annotations

from typing import Any


class Served:
    """Says of what is not there what to do instead."""

    def __getattr__(self, name: str) -> Any:
        kind = type(self).__name__
        if name == "path":
            raise AttributeError(
                "path: what a server holds lies in a folder of its machine, and of none here; "
                f"{kind} reads and writes it by its other calls, and kbkit.open(...) where the "
                "folder is"
            )
        if kind == "RemoteWorkspace" and name in ("open", "get", "load", "kb", "knowledge_base"):
            raise AttributeError(
                f"a workspace has no {name!r}: write workspace['name'] for a knowledge base, "
                "and workspace.create('name') for a new one"
            )
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")
