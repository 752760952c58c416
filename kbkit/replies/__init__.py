"""Replies to agents: texts within a budget of tokens, with a cursor for the rest.

Interfaces for agents (MCP, REST) call a workspace and hand what comes back to this room. Nothing is
sought or decided here. The names are loaded when they are first used: a server lists its tools
before anybody asks one of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kbkit.replies.knowledge_bases import (
        added_reply,
        collection_reply,
        knowledge_bases_reply,
        usage_text,
    )
    from kbkit.replies.limits import MIN_TOKENS
    from kbkit.replies.passages import (
        SOUGHT,
        context_reply,
        document_reply,
        index_reply,
        next_address,
        read_on,
        search_reply,
    )
    from kbkit.replies.reply import Budget, Reply, read_cursor, shortened, write_cursor
    from kbkit.replies.workspace import (
        about_reply,
        entities_reply,
        entries_reply,
        entry_reply,
        file_reply,
        folder_reply,
        memory_reply,
        problem_text,
        relation_reply,
        steps_reply,
    )

_HOME = {
    "Budget": "reply",
    "MIN_TOKENS": "limits",
    "Reply": "reply",
    "SOUGHT": "passages",
    "about_reply": "workspace",
    "added_reply": "knowledge_bases",
    "collection_reply": "knowledge_bases",
    "context_reply": "passages",
    "document_reply": "passages",
    "entities_reply": "workspace",
    "entries_reply": "workspace",
    "entry_reply": "workspace",
    "file_reply": "workspace",
    "folder_reply": "workspace",
    "index_reply": "passages",
    "knowledge_bases_reply": "knowledge_bases",
    "memory_reply": "workspace",
    "next_address": "passages",
    "problem_text": "workspace",
    "read_cursor": "reply",
    "read_on": "passages",
    "relation_reply": "workspace",
    "search_reply": "passages",
    "shortened": "reply",
    "steps_reply": "workspace",
    "usage_text": "knowledge_bases",
    "write_cursor": "reply",
}

__all__ = [
    "MIN_TOKENS",
    "SOUGHT",
    "Budget",
    "Reply",
    "about_reply",
    "added_reply",
    "collection_reply",
    "context_reply",
    "document_reply",
    "entities_reply",
    "entries_reply",
    "entry_reply",
    "file_reply",
    "folder_reply",
    "index_reply",
    "knowledge_bases_reply",
    "memory_reply",
    "next_address",
    "problem_text",
    "read_cursor",
    "read_on",
    "relation_reply",
    "search_reply",
    "shortened",
    "steps_reply",
    "usage_text",
    "write_cursor",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
