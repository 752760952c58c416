"""Errors for abilities that only a local workspace has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from kbkit.errors import LocalOnlyError


class Served:
    """Raises a helpful error for attributes that a served object lacks."""

    _only_local: ClassVar[Mapping[str, str]] = {}
    """Methods of a folder's alone, and the commands that do the same where it is."""

    def __getattr__(self, name: str) -> Any:
        kind = type(self).__name__
        if name == "path":
            raise LocalOnlyError(
                "path: what a server holds lies in a folder of its machine, and of none here; "
                f"{kind} reads and writes it by its other calls, and kbkit.open(...) where the "
                "folder is"
            )
        if command := self._only_local.get(name):
            raise only_local(name, command)
        if kind == "RemoteWorkspace" and name in ("open", "get", "load", "kb", "knowledge_base"):
            raise AttributeError(
                f"a workspace has no {name!r}: write workspace['name'] for a knowledge base, "
                "and workspace.create('name') for a new one"
            )
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")


def only_local(name: str, command: str) -> LocalOnlyError:
    """Return the error for an operation that only works in the workspace's folder."""
    return LocalOnlyError(
        f"{name}: no server does that for who asks it; on its machine, run `{command}` in the "
        "workspace, or call it on kbkit.open(...) of the folder"
    )
