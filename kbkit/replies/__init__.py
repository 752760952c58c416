"""What agents are given: texts within a budget of tokens, with a cursor for what is left.

Interfaces for agents (MCP, REST) call a workspace and hand what comes back to this room. Nothing is
sought or decided here. The names are loaded when they are first used: a server lists its tools
before anybody asks one of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kbkit.replies.collections import added_reply, collection_reply
    from kbkit.replies.contexts import context_reply
    from kbkit.replies.documents import document_reply
    from kbkit.replies.entries import entries_reply, entry_reply
    from kbkit.replies.files import file_reply, folder_reply
    from kbkit.replies.graph import about_reply, entities_reply, relation_reply, steps_reply
    from kbkit.replies.knowledge_bases import knowledge_bases_reply
    from kbkit.replies.limits import LEAST_TOKENS
    from kbkit.replies.memory import memory_reply
    from kbkit.replies.passages import SOUGHT, search_reply
    from kbkit.replies.problems import problem_text
    from kbkit.replies.reply import Budget, Reply, read_cursor, shortened, write_cursor
    from kbkit.replies.resources import index_reply, next_address, read_on
    from kbkit.replies.usage import usage_text

_HOME = {
    "Budget": "reply",
    "LEAST_TOKENS": "limits",
    "Reply": "reply",
    "SOUGHT": "passages",
    "about_reply": "graph",
    "added_reply": "collections",
    "collection_reply": "collections",
    "context_reply": "contexts",
    "document_reply": "documents",
    "entities_reply": "graph",
    "entries_reply": "entries",
    "entry_reply": "entries",
    "file_reply": "files",
    "folder_reply": "files",
    "index_reply": "resources",
    "knowledge_bases_reply": "knowledge_bases",
    "memory_reply": "memory",
    "next_address": "resources",
    "problem_text": "problems",
    "read_cursor": "reply",
    "read_on": "resources",
    "relation_reply": "graph",
    "search_reply": "passages",
    "shortened": "reply",
    "steps_reply": "graph",
    "usage_text": "usage",
    "write_cursor": "reply",
}

__all__ = [
    "LEAST_TOKENS",
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
