"""The location of a panel's workspace: a folder or a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from kbkit.client.knowledge_base import RemoteKnowledgeBase
    from kbkit.client.workspace import RemoteWorkspace
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.workspace import Workspace

Home: TypeAlias = Path | str
"""The folder of a workspace, or the address of the server that holds it."""


AnyWorkspace: TypeAlias = "Workspace | RemoteWorkspace"
"""A workspace that a panel may show."""
AnyBase: TypeAlias = "KnowledgeBase | RemoteKnowledgeBase"
"""A knowledge base that a panel may show."""
AnyTarget: TypeAlias = "Workspace | RemoteWorkspace | KnowledgeBase | RemoteKnowledgeBase"
"""A workspace or one of its knowledge bases."""


def home_of(target: AnyTarget) -> Home:
    home: Home = target.path if is_local(target) else target.url  # type: ignore[union-attr]
    return home


def is_local(target: object) -> bool:
    return hasattr(type(target), "path")
