"""The prompt that says how to use a server, and what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.server.mcpserver.prompts import Prompt

from kbkit import replies
from kbkit.mcp.callers import current_caller

if TYPE_CHECKING:
    from kbkit.mcp.tools import Tools

_USES = {
    "search_knowledge_base": "finds passages; `get_document` reads on where one ends",
    "get_context": "gathers all that helps with a question, within a budget",
    "search_kb": "searches collections, which are knowledge bases too",
    "create_kb_collection": "makes a collection of your own; `add_kb_documents` fills it",
    "find_entries": "finds solutions that worked before; `get_entry` reads one",
    "create_entry": "keeps a solution that worked; `rate_entry` says how well one did",
    "rate_chunk": "says how well a passage answered, which later searches heed",
    "kb_list": "lists the files, `kb_read` reads and `kb_tree` shows all of them",
    "kb_write": "writes a file; look at what is there first",
    "memory": "keeps notes below /memories, which are the same files",
    "graph_entities": "finds named things, `graph_neighbors` what they are related to",
    "about": "tells who speaks of a subject",
}
_RULES = (
    "Search before you answer, and ask in the words of the documentation. Read further only where "
    "a passage does not suffice. Name the source, its date and version where they matter. Say so "
    "where nothing was found. Answers are short: where there is more, a cursor goes on."
)


def usage(tools: Tools) -> Prompt:
    """The prompt.

    Args:
        tools: What there is.
    """

    def how_to_use() -> str:
        """How to use these tools, and what knowledge bases and root folders there are."""
        return replies.usage_text(
            _RULES, _known(tools), tools.list(), _folders(tools), tools.budget(0)
        )

    return Prompt.from_function(how_to_use, title="How to use this knowledge")


def _known(tools: Tools) -> dict[str, str]:
    """What is worth saying of those tools that the caller has."""
    caller = current_caller.get()
    return {
        name: use
        for name, use in _USES.items()
        if name in tools.declared and tools.declared[name].allows(caller)
    }


def _folders(tools: Tools) -> list[str]:
    """The folders at the root of the files, for callers who may see them."""
    if current_caller.get().kbs:
        return []
    return [info.path for info in tools.workspace.files.roots()]
