"""Resources: documents of knowledge bases, and entries as Agent Skills."""

import mimetypes
import re
from itertools import takewhile
from urllib.parse import quote, unquote

from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.server.mcpserver.prompts import Prompt
from mcp_types import Annotations, Resource, ResourceTemplate

from kbkit.errors import KbkitError, NotFoundError
from kbkit.mcp import passages
from kbkit.mcp.core import find_document, row_of
from kbkit.mcp.replies import Quotes, short, with_cursor
from kbkit.mcp.tools import Tools, current_caller, reason
from kbkit.models import Document

SCHEME = "kbkit://kb/"
INDEX = "llms.txt"
"""Address of a knowledge base's list of documents."""
MAX_LISTED = 200
"""Resources in a list; the indexes name all documents."""
MAX_LENGTH = 4_000
_CURSOR = re.compile(r"(.+?)(?:\?cursor=(next-\d{1,9}))?", re.DOTALL)
_MARKDOWN = "text/markdown"
TEMPLATE = ResourceTemplate(
    name="document",
    uri_template=SCHEME + "{name}/{+path}",
    mime_type=_MARKDOWN,
    title="A document of a knowledge base",
    description="path is the source of a document as in a search; llms.txt lists all.",
)

SKILLS = "skill://"
_MAX_SKILLS = 100
"""Skills among them; `find_entries` finds all."""
SKILL_TEMPLATE = ResourceTemplate(
    name="skill",
    uri_template=SKILLS + "{slug}/{+path}",
    title="A file of a skill",
    description="An entry as an Agent Skill; begin with SKILL.md.",
)


def list_resources(tools: Tools) -> list[Resource]:
    """List skills, the index of each knowledge base, and the first documents."""
    names = [info.name for info in tools.list()]
    listing = [*_skills(tools), *map(_index, names)]
    for name in names:
        room = max(0, MAX_LISTED - len(listing))
        documents = tools.workspace[name].documents.list(limit=room) if room else []
        listing += [_resource(name, document) for document in documents]
    return listing


def read(tools: Tools, address: str) -> ReadResourceContents:
    """Return a page of a document or of a list."""
    match = _CURSOR.fullmatch(address)
    assert match is not None
    whole, cursor = match[1], match[2] or ""
    name, _, path = whole.removeprefix(SCHEME).partition("/")
    try:
        kbs = tools.kbs(name) if name else None
        if not kbs or not path:
            raise NotFoundError(f"{address[:200]}: names no document; give {SCHEME}NAME/SOURCE")
        budget = tools.budget(0, cursor)
        kb = tools.workspace[name]
        if path == INDEX:
            reply = passages.index_reply(
                kb.info(),
                kb.documents.list(),
                lambda each: address_of(name, each.uri),
                budget=budget,
            )
        else:
            sources = [unquote(path), path, path.partition("#")[0]]
            _, document, _ = find_document(tools.workspace, [name], sources)
            reply = passages.document_reply(document, kb=name, budget=budget)
    except (KbkitError, ToolError) as error:
        raise ResourceNotFoundError(reason(error)) from None
    if not (cursor := reply.values["next_cursor"]):
        return ReadResourceContents(reply.text, _MARKDOWN)
    following = f"{whole}?cursor={cursor}"
    text = reply.text.removesuffix(with_cursor("", cursor))
    more = f"{text}\n\nMore: read {following}"
    return ReadResourceContents(more, _MARKDOWN, {"kbkit/next": following})


def _skills(tools: Tools) -> list[Resource]:
    if current_caller.get().kbs:
        return []
    page = tools.workspace.entries.list(status="active", sort="title", limit=_MAX_SKILLS)
    return [
        Resource(
            name=info.slug,
            uri=f"{SKILLS}{info.slug}/SKILL.md",
            mime_type=_MARKDOWN,
            description=info.description or info.title,
        )
        for info in page.entries
    ]


