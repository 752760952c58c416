"""Find a resource among those that the caller may see."""

from __future__ import annotations

from collections.abc import Callable

from kbkit.access import Caller
from kbkit.errors import NotFoundError
from kbkit.knowledge_base import KnowledgeBase
from kbkit.workspace import Workspace


def base_of(workspace: Workspace, caller: Caller, name: str) -> KnowledgeBase:
    caller.require_kb(name)
    return workspace[name]


def holder_of(
    workspace: Workspace, caller: Caller, kb: str | None, holds: Callable[[KnowledgeBase], object]
) -> KnowledgeBase:
    """The knowledge base that holds something: the one that is named, or the first that does."""
    if kb is not None:
        return base_of(workspace, caller, kb)
    missing: NotFoundError | None = None
    for name in caller.visible(workspace):
        found = workspace[name]
        try:
            holds(found)
        except NotFoundError as error:
            missing = missing or error
        else:
            return found
    raise missing or NotFoundError("there is no knowledge base to look in yet")