def read_skill(tools: Tools, address: str) -> ReadResourceContents:
    """Return a file of an entry, for callers who may see the whole workspace."""
    from kbkit.entries.entries import skill_of

    slug, _, path = address.removeprefix(SKILLS).partition("/")
    try:
        current_caller.get().require_all_kbs()
        files = skill_of(tools.workspace.entries, slug)
        if path not in files:
            names = ", ".join(sorted(files))[:300]
            raise NotFoundError(f"{address[:200]}: does not exist; the skill has {names}")
    except KbkitError as error:
        raise ResourceNotFoundError(reason(error)) from None
    kind = _MARKDOWN if path.endswith(".md") else mimetypes.guess_type(path)[0]
    try:
        return ReadResourceContents(files[path].decode("utf-8"), kind or "text/plain")
    except UnicodeDecodeError:
        return ReadResourceContents(files[path], kind or "application/octet-stream")


def address_of(name: str, uri: str) -> str:
    path = quote(uri, safe="/:@!$&'()*+,;=~")
    if path == INDEX:  # a document with the name of the index
        path = "%6C" + path[1:]
    return f"{SCHEME}{name}/{path}"


def _index(name: str) -> Resource:
    return Resource(
        name=f"{name}/{INDEX}",
        uri=f"{SCHEME}{name}/{INDEX}",
        mime_type=_MARKDOWN,
        title=f"Documents of {name}",
    )


def _resource(name: str, document: Document) -> Resource:
    return Resource(
        name=f"{name}/{document.uri}"[:300],
        uri=address_of(name, document.uri),
        title=document.title[:200],
        description=document.description[:300] or None,
        mime_type=_MARKDOWN,
        annotations=Annotations(last_modified=document.fetched_at.isoformat(timespec="seconds")),
    )


_TOOL_USES = {
    "search_knowledge_base": "finds passages; `get_document` reads their documents",
    "get_context": "collects what helps with a question, within a budget",
    "search_kb": "searches collections, which are knowledge bases too",
    "create_kb_collection": "creates a collection of your own; `add_kb_documents` fills it",
    "find_entries": "finds solutions that worked before; `get_entry` reads one",
    "create_entry": "stores a solution that worked; `rate_entry` rates one",
    "rate_chunk": "rates how well a passage answered; later searches use it",
    "kb_list": "lists a folder; `kb_read` reads a file, `kb_tree` lists all below",
    "kb_write": "writes a file; list its folder first",
    "memory": "keeps notes below /memories, among the same files",
    "graph_entities": "finds named things; `graph_neighbors` lists related ones",
    "about": "finds documents and statements about a subject",
}
_RULES = (
    "Search before you answer, and ask in the words of the documentation. Read further only if a "
    "passage is not enough. Name the source, and its date and version if they matter. Say so if "
    "nothing was found. Answers are short: if there is more, a cursor continues."
)


def usage(tools: Tools) -> Prompt:
    return Prompt.from_function(
        lambda: _usage_text(tools),
        "how_to_use",
        title="How to use this knowledge",
        description="Explain these tools, and list knowledge bases and root folders.",
    )


_MAX_FOLDERS = 30


def _usage_text(tools: Tools) -> str:
    caller, budget, quotes = current_caller.get(), tools.budget(0), Quotes()
    uses = "\n".join(
        f"- `{name}` {use}."
        for name, use in _TOOL_USES.items()
        if name in tools.declared and tools.declared[name].allows(caller)
    )
    head = f"{_RULES}\n\n{uses}\n\n{quotes.note}"
    roots = [] if caller.kbs else [short(info.path) for info in tools.workspace.files.roots()]
    names = ", ".join(f"{folder}/" for folder in roots[:_MAX_FOLDERS])
    hidden = len(roots) - _MAX_FOLDERS
    files = f"Root folders: {names or 'none yet'}" + f" and {hidden} more" * (hidden > 0)
    budget.take(f"{head}\n\n<{quotes.mark}>\n{files}\nKnowledge bases:\nand 0000000 more\n</>")
    rows = [line for line, _ in map(row_of, tools.list())]
    lines = list(takewhile(budget.takes, rows))
    lines += [f"and {len(rows) - len(lines):,} more"] if len(rows) > len(lines) else []
    kb_list = "\n".join(["Knowledge bases:", *lines]) if lines else "No knowledge base yet."
    return f"{head}\n\n<{quotes.mark}>\n{kb_list}\n\n{files}\n</{quotes.mark}>"
